"""The terminal UI: shows a Report beside the log it was made of, and the rules; holds no diagnosis logic.

Textual is imported by the modules in here and by nothing else, so that the other commands start fast.
"""
