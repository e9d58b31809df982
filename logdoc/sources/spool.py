"""Keeps what can be read only once (standard input, named pipes, devices) so that it can be read again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from logdoc.sources.limits import Limits, size_in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_CHUNK = 64 << 10


class Spool:
    """A copy of a stream: in memory while small, then in a temporary file that has no name on disk (POSIX) and ends
    with the process or with `close`. `note` says why the copy stops before its stream does, if it does."""

    def __init__(self, limits: Limits) -> None:
        import tempfile  # pulls in five more modules, for the few runs that read a pipe
        import threading

        self._file = tempfile.SpooledTemporaryFile(limits.spool_memory_bytes)  # noqa: SIM115 - lives as long as we do
        self._lock = threading.Lock()
        self.size = 0
        self.note: str | None = None

    def fill(self, chunks: Iterable[bytes], most: int) -> None:
        """Copies `chunks`, at most `most` bytes of them; never raises: what could be had is kept."""
        try:
            for chunk in chunks:
                room = most - self.size
                self._file.write(chunk[:room])
                self.size += min(len(chunk), room)
                if len(chunk) > room:
                    self.note = f"only the first {size_in_words(most)} were read"
                    return
        except (OSError, ValueError) as error:
            self.note = f"reading stopped after {size_in_words(self.size)}: {reason(error)}"

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        """See Origin. Each call reads from the start; calls may alternate."""
        offset = 0
        while block := self._read_at(offset, size):
            offset += len(block)
            yield block

    def close(self) -> None:
        """Gives up the copy and its disk space."""
        self._file.close()

    def _read_at(self, offset: int, size: int) -> bytes:
        try:
            with self._lock:
                self._file.seek(offset)
                return self._file.read(min(size, self.size - offset))
        except ValueError as error:  # closed
            raise OSError("the copy of this stream has been closed") from error


def reason(error: BaseException) -> str:
    """An error in the operating system's words, on one line, without the path that the caller names anyway."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def stream_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """An open stream up to its end. Waits for its writer as long as it takes: the user piped it in."""
    while True:
        chunk: bytes | None = stream.read(_CHUNK)
        if chunk is None:  # a pipe some other process has set to non-blocking; nothing there yet
            import select

            select.select([stream], [], [])
        elif not chunk:
            return
        else:
            yield chunk


def special_chunks(path: str, limits: Limits) -> Iterator[bytes]:
    """What a named pipe or device gives; raises OSError when it cannot be opened, or gives nothing in time.

    Decided: opened without blocking, because a named pipe that nobody writes into would otherwise hold the program
    for good. A writer that is there but silent is waited for, yet not for ever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        patience = limits.idle_seconds if is_pipe else limits.writer_wait_seconds
        settled = False  # someone has written, or has been given the time to
        while True:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                if not _ready(descriptor, patience):
                    raise TimeoutError(f"no byte came for {patience:g} seconds") from None
                continue
            if chunk:
                settled = True
                yield chunk
            elif settled or not is_pipe:
                return
            else:  # a named pipe reads as empty as long as nobody has opened it for writing
                _ready(descriptor, limits.writer_wait_seconds)
                settled = True
    finally:
        os.close(descriptor)


def _ready(descriptor: int, seconds: float) -> bool:
    """Is there something to read, be it the end, within `seconds`?"""
    import select

    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))
