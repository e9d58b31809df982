"""Which messages of a catalogue does no rule recognise? Reads the table; whoever calls says what is recognised."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from logdoc.rulebase.templates import Slots, appearances
from logdoc.types.errors import InputError

# A text to the ids of the rules whose evidence it shows, and of those whose context it shows.
Recognise = Callable[[str], tuple[set[str], set[str]]]

_MESSAGE_COLUMNS = ("format", "message", "text")
_LABEL_COLUMNS = ("tag", "cause", "rule")
_NO_LABEL = frozenset({"", "-", "none"})


@dataclass(frozen=True, slots=True)
class Message:
    """A row of a table: its label, and the texts it can appear as: for each way to fill its holes, every prefix."""

    line: int
    label: str
    template: str
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a table fares: rows in all, and those that nothing or only other rules recognise (with their names)."""

    rows: int
    unknown: tuple[Message, ...]
    elsewhere: tuple[tuple[Message, tuple[str, ...]], ...]

    @property
    def share(self) -> float:
        """The recognised part, 0..1."""
        return 1.0 if not self.rows else 1 - len(self.unknown) / self.rows


def read_table(path: Path) -> list[Message]:
    """The labelled messages of a TSV table with a header. Raises InputError where it is no such table."""
    try:
        with path.open(encoding="utf-8", newline="") as table:
            lines = [line for line in table if not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    columns = rows[0].keys() if rows else ()
    message = next((name for name in _MESSAGE_COLUMNS if name in columns), None)
    label = next((name for name in _LABEL_COLUMNS if name in columns), None)
    if message is None or label is None:
        raise InputError(f"{path}: a table of messages has a header with {'/'.join(_MESSAGE_COLUMNS)} and tag or cause")
    return [
        Message(number, row[label], row[message], appearances(row[message], _slots(row)))
        for number, row in enumerate(rows, start=2)
        if row[label] not in _NO_LABEL and row[message]
    ]


def coverage(messages: Iterable[Message], recognise: Recognise) -> Coverage:
    """Try every message in every appearance; one that is missed in any of them is not recognised.

    It leads to the table's rule if some filling of its holes does under every prefix. Context counts for the table's
    own rule only: many rules look at ordinary lines round their evidence.
    """
    unknown, elsewhere, rows = [], [], 0
    for message in messages:
        rows += 1
        found = [
            [evidence | (context & {message.label}) for evidence, context in map(recognise, texts)]
            for texts in message.texts
        ]
        if any(not rules for filling in found for rules in filling):
            unknown.append(message)
        elif not any(all(message.label in rules for rules in filling) for filling in found):
            others = set().union(*(rules for filling in found for rules in filling))
            elsewhere.append((message, tuple(sorted(others))))
    return Coverage(rows, tuple(unknown), tuple(elsewhere))


def _slots(row: dict[str, str]) -> Slots:
    def cell(*names: str) -> str:
        return next((row[name] for name in names if row.get(name)), "")

    return Slots(
        file=cell("file", "last_file"),
        line=cell("line", "last_line"),
        level=cell("level"),
        component=cell("component"),
        since=cell("since", "first_tag"),
        until=cell("until", "last_tag"),
    )
