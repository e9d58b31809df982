"""How much of all sources is read: everything while that is quick; of more, the opening in full and then only what
the scan finds worth it. What is left out is counted, never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from logdoc.reader.unpacking import Stream, Unpacking, sewn
from logdoc.scanner.ranges import Crew, Job, Orders, Scanned, Seekable, alone, ranges_of, scan_all
from logdoc.scanner.text import as_utf8
from logdoc.scanner.triggers import Trigger, TriggerScanner, benign, trigger_scanner
from logdoc.scanner.windows import Edges, Piece
from logdoc.sources import Source
from logdoc.sources.compression import MAGIC_BYTES, codec_of
from logdoc.sources.origins import FileOrigin
from logdoc.sources.remote import RemoteOrigin

READ_IN_FULL = 8 << 20  # bytes of all sources together: a few seconds
LARGE = 64 << 20  # from here on the whole must feel quick: less is read in full, and several processes scan
OPENING_OF_LARGE = 1 << 20  # of all plain files together …
OPENINGS_OF_STREAMS, OPENING_OF_STREAM = 1 << 20, 64 << 10  # … and of all others, of one at most
HEADS, TAILS = 1 << 20, 4 << 20  # read in any case: of all sources together …
HEAD, TAIL = 4 << 10, 64 << 10  # … and of one at most
BYTES_PER_TRIGGER = 256 << 10  # windows read for one trigger; later ones tell the same

Window = tuple[int, Iterable[bytes]]


@dataclass(slots=True)
class Part:
    """What is read of one source, known when `windows` has ended: its lines and bytes (None: all were read, count
    them there), and how many of its bytes were scanned without being read."""

    windows: Iterator[Window] = field(default_factory=lambda: iter(()))
    lines: int | None = None
    bytes: int | None = None
    unread: int = 0


@dataclass(slots=True)
class Skim:
    """Plans the reading of all sources, which must be taken in their order, each to its end.

    `triggers` gives what is worth reading beyond the opening, if anybody asks. `cut`: the labels of those that came too
    often to be followed further; complete when all sources have been read.
    """

    sources: Sequence[Source]
    triggers: Callable[[], Sequence[Trigger]]
    crew: Crew = alone
    cut: set[str] = field(default_factory=set)
    _is_large: bool = False
    _room: int = 0
    _openings: dict[int, int] = field(default_factory=dict)
    _unpacked: set[int] = field(default_factory=set)
    _sample: bytearray = field(default_factory=bytearray)
    _scanning: tuple[Orders, TriggerScanner] | None = None
    _scans: Iterator[Scanned] = field(default_factory=lambda: iter(()))
    _used: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sum(source.size or 0 for source in self.sources) <= LARGE:
            self._room = READ_IN_FULL
            return
        self._is_large = True
        room = OPENING_OF_LARGE
        for source in self.sources:
            if (file := _plain_file(source)) is not None:
                text = _first_lines(file, room)
                room -= len(text)
                self._sample += text
                self._openings[id(source)] = len(text)
            elif _can_be_handed_over(source):
                self._unpacked.add(id(source))
        self._scans = scan_all(self._jobs(), self._ready()[0], self.crew)

    def part(self, source: Source, blocks: Iterable[bytes]) -> Part:
        """What is to be read of the next source, whose plain bytes are `blocks`."""
        part = Part()
        opening = self._openings.get(id(source))
        if opening is not None:
            pieces = self._of_file(source, opening, part)
        elif id(source) in self._unpacked:
            pieces = self._of_unpacked(source, part)
        else:
            pieces = self._of_stream(as_utf8(blocks), part)
        part.windows = _windows(pieces)
        return part

    def _of_stream(self, blocks: Iterator[bytes], part: Part) -> Iterator[Piece]:
        """What only this process can read, once, as it comes."""
        stream = Stream(blocks, self._opening_of_stream() if self._is_large else self._room)
        for opening in stream.opening():
            yield opening
            self._learn(opening.data)
        self._room = max(0, stream.room)
        if not stream.is_over:
            orders, scanner = self._ready()
            yield from self._worth_it(stream.windows(orders, scanner), part)
            part.lines = stream.lines
            self._note(stream.counts.cut, stream.counts.bytes, part)

    def _of_unpacked(self, source: Source, part: Part) -> Iterator[Piece]:
        """What a worker made of a source that had to be unpacked."""
        scanned = next(self._scans)
        source.truncated, source.warnings = scanned.truncated, scanned.warnings
        yield from self._worth_it(scanned.pieces, part)
        part.bytes, part.lines = scanned.size, scanned.counts.lines
        self._note(scanned.counts.cut, scanned.counts.bytes, part)

    def _of_file(self, source: Source, opening: int, part: Part) -> Iterator[Piece]:
        file = _plain_file(source)
        text = _first_lines(file, opening) if file is not None and opening else b""
        line = 1 + text.count(b"\n")
        if text:
            yield Piece(1, text)
        part.bytes = source.size
        if len(text) < (source.size or 0):
            scans = self._scans_of_one(part, line)
            yield from self._worth_it(sewn(scans, line, bool(text)), part)

    def _scans_of_one(self, part: Part, line: int) -> Iterator[tuple[int, Iterable[Piece]]]:
        """The ranges of the next file, each with the number of lines before it."""
        for scanned in self._scans:
            yield line - 1, scanned.pieces
            line += scanned.counts.lines
            self._note(scanned.counts.cut, scanned.counts.bytes, part)
            part.lines = line - 1
            if scanned.closes:
                return

    def _jobs(self) -> Iterator[Job]:
        for source in self.sources:
            file = _plain_file(source)
            if file is not None and id(source) in self._openings:
                yield from ranges_of(file, self._openings[id(source)], source.size or 0)
            elif id(source) in self._unpacked:
                yield Unpacking(source, self._opening_of_stream())

    def _opening_of_stream(self) -> int:
        return min(OPENING_OF_STREAM, OPENINGS_OF_STREAMS // max(1, len(self.sources)))

    def _learn(self, opening: bytes) -> None:
        if self._scanning is None:
            self._sample += opening[: OPENING_OF_LARGE - len(self._sample)]

    def _ready(self) -> tuple[Orders, TriggerScanner]:
        """The scanner, made when the first source turns out too long, with what the opening showed to be healthy."""
        if self._scanning is None:
            triggers = self.triggers()
            scanner = trigger_scanner(triggers)
            count = max(1, len(self.sources))
            edges = Edges(min(HEAD, HEADS // count), min(TAIL, TAILS // count))
            cut = benign(scanner, bytes(self._sample), len(triggers))
            self._scanning = (Orders(triggers, edges, cut), scanner)
            self._sample = bytearray()
        return self._scanning

    def _worth_it(self, pieces: Iterable[Piece], part: Part) -> Iterator[Piece]:
        """Without the pieces all of whose triggers have been read often enough."""
        whole = True
        for piece in pieces:
            used = [trigger for trigger in piece.why if self._used.get(trigger, 0) < BYTES_PER_TRIGGER]
            if piece.why and not used:
                self._name(piece.why)
                whole = False
                continue
            for trigger in piece.why:
                self._used[trigger] = self._used.get(trigger, 0) + len(piece.data)
            part.unread -= len(piece.data)
            yield piece if whole else Piece(piece.line, piece.data)
            whole = True

    def _note(self, cut: Iterable[int], size: int, part: Part) -> None:
        part.unread += size
        self._name(cut)

    def _name(self, numbers: Iterable[int]) -> None:
        triggers = self._ready()[0].triggers
        self.cut |= {triggers[number].label for number in numbers}


def _windows(pieces: Iterator[Piece]) -> Iterator[Window]:
    """Pieces that follow each other as one window."""
    ahead = next(pieces, None)

    def blocks() -> Iterator[bytes]:
        nonlocal ahead
        while ahead is not None:
            yield ahead.data
            ahead = next(pieces, None)
            if ahead is not None and not ahead.follows:
                return

    while ahead is not None:
        yield ahead.line, blocks()


def _plain_file(source: Source) -> Seekable | None:
    """Where a log can be read at any offset: a file, neither compressed nor UTF-16, within its limits."""
    origin = source.origin
    if source.kind != "log" or not isinstance(origin, FileOrigin | RemoteOrigin):
        return None
    if source.size is None or source.size > source.limits.max_bytes:
        return None
    try:
        head = next(origin.raw_blocks(MAGIC_BYTES), b"")
    except OSError:
        return None
    return None if codec_of(head) or head[:2] in (b"\xff\xfe", b"\xfe\xff") else origin


def _can_be_handed_over(source: Source) -> bool:
    """Whether another process can read it too; a pipe's copy is ours alone."""
    return source.kind == "log" and isinstance(source.origin, FileOrigin | RemoteOrigin)


def _first_lines(file: Seekable, size: int) -> bytes:
    """About `size` bytes of a file, to the end of a line; all of it if it is shorter."""
    if size <= 0:
        return b""
    with file.open() as opened:
        text = opened.read(size)
        if len(text) < size or text.endswith(b"\n"):
            return text
        rest = opened.read(1 << 20)
        return text + rest[: rest.find(b"\n") + 1 or len(rest)]
