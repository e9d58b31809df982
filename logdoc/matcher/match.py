"""The matching itself: where a literal occurs, the signature's regex decides, within a window and a time limit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from logdoc.kept.patterns import guarded, lazily
from logdoc.rulebase.index import Entry, LiteralIndex
from logdoc.rulebase.observations import MILESTONES
from logdoc.scanner import LiteralScanner, best_scanner
from logdoc.scanner.plain import PlainScanner
from logdoc.types.finding import Match
from logdoc.types.record import Record
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WINDOW = 8192  # characters around a literal in which a line's regex is tried
RECORD_WINDOW = 32768  # characters of a joined record that are looked at
SECONDS_PER_TRY = 0.25
FEW_BYTES = 64 << 10  # of a log: up to here an automaton of all literals takes longer to load than to do without
ABSURD_DIGITS = 41  # nothing that is counted has so many; twice what 64 bits hold
_ABSURD = lazily(r"(\d{18})\d{23,}")
# Matches of one signature that are kept, but for milestones; further ones are counted. Of a job with thousands of
# printers the first of each is kept in any case: it tells on whom a failure shows.
MOST_PER_PRINTER = 100
MOST_PER_SIGNATURE = 10_000


class Prefilter:
    """The compiled literals of an index: which signatures are worth trying, and where. Make one and share it."""

    def __init__(
        self, index: LiteralIndex, scanner: Callable[[Sequence[bytes]], LiteralScanner] = best_scanner
    ) -> None:
        self._index = index
        self._scanner = scanner
        self._left = FEW_BYTES if scanner is best_scanner else 0

    def hits(self, buffer: bytes) -> Iterable[tuple[Entry, int]]:
        """(signature, end offset of its literal) for every occurrence in `buffer`."""
        self._left -= len(buffer)
        exact, caseless = self._small if self._left >= 0 else self._large
        for number, end in exact.ends(buffer) if self._index.exact else ():
            for entry in self._index.exact_entries[number]:
                yield entry, end
        for number, end in caseless.ends(buffer.lower()) if self._index.caseless else ():
            for entry in self._index.caseless_entries[number]:
                yield entry, end

    @cached_property
    def _small(self) -> tuple[LiteralScanner, LiteralScanner]:
        index = self._index
        return PlainScanner(index.exact, index.exact_starts), PlainScanner(index.caseless, index.caseless_starts)

    @cached_property
    def _large(self) -> tuple[LiteralScanner, LiteralScanner]:
        literals = (self._index.exact, self._index.caseless)
        exact, caseless = (self._scanner(one) if one else PlainScanner(one) for one in literals)
        return exact, caseless


@dataclass(slots=True)
class Matcher:
    """Finds the matches of a prefilter's signatures in batches of Records; one Matcher for one reading.

    `dropped` counts, per (rule id, signature), the hits that were not looked at because too many had matched;
    `timeouts` names signatures that ran out of time on some record.
    """

    prefilter: Prefilter
    dropped: dict[tuple[str, str], int] = field(default_factory=dict)
    timeouts: set[str] = field(default_factory=set)
    _kept: dict[tuple[str, str], int] = field(default_factory=dict)
    _kept_of: dict[tuple[object, ...], int] = field(default_factory=dict)

    def find(self, records: Sequence[Record]) -> list[Match]:
        """All matches in these records, in order of record, then place."""
        buffer, starts = _buffer(records)
        tried: set[tuple[Entry, int]] = set()
        matches: list[Match] = []
        number, line_start, line_end = -1, 0, 0
        for entry, end in self.prefilter.hits(buffer):
            if not line_start < end <= line_end:
                line_start = buffer.rfind(b"\n", 0, end - 1) + 1
                line_end = buffer.find(b"\n", end)
                line_end = len(buffer) if line_end < 0 else line_end
                number = bisect_right(starts, end - 1) - 1
            key = (entry, line_start if entry.signature.scope == "line" else -1 - number)
            if key in tried:
                continue
            tried.add(key)
            match = self._try(entry, records[number], buffer, starts[number], line_start, end)
            if match is not None:
                matches.append(match)
        matches.sort(key=lambda match: (match.record.seq, match.start, match.rule.id, match.name))
        return _without_claimed(matches)

    def _try(
        self, entry: Entry, record: Record, buffer: bytes, record_start: int, line_start: int, end: int
    ) -> Match | None:
        signature = entry.signature
        if signature.from_ and not set(signature.from_) & set(record.dialects):
            return None
        name = (entry.rule_id, entry.name)
        printer = (name, record.source, record.attempt, record.who.printer)
        most = MOST_PER_PRINTER if self._kept.get(name, 0) < MOST_PER_SIGNATURE else 1
        if entry.rule_id != MILESTONES and self._kept_of.get(printer, 0) >= most:
            self.dropped[name] = self.dropped.get(name, 0) + 1
            return None
        if signature.scope == "line":
            first, last = _line_window(record.body, buffer, record_start, line_start, end)
        else:
            first, last = 0, min(len(record.body), RECORD_WINDOW)
        found = self._search(signature.regex, record.body, first, last, entry)
        if (
            found is None
            or (signature.scope == "line" and _is_echo(record.body, found.start()))
            or any(
                self._search(pattern, record.body, 0, min(len(record.body), RECORD_WINDOW), entry)
                for pattern in signature.not_
            )
        ):
            return None
        self._kept[name] = self._kept.get(name, 0) + 1
        self._kept_of[printer] = self._kept_of.get(printer, 0) + 1
        return _match(entry, record, found)

    def _search(self, pattern: str, body: str, first: int, last: int, entry: Entry) -> Any:
        try:
            # a search takes microseconds: to let other threads in each time costs more than it does
            return guarded(pattern).search(body, first, last, timeout=SECONDS_PER_TRY, concurrent=False)
        except TimeoutError:
            self.timeouts.add(f"{entry.rule_id}/{entry.name}")
            return None


_ECHO = lazily(r"\s*(?:raise |assert |warnings\.warn\(|logg(?:er|ing)\.\w+\(|print\()")


def _is_echo(body: str, at: int) -> bool:
    """Whether a line is source code that raises or prints a message, as tracebacks echo it: it did not say it."""
    return _ECHO.match(body, body.rfind("\n", 0, at) + 1) is not None


def _buffer(records: Sequence[Record]) -> tuple[bytes, list[int]]:
    """All bodies one below the other, and where each starts."""
    parts = [record.body.encode("utf-8", "surrogatepass") for record in records]
    starts, at = [], 0
    for part in parts:
        starts.append(at)
        at += len(part) + 1
    return b"\n".join(parts), starts


def _line_window(body: str, buffer: bytes, record_start: int, line_start: int, end: int) -> tuple[int, int]:
    """The line of `body` that holds the literal ending at byte `end`, cut to WINDOW around it; in characters."""
    first = len(buffer[record_start:line_start].decode("utf-8", "replace")) if line_start > record_start else 0
    last = body.find("\n", first)
    last = len(body) if last < 0 else last
    if last - first <= WINDOW:
        return first, last
    hit = first + len(buffer[line_start:end].decode("utf-8", "replace"))
    return max(first, hit - WINDOW // 2), min(last, hit + WINDOW // 2)


def _match(entry: Entry, record: Record, found: Any) -> Match:
    captures = {name: _bounded(value) for name, value in found.groupdict().items() if value is not None}
    who = record.who
    rank = _number(captures.get("rank"))
    local_rank = _number(captures.get("local_rank"))
    other = rank is not None and rank != who.rank
    return Match(
        rule=entry.rule,
        name=entry.name,
        signature=entry.signature,
        record=record,
        start=found.start(),
        end=found.end(),
        captures=captures,
        line=record.line_of(found.start()),
        rank=who.rank if rank is None else rank,
        local_rank=local_rank if local_rank is not None or other else who.local_rank,
        host=captures.get("host") or (None if other else who.host),
    )


def _bounded(value: str) -> str:
    """`value`, whose numbers whoever reckons with them can hold: of an absurd one its first digits."""
    return value if len(value) < ABSURD_DIGITS else _ABSURD.sub(r"\1", value)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


def _without_claimed(matches: list[Match]) -> list[Match]:
    """Fallback rules judge only records that no other rule recognised, and no traceback that the program caught and
    logged as a warning; what is noise in any case takes weak evidence back (the rest: conditions.hypotheses)."""
    claimed: set[int] = set()
    noise: set[int] = set()
    for match in matches:
        if not match.rule.fallback and match.signature.role == "evidence":
            claimed.add(match.record.seq)
            if match.rule.kind == "noise" and match.rule.when is None:
                noise.add(match.record.seq)
    return [
        match
        for match in matches
        if not (match.rule.fallback and (match.record.seq in claimed or match.record.is_caught))
        and not (match.is_weak_evidence and match.record.seq in noise)
    ]
