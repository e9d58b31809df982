"""`logdoc tui`: the terminal UI, for logs or for the rules."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial

import click

from logdoc.cli.common import facts_option, language_option, rules_option, said_plainly
from logdoc.cli.completing import files
from logdoc.reporting.wording import phrase
from logdoc.types.errors import InputError

TERMINAL = "/dev/tty"


@click.command(
    epilog="""\b
Examples:
  logdoc tui crash.log
  torchrun train.py 2>&1 | logdoc tui -
  logdoc tui                        browse the rules, try a line""",
)
@click.argument("paths", nargs=-1, metavar="[PATH|-]...", shell_complete=files)
@language_option
@rules_option
@facts_option
@click.option(
    "--python",
    metavar="EXE",
    shell_complete=files,
    help="The job's Python, for probes [default: the active environment's].",
)
@said_plainly
def tui(
    paths: tuple[str, ...],
    language: str,
    rule_dirs: tuple[str, ...],
    fact_files: tuple[str, ...],
    python: str | None,
) -> None:
    """Explain logs in a full-screen terminal UI; without any, browse the rules. Press ? there for its keys."""
    open_ui(paths or (("-",) if _is_piped() else ()), language, rule_dirs, fact_files, python)


def open_ui(
    paths: tuple[str, ...],
    language: str,
    rule_dirs: tuple[str, ...] = (),
    fact_files: tuple[str, ...] = (),
    python: str | None = None,
) -> None:
    """Run the UI on these logs, on the rules if there are none. Raises InputError where there is no terminal."""
    if not sys.stderr.isatty():  # Textual draws there
        raise InputError("the terminal UI needs a terminal on stderr; `logdoc explain` does not")
    from logdoc.engine import fact_sheets, load_engine
    from logdoc.rulebase import rule_roots
    from logdoc.sources import discover
    from logdoc.tui.app import LogdocApp
    from logdoc.tui.case import LogCase

    rule_roots(rule_dirs)  # one that is not there is said before the screen is taken
    engine = cache(partial(load_engine, rule_dirs))
    case = None
    if paths:
        with _interrupts_meant_for_the_job(language) if "-" in paths and not os.isatty(0) else nullcontext():
            found = discover(paths, sys.stdin.buffer)
        case = LogCase(engine, found.sources, fact_sheets(fact_files), python, found.warnings, paths)
    else:
        engine()  # invalid rules are said before the screen is taken
    _take_keys_from_terminal()
    app = LogdocApp(engine, case, language)
    app.run()
    if app.return_code:
        sys.exit(app.return_code)


@contextmanager
def _interrupts_meant_for_the_job(language: str) -> Iterator[None]:
    """Ctrl-C while a pipe is read ends the job at its other end; what it had said until then is shown."""
    click.echo(f"logdoc: {phrase('look.stdin', language)}", err=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_piped() -> bool:
    """Does something flow into stdin, rather than keys or nothing?"""
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _take_keys_from_terminal() -> None:
    """Textual reads descriptor 0, which a pipe may have used up."""
    if os.isatty(0):
        return
    try:
        terminal = os.open(TERMINAL, os.O_RDWR)
    except OSError:
        raise InputError("the terminal UI needs a terminal to read keys from") from None
    os.dup2(terminal, 0)
    os.close(terminal)
