"""How much of all sources is read: everything while that is quick; of more, the opening in full and then only what
the scan finds worth it. What is left out is counted, never hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from logdoc.reader.unpacking import GONE, PackedJob, Stream, sewn
from logdoc.scanner.excerpts import Excerpts
from logdoc.scanner.ranges import Crew, Hit, Job, Orders, Scanned, Seekable, alone, ranges_of, scan_all
from logdoc.scanner.text import UTF16, as_utf8
from logdoc.scanner.triggers import Trigger, TriggerScanner, benign, ready_scanner
from logdoc.scanner.windows import Edges, Piece
from logdoc.sources import Source
from logdoc.sources.compression import MAGIC_BYTES, codec_of
from logdoc.sources.origins import FileOrigin
from logdoc.sources.remote import RemoteOrigin
from logdoc.sources.spool import reason
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass, field

READ_IN_FULL = 2 << 20  # bytes of all sources together: a second
LARGE = 64 << 20  # from here on the whole must feel quick: less is read in full, and several processes scan
OPENING_OF_LARGE = 512 << 10  # of all plain files together …
OPENINGS_OF_STREAMS, OPENING_OF_STREAM = 1 << 20, 64 << 10  # … and of all others, of one at most
HEADS, TAILS = 128 << 10, 1 << 20  # read in any case: of all sources together …
HEAD, TAIL = 4 << 10, 64 << 10  # … and of one at most
BYTES_PER_TRIGGER = 128 << 10  # windows read for one trigger; later ones tell the same

Window = tuple[int, Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class _PlainFile:
    """A log that can be read at any offset, and how many bytes of its start are read in full."""

    file: Seekable
    size: int
    opening: int


@dataclass(slots=True)
class Part:
    """What is read of one source, known when `windows` has ended: its lines and bytes (None: all were read, count
    them there), how many of its bytes were read round what the scan found, and how many scanned without being read.
    `windows` raises InputError if the source cannot be read at all."""

    windows: Iterator[Window] = field(default_factory=lambda: iter(()))
    lines: int | None = None
    bytes: int | None = None
    read: int = 0
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
    _plain: dict[int, _PlainFile] = field(default_factory=dict)
    _unpacked: set[int] = field(default_factory=set)
    _sample: bytearray = field(default_factory=bytearray)
    _scanning: tuple[Orders, TriggerScanner] | None = None
    _scans: Iterator[Scanned] = field(default_factory=lambda: iter(()))
    _used: dict[int, int] = field(default_factory=dict)
    _spent: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if sum(source.size or 0 for source in self.sources) <= LARGE:
            self._room = READ_IN_FULL
            return
        self._is_large = True
        room = OPENING_OF_LARGE
        for source in self.sources:
            try:
                room -= self._begin(source, room)
            except OSError:  # gone; what is said of it is for its turn
                self._unpacked.add(id(source))
        self._scans = _begun(scan_all(self._jobs(), self._ready()[0], self.crew))

    def _begin(self, source: Source, room: int) -> int:
        """Plan the reading of one source by itself; how many bytes of its start are read in full, at most `room`."""
        file = _plain_file(source)
        if file is not None:
            text = _first_lines(file, room)
            self._sample += text
            self._plain[id(source)] = _PlainFile(file, source.size or 0, len(text))
            return len(text)
        if _can_be_handed_over(source):
            self._unpacked.add(id(source))
        return 0

    def part(self, source: Source, blocks: Iterable[bytes]) -> Part:
        """What is to be read of the next source, whose plain bytes are `blocks`."""
        part = Part()
        plain = self._plain.get(id(source))
        if plain is not None:
            pieces = self._of_file(source, plain, part)
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
        if scanned.lost:
            raise InputError("; ".join(scanned.warnings))
        yield from self._worth_it(scanned.pieces, part)
        part.bytes, part.lines = scanned.size, scanned.counts.lines
        self._note(scanned.counts.cut, scanned.counts.bytes, part)

    def _of_file(self, source: Source, plain: _PlainFile, part: Part) -> Iterator[Piece]:
        """A file that can be read at any offset. One that has gone gives what was read."""
        part.bytes, part.lines = plain.size, 0
        source.truncated, source.warnings = False, ()
        scans = self._scans_of_one(source) if plain.opening < plain.size else iter(())
        try:
            if plain.file.is_near:
                with plain.file.open() as file:
                    yield from self._excerpts(Excerpts(file), plain, scans, part)
            else:
                yield from self._of_far_file(plain, scans, part)
        except OSError as error:
            part.lines += sum(scanned.counts.lines for scanned in scans)  # none is left for the next file
            _miss(source, reason(error))
        if source.truncated and not part.read:
            raise InputError("; ".join(source.warnings))

    def _excerpts(self, excerpts: Excerpts, plain: _PlainFile, scans: Iterator[Scanned], part: Part) -> Iterator[Piece]:
        """The opening or the head, the lines round the hits, the tail."""
        edges, lines = self._ready()[0].edges, 0
        if (piece := excerpts.head(plain.opening or edges.head)) is not None:
            if plain.opening:
                part.unread += len(piece.data)
                lines = _lines_in(piece.data)
            yield self._read(piece, part)
        for scanned in scans:
            for piece in self._round(scanned.hits, lines, excerpts):
                yield self._read(piece, part)
            part.lines = lines = lines + scanned.counts.lines
            self._note(scanned.counts.cut, scanned.counts.bytes, part)
        part.lines = lines
        if (piece := excerpts.tail(edges.tail, plain.size, lines)) is not None:
            yield self._read(piece, part)

    def _round(self, hits: Iterable[Hit], before: int, excerpts: Excerpts) -> Iterator[Piece]:
        """The lines round the hits of one range, which stands behind `before` lines. What is read for one trigger
        counts for all that it holds."""
        size, held = 0, set[int]()
        for offset, line, number in hits:
            if offset >= excerpts.at and self._is_affordable(number):
                piece = excerpts.round(offset, before + line, number)
                if piece is None:
                    continue
                size, held = len(piece.data), set()
                yield piece
            if offset < excerpts.at and number not in held:
                held.add(number)
                self._used[number] = self._used.get(number, 0) + size

    def _of_far_file(self, plain: _PlainFile, scans: Iterator[Scanned], part: Part) -> Iterator[Piece]:
        """The opening, and what the scan brought back."""
        text = _first_lines(plain.file, plain.opening)
        line = 1 + text.count(b"\n")
        if text:
            part.unread += len(text)
            yield self._read(Piece(1, text), part)
        part.lines = _lines_in(text)
        yield from self._worth_it(sewn(self._numbered(scans, part, line), line, bool(text)), part)

    def _numbered(self, scans: Iterable[Scanned], part: Part, line: int) -> Iterator[tuple[int, Iterable[Piece]]]:
        """Ranges, each with the number of lines before it."""
        for scanned in scans:
            yield line - 1, scanned.pieces
            line += scanned.counts.lines
            self._note(scanned.counts.cut, scanned.counts.bytes, part)
            part.lines = line - 1

    def _scans_of_one(self, source: Source) -> Iterator[Scanned]:
        """The ranges of the next file."""
        for scanned in self._scans:
            if scanned.lost:
                _miss(source, GONE)
            yield scanned
            if scanned.closes:
                return

    def _jobs(self) -> Iterator[Job]:
        for source in self.sources:
            plain = self._plain.get(id(source))
            if plain is not None:
                yield from ranges_of(plain.file, plain.opening, plain.size)
            elif id(source) in self._unpacked:
                yield PackedJob(source, self._opening_of_stream())

    def _opening_of_stream(self) -> int:
        return min(OPENING_OF_STREAM, OPENINGS_OF_STREAMS // max(1, len(self.sources)))

    def _learn(self, opening: bytes) -> None:
        if self._scanning is None:
            self._sample += opening[: OPENING_OF_LARGE - len(self._sample)]

    def _ready(self) -> tuple[Orders, TriggerScanner]:
        """The scanner, made when the first source turns out too long, with what the opening showed to be healthy."""
        if self._scanning is None:
            triggers = self.triggers()
            scanner = ready_scanner(triggers)
            count = max(1, len(self.sources))
            edges = Edges(min(HEAD, HEADS // count), min(TAIL, TAILS // count))
            cut = benign(scanner, bytes(self._sample))
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
            yield self._read(piece if whole else Piece(piece.line, piece.data), part)
            whole = True

    def _is_affordable(self, number: int) -> bool:
        """Whether this trigger has not been read often enough."""
        if self._used.get(number, 0) < BYTES_PER_TRIGGER:
            return True
        if number not in self._spent:
            self._spent.add(number)
            self._name((number,))
        return False

    def _read(self, piece: Piece, part: Part) -> Piece:
        part.unread -= len(piece.data)
        part.read += len(piece.data)
        return piece

    def _note(self, cut: Iterable[int], size: int, part: Part) -> None:
        part.unread += size
        self._name(cut)

    def _name(self, numbers: Iterable[int]) -> None:
        triggers = self._ready()[0].triggers
        self.cut |= {triggers[number].label for number in numbers}


def _miss(source: Source, why: str) -> None:
    """Note that bytes of a source are missing."""
    told = f"{source.name}: {why}"
    source.truncated = True
    source.warnings = source.warnings if told in source.warnings else (*source.warnings, told)


def _begun(scans: Iterator[Scanned]) -> Iterator[Scanned]:
    """The same, of which the first is done: so the others are at work while the openings are read."""
    first = next(scans, None)
    return scans if first is None else chain((first,), scans)


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
    return None if codec_of(head) or head[:2] in UTF16 else origin


def _can_be_handed_over(source: Source) -> bool:
    """Whether another process can read it too; a pipe's copy is ours alone."""
    return source.kind == "log" and isinstance(source.origin, FileOrigin | RemoteOrigin)


def _lines_in(text: bytes) -> int:
    return text.count(b"\n") + (text[-1:] not in (b"\n", b""))


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
