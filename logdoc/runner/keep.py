"""Keeps the beginning and the end of a command's output while it passes, for a copy in memory; never raises later."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from logdoc.sources import PathHints, Source
from logdoc.sources.limits import DEFAULT_LIMITS, KIB, MIB
from logdoc.sources.spool import reason
from logdoc.types.errors import InputError

HEAD_BYTES = 1 * MIB  # versions, world size and settings are said once, at the start
LEAST_BYTES = 64 * KIB
FOLDER_PREFIX = "logdoc-run-"
LEFT_BEHIND_SECONDS = 86_400.0
IN_MEMORY_BYTES = 8 * MIB  # where no folder can be written to
NEAREST_NEWLINE = 64 * KIB  # how far a cut is moved so that it falls between two lines
# In a file that is written over, older text follows the newest; a reader after a SIGKILL must see where.
END_MARK = b"\n[logdoc: the kept output ends here; what follows is older]\n"

Bytes = bytes | memoryview


class Keep(Protocol):
    """Where output is kept. `fault` says why keeping has stopped, if it has."""

    fault: str | None

    def write(self, parts: Sequence[Bytes]) -> None:
        """Keep these bytes, in this order; safe from several threads."""

    def snapshot(self, most: int | None = None) -> Kept:
        """What is kept now (of the end, at most the last `most` bytes), to be read however the keeping goes on."""

    def close(self) -> None:
        """Give up the files."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of an open file, from byte `start` to before byte `end`."""

    descriptor: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The kept bytes at one moment, an Origin. `lost` counts the bytes missing between the beginning and the end."""

    stretches: tuple[Stretch, ...]
    lost: int

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        """See logdoc.sources.origins.Origin."""
        for stretch in self.stretches:
            offset = stretch.start
            while block := os.pread(stretch.descriptor, min(size, stretch.end - offset), offset):
                offset += len(block)
                yield block

    @property
    def size(self) -> int:
        return sum(stretch.end - stretch.start for stretch in self.stretches)

    def since(self, size: int) -> Kept:
        """What came after the first `size` bytes of the output, as far as it is kept; it shares these descriptors."""
        room = max(0, self.size + self.lost - size)
        taken: list[Stretch] = []
        for stretch in reversed(self.stretches):
            start = max(stretch.start, stretch.end - room)
            room -= stretch.end - start
            if start < stretch.end:
                taken.insert(0, Stretch(stretch.descriptor, start, stretch.end))
        return Kept(tuple(taken), room)

    def source(self, name: str, hints: PathHints) -> Source:
        """These bytes as a log of this name."""
        return Source(name, None, self.size, "log", hints, self, DEFAULT_LIMITS)

    def close(self) -> None:
        """Give up the descriptors."""
        for descriptor in {stretch.descriptor for stretch in self.stretches}:
            os.close(descriptor)


@dataclass(slots=True)
class _Part:
    """A file of the ring. `reused`: older text lies beyond `size`; `watched`: a snapshot may be reading it."""

    name: str
    descriptor: int
    size: int = 0
    reused: bool = False
    watched: bool = False


class Ring:
    """The first HEAD_BYTES, and of the rest at least the last half of `size` bytes, in a temporary folder.

    Two files are filled in turn; a file is written over in place, which spares the kernel freeing and finding pages,
    unless a snapshot may still read it. The folder goes with `close`; after a SIGKILL it stays for whoever looks, until
    a later ring is closed that finds it a day old.
    """

    def __init__(self, size: int) -> None:
        self.fault: str | None = None
        self._lock = threading.Lock()
        self._temporary = _temporary_folder()
        self._half = max(size, LEAST_BYTES) // 2
        if self._temporary is None:
            self._half = min(self._half, IN_MEMORY_BYTES // 2)
        self._head = self._file("head")
        fcntl.flock(self._head.descriptor, fcntl.LOCK_EX)  # what tells a folder in use from one left behind
        self._parts = [self._file("tail.0"), self._file("tail.1")]
        self._dropped = 0

    @property
    def folder(self) -> Path | None:
        """Where the files are; None when they are in memory for want of a writable folder."""
        return None if self._temporary is None else Path(self._temporary.name)

    def write(self, parts: Sequence[Bytes]) -> None:
        with self._lock:
            if self.fault is not None:
                return
            try:
                self._write(parts, sum(map(len, parts)))
            except OSError as error:
                self.fault = reason(error)

    def _write(self, parts: Sequence[Bytes], length: int) -> None:
        target = self._parts[0]
        if self._head.size + length <= HEAD_BYTES and not target.size and not self._parts[1].size:
            target = self._head
        elif target.size and target.size + length > self._half:
            target = self._turn()
        marked = [*parts, END_MARK] if target.reused else parts
        _all_of(sum(map(len, marked)), os.pwritev(target.descriptor, marked, target.size))
        target.size += length

    def _turn(self) -> _Part:
        """The full file becomes the older one, and the older one is filled again."""
        full, target = self._parts
        if full.reused:
            os.ftruncate(full.descriptor, full.size)
        self._dropped += target.size
        if target.watched:
            os.close(target.descriptor)
            target = self._file(target.name)
        else:
            target.reused = target.size > 0
            target.size = 0
        self._parts = [target, full]
        return target

    def snapshot(self, most: int | None = None) -> Kept:
        with self._lock:
            newest, older = self._parts
            lost = self._dropped
            stretches: list[Stretch] = []
            room = newest.size + older.size if most is None else most
            for part in (newest, older):
                part.watched = True
                taken = min(part.size, room)
                room -= taken
                lost += part.size - taken
                if taken:
                    stretches.insert(0, Stretch(os.dup(part.descriptor), part.size - taken, part.size))
            if self._head.size:
                stretches.insert(0, Stretch(os.dup(self._head.descriptor), 0, self._head.size))
        return _between_lines(stretches, lost, bool(self._head.size))

    def close(self) -> None:
        with self._lock:
            for part in (self._head, *self._parts):
                os.close(part.descriptor)
            self.fault = "closed"
        if self._temporary is not None:
            self._temporary.cleanup()
            _remove_left_behind(Path(self._temporary.name).parent)

    def _file(self, name: str) -> _Part:
        if self.folder is None:
            return _Part(name, os.memfd_create(f"logdoc-{name}"))
        path = self.folder / name
        path.unlink(missing_ok=True)
        return _Part(name, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


class LogFile:
    """All of the output at the end of a file of the user's; of a long one, the beginning and the end are explained."""

    def __init__(self, path: str, size: int) -> None:
        self.fault: str | None = None
        self._lock = threading.Lock()
        self._most = max(size, LEAST_BYTES)
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            self._start = self._size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise InputError(f"{path}: {reason(error)}") from None

    def write(self, parts: Sequence[Bytes]) -> None:
        with self._lock:
            if self.fault is not None:
                return
            try:
                length = sum(map(len, parts))
                _all_of(length, os.writev(self._descriptor, parts))
                self._size += length
            except OSError as error:
                self.fault = reason(error)

    def snapshot(self, most: int | None = None) -> Kept:
        room = self._most if most is None else min(most, self._most)
        with self._lock:
            head_end = min(self._start + HEAD_BYTES, self._size)
            tail_start = max(head_end, self._size - room)
            stretches = [(self._start, head_end), (tail_start, self._size)]
            opened = [Stretch(os.dup(self._descriptor), start, end) for start, end in stretches if end > start]
        return _between_lines(opened, tail_start - head_end, True)

    def close(self) -> None:
        with self._lock:
            os.close(self._descriptor)
            self.fault = "closed"


