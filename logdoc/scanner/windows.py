"""The parts of a large source that are worth reading: its head, its tail, and the lines round every trigger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from logdoc.scanner.text import bare, whole_lines
from logdoc.scanner.triggers import BENIGN_STRIDE, TriggerScanner

LINES_BEFORE, LINES_AFTER = 80, 40  # with 64 ranks in one log, a traceback's lines lie far apart
BYTES_BEFORE, BYTES_AFTER = 24 << 10, 16 << 10  # a margin is no more than this, whatever its lines
MOST_WINDOWS = 50  # of one trigger in one range; later ones tell the same
MOST_HITS = 2000  # of one trigger in one range: from there on it is only known to occur
LEAST_CUT = 64  # so many hits are let pass in any case: a failure comes in bursts


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a source: whole lines from line number `line` on. `follows`: nothing lies between it and the last.

    `why`: the triggers it holds; none where it is read in any case.
    """

    line: int
    data: bytes
    follows: bool = False
    why: tuple[int, ...] = ()


@dataclass(slots=True)
class Counts:
    """What one range held: lines, and for each trigger its hits; `cut` triggers went on unread."""

    lines: int = 0
    bytes: int = 0
    hits: dict[int, int] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Edges:
    """How much is read in any case, in bytes: at the start and at the end of a source."""

    head: int = 4 << 10
    tail: int = 64 << 10


