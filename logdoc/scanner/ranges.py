"""Large inputs in jobs, scanned by this process or by a crew of others; the result is the same whoever does it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from logdoc.scanner.hits import Counts, HitScan
from logdoc.scanner.triggers import Trigger, TriggerScanner, ready_scanner
from logdoc.scanner.windows import BYTES_AFTER, BYTES_BEFORE, Edges, Piece, WindowScan
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO, Protocol
else:
    Protocol = object

RANGE_BYTES = 32 << 20  # of one file, or of several small ones: the work of one task
BLOCK_BYTES = 1 << 20
LONGEST_TRIGGER = 512  # bytes; so much of a line that is longer than a block is looked at twice
TASKS_AHEAD = 4  # for each worker: results wait in memory


@dataclass(frozen=True, slots=True)
class Orders:
    """What every worker must know."""

    triggers: Sequence[Trigger]
    edges: Edges
    cut: Collection[int]


# A trigger worth following: where its line is in the file, the line's number, from 1 at the range's start, and which.
Hit = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What is worth reading of a job, its lines numbered from 1 (and below, before its start), and its counts.

    Of a file at hand these are `hits`, round which it can be read, else `pieces`. `closes`: it reaches the end of its
    source. `size`: the plain bytes of a source that had to be unpacked for it; then `truncated` and `warnings` are what
    the unpacking found. `lost`: it could not be read.
    """

    pieces: tuple[Piece, ...]
    counts: Counts
    closes: bool
    size: int | None = None
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    hits: tuple[Hit, ...] = ()
    lost: bool = False


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
    """Where a file's bytes come from. `is_near`: a part of it can be read again at no cost to speak of."""

    @property
    def is_near(self) -> bool: ...

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
        with self.file.open() as file:
            return self._hits(file, orders, scanner) if self.file.is_near else self._pieces(file, orders, scanner)

    def _hits(self, file: BinaryIO, orders: Orders, scanner: TriggerScanner) -> Scanned:
        scan, hits, last = HitScan(scanner, orders.cut), [], b"\n"
        counts = scan.counts
        for block, at, start, end in _blocks(file, self.start, self.end):
            counts.bytes += end - start
            line, counted = counts.lines + 1, start
            for place, number in scan.hits(block, start, end):
                line += block.count(b"\n", counted, place)
                counted = max(counted, place)
                hits.append((at + place, line, number))
            counts.lines = line - 1 + block.count(b"\n", counted, end)
            last = block[end - 1 : end]
        counts.lines += self.closes and last != b"\n"
        return Scanned((), counts, self.closes, hits=tuple(hits))

    def _pieces(self, file: BinaryIO, orders: Orders, scanner: TriggerScanner) -> Scanned:
        edges = Edges(orders.edges.head if self.opens else 0, orders.edges.tail if self.closes else 0)
        scan = WindowScan(scanner, edges, orders.cut, _lead(file, self.start))
        pieces = list(scan.pieces(_whole(file, self.size)))
        pieces += scan.trail(file.read(BYTES_AFTER))
        return Scanned(tuple(pieces), scan.counts, self.closes)

    def given_up(self) -> Scanned:
        """See Job."""
        return Scanned((), Counts(), self.closes, lost=True)


def ranges_of(source: Seekable, start: int, size: int) -> Iterator[Range]:
    """A file from the line that begins at `start`, in ranges that end with a line. What cannot be read is one range."""
    at = start
    while at < size:
        try:
            end = _end_of_range(source, at, size)
        except OSError:
            end = size
        yield Range(source, at, end, at == 0, end == size)
        at = end


def _end_of_range(source: Seekable, start: int, size: int) -> int:
    end = min(start + RANGE_BYTES, size)
    if end == size:
        return size
    with source.open() as file:
        file.seek(end)
        return min(size, end + file.read(BLOCK_BYTES).find(b"\n") + 1)


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
    scanner = ready_scanner(orders.triggers)
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


def _blocks(file: BinaryIO, at: int, stop: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Blocks, where each stands in the file, and from where to where it holds whole lines not given before.

    The torn line at a block's end is read again with the next one; of a line longer than a block, only its end is. A
    range may begin within such a line, too.
    """
    start = min(LONGEST_TRIGGER, at)
    at -= start
    while at + start < stop:
        file.seek(at)
        block = file.read(min(BLOCK_BYTES, stop - at))
        if len(block) <= start:
            return
        is_last = at + len(block) >= stop
        end = len(block) if is_last else block.rfind(b"\n", start) + 1
        torn = not end
        end = end or len(block)
        yield block, at, start, end
        start = min(LONGEST_TRIGGER, end) if torn else 0
        at += end - start


def _whole(file: BinaryIO, size: int) -> Iterator[bytes]:
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


def elsewhere(
    tasks: Iterator[Task],
    orders: Orders,
    ahead: int,
    hand_over: Callable[[Task], Any],
    result: Callable[[Any], list[Scanned]],
    lost: tuple[type[Exception], ...],
) -> Iterator[Scanned]:
    """Tasks done by others, in their order, `ahead` of them under way. `hand_over` gives a promise or None, `result`
    waits for it. Where either raises one of `lost`, the task is done here."""
    waiting: deque[tuple[Task, Any]] = deque()
    for task in tasks:
        waiting.append((task, _promised(hand_over, task, lost)))
        if len(waiting) > ahead:
            yield from _kept(*waiting.popleft(), orders, result, lost)
    while waiting:
        yield from _kept(*waiting.popleft(), orders, result, lost)


def _promised(hand_over: Callable[[Task], Any], task: Task, lost: tuple[type[Exception], ...]) -> Any:
    try:
        return hand_over(task)
    except lost:
        return None


def _kept(
    task: Task,
    promise: Any,
    orders: Orders,
    result: Callable[[Any], list[Scanned]],
    lost: tuple[type[Exception], ...],
) -> Iterable[Scanned]:
    if promise is not None:
        try:
            return result(promise)
        except lost:
            pass
    return scan_here(task, orders, ready_scanner(orders.triggers))


def _by_processes(tasks: Iterator[Task], orders: Orders, count: int) -> Iterator[Scanned]:
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # fork shares what is loaded already; where threads or the platform make it unsafe, a fresh interpreter starts
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(count, context, _prepare, (orders,)) as pool:

        def hand_over(task: Task) -> Future[list[Scanned]] | None:
            try:
                return pool.submit(_scan_task, task)
            except RuntimeError:  # the pool is broken, or no thread can be had; no process is an OSError
                return None

        yield from elsewhere(tasks, orders, count * TASKS_AHEAD, hand_over, Future.result, (BrokenProcessPool, OSError))


_ready: list[tuple[Orders, TriggerScanner]] = []  # of a worker process: what `_prepare` was given


def _prepare(orders: Orders) -> None:
    _ready[:] = [(orders, ready_scanner(orders.triggers))]


def _scan_task(task: Task) -> list[Scanned]:
    return scan_task(task, *_ready[0])
