"""Which messages of a catalogue does no rule recognise? Fills a message's placeholders with plausible values and every
prefix of its generation; whoever calls says what is recognised."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from logdoc.types.errors import InputError

# A text to the ids of the rules whose evidence it shows, and of those whose context it shows.
Recognise = Callable[[str], tuple[set[str], set[str]]]

_MESSAGE_COLUMNS = ("format", "message", "text")
_LABEL_COLUMNS = ("tag", "cause", "rule")
_NO_LABEL = frozenset({"", "-", "none"})

_PRINTF = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfgGcsp])")
_PRINTF_VALUES = {
    "d": "3", "i": "3", "u": "3", "o": "7", "x": "1f", "X": "1F", "e": "1.5", "E": "1.5", "f": "1.50", "g": "1.5",
    "G": "1.5", "c": "x", "s": "node7", "p": "0x7f3a5c000b60",
}  # fmt: skip
_BRACES = re.compile(r"\{([^{}]*)\}")
_BRACE_VALUES = (
    (re.compile(r"ms|timeout|milli"), "600000"),
    (re.compile(r"GiB|size|bytes"), "2.00 GiB"),
    (re.compile(r"host|addr|node"), "node7"),
    (re.compile(r"port"), "29500"),
    (re.compile(r"op\b|Op|name|type|what|path|file|key|dtype|msg|text|error|reason|url|backend|version|cls"), "value"),
)


@dataclass(frozen=True, slots=True)
class Message:
    """A row of a table: its label, its level (NCCL's), and the log texts it can appear as."""

    line: int
    label: str
    template: str
    texts: tuple[str, ...]


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
        Message(number, row[label], row[message], tuple(_appearances(row, row[message])))
        for number, row in enumerate(rows, start=2)
        if row[label] not in _NO_LABEL and row[message]
    ]


def coverage(messages: Iterable[Message], recognise: Recognise) -> Coverage:
    """Try every message in every appearance; one that is missed in any of them is not recognised.

    Context counts for the table's own rule only: many rules look at ordinary lines round their evidence.
    """
    unknown, elsewhere, rows = [], [], 0
    for message in messages:
        rows += 1
        found = [evidence | (context & {message.label}) for evidence, context in map(recognise, message.texts)]
        if any(not rules for rules in found):
            unknown.append(message)
        elif any(message.label not in rules for rules in found):
            elsewhere.append((message, tuple(sorted(set().union(*found)))))
    return Coverage(rows, tuple(unknown), tuple(elsewhere))


def filled(template: str) -> str:
    """A message with plausible values for `%s` and `{name}`, C escapes undone."""
    text = template.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    text = _PRINTF.sub(lambda found: "%" if found.group() == "%%" else _PRINTF_VALUES[found.group(1)], text)
    for _ in range(3):
        text = _BRACES.sub(lambda found: _brace(found.group(1)), text)
    return text


def _brace(name: str) -> str:
    """`{rank}` is a number, `{host}` a word; `{. This is optional}` is the text itself; `{a|b}` its first choice."""
    if name[:1] in " .,;:([" or name.endswith((" ", ".", ")")):
        return name.rstrip("*")
    choice = name.split("|")[0]
    if " " in choice and not choice.startswith("X"):
        return choice
    return next((value for pattern, value in _BRACE_VALUES if pattern.search(choice)), "3")


def _appearances(row: dict[str, str], template: str) -> Iterator[str]:
    """The message as its generations print it."""
    text = filled(template)
    level = row.get("level")
    place = f"{row.get('file') or row.get('last_file') or 'init.cc'}:{row.get('line') or row.get('last_line') or 1}"
    place = place.replace("src/", "", 1).split("@")[0]
    if level in ("WARN", "INFO"):
        body = text.strip("\n")
        if level == "INFO":
            yield f"node1:311:402 [0] NCCL INFO {body}"
            return
        yield f"\nnode1:311:402 [0] {place} NCCL WARN {body}"
        yield f"\n[2026-05-05 06:16:47] node1:311:402 [0] {place} NCCL WARN {body}"
        yield f"\n[2026-05-05 06:16:47] node1:311:402 [0] {place} (ncclFunction) NCCL WARN {body}"
    elif level is None:
        yield text
        yield "\n".join(f"[rank3]: {line}" for line in text.split("\n"))
    else:
        yield text
