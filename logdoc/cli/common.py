"""What all commands share: exit codes, language, streams, and errors as one line."""

from __future__ import annotations

import os
import sys
from functools import wraps

from logdoc.types.errors import InputError, LogdocError, RulesError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

EXIT_HEALTHY, EXIT_FAILURE_FOUND, EXIT_USAGE, EXIT_RULES_INVALID = 0, 1, 2, 3
EXIT_INTERRUPTED = 130  # as a shell says it of a program that Ctrl-C ended


def said_plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Errors a user can cause become one line on stderr and their exit code; a closed pipe is no error."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        _mend_streams()
        try:
            return command(*args, **kwargs)
        except RulesError as error:
            note(str(error))
            sys.exit(EXIT_RULES_INVALID)
        except (InputError, LogdocError) as error:
            note(f"logdoc: {error}")
            sys.exit(EXIT_USAGE)
        except BrokenPipeError:
            _forget_stdout()
            sys.exit(EXIT_HEALTHY)
        except OSError as error:
            _forget_stdout()
            note(f"logdoc: {_told(error)}")
            sys.exit(EXIT_USAGE)
        except KeyboardInterrupt:
            note("logdoc: interrupted")
            sys.exit(EXIT_INTERRUPTED)
        except Exception as error:
            if sys.flags.dev_mode or type(error).__module__.startswith("click."):  # whose errors say themselves
                raise
            note(f"logdoc: {_own_fault(error)}")
            sys.exit(EXIT_USAGE)

    return guarded


def _mend_streams() -> None:
    """A stream the caller closed leads nowhere, and one that cannot hold a sign says `?` for it."""
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            # the lowest free descriptor is the closed one, which no log file may be given
            descriptor = os.open(os.devnull, flags)
            setattr(sys, name, open(descriptor, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
        elif name != "stdin" and not _holds_all(stream.encoding) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _holds_all(encoding: str | None) -> bool:
    return (encoding or "").lower() in ("utf-8", "utf8")


def _told(error: OSError) -> str:
    """What the system says, and of which file where it names one."""
    reason = error.strerror or type(error).__name__
    return f"{os.fsdecode(error.filename)!r}: {reason}" if error.filename else reason


def _own_fault(error: Exception) -> str:
    """What a report of the fault needs, on one line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    said = " ".join(str(error).split())[:200]
    return f"fault of logdoc itself, please report it: {type(error).__name__}: {said}{place} (python -X dev shows more)"


def _forget_stdout() -> None:
    """Nobody takes the rest; Python must not complain about it again when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a stdout that is no file
        return


def write_out(text: str) -> None:
    """Text to stdout as it is, all of it now."""
    if _holds_all(sys.stdout.encoding):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    import click  # which knows how to write to streams that cannot hold every sign

    click.echo(text, nl=False, color=True)


def echo(text: str) -> None:
    """Lines for people on stdout. What they quote of scripts, packs and machines is nothing a terminal obeys."""
    import click

    from logdoc.render.plain import visible

    click.echo(visible(text))


def note(text: str) -> None:
    """A line on stderr. What it quotes (a file's name, an argument) is foreign: a terminal must not obey it."""
    shown = "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)
    sys.stderr.write(f"{shown}\n")
    sys.stderr.flush()


def counted(what: str, number: int, language: str) -> str:
    """`1 rule`, `2 rules`: the sentences `one.WHAT` and `many.WHAT`."""
    from logdoc.reporting.wording import phrase

    return phrase(f"{'one' if number == 1 else 'many'}.{what}", language, n=number)


def terminal_columns(otherwise: int) -> int:
    """How wide the terminal is: COLUMNS, what stdout says, else `otherwise`."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or otherwise  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return otherwise


def default_language() -> str:
    """`zh` under a Chinese locale, else `en`."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    import locale

    return "zh" if (locale.getlocale()[0] or "").lower().startswith("zh") else "en"


def language_option(command: Callable[..., Any]) -> Callable[..., Any]:
    import click

    return click.option(
        "--lang", "language", type=click.Choice(["en", "zh"]), default=default_language, help="Language of the texts."
    )(command)


def facts_option(command: Callable[..., Any]) -> Callable[..., Any]:
    import click

    from logdoc.cli.completing import files

    return click.option(
        "--facts",
        "fact_files",
        multiple=True,
        metavar="FILE",
        shell_complete=files,
        help="Facts of `logdoc probe`, one file a host.",
    )(command)


def rules_option(command: Callable[..., Any]) -> Callable[..., Any]:
    import click

    from logdoc.cli.completing import files

    return click.option(
        "--rules",
        "rule_dirs",
        multiple=True,
        metavar="DIR",
        shell_complete=files,
        help="Further rules; the same id replaces a built-in one.",
    )(command)


def wants_color(choice: str) -> bool:
    """--color, then NO_COLOR and FORCE_COLOR, then whether stdout is a terminal."""
    if choice != "auto":
        return choice == "always"
    if "NO_COLOR" in os.environ:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
