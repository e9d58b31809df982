"""Sources that can only be read from front to back: the opening in full, then what the scan finds worth reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from logdoc.scanner.hits import Counts
from logdoc.scanner.ranges import Orders, Scanned
from logdoc.scanner.text import LONGEST_LINE, as_utf8
from logdoc.scanner.triggers import TriggerScanner
from logdoc.scanner.windows import Edges, Piece, WindowScan
from logdoc.sources import Source
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass

GONE = "cannot be read any more"


@dataclass(slots=True)
class Counter:
    """Counts the bytes that pass."""

    total: int = 0

    def count(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.total += len(block)
            yield block


class Stream:
    """One pass over plain blocks: take `opening` to its end, then `windows` unless `is_over`; no line is torn between.

    `room`: bytes that may still be read in full. `lines` and `counts` are complete when `windows` has ended.
    """

    def __init__(self, blocks: Iterator[bytes], room: int) -> None:
        self._blocks = blocks
        self._rest = b""
        self._opened = False
        self._line = 1
        self._torn = False
        self.room = room
        self.is_over = False
        self.counts = Counts()

    @property
    def lines(self) -> int:
        return self._line - 1 + self.counts.lines + (self.is_over and self._torn)

    def opening(self) -> Iterator[Piece]:
        for block in self._blocks:
            opening, self._rest = _up_to_line(block, self.room, self._torn)
            if opening:
                yield Piece(self._line, opening, self._opened)
                self.room -= len(opening)
                self._line += opening.count(b"\n")
                self._opened, self._torn = True, not opening.endswith(b"\n")
            if self._rest:
                return
        self.is_over = True

    def windows(self, orders: Orders, scanner: TriggerScanner) -> Iterator[Piece]:
        edges = Edges(0 if self._opened else orders.edges.head, orders.edges.tail)
        scan = WindowScan(scanner, edges, orders.cut)
        self.counts = scan.counts
        yield from sewn([(self._line - 1, scan.pieces(chain((self._rest,), self._blocks)))], self._line, self._opened)


@dataclass(frozen=True, slots=True)
class PackedJob:
    """A job: a compressed source from its start to its end, `opening` bytes of it read in full."""

    source: Source
    opening: int

    @property
    def size(self) -> int:
        """See Job."""
        return self.source.size or 0

    def scan(self, orders: Orders, scanner: TriggerScanner) -> Scanned:
        """See Job. What is damaged is read as far as it goes."""
        size = Counter()
        stream = Stream(as_utf8(size.count(self.source.open_blocks())), self.opening)
        try:
            pieces = list(stream.opening())
            read = sum(len(piece.data) for piece in pieces)
            if not stream.is_over:
                pieces += stream.windows(orders, scanner)
        except InputError as error:
            raise OSError(str(error)) from error
        counts = Counts(stream.lines, read + stream.counts.bytes, cut=stream.counts.cut)
        return Scanned(tuple(pieces), counts, True, size.total, self.source.truncated, self.source.warnings)

    def given_up(self) -> Scanned:
        """See Job."""
        return Scanned((), Counts(), True, 0, True, (f"{self.source.name}: {GONE}",), lost=True)


def sewn(scans: Iterable[tuple[int, Iterable[Piece]]], first: int, follows: bool) -> Iterator[Piece]:
    """The pieces of one source's ranges with their lines' own numbers, no line twice. `first`: the first unread line;
    `follows`: the line before it has been read."""
    for before, pieces in scans:
        for piece in pieces:
            line, data = piece.line + before, piece.data
            if line < first:
                data = _without_lines(data, first - line)
                line = first
            if data:
                yield Piece(line, data, piece.follows or (follows and line == first), piece.why)
                first, follows = line + data.count(b"\n"), True


def _without_lines(data: bytes, count: int) -> bytes:
    start = 0
    for _ in range(count):
        found = data.find(b"\n", start) + 1
        if not found:
            return b""
        start = found
    return data[start:]


def _up_to_line(block: bytes, room: int, torn: bool) -> tuple[bytes, bytes]:
    """`block` up to the first line's end at or behind `room`, and the rest. `torn`: it begins within a line.

    A line that goes on for LONGEST_LINE behind the room is cut: it may never end."""
    if len(block) <= room:
        return block, b""
    if room <= 0 and not torn:
        return b"", block
    most = max(0, room + LONGEST_LINE)
    end = block.find(b"\n", max(0, room - 1), most) + 1 or min(len(block), most)
    return block[:end], block[end:]
