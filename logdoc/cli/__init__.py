"""The command line: parses, calls, prints. Everything below it neither prints nor exits."""

from logdoc.cli.main import main

__all__ = ["main"]
