"""The parts of a large source that are worth reading: its head, its tail, and the lines round every trigger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from logdoc.scanner.hits import Counts, HitScan
from logdoc.scanner.text import whole_lines
from logdoc.scanner.triggers import TriggerScanner
from logdoc.types.value import dataclass

LINES_BEFORE, LINES_AFTER = 80, 40  # with 64 ranks in one log, a traceback's lines lie far apart
BYTES_BEFORE, BYTES_AFTER = 24 << 10, 16 << 10  # a margin is no more than this, whatever its lines


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
class Edges:
    """How much is read in any case, in bytes: at the start and at the end of a source."""

    head: int = 4 << 10
    tail: int = 64 << 10


class WindowScan:
    """One pass over what is read only once. `counts` is complete when `pieces` has ended.

    `cut`: triggers known to belong to the healthy log. `lead`: what stands before, for the margins; line numbers count
    from 1 behind it, so a piece of the lead has numbers below.
    """

    def __init__(self, scanner: TriggerScanner, edges: Edges, cut: Collection[int] = (), lead: bytes = b"") -> None:
        self._hits = HitScan(scanner, cut)
        self._edges = edges
        self._line = 1 - lead.count(b"\n")  # of the first byte of `_recent`, or of the next block
        self._recent = lead  # unread lines just before the next block
        self._owed = 0  # lines that the last hit's margin still lacks
        self._joined = False  # whether the last piece ended where `_recent`, or the next block, begins

    def pieces(self, blocks: Iterable[bytes]) -> Iterator[Piece]:
        """The windows of the text, in order."""
        edges, counts, first = self._edges, self._hits.counts, True
        for block, is_last in whole_lines(blocks, edges.tail):
            wanted = []
            if first and edges.head:
                wanted.append((0, line_end(block, edges.head)))
            if is_last and edges.tail:
                wanted.append((line_start(block, len(block) - edges.tail), len(block)))
            counts.bytes += len(block)
            counts.lines += block.count(b"\n") + (is_last and edges.tail > 0 and not block.endswith(b"\n"))
            yield from self._cut(block, wanted, self._hits.hits(block))
            first = False

    def trail(self, following: bytes) -> Iterator[Piece]:
        """The lines that a last hit still lacks, from the text behind."""
        if self._owed:
            yield from self._cut(following[: following.rfind(b"\n") + 1], [], [])

    @property
    def counts(self) -> Counts:
        return self._hits.counts

    def _cut(self, block: bytes, wanted: list[tuple[int, int]], hits: Sequence[tuple[int, int]]) -> Iterator[Piece]:
        """The pieces of `_recent` and `block` that wanted places, hits and what is owed make."""
        before = len(self._recent)
        text = self._recent + block if before else block
        places = [Place(before + start, before + end) for start, end in wanted]
        places += with_margins(text, [(before + hit, number) for hit, number in hits])
        if self._owed:
            places.append(Place(before, *_lines_on(text, before, self._owed)))
        line, at, self._owed = self._line, 0, 0
        last_end = 0 if self._joined else -1
        for place in _merged(places):
            line += text.count(b"\n", at, place.start)
            yield Piece(line, text[place.start : place.end], place.start == last_end, place.why)
            line += text.count(b"\n", place.start, place.end)
            at = last_end = place.end
            self._owed = place.owed if place.end == len(text) else 0
        kept_from = max(at, _lines_back(text, len(text)))
        self._line = line + text.count(b"\n", at, kept_from)
        self._recent = text[kept_from:]
        self._joined = last_end == kept_from


@dataclass(frozen=True, slots=True)
class Place:
    """From where to where to read, the lines still owed behind it, and the triggers in it."""

    start: int
    end: int
    owed: int = 0
    why: tuple[int, ...] = ()


def _merged(places: list[Place]) -> list[Place]:
    """Overlapping and touching places as one."""
    merged: list[Place] = []
    for place in sorted(places, key=lambda place: (place.start, place.end, place.owed, place.why)):
        last = merged[-1] if merged else None
        if last is not None and place.start <= last.end:
            why = last.why if set(place.why) <= set(last.why) else (*last.why, *place.why)
            merged[-1] = Place(last.start, max(last.end, place.end), max(last.owed, place.owed), why)
        else:
            merged.append(place)
    return merged


def with_margins(text: bytes, hits: Sequence[tuple[int, int]]) -> Iterator[Place]:
    """Each hit, in order of the text, with the lines before and behind it."""
    reached = 0
    for hit, number in hits:
        first = line_start(text, hit)
        start = _lines_back(text, first) if first >= reached else first  # what lies before is read already
        end, owed = _lines_on(text, line_end(text, hit), LINES_AFTER)
        reached = max(reached, end)
        yield Place(start, end, owed, (number,))


def line_start(text: bytes, place: int) -> int:
    """Where the line of `place` begins; of an endless line, a margin before."""
    start = text.rfind(b"\n", max(0, place - BYTES_BEFORE), max(0, place)) + 1
    return start or max(0, place - BYTES_BEFORE)


def line_end(text: bytes, place: int) -> int:
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
