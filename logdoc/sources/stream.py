"""One named byte stream: unpacked, in blocks, within its limits, and as often as asked; never interprets the text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from logdoc.sources.compression import MAGIC_BYTES, Unpacking, codec_of, unpacked
from logdoc.sources.hints import PathHints
from logdoc.sources.limits import Limits, size_in_words
from logdoc.sources.origins import Origin
from logdoc.sources.spool import Spool, reason
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["log", "error-json", "flight-recorder"]


@dataclass(slots=True)
class Source:
    """A log (or another file of a job) that can be read any number of times.

    `name` is what reports show: the path as the user typed it, printable; `<stdin>` for a pipe. `location` is the path
    itself, None for what has no file here. `size` counts the bytes as stored (before decompression), None if unknown.
    `truncated` and `warnings` belong to the latest reading and are complete when that one has ended.
    """

    name: str
    location: str | None
    size: int | None
    kind: Kind
    hints: PathHints
    origin: Origin = field(repr=False)
    limits: Limits = field(repr=False)
    truncated: bool = False
    warnings: tuple[str, ...] = ()

    def open_blocks(self) -> Iterator[bytes]:
        """The plain bytes in blocks of at most `limits.block_bytes`, cut at `limits.max_bytes`.

        What is damaged is read as far as it goes. Raises InputError when the source cannot be opened (any more).
        """
        self.truncated, self.warnings = False, ()
        reading = OnePass(self.origin, self.limits)
        try:
            yield from reading.blocks()
        except OSError as error:
            reading.cut = True
            raise InputError(f"{self.name}: {reason(error)}") from error
        finally:
            self.truncated = reading.cut
            self.warnings = tuple(f"{self.name}: {note}" for note in reading.notes)

    def first(self, size: int) -> bytes:
        """At least the first `size` plain bytes, if there are so many; nothing is noted of what goes wrong."""
        held = b""
        try:
            for block in OnePass(self.origin, replace(self.limits, block_bytes=size)).blocks():
                held += block
                if len(held) >= size:
                    break
        except OSError:
            return held
        return held

    def read_all(self, max_bytes: int | None = None) -> bytes:
        """All plain bytes at once, or the first `max_bytes`: for small things such as error.json and dumps."""
        held = bytearray()
        for block in self.open_blocks():
            held += block
            if max_bytes is not None and len(held) > max_bytes:
                break
        else:
            return bytes(held)
        self.truncated = True
        self.warnings = (*self.warnings, f"{self.name}: only the first {size_in_words(max_bytes)} were read")
        return bytes(held[:max_bytes])


class OnePass:
    """One pass over an origin. `notes` and `cut` (bytes are missing) are complete when `blocks` has ended."""

    def __init__(self, origin: Origin, limits: Limits) -> None:
        self._origin = origin
        self._limits = limits
        self._unpacking = Unpacking()
        self.codec_name: str | None = None
        self.notes: list[str] = []
        self.cut = False

    def blocks(self) -> Iterator[bytes]:
        """The plain blocks; OSError only if the very first byte cannot be had."""
        size = self._limits.block_bytes
        raw = self._origin.raw_blocks(size)
        first = next(raw, b"")
        raw = self._to_first_fault(raw)
        while len(first) < MAGIC_BYTES and (more := next(raw, b"")):
            first += more
        yield from self._within_limits(self._plain(first, raw, size))
        if self._unpacking.note:
            self._note(self._unpacking.note, cut=self._unpacking.cut)
        if isinstance(self._origin, Spool) and self._origin.note:
            self.cut = True  # said once already, when the stream was copied

    def _plain(self, first: bytes, rest: Iterator[bytes], size: int) -> Iterator[bytes]:
        raw = chain((first,), rest) if first else rest
        codec = codec_of(first)
        if codec is None:
            return raw
        self.codec_name = codec.name
        return unpacked(codec, raw, lambda: self._to_first_fault(self._origin.raw_blocks(size)), self._unpacking, size)

    def _to_first_fault(self, raw: Iterator[bytes]) -> Iterator[bytes]:
        """A disk or network that fails in the middle ends the reading, not the program."""
        try:
            yield from raw
        except OSError as error:
            self._note(f"reading stopped: {reason(error)}", cut=True)

    def _within_limits(self, plain: Iterator[bytes]) -> Iterator[bytes]:
        given, limits = 0, self._limits
        for block in plain:
            room = limits.max_bytes - given
            if len(block) > room:
                if room:
                    yield block[:room]
                self._note(f"stopped at the limit of {size_in_words(limits.max_bytes)} of text", cut=True)
                return
            yield block
            given += len(block)
            if self.codec_name and given > max(limits.ratio_free_bytes, limits.max_ratio * self._unpacking.fed):
                self._note(
                    f"stopped after {size_in_words(given)}: it unpacks more than {limits.max_ratio} to 1, "
                    "as a decompression bomb does",
                    cut=True,
                )
                return

    def _note(self, text: str, *, cut: bool) -> None:
        self.notes.append(text)
        self.cut = self.cut or cut
