"""What every dialect is made of: patterns whose named groups are the fields a prefix can tell."""

from __future__ import annotations

import re
from collections.abc import Callable

from logdoc.types.value import dataclass, field

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

LEVELS = {
    "T": "TRACE", "D": "DEBUG", "V": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL",
    "WARN": "WARNING", "ERR": "ERROR", "CRITICAL": "FATAL", "SEVERE": "ERROR", "NOTICE": "INFO", "SUCCESS": "INFO",
}  # fmt: skip


@dataclass(slots=True)
class Peeled:
    """A line after one prefix came off: what the prefix said, and the text behind it."""

    fields: dict[str, str]
    rest: str


Extractor = Callable[[str], Peeled | None]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A log format. `starts`: the characters its prefix can begin with (a cheap refusal); empty means any.

    `patterns` are tried in order at the start of the text; the match is the prefix, its named groups say who speaks
    (rank, local_rank, task, host, pid, thread, device), when (time) and what for (level, component).
    `outer`: a collector's or launcher's prefix, which may stand in front of any other and repeats on every line.
    `extract` replaces the patterns where a format is no mere prefix (JSON lines).
    `keeps_prefix`: the prefix belongs to the message; it is recognised but stays in the body.
    """

    name: str
    starts: frozenset[str]
    patterns: tuple[re.Pattern[str], ...] = ()
    outer: bool = False
    keeps_prefix: bool = False
    extract: Extractor | None = field(default=None)

    def peel(self, text: str) -> Peeled | None:
        """Take this dialect's prefix off `text`, or say None if there is none."""
        if self.extract is not None:
            return self.extract(text)
        for pattern in self.patterns:
            found = pattern.match(text)
            if found is not None:
                fields = {name: value for name, value in found.groupdict().items() if value is not None}
                return Peeled(fields, text if self.keeps_prefix else text[found.end() :])
        return None


def level_name(word: str) -> str:
    """One spelling for each level: `W`, `WARN` and `Warning` are WARNING."""
    upper = word.upper()
    return LEVELS.get(upper, upper)
