"""Passes one stream of the command on, byte for byte and at once, and lets a copy be kept; looks at no line."""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Callable

from logdoc.runner.keep import Keep
from logdoc.sources.limits import KIB
from logdoc.sources.spool import reason

BLOCK_BYTES = 256 * KIB  # fits a processor's cache: larger blocks were slower
LONGEST_PART_LINE = 64 * KIB  # what is held back of the kept copy until its line ends
POLL_SECONDS = 1.0


class Pump(threading.Thread):
    """Reads `source` until its end and writes to `target`; both are descriptors, `source` is closed at the end.

    `whole_lines`: another stream is kept in the same place, so lines are put there whole. When the reader of `target`
    has gone, `source` is closed: the command's next write fails with SIGPIPE, as it would without us. Any other fault
    of `target` (a full disk) drops what cannot be written, counts it in `dropped`, and lets the command live.
    """

    def __init__(self, source: int, target: int, keep: Keep, *, whole_lines: bool, said: Callable[[str, str], None]):
        super().__init__(name=f"pass-on-{target}", daemon=True)
        self.source = source
        self.target = target
        self.last = time.monotonic()
        self.ends_line = True
        self.reader_gone = False
        self.dropped = 0
        self.passed = 0
        self._keep = keep
        self._whole_lines = whole_lines
        self._said = said
        self._writing = False
        self._part_line = b""
        self._buffer = bytearray(BLOCK_BYTES)

    def run(self) -> None:
        block = memoryview(self._buffer)
        try:
            while length := self._read(block):
                self._writing = True
                self.last = time.monotonic()
                self._pass_on(block[:length])
                if self._whole_lines:
                    self._keep_lines(block, length)
                else:
                    self._keep.write([block[:length]])
                self.passed += length
                self.ends_line = self._buffer[length - 1] == 10
                self._writing = False
        except BrokenPipeError:
            self.reader_gone = True
            self._said("reader_gone", "")
        finally:
            if self._part_line:
                self._keep.write([self._part_line])
            self._writing = False
            os.close(self.source)

    def is_idle(self) -> bool:
        """Whether all that the command has written so far has been passed on."""
        if self._writing:
            return False
        poller = select.poll()
        poller.register(self.source, select.POLLIN)
        return not any(event & select.POLLIN for _, event in poller.poll(0)) and not self._writing

    def _read(self, block: memoryview) -> int:
        try:
            return os.readv(self.source, [block])
        except OSError as error:
            if error.errno == errno.EIO:  # how a pseudoterminal says that its last user has gone
                return 0
            raise

    def _pass_on(self, block: memoryview) -> None:
        try:
            write_all(self.target, block)
        except BrokenPipeError:
            raise
        except OSError as error:
            if not self.dropped:
                self._said("not_written", reason(error))
            self.dropped += len(block)

    def _keep_lines(self, block: memoryview, length: int) -> None:
        """Keep up to the last line end; hold the rest until its line ends, unless it grows too long."""
        end = self._buffer.rfind(b"\n", 0, length) + 1
        if end or len(self._part_line) + length > LONGEST_PART_LINE:
            end = end or length
            self._keep.write([self._part_line, block[:end]])
            self._part_line = bytes(block[end:length])
        else:
            self._part_line += bytes(block[:length])


def write_all(descriptor: int, block: bytes | memoryview) -> None:
    """Write all of it, waiting where somebody has set the descriptor to non-blocking. Raises OSError."""
    while block:
        try:
            block = block[os.write(descriptor, block) :]
        except BlockingIOError:
            poller = select.poll()
            poller.register(descriptor, select.POLLOUT)
            poller.poll(POLL_SECONDS * 1000)
