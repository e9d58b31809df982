"""Notices that a command has gone silent, and gathers what each rank did last and where it stands; never touches it."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from logdoc.sources import Source
from logdoc.types.record import Identity, Record

MOST_GROUPS = 12  # of ranks that said the same
MOST_PROCESSES = 16
MOST_FRAMES = 12
STACK_SECONDS = 10.0
_NUMBERS = re.compile(r"\d+")


class StallWatch:
    """Calls `report` in a thread of its own when nothing has been said for `seconds`; again after twice as long.

    `tick` is to be called about once a second with the time (time.monotonic) of the last output.
    """

    def __init__(self, seconds: float, report: Callable[[float], None]) -> None:
        self._seconds = self._next = seconds
        self._report = report
        self._last = 0.0
        self._thread: threading.Thread | None = None

    def tick(self, last_output: float) -> None:
        if last_output != self._last:
            self._last, self._next = last_output, self._seconds
        silent = time.monotonic() - last_output
        if silent >= self._next and not (self._thread and self._thread.is_alive()):
            self._next *= 2
            self._thread = threading.Thread(target=self._report, args=(silent,), name="stall-report", daemon=True)
            self._thread.start()


@dataclass(frozen=True, slots=True)
class LastWords:
    """The last line of these ranks, the same or alike; `line` and `text` are those of the one silent longest."""

    ranks: tuple[int, ...]
    line: int
    time: str | None
    text: str


def last_words(source: Source) -> list[LastWords]:
    """What every rank said last, who fell silent first comes first; of a log without ranks, its last line.

    Ranks that said the same are joined; of more than MOST_GROUPS, also those whose words differ in numbers only.
    """
    from logdoc.reader import ReadState, read  # only when there is something to read: the command starts sooner

    last: dict[int | None, Record] = {}
    for batch in read(source.name, source.open_blocks(), ReadState(), source.hints.identity()):
        for record in batch:
            if record.body.strip():
                last[_speaker(record.who)] = record
    if len(last) > 1:
        last.pop(None, None)
    groups = _grouped(last, _first_line)
    if len(groups) > MOST_GROUPS:
        groups = _grouped(last, lambda record: _NUMBERS.sub("#", _first_line(record)))
    return [_words(ranks, last) for ranks in groups]


def _grouped(last: dict[int | None, Record], key: Callable[[Record], str]) -> list[list[int | None]]:
    alike: dict[str, list[int | None]] = {}
    for rank, record in sorted(last.items(), key=lambda item: (item[1].line, item[0] or 0)):
        alike.setdefault(key(record), []).append(rank)
    return list(alike.values())


def _words(ranks: list[int | None], last: dict[int | None, Record]) -> LastWords:
    record = last[ranks[0]]
    numbers = tuple(sorted(rank for rank in ranks if rank is not None))
    return LastWords(numbers, record.line, record.time_text, _first_line(record))


def _speaker(who: Identity) -> int | None:
    return next((number for number in (who.rank, who.local_rank, who.task) if number is not None), None)


def _first_line(record: Record) -> str:
    return next((line for line in record.body.split("\n") if line.strip()), "")


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the main thread of these processes stands, innermost frame first; `error` where nobody could look."""

    pids: tuple[int, ...]
    ranks: tuple[int, ...]
    frames: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    rank: int | None


def stacks(pid: int) -> list[Stack]:
    """Stacks of the Python processes under `pid` by py-spy, which reads them without stopping them; [] without it."""
    spy = shutil.which("py-spy")
    if spy is None:
        return []
    alike: dict[tuple[tuple[str, ...], str | None], list[_Process]] = {}
    for process in _workers(pid)[:MOST_PROCESSES]:
        alike.setdefault(_stack(spy, process.pid), []).append(process)
    return [
        Stack(
            pids=tuple(process.pid for process in same),
            ranks=tuple(sorted(process.rank for process in same if process.rank is not None)),
            frames=frames,
            error=error,
        )
        for (frames, error), same in alike.items()
    ]


def _workers(pid: int) -> list[_Process]:
    """The processes that are a rank; where none is, every Python process. Helpers of a rank inherit its RANK."""
    found = list(_python_processes(pid))
    ranks = {process.pid: process.rank for process in found}
    workers = [process for process in found if process.rank is not None and ranks.get(process.parent) != process.rank]
    return workers or found


def _python_processes(pid: int) -> Iterator[_Process]:
    import psutil

    try:
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)]
    except psutil.Error:
        return
    for process in family:
        try:
            if "python" not in process.name() and "pt_" not in process.name():
                continue
            rank = process.environ().get("RANK", "")
            yield _Process(process.pid, process.ppid(), int(rank) if rank.isdecimal() else None)
        except (psutil.Error, OSError):
            continue


def _stack(spy: str, pid: int) -> tuple[tuple[str, ...], str | None]:
    """Frames of the main thread, or why there are none."""
    from logdoc.probes.collect.machine import run_command

    answer = run_command([spy, "dump", "--nonblocking", "--pid", str(pid)], STACK_SECONDS)
    frames = tuple(_main_thread(answer.out.splitlines()))
    if frames:
        return frames, None
    said = [line.strip() for line in answer.err.splitlines() if line.strip()]
    return (), said[0] if said else answer.state


def _main_thread(lines: Iterable[str]) -> Iterator[str]:
    """The frames below the line that names the main thread; where none is called so, of the first thread."""
    threads: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("Thread "):
            threads.append((line, []))
        elif line.startswith("    ") and threads:
            threads[-1][1].append(line.strip())
    chosen = next((frames for name, frames in threads if "MainThread" in name), threads[0][1] if threads else [])
    yield from chosen[:MOST_FRAMES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """All that is known of a silent command. `headline`: what the engine makes of it, None if nothing."""

    pid: int
    seconds: float
    words: tuple[LastWords, ...]
    stacks: tuple[Stack, ...] = field(default=())
    headline: str | None = None