class WindowScan:
    """One pass over a range of a source. `counts` is complete when `pieces` has ended.

    `cut`: triggers known to belong to the healthy log. `lead`: what stands before the range, for the margins; line
    numbers count from 1 at the range's start, so a piece of the lead has numbers below.
    """

    def __init__(
        self, scanner: TriggerScanner, edges: Edges, cut: Collection[int] = (), lead: bytes = b"", first_line: int = 1
    ) -> None:
        self._scanner = scanner
        self._edges = edges
        self.counts = Counts(cut=set(cut))
        self._line = first_line - lead.count(b"\n")  # of the first byte of `_recent`, or of the next block
        self._recent = lead  # unread lines just before the next block
        self._owed = 0  # lines that the last hit's margin still lacks
        self._joined = False  # whether the last piece ended where `_recent`, or the next block, begins

    def pieces(self, blocks: Iterable[bytes]) -> Iterator[Piece]:
        """The windows of the range's text, in order."""
        edges, first = self._edges, True
        for block, is_last in whole_lines(blocks, edges.tail):
            wanted = []
            if first and edges.head:
                wanted.append((0, _line_end(block, edges.head)))
            if is_last and edges.tail:
                wanted.append((_line_start(block, len(block) - edges.tail), len(block)))
            yield from self._cut(block, wanted, self._hits(block))
            first = False
            self.counts.lines += is_last and edges.tail > 0 and not block.endswith(b"\n")

    def trail(self, following: bytes) -> Iterator[Piece]:
        """The lines that a last hit still lacks, from the text behind the range."""
        if self._owed:
            yield from self._cut(following[: following.rfind(b"\n") + 1], [], [])

    def _hits(self, block: bytes) -> list[tuple[int, int]]:
        """The triggers in the block that are still worth it: an offset on the line of each, and its number."""
        self.counts.bytes += len(block)
        self.counts.lines += block.count(b"\n")
        text = bare(block)
        live = self._scanner.present(text) - self.counts.cut
        if not live:
            return []
        kept = [(end - 1, number) for end, number in self._scanner.ends(text, live) if self._is_worth_it(number)]
        return kept if text is block else _same_lines(text, block, kept)

    def _is_worth_it(self, number: int) -> bool:
        counts = self.counts
        if number in counts.cut:
            return False
        count = counts.hits[number] = counts.hits.get(number, 0) + 1
        if count > max(LEAST_CUT, counts.bytes // BENIGN_STRIDE) or count > MOST_HITS:
            counts.cut.add(number)
        return count <= MOST_WINDOWS

    def _cut(self, block: bytes, wanted: list[tuple[int, int]], hits: Sequence[tuple[int, int]]) -> Iterator[Piece]:
        """The pieces of `_recent` and `block` that wanted places, hits and what is owed make."""
        before = len(self._recent)
        text = self._recent + block if before else block
        places = [_Place(before + start, before + end) for start, end in wanted]
        places += _with_margins(text, [(before + hit, number) for hit, number in hits])
        if self._owed:
            places.append(_Place(before, *_lines_on(text, before, self._owed)))
        line, at, self._owed = self._line, 0, 0
        last_end = 0 if self._joined else -1
        for start, end, owed, why in _merged(places):
            line += text.count(b"\n", at, start)
            yield Piece(line, text[start:end], start == last_end, why)
            line += text.count(b"\n", start, end)
            at = last_end = end
            self._owed = owed if end == len(text) else 0
        kept_from = max(at, _lines_back(text, len(text)))
        self._line = line + text.count(b"\n", at, kept_from)
        self._recent = text[kept_from:]
        self._joined = last_end == kept_from


class _Place(NamedTuple):
    """From where to where to read, the lines still owed behind it, and the triggers in it."""

    start: int
    end: int
    owed: int = 0
    why: tuple[int, ...] = ()


def _merged(places: list[_Place]) -> list[_Place]:
    """Overlapping and touching places as one."""
    merged: list[_Place] = []
    for place in sorted(places):
        last = merged[-1] if merged else None
        if last is not None and place.start <= last.end:
            why = last.why if set(place.why) <= set(last.why) else (*last.why, *place.why)
            merged[-1] = _Place(last.start, max(last.end, place.end), max(last.owed, place.owed), why)
        else:
            merged.append(place)
    return merged


def _with_margins(text: bytes, hits: Sequence[tuple[int, int]]) -> Iterator[_Place]:
    """Each hit, in order of the text, with the lines before and behind it."""
    reached = 0
    for hit, number in hits:
        first = _line_start(text, hit)
        start = _lines_back(text, first) if first >= reached else first  # what lies before is read already
        end, owed = _lines_on(text, _line_end(text, hit), LINES_AFTER)
        reached = max(reached, end)
        yield _Place(start, end, owed, (number,))


def _line_start(text: bytes, place: int) -> int:
    """Where the line of `place` begins; of an endless line, a margin before."""
    start = text.rfind(b"\n", max(0, place - BYTES_BEFORE), max(0, place)) + 1
    return start or max(0, place - BYTES_BEFORE)


def _line_end(text: bytes, place: int) -> int:
    """Behind the newline of the line of `place`; of an endless line, a margin behind."""
    end = text.find(b"\n", place, place + BYTES_AFTER) + 1
    return end or min(len(text), place + BYTES_AFTER)


def _lines_back(text: bytes, end: int) -> int:
    """The start of the LINES_BEFORE lines that end at `end`, or of those within BYTES_BEFORE."""
    least, start = max(0, end - BYTES_BEFORE), end
    for _ in range(LINES_BEFORE):
        found = text.rfind(b"\n", least, max(least, start - 1))
        if found < 0:
            return 0 if least == 0 else start
        start = found + 1
    return start


def _lines_on(text: bytes, start: int, count: int) -> tuple[int, int]:
    """The end of the `count` lines from `start` on, within BYTES_AFTER; and how many of them the text still owes."""
    most = min(len(text), start + BYTES_AFTER)
    end = start
    for missing in range(count, 0, -1):
        found = text.find(b"\n", end, most) + 1
        if not found:
            return (most, missing) if most == len(text) else (end, 0)
        end = found
    return end, 0


def _same_lines(cleaned: bytes, raw: bytes, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in the cleaned text as places on the same lines of the raw text."""
    found, at, start = [], 0, 0
    for place, number in places:
        for _ in range(cleaned.count(b"\n", at, place)):
            start = raw.find(b"\n", start) + 1
        at = place
        found.append((start, number))
    return found
