"""Where raw bytes come from: a file or memory (pipes: spool.py, URLs: remote.py); knows nothing of compression."""

from __future__ import annotations

import os
from collections.abc import Iterator

from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Protocol
else:
    Protocol = object


class Origin(Protocol):
    """Bytes that can be read any number of times."""

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        """The bytes as stored, in blocks of at most `size`; raises OSError when they cannot be had."""


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """A regular file. `is_near`: any part of it can be read again at no cost to speak of."""

    path: str
    is_near = True

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        # Unbuffered, since the blocks are large already; non-blocking, since some files of /proc (kmsg) would wait.
        with self.open() as file:
            while block := file.read(size):
                yield block

    def open(self) -> BinaryIO:
        """The file itself, for reading at any offset."""
        return open(self.path, "rb", buffering=0, opener=_open_nonblocking)


@dataclass(frozen=True, slots=True)
class BytesOrigin:
    """Bytes that are in memory already."""

    data: bytes

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        for start in range(0, len(self.data), size):
            yield self.data[start : start + size]


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
