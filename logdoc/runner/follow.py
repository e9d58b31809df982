"""Reads a log while it is written, and tells when the diagnosis changes; prints nothing.

Cost: what is kept (at most the given size, plus its beginning) is explained anew when something was added, but never
more than a tenth of the time: after an explanation that took t seconds comes a pause of 9 t, at least LEAST_PAUSE. A
failure is therefore told at most eleven times as long after its line as one explanation takes (or 1 s plus that); the
end of the input ends the pause.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from logdoc.runner.keep import Keep
from logdoc.runner.pump import BLOCK_BYTES
from logdoc.sources.spool import reason
from logdoc.types.errors import InputError
from logdoc.types.report import Diagnosis, Report

LEAST_PAUSE = 1.0
PAUSE_SHARE = 9.0
SHORTEST_POLL, LONGEST_POLL = 0.05, 1.0
# Seconds a thread may compute before the one that reads gets its turn: Python's 5 ms a block would slow the writer.
SWITCH_INTERVAL = 0.0005


class Feed(threading.Thread):
    """Puts into `keep` all that a descriptor gives, or the file `path` as it grows.

    `changed` is set when something was added (to a file: once what was there has been read), and at the end; `ended`
    then is set too. `said(what, name)` is told of rotations. `fault` says why reading ended early.
    """

    def __init__(self, path: str | None, descriptor: int, keep: Keep, said: Callable[[str, str], None]) -> None:
        super().__init__(name="follow", daemon=True)
        self.changed = threading.Event()
        self.ended = threading.Event()
        self.interrupted_by: int | None = None
        self.fault: str | None = None
        self._path = path
        self._descriptor = descriptor
        self._keep = keep
        self._said = said
        self._offset = 0
        self._grew = False

    def run(self) -> None:
        try:
            self._read_all()
        except OSError as error:
            self.fault = reason(error)
        finally:
            self.ended.set()
            self.changed.set()

    def interrupt(self, number: int) -> None:
        """End here, as the user wishes, who has sent this signal."""
        self.interrupted_by = number
        self.ended.set()
        self.changed.set()

    def _read_all(self) -> None:
        delay = SHORTEST_POLL
        while not self.ended.is_set():
            if block := _read(self._descriptor):
                self._keep.write([block])
                self._offset += len(block)
                self._grew = True
                delay = SHORTEST_POLL
                if self._path is None:
                    self._tell()
            elif self._path is None:
                return
            elif not self._reopened():
                self._tell()
                self.ended.wait(delay)
                delay = min(2 * delay, LONGEST_POLL)

    def _tell(self) -> None:
        if self._grew:
            self._grew = False
            self.changed.set()

    def _reopened(self) -> bool:
        """Whether there is something to read after all: the file was cut off, or another one has taken its name."""
        assert self._path is not None
        if os.fstat(self._descriptor).st_size < self._offset:
            self._said("truncated", self._path)
            self._offset = os.lseek(self._descriptor, 0, os.SEEK_SET)
            return True
        try:
            other = open_file(self._path)
        except InputError:  # moved away; the new one is not there yet
            return False
        if os.path.samestat(os.fstat(other), os.fstat(self._descriptor)):
            os.close(other)
            return False
        self._said("rotated", self._path)
        os.close(self._descriptor)
        self._descriptor, self._offset = other, 0
        return True


def open_file(path: str) -> int:
    """A descriptor of a regular file. Raises InputError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {reason(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path}: only a file or - can be followed")
    return descriptor


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, BLOCK_BYTES)
    except BlockingIOError:  # a pipe that somebody has set to non-blocking
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll()
        return os.read(descriptor, BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class Change:
    """A diagnosis that is new, or new at the top. `number`: its place in the report, 1 for the best."""

    diagnosis: Diagnosis
    number: int
    report: Report


@contextmanager
def ended_by_signals(feed: Feed) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP ends the input and lets the last words be said; a second one ends us."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, frame: FrameType | None) -> None:
        feed.interrupt(number)
        for other, handler in before.items():
            signal.signal(other, handler)

    for number in numbers:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(feed: Feed, explain: Callable[[], Report], changed: Callable[[Change], None]) -> Report:
    """Explain again and again until the input ends. The last report; if a failure has left what is kept, its report."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    changes = _Changes()
    failed: Report | None = None
    while True:
        feed.changed.wait()
        ended = feed.ended.is_set()
        feed.changed.clear()
        began = time.monotonic()
        report = explain()
        failed = report if report.outcome != "healthy" else failed
        for change in changes.of(report):
            changed(change)
        if ended:
            return failed or report
        feed.ended.wait(max(LEAST_PAUSE, PAUSE_SHARE * (time.monotonic() - began)))


class _Changes:
    """What is new in a report against those before it. A diagnosis is known by its rule and who it befell."""

    def __init__(self) -> None:
        self._seen: set[tuple[object, ...]] = set()
        self._top: tuple[object, ...] | None = None

    def of(self, report: Report) -> Iterator[Change]:
        for number, diagnosis in enumerate(report.diagnoses, start=1):
            key = (diagnosis.rule, diagnosis.origin.rank, diagnosis.origin.host)
            if key not in self._seen or (number == 1 and key != self._top):
                yield Change(diagnosis, number, report)
            self._seen.add(key)
            if number == 1:
                self._top = key
