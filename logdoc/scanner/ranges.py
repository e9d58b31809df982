"""Large inputs in jobs, scanned by this process or by a crew of others; the result is the same whoever does it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from logdoc.scanner.triggers import Trigger, TriggerScanner, trigger_scanner
from logdoc.scanner.windows import BYTES_AFTER, BYTES_BEFORE, Counts, Edges, Piece, WindowScan

RANGE_BYTES = 32 << 20  # of one file, or of several small ones: the work of one task
BLOCK_BYTES = 1 << 20
TASKS_AHEAD = 2  # for each worker: results wait in memory


@dataclass(frozen=True, slots=True)
class Orders:
    """What every worker must know."""

    triggers: Sequence[Trigger]
    edges: Edges
    cut: Collection[int]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What is worth reading of a job, its lines numbered from 1 (and below, before its start), and its counts.

    `closes`: it reaches the end of its source. `size`: the plain bytes of a source that had to be unpacked for it;
    then `truncated` and `warnings` are what the unpacking found.
    """

    pieces: tuple[Piece, ...]
    counts: Counts
    closes: bool
    size: int | None = None
    truncated: bool = False
    warnings: tuple[str, ...] = ()


class Job(Protocol):
    """A part of the input that one worker scans; it can be pickled. `size`: its bytes as stored."""

    @property
    def size(self) -> int: ...

    def scan(self, orders: Orders, scanner: TriggerScanner) -> Scanned:
        """Do it. Raises OSError where the input cannot be had."""

    def given_up(self) -> Scanned:
        """What there is if the input cannot be had."""


Task = list[Job]
Crew = Callable[[Iterator[Task], Orders], Iterator[Scanned]]


class Seekable(Protocol):
    """Where a file's bytes come from."""

    def open(self) -> AbstractContextManager[BinaryIO]: ...


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `start` to `end` of a file, whole lines. `opens` and `closes`: it holds the file's first, last byte."""

    file: Seekable
    start: int
    end: int
    opens: bool
    closes: bool

    @property
    def size(self) -> int:
        return self.end - self.start

    def scan(self, orders: Orders, scanner: TriggerScanner) -> Scanned:
        """See Job. A file that has become shorter gives what there is."""
        edges = Edges(orders.edges.head if self.opens else 0, orders.edges.tail if self.closes else 0)
        with self.file.open() as file:
            scan = WindowScan(scanner, edges, orders.cut, _lead(file, self.start))
            pieces = list(scan.pieces(_blocks(file, self.size)))
            pieces += scan.trail(file.read(BYTES_AFTER))
        return Scanned(tuple(pieces), scan.counts, self.closes)

    def given_up(self) -> Scanned:
        """See Job."""
        return Scanned((), Counts(), self.closes)


def ranges_of(source: Seekable, start: int, size: int) -> Iterator[Range]:
    """A file from the line that begins at `start`, in ranges that end with a line."""
    with source.open() as file:
        at = start
        while at < size:
            end = min(at + RANGE_BYTES, size)
            if end < size:
                file.seek(end)
                newline = file.read(BLOCK_BYTES).find(b"\n")
                end = min(size, end + newline + 1)
            yield Range(source, at, end, at == 0, end == size)
            at = end


def scan_all(jobs: Iterable[Job], orders: Orders, crew: Crew) -> Iterator[Scanned]:
    """All jobs done, in their order."""
    return crew(_tasks(jobs), orders)


def scan_task(task: Task, orders: Orders, scanner: TriggerScanner) -> list[Scanned]:
    """A worker's work. Raises OSError where a file cannot be read from where the worker is."""
    return [job.scan(orders, scanner) for job in task]


def scan_here(task: Task, orders: Orders, scanner: TriggerScanner) -> Iterator[Scanned]:
    """The same by this process, which has the last word: what cannot be read now gives what there is."""
    for job in task:
        try:
            yield job.scan(orders, scanner)
        except OSError:
            yield job.given_up()


def alone(tasks: Iterator[Task], orders: Orders) -> Iterator[Scanned]:
    """The crew of this process."""
    scanner = trigger_scanner(orders.triggers)
    for task in tasks:
        yield from scan_here(task, orders, scanner)


def processes(count: int) -> Crew:
    """A crew of `count` processes. One that dies costs time: what it had is done again here."""
    return alone if count <= 1 else lambda tasks, orders: _by_processes(tasks, orders, count)


def _lead(file: Any, start: int) -> bytes:
    """The whole lines just before `start`."""
    before = max(0, start - BYTES_BEFORE)
    file.seek(before)
    text: bytes = file.read(start - before)
    return text if before == 0 else text[text.find(b"\n") + 1 :]


def _blocks(file: Any, size: int) -> Iterator[bytes]:
    while size > 0 and (block := file.read(min(size, BLOCK_BYTES))):
        size -= len(block)
        yield block


def _tasks(jobs: Iterable[Job]) -> Iterator[Task]:
    task: Task = []
    size = 0
    for job in jobs:
        task.append(job)
        size += job.size
        if size >= RANGE_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _by_processes(tasks: Iterator[Task], orders: Orders, count: int) -> Iterator[Scanned]:
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # fork shares what is loaded already; where threads or the platform make it unsafe, a fresh interpreter starts
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    waiting: deque[tuple[Task, Future[list[Scanned]] | None]] = deque()
    with ProcessPoolExecutor(count, context, _prepare, (orders,)) as pool:
        alive = True
        for task in tasks:
            future, alive = _handed_over(pool, task) if alive else (None, False)
            waiting.append((task, future))
            if len(waiting) > count * TASKS_AHEAD:
                yield from _result(*waiting.popleft(), orders, BrokenProcessPool)
        while waiting:
            yield from _result(*waiting.popleft(), orders, BrokenProcessPool)


def _handed_over(pool: Any, task: Task) -> tuple[Any, bool]:
    """The task's future, and whether the pool still lives."""
    try:
        return pool.submit(_scan_task, task), True
    except (RuntimeError, OSError):  # BrokenProcessPool is a RuntimeError; no process can be had is an OSError
        return None, False


def _result(task: Task, future: Any, orders: Orders, broken: type[Exception]) -> Iterable[Scanned]:
    if future is not None:
        try:
            done: list[Scanned] = future.result()
            return done
        except (broken, OSError):
            pass
    return scan_here(task, orders, trigger_scanner(orders.triggers))


_ready: list[tuple[Orders, TriggerScanner]] = []  # of a worker process: what `_prepare` was given


def _prepare(orders: Orders) -> None:
    _ready[:] = [(orders, trigger_scanner(orders.triggers))]


def _scan_task(task: Task) -> list[Scanned]:
    return scan_task(task, *_ready[0])
