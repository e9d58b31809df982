"""Notices that a command has gone silent, and gathers what each rank did last and where it stands; never touches it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logdoc.runner.dumps import Dump, Member, processes
from logdoc.runner.keep import Kept
from logdoc.sources import PathHints, Source
from logdoc.types.record import Identity, Record

if TYPE_CHECKING:
    from logdoc.stacks.processes import Process

MOST_GROUPS = 12  # of ranks that said the same
MOST_FRAMES = 12
# How long a job that hung may talk before it ends of that: watchdogs dump their records first, a launcher waits for its
# other processes. One that talks for longer has gone on.
LAST_WORDS_SECONDS = 120.0
_NUMBERS = re.compile(r"\d+")
_NO_WORD = re.compile(r"[\W\d_]+")


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


class Hang:
    """What was seen of a silent command, for as long as it may tell why the command ends; `tick` as for StallWatch."""

    def __init__(self) -> None:
        self._dumps: tuple[Dump, ...] = ()
        self._said: frozenset[str] = frozenset()
        self._size = 0
        self._last = 0.0
        self._resumed: float | None = None

    def seen(self, dumps: Sequence[Dump], words: Iterable[LastWords], kept: Kept, last_output: float) -> None:
        """Note what was seen of a command that has said nothing since `last_output`, all of it in `kept`."""
        self._said = frozenset(shape for one in words if (shape := _shape(one.text)))
        self._size = kept.size + kept.lost
        self._last, self._resumed, self._dumps = last_output, None, tuple(dumps)

    def tick(self, last_output: float) -> None:
        if last_output == self._last:
            return
        now = time.monotonic()
        self._resumed = now if self._resumed is None else self._resumed
        if now - self._resumed > LAST_WORDS_SECONDS:
            self._dumps = ()

    def dumps(self, kept: Kept) -> tuple[Dump, ...]:
        """The dumps, unless the command has gone on by what it said in the end: what it said before, but for numbers.
        A command that dies of its hang says something new."""
        if not self._dumps:
            return ()
        since = kept.since(self._size).source("", PathHints())
        has_gone_on = any(_shape(_first_line(record)) in self._said for record in _records(since))
        return () if has_gone_on else self._dumps


def _shape(line: str) -> str:
    """A line without what changes from step to step: numbers, and the bars that progress is drawn with."""
    return _NO_WORD.sub(" ", line).strip()


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
    last = {_speaker(record.who): record for record in _records(source) if record.body.strip()}
    if len(last) > 1:
        last.pop(None, None)
    groups = _grouped(last, _first_line)
    if len(groups) > MOST_GROUPS:
        groups = _grouped(last, lambda record: _NUMBERS.sub("#", _first_line(record)))
    return [_words(ranks, last) for ranks in groups]


def _records(source: Source) -> Iterator[Record]:
    from logdoc.reader import ReadState, read  # only when there is something to read: the command starts sooner

    for batch in read(source.name, source.open_blocks(), ReadState(), source.hints.identity()):
        yield from batch


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
    """What these processes do, and where their main thread stands, innermost frame first; `error` where nobody could
    look. `state`: psutil's word where they cannot run at all."""

    pids: tuple[int, ...]
    ranks: tuple[int, ...]
    does: str = ""
    frames: tuple[str, ...] = ()
    state: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """All that is known of a silent command. `verdict`: what the stacks say together; `stacks`: None without py-spy;
    `headline`: what the engine makes of it all, None if nothing."""

    pid: int
    seconds: float
    words: tuple[LastWords, ...]
    verdict: tuple[str, ...] = ()
    stacks: tuple[Stack, ...] | None = None
    headline: str | None = None


def verdict(dumps: Sequence[Dump]) -> tuple[str, ...]:
    """Who holds the others up, who waits where: the sentences of the stacks room."""
    from logdoc.stacks.verdict import sayings

    sizes = {dump.member.world_size for dump in dumps} - {None}
    world_size = sizes.pop() if len(sizes) == 1 else None
    return tuple(saying.text for saying in sayings(processes(dumps), world_size, hung=False))


def stacks(dumps: Sequence[Dump]) -> tuple[Stack, ...]:
    """Where everybody stands, those who do the same together; launchers and helpers are left out unless alone."""
    from logdoc.stacks.verdict import does

    states = {dump.member.pid: dump.state for dump in dumps}
    found = processes(dumps)
    alike: dict[tuple[str, str | None], list[Process]] = {}
    for one in [one for one in found if one.role is None] or found:
        alike.setdefault((does(one), states.get(one.stacks.pid or 0)), []).append(one)
    unseen: dict[str, list[Member]] = {}
    for dump in dumps:
        if dump.error is not None:
            unseen.setdefault(dump.error, []).append(dump.member)
    seen = [_stack(what, state, same) for (what, state), same in alike.items()]
    return (*seen, *(_unseen(members, error) for error, members in unseen.items()))


def _stack(what: str, state: str | None, same: Sequence[Process]) -> Stack:
    main = same[0].stacks.main
    frames = main.frames[:MOST_FRAMES] if main is not None else ()
    return Stack(
        pids=tuple(one.stacks.pid for one in same if one.stacks.pid is not None),
        ranks=tuple(sorted(one.rank for one in same if one.rank is not None)),
        does=what,
        frames=tuple(f"{frame.function} ({frame.file}:{frame.line})" for frame in frames),
        state=state,
    )


def _unseen(members: Sequence[Member], error: str) -> Stack:
    ranks = sorted(one.rank for one in members if one.rank is not None)
    return Stack(tuple(one.pid for one in members), tuple(ranks), error=error)
