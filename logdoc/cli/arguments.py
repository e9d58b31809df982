"""Which command lines mean `explain`, and what the plain ones of them ask for. Says nothing about wrong ones: the
command-line library does."""

from __future__ import annotations

import os
import sys

from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    "explain",
    "run",
    "tui",
    "rules",
    "triage",
    "env",
    "decode",
    "probe",
    "doctor",
    "verify",
    "mcp",
    "schema",
    "completion",
)


@dataclass(frozen=True, slots=True)
class Request:
    """What `logdoc explain` is asked, by the names of its parameters."""

    paths: tuple[str, ...] = ()
    form: str = "text"
    redacted: bool | None = None
    follow: bool = False
    language: str | None = None
    rule_dirs: tuple[str, ...] = ()
    long: bool = False
    why: bool = False
    exit_zero: bool = False
    no_probes: bool = False
    fact_files: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    where: str = "local"
    python: str | None = None
    color: str = "auto"
    ascii_only: bool = False
    quiet: bool = False


# Those of `explain`'s options that its plain command lines use; a test holds them equal to the declared ones.
FLAGS: dict[str, tuple[str, bool]] = {
    "--redact": ("redacted", True),
    "--no-redact": ("redacted", False),
    "--long": ("long", True),
    "--why": ("why", True),
    "--exit-zero": ("exit_zero", True),
    "--no-probes": ("no_probes", True),
    "--ascii": ("ascii_only", True),
    "-q": ("quiet", True),
    "--quiet": ("quiet", True),
}
VALUES: dict[str, tuple[str, tuple[str, ...]]] = {
    "--format": ("form", ("text", "json", "jsonl", "markdown", "slack", "teams", "html", "termination")),
    "--lang": ("language", ("en", "zh")),
    "--color": ("color", ("auto", "always", "never")),
    "--python": ("python", ()),
    "--engine": ("where", ("local", "ray")),
}
LISTS = {"--rules": "rule_dirs", "--facts": "fact_files", "--baseline": "baselines"}


def explain_arguments(arguments: Sequence[str]) -> list[str] | None:
    """The arguments of `explain`, where that is the command: by its name, or by an input in a command's place."""
    if not arguments:
        return None if sys.stdin.isatty() else ["-"]
    first = arguments[0]
    if first == "explain":
        return list(arguments[1:])
    if first in COMMANDS or first in ("--help", "-h", "--version"):
        return None
    is_meant = any(map(_is_there, arguments)) if first.startswith("-") else names_input(first)
    return list(arguments) if is_meant else None


def names_input(argument: str) -> bool:
    """Whether an argument can only be meant as a log."""
    return _is_there(argument) or "://" in argument or any(sign in argument for sign in "*?[/\\.")


def _is_there(argument: str) -> bool:
    return argument == "-" or os.path.lexists(argument)


def plain_request(words: Sequence[str]) -> Request | None:
    """What these arguments of `explain` ask for; None for any that are not plainly right."""
    asked: dict[str, object] = {}
    lists: dict[str, list[str]] = {"paths": []}
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            lists["paths"].append(word)
            continue
        option, given, value = word.partition("=")
        if word in FLAGS:
            name, asked_for = FLAGS[word]
            asked[name] = asked_for
            continue
        if (option not in VALUES and option not in LISTS) or not option.startswith("--"):
            return None
        said = value if given else next(rest, None)
        if said is None:
            return None
        if option in LISTS:
            lists.setdefault(LISTS[option], []).append(said)
            continue
        name, choices = VALUES[option]
        if choices and said not in choices:
            return None
        asked[name] = said
    if not lists["paths"] and sys.stdin.isatty():
        return None
    return Request(**asked, **{name: tuple(values) for name, values in lists.items()})  # type: ignore[arg-type]
