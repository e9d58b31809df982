"""The front door. What most runs want, an explanation or the help page, is served without the command-line library,
whose import alone takes longer than reading a small log; everything else is its work."""

from __future__ import annotations

import gc
import os
import sys

from logdoc.cli.arguments import explain_arguments, plain_request
from logdoc.cli.common import said_plainly, terminal_columns, write_out

HELP_COLUMNS = 80  # a narrower terminal has the help page wrapped for it


def main(prog_name: str | None = None) -> None:
    """The command line's entry point; ends the process with the exit code."""
    gc.disable()  # nothing made while starting is garbage; `explain` sets it going again for the reading
    code = _at_once(sys.argv[1:])
    if code is not None:
        gc.freeze()  # the interpreter's end looks for cycles in all there is: a tenth of a small log's time
        sys.exit(code)
    gc.enable()
    from logdoc.cli.commands import commands

    commands(prog_name=prog_name)


@said_plainly
def _at_once(arguments: list[str]) -> int | None:
    """The exit code, where this can be served without the command-line library, else None."""
    if "_LOGDOC_COMPLETE" in os.environ or os.name == "nt":  # there the library expands patterns first
        return None
    if arguments in (["--help"], ["-h"]) and terminal_columns(HELP_COLUMNS) >= HELP_COLUMNS:
        write_out(help_page())
        return 0
    words = explain_arguments(arguments)
    request = None if words is None else plain_request(words)
    if request is None:
        return None
    from logdoc.cli.explanation import explained

    return explained(request)


def help_page() -> str:
    """What `logdoc --help` says at HELP_COLUMNS; a test holds it equal to what the commands say of themselves."""
    from logdoc.kept.data import text

    return text("help.txt")
