"""One log as lines that are read where they are looked at: memory does not grow with the log. Knows no widget."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO

from logdoc.reader.errorjson import as_text
from logdoc.reader.lines import physical_lines
from logdoc.scanner.text import UTF16, as_utf8
from logdoc.sources import Source
from logdoc.sources.compression import MAGIC_BYTES, codec_of
from logdoc.sources.origins import FileOrigin
from logdoc.tui.marks import printable

BLOCK = 128 << 10  # bytes; the index holds one number for each block, 320 KiB for a log of 5 GB
LONGEST = 16 << 10  # bytes of a line that are shown
MOST_BLOCKS = 16  # blocks whose line starts are kept
STEP = 32 << 20  # bytes indexed between two reports of progress
SEARCH_STEP = 1 << 20
_NEWLINE = re.compile(rb"\n")
_OVERWRITTEN = " ↵ "  # between what a carriage return wrote on one line


class LogFile:
    """The lines of a source, counted from 1 as the reader counts them.

    A plain file is read in place; what is compressed, piped or in UTF-16 goes into a temporary file first. Iterate
    `build` to the end (in a thread) to have all lines; those known so far can be read at any time.
    """

    def __init__(self, source: Source, block: int = BLOCK) -> None:
        self.name = source.name
        self.complete = False
        self._source = replace(source)  # readings leave notes on a source; those of the engine must stay its own
        self._block = block
        self._in_place = _is_plain_file(source)
        self._file = _opened(source) if self._in_place else _unnamed()
        self._size = os.fstat(self._file.fileno()).st_size
        # newlines before byte 0, before byte `block`, before byte 2 * `block`, …
        self._before = array("Q", [0])
        self._unended = 0
        self._grown = threading.Condition()
        self._recent: OrderedDict[int, array[int]] = OrderedDict()

    @property
    def line_count(self) -> int:
        """How many lines are known so far; all when `complete`."""
        return self._before[-1] + self._unended

    @property
    def index_bytes(self) -> int:
        """What the index of all lines takes in memory."""
        return len(self._before) * self._before.itemsize

    def build(self) -> Iterator[int]:
        """Index the log; gives the bytes done so far, now and then. Raises InputError if the log cannot be read."""
        for size in self._sizes() if self._in_place else self._copied():
            while len(self._before) * self._block <= size:
                self._count_block(self._block)
            yield size
        self._count_block(self._size % self._block)
        if self._size and os.pread(self._file.fileno(), 1, self._size - 1) != b"\n":
            self._unended = 1
        with self._grown:
            self.complete = True
            self._grown.notify_all()
        yield self._size

    def text(self, number: int) -> str:
        """Line `number` as the reader sees it, printable; empty beyond the lines known."""
        if not 0 < number <= self.line_count:
            return ""
        raw = os.pread(self._file.fileno(), LONGEST, self._start(number)).partition(b"\n")[0]
        shown = _OVERWRITTEN.join(text for _, text in physical_lines([raw]))
        return printable(shown) + ("…" if len(raw) == LONGEST else "")

    def find(
        self, query: str, start: int, *, backwards: bool = False, stopped: Callable[[], bool] = lambda: False
    ) -> int | None:
        """The first line from `start` on that holds `query`, going round at the end; None if there is none.

        Upper case in `query` makes case count; letters beyond ASCII must always fit.
        """
        needle = query.encode("utf-8", "surrogatepass")
        if not needle or not self._ready(stopped):
            return None
        turn = self._start(start + 1 if backwards else start) if 0 < start <= self.line_count else 0
        spans = [(turn, self._size), (0, turn)]
        for begin, end in reversed(spans) if backwards else spans:
            scan = self._last_in if backwards else self._first_in
            offset = scan(needle, query == query.lower(), begin, end, stopped)
            if offset is not None:
                return self._line_at(offset, stopped)
        return None

    def close(self) -> None:
        """Give up the file, and the temporary copy with it."""
        self._file.close()

    def _sizes(self) -> Iterator[int]:
        yield from range(min(STEP, self._size), self._size, STEP)
        yield self._size

    def _copied(self) -> Iterator[int]:
        """Write the plain text into the temporary file."""
        told = 0
        for block in _plain_text(self._source):
            self._file.write(block)
            self._size += len(block)
            if self._size - told >= STEP:
                self._file.flush()
                yield (told := self._size)
        self._file.flush()
        yield self._size

    def _count_block(self, length: int) -> None:
        data = os.pread(self._file.fileno(), length, (len(self._before) - 1) * self._block)
        with self._grown:
            self._before.append(self._before[-1] + data.count(b"\n"))
            self._grown.notify_all()

    def _start(self, number: int) -> int:
        """The byte where a known line starts; the size for the line after the last."""
        newlines = number - 1
        if newlines == 0:
            return 0
        if newlines > self._before[-1]:
            return self._size
        block = bisect_left(self._before, newlines) - 1
        starts, nth = self._starts_in(block), newlines - self._before[block] - 1
        return starts[nth] if nth < len(starts) else self._size  # the file has been rewritten since

    def _starts_in(self, block: int) -> array[int]:
        """The bytes behind each newline of a block."""
        starts = self._recent.pop(block, None)
        if starts is None:
            first = block * self._block
            data = os.pread(self._file.fileno(), self._block, first)
            starts = array("Q", (first + found.end() for found in _NEWLINE.finditer(data)))
        self._recent[block] = starts
        if len(self._recent) > MOST_BLOCKS:
            self._recent.popitem(last=False)
        return starts

    def _ready(self, stopped: Callable[[], bool]) -> bool:
        """Wait until there is something to search: a file in place at once, a copy when it is whole."""
        with self._grown:
            while not (self.complete or self._in_place or stopped()):
                self._grown.wait(0.1)
        return not stopped()

    def _first_in(self, needle: bytes, fold: bool, begin: int, end: int, stopped: Callable[[], bool]) -> int | None:
        for low in range(begin, end, SEARCH_STEP):
            if stopped():
                return None
            high = min(low + SEARCH_STEP, end)
            found = self._piece(low, high, needle, fold).find(needle)
            if found >= 0:
                return low + found
        return None

    def _last_in(self, needle: bytes, fold: bool, begin: int, end: int, stopped: Callable[[], bool]) -> int | None:
        for high in range(end, begin, -SEARCH_STEP):
            if stopped():
                return None
            low = max(begin, high - SEARCH_STEP)
            found = self._piece(low, high, needle, fold).rfind(needle)
            if found >= 0:
                return low + found
        return None

    def _piece(self, low: int, high: int, needle: bytes, fold: bool) -> bytes:
        """The bytes in which a hit that begins between `low` and `high` lies."""
        data = os.pread(self._file.fileno(), high - low + len(needle) - 1, low)
        return data.lower() if fold else data

    def _line_at(self, offset: int, stopped: Callable[[], bool]) -> int | None:
        block = offset // self._block
        with self._grown:
            while not (self.complete or block < len(self._before) or stopped()):
                self._grown.wait(0.1)
        if stopped():
            return None
        first = block * self._block
        return self._before[block] + os.pread(self._file.fileno(), offset - first, first).count(b"\n") + 1


def _is_plain_file(source: Source) -> bool:
    """Can its bytes be shown as they lie on disk?"""
    if source.location is None or source.kind == "error-json" or not isinstance(source.origin, FileOrigin):
        return False
    head = next(source.origin.raw_blocks(MAGIC_BYTES), b"")
    return codec_of(head) is None and head[:2] not in UTF16 and os.path.isfile(source.origin.path)


def _opened(source: Source) -> BinaryIO:
    assert isinstance(source.origin, FileOrigin)
    return open(source.origin.path, "rb", buffering=0)


def _unnamed() -> BinaryIO:
    return tempfile.TemporaryFile()


def _plain_text(source: Source) -> Iterator[bytes]:
    """The bytes that the reader splits into lines."""
    if source.kind == "error-json":
        yield as_text(source.read_all())
    else:
        yield from as_utf8(source.open_blocks())