def _temporary_folder() -> tempfile.TemporaryDirectory[str] | None:
    try:
        return tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True)
    except OSError:
        return None


def _remove_left_behind(place: Path) -> None:
    """Folders of ours, in `place`, that are a day old and in nobody's use: their logdoc was killed hard."""
    for folder in place.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            if folder.stat().st_uid != os.getuid() or time.time() - folder.stat().st_mtime < LEFT_BEHIND_SECONDS:
                continue
            with open(folder / "head", "rb") as head:
                fcntl.flock(head, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def _all_of(length: int, written: int) -> None:
    """A file takes less than it was given only when its disk is full."""
    if written < length:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _between_lines(stretches: list[Stretch], lost: int, has_head: bool) -> Kept:
    """Where bytes are missing, the half lines on either side are left out as well."""
    if lost and has_head and stretches:
        head = stretches[0]
        near = max(head.start, head.end - NEAREST_NEWLINE)
        newline = os.pread(head.descriptor, head.end - near, near).rfind(b"\n")
        if newline >= 0:
            stretches[0] = Stretch(head.descriptor, head.start, near + newline + 1)
            lost += head.end - (near + newline + 1)
    first_of_tail = 1 if has_head else 0
    if lost and len(stretches) > first_of_tail:
        tail = stretches[first_of_tail]
        newline = os.pread(tail.descriptor, min(NEAREST_NEWLINE, tail.end - tail.start), tail.start).find(b"\n")
        if newline >= 0:
            stretches[first_of_tail] = Stretch(tail.descriptor, tail.start + newline + 1, tail.end)
            lost += newline + 1
    return Kept(tuple(stretches), lost)
