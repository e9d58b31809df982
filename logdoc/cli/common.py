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


def said_plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Errors a user can cause become one line on stderr and their exit code; a closed pipe is no error."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
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

    return guarded


def _forget_stdout() -> None:
    """The reader is gone; Python must not complain about it again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_out(text: str) -> None:
    """Text to stdout as it is, all of it now."""
    if (sys.stdout.encoding or "").lower() in ("utf-8", "utf8"):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    import click  # which knows how to write to streams that cannot hold every sign

    click.echo(text, nl=False, color=True)


def note(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


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


def rules_option(command: Callable[..., Any]) -> Callable[..., Any]:
    import click

    return click.option(
        "--rules", "rule_dirs", multiple=True, metavar="DIR", help="Further rules; the same id replaces a built-in one."
    )(command)


def wants_color(choice: str) -> bool:
    """--color, then NO_COLOR and FORCE_COLOR, then whether stdout is a terminal."""
    if choice != "auto":
        return choice == "always"
    if "NO_COLOR" in os.environ:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
