"""Large plain files in ranges, scanned by this process or by several; the result is the same whoever does it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from logdoc.scanner.triggers import Trigger, TriggerScanner, trigger_scanner
from logdoc.scanner.windows import BYTES_AFTER, BYTES_BEFORE, Counts, Edges, Piece, WindowScan

RANGE_BYTES = 32 << 20  # of one file, or of several small ones: the work of one task
BLOCK_BYTES = 1 << 20
TASKS_AHEAD = 2  # for each worker: results wait in memory


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `start` to `end` of a file, whole lines. `opens` and `closes`: it holds the file's first, last byte."""

    path: str
    start: int
    end: int
    opens: bool
    closes: bool


@dataclass(frozen=True, slots=True)
class Scanned:
    """What is worth reading of a range, its lines numbered from 1 (and below, before its start), and its counts."""

    range: Range
    pieces: tuple[Piece, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class Orders:
    """What every worker must know."""

    triggers: Sequence[Trigger]
    edges: Edges
    cut: Collection[int]


def ranges_of(path: str, start: int, size: int) -> Iterator[Range]:
    """A file from the line that begins at `start`, in ranges that end with a line."""
    with open(path, "rb", buffering=0) as file:
        at = start
        while at < size:
            end = min(at + RANGE_BYTES, size)
            if end < size:
                file.seek(end)
                newline = file.read(BLOCK_BYTES).find(b"\n")
                end = min(size, end + newline + 1)
            yield Range(path, at, end, at == 0, end == size)
            at = end


def scan_ranges(ranges: Iterable[Range], orders: Orders, workers: int) -> Iterator[Scanned]:
    """All ranges scanned, in their order. A worker that dies costs time: what it had is done again here."""
    tasks = _tasks(ranges)
    if workers > 1:
        yield from _by_workers(tasks, orders, workers)
        return
    scanner = trigger_scanner(orders.triggers)
    for task in tasks:
        for one in task:
            yield scan_range(one, orders, scanner)


def scan_range(one: Range, orders: Orders, scanner: TriggerScanner) -> Scanned:
    """One range. A file that has become shorter, or unreadable, gives what there is."""
    edges = Edges(orders.edges.head if one.opens else 0, orders.edges.tail if one.closes else 0)
    try:
        with open(one.path, "rb", buffering=0) as file:
            lead = _lead(file, one.start)
            scan = WindowScan(scanner, edges, orders.cut, lead)
            pieces = list(scan.pieces(_blocks(file, one.end - one.start)))
            pieces += scan.trail(file.read(BYTES_AFTER))
    except OSError:
        return Scanned(one, (), Counts())
    return Scanned(one, tuple(pieces), scan.counts)


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


def _tasks(ranges: Iterable[Range]) -> Iterator[list[Range]]:
    task: list[Range] = []
    size = 0
    for one in ranges:
        task.append(one)
        size += one.end - one.start
        if size >= RANGE_BYTES:
            yield task
            task, size = [], 0
    if task:
        yield task


def _by_workers(tasks: Iterator[list[Range]], orders: Orders, workers: int) -> Iterator[Scanned]:
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # fork shares what is loaded already; where threads or the platform make it unsafe, a fresh interpreter starts
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    waiting: deque[tuple[list[Range], Future[list[Scanned]] | None]] = deque()
    with ProcessPoolExecutor(workers, context, _prepare, (orders,)) as pool:
        alive = True
        for task in tasks:
            future, alive = _handed_over(pool, task) if alive else (None, False)
            waiting.append((task, future))
            if len(waiting) > workers * TASKS_AHEAD:
                yield from _result(*waiting.popleft(), orders, BrokenProcessPool)
        while waiting:
            yield from _result(*waiting.popleft(), orders, BrokenProcessPool)


def _handed_over(pool: Any, task: list[Range]) -> tuple[Any, bool]:
    """The task's future, and whether the pool still lives."""
    try:
        return pool.submit(_scan_task, task), True
    except (RuntimeError, OSError):  # BrokenProcessPool is a RuntimeError; no process can be had is an OSError
        return None, False


def _result(task: list[Range], future: Any, orders: Orders, broken: type[Exception]) -> list[Scanned]:
    if future is not None:
        try:
            done: list[Scanned] = future.result()
            return done
        except (broken, OSError):
            pass
    scanner = trigger_scanner(orders.triggers)
    return [scan_range(one, orders, scanner) for one in task]


_ready: list[tuple[Orders, TriggerScanner]] = []  # of a worker process: what `_prepare` was given


def _prepare(orders: Orders) -> None:
    _ready[:] = [(orders, trigger_scanner(orders.triggers))]


def _scan_task(task: list[Range]) -> list[Scanned]:
    orders, scanner = _ready[0]
    return [scan_range(one, orders, scanner) for one in task]
