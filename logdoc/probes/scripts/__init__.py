"""Scripts of the active probes: run under the job's Python by `logdoc.probes.active`, never imported by logdoc.

Standard library and torch only, Python 3.8; torch is imported by name at run time, in children that may be killed.
"""
