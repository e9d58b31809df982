"""The parts of one plain file that are worth reading, read where they stand: its edges and the lines round hits."""

from __future__ import annotations

from logdoc.scanner.windows import BYTES_AFTER, BYTES_BEFORE, Piece, line_end, line_start, with_margins
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


@dataclass(slots=True)
class Excerpts:
    """Reads a file's parts in order, no byte twice. `at`: what stands before has been read or is past."""

    file: BinaryIO
    at: int = 0
    is_read: bool = False  # whether what stands just before `at` has been read

    def head(self, size: int) -> Piece | None:
        """The first `size` bytes, to the end of a line."""
        text = self._bytes(0, size + BYTES_AFTER) if size else b""
        return self._piece(1, text[: line_end(text, size - 1)])

    def round(self, offset: int, line: int, number: int) -> Piece | None:
        """The lines round a hit on line `line`; None if it has been read, or if the file is shorter by now."""
        if offset < self.at:
            return None
        start = max(self.at, offset - 2 * BYTES_BEFORE - 1)
        text = self._bytes(start, offset + 2 * BYTES_AFTER)
        hit = offset - start
        if hit >= len(text):
            return None
        place = next(with_margins(text, [(hit, number)]))
        first = line - text.count(b"\n", place.start, hit)
        self._move(start + place.start)
        return self._piece(first, text[place.start : place.end])

    def tail(self, size: int, end: int, lines: int) -> Piece | None:
        """The lines of the last `size` bytes before `end`, up to which there are `lines` lines."""
        start = max(self.at, end - size - BYTES_BEFORE)
        text = self._bytes(start, end)
        within = line_start(text, len(text) - size) if start > self.at or len(text) > size else 0
        self._move(start + within)
        text = text[within:]
        return self._piece(lines + 1 - text.count(b"\n") - (not text.endswith(b"\n")), text)

    def _bytes(self, start: int, end: int) -> bytes:
        self.file.seek(start)
        return self.file.read(end - start) if end > start else b""

    def _move(self, start: int) -> None:
        self.is_read = self.is_read and start == self.at
        self.at = start

    def _piece(self, line: int, data: bytes) -> Piece | None:
        if not data:
            return None
        piece = Piece(line, data, self.is_read)
        self.at += len(data)
        self.is_read = True
        return piece
