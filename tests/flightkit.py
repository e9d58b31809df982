"""Plays distributed jobs with injected faults and writes the dumps their flight recorders would leave.

A rank has a host that enqueues operations and waits for some of them, and a device that carries them out: one lane a
process group, behind whatever the compute stream waits for. A fault stops one of the two, or changes a call; what
everybody else then shows follows from the waiting, as in a real job.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

WORLD = "default_pg"
SMALL = 4096  # elements; a send of fewer ends before the other side takes it
Damage = Literal[
    "host-stops",
    "device-stops",
    "never-calls",
    "skips",
    "repeats",
    "swaps",
    "wrong-op",
    "wrong-size",
    "wrong-dtype",
    "killed",
]
STOPS_HOST = ("host-stops", "killed")
STOPS_DEVICE = ("device-stops", "killed")
CHANGES_CALL = ("skips", "repeats", "swaps", "wrong-op", "wrong-size", "wrong-dtype", "never-calls")


@dataclass(frozen=True, slots=True)
class Op:
    """One call. `peer`: global rank of the other side; `sync`: the host waits for its end; `waits`: compute does.

    `batch` > 1: as many tensors in one coalesced call.
    """

    group: str
    name: str
    size: tuple[int, ...] = (4096, 1024)
    dtype: str = "BFloat16"
    peer: int | None = None
    sync: bool = False
    waits: bool = True
    batch: int = 1


Program = Callable[[int], Iterator[Op]]


@dataclass(frozen=True, slots=True)
class Job:
    """Process groups by kind, in order of creation (the same on every rank), and what each rank calls."""

    world: int
    groups: Mapping[str, tuple[tuple[int, ...], ...]]
    program: Program

    def members(self, rank: int, kind: str) -> tuple[int, ...]:
        return next(ranks for ranks in self.groups[kind] if rank in ranks)


@dataclass(frozen=True, slots=True)
class Fault:
    """`at`: seconds into the job. The watchdog of a broken device saw nothing that ended `blind` seconds before."""

    rank: int
    damage: Damage
    at: float
    blind: float = 0.05


@dataclass(slots=True, eq=False)
class Call:
    """One enqueued call of a rank. `open`: calls of the same rank that must end before it starts."""

    rank: int
    op: Op
    seq: int
    p2p_seq: int
    created: float
    open: int = 0
    then: list[Call] = field(default_factory=list)
    started: float | None = None
    done: float | None = None
    host_waits: bool = False


class Play:
    """Runs a job until nothing moves any more, or until a time. `calls` are each rank's, in order."""

    def __init__(self, job: Job, faults: Sequence[Fault], seed: int, until: float = 1e9) -> None:
        self.job = job
        self.faults = {fault.rank: fault for fault in faults}
        self.calls: dict[int, list[Call]] = {rank: [] for rank in range(job.world)}
        self._until = until
        self._dice = {rank: random.Random(seed * 1000 + rank) for rank in range(job.world)}
        self._programs = {rank: job.program(rank) for rank in range(job.world)}
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._ticks = 0
        self._counts: dict[tuple[object, ...], int] = defaultdict(int)
        self._lanes: dict[tuple[object, ...], Call] = {}
        self._gates: dict[int, list[Call]] = {rank: [] for rank in range(job.world)}
        self._meetings: dict[tuple[object, ...], list[Call]] = defaultdict(list)
        self._keys: dict[int, tuple[object, ...]] = {}
        self._changed: set[int] = set()
        for rank in range(job.world):
            self._at(self._dice[rank].uniform(0, 0.001), partial(self._host, rank))
        while self._events:
            time, _, act = heapq.heappop(self._events)
            act(time)

    def _at(self, time: float, act: Callable[[float], None]) -> None:
        self._ticks += 1
        heapq.heappush(self._events, (time, self._ticks, act))

    def _struck(self, rank: int, now: float, kinds: Sequence[str]) -> bool:
        fault = self.faults.get(rank)
        return fault is not None and fault.damage in kinds and now >= fault.at

    def _host(self, rank: int, now: float) -> None:
        """The host of a rank makes its next call, unless a fault holds it."""
        op = next(self._programs[rank], None)
        if op is None or now > self._until or self._struck(rank, now, STOPS_HOST):
            return
        if self._struck(rank, now, ["device-stops"]) and self._dice[rank].random() < 0.15:
            return  # a call that notices the error
        if self._struck(rank, now, CHANGES_CALL) and rank not in self._changed and self._changeable(rank, op):
            self._changed.add(rank)
            changed = self._change(rank, op, now)
            if changed is None:
                return
            op = changed
        call = self._enqueue(rank, op, now)
        if op.sync:
            call.host_waits = True
        else:
            self._at(now + self._dice[rank].expovariate(1 / 4e-4), partial(self._host, rank))

    def _changeable(self, rank: int, op: Op) -> bool:
        uneven = op.name == "all_to_all" and self.faults[rank].damage == "wrong-size"  # which is allowed
        return op.peer is None and op.batch == 1 and not uneven and len(self.job.members(rank, op.group)) > 2

    def _change(self, rank: int, op: Op, now: float) -> Op | None:
        damage = self.faults[rank].damage
        if damage == "skips":
            return next(self._programs[rank], None)
        if damage == "repeats":
            self._enqueue(rank, op, now)
            return op
        if damage == "swaps":
            later = next(self._programs[rank])
            differ = later.group == op.group and (later.name, later.size) != (op.name, op.size)
            if not differ:  # exchanged, they would look as before
                self._changed.discard(rank)
            self._enqueue(rank, later if differ else op, now)
            return op if differ else later
        if damage == "wrong-op":
            return replace(op, name="all_reduce" if op.name != "all_reduce" else "broadcast")
        if damage == "wrong-size":
            return replace(op, size=(op.size[0] + 8, *op.size[1:]))
        return replace(op, dtype="Float" if op.dtype != "Float" else "Half") if damage == "wrong-dtype" else None

    def _enqueue(self, rank: int, op: Op, now: float) -> Call:
        members = self.job.members(rank, op.group)
        home = (op.group, members)
        is_p2p = op.peer is not None
        self._counts[rank, home, is_p2p] += 1
        call = Call(rank, op, self._counts[rank, home, False], self._counts[rank, home, True], now)
        self.calls[rank].append(call)
        pair = (min(rank, op.peer), max(rank, op.peer)) if op.peer is not None else None
        lane = (rank, home, pair)
        if op.peer is None:
            self._keys[id(call)] = (home, call.seq)
        else:
            sender, taker = (rank, op.peer) if op.name == "send" else (op.peer, rank)
            self._counts[rank, home, sender, taker] += 1
            self._keys[id(call)] = (home, sender, taker, self._counts[rank, home, sender, taker])
        for before in {*self._gates[rank], *([self._lanes[lane]] if lane in self._lanes else [])}:
            if before.done is None:
                before.then.append(call)
                call.open += 1
        self._lanes[lane] = call
        if op.waits:
            self._gates[rank] = [call]
        if not call.open:
            self._start(call, now)
        return call

    def _start(self, call: Call, now: float) -> None:
        """The kernel runs; when those of all members do, they end together, unless they disagree."""
        if self._struck(call.rank, now, STOPS_DEVICE):
            return
        call.started = now
        met = self._meetings[self._keys[id(call)]]
        met.append(call)
        op = call.op
        if op.name == "send" and math.prod(op.size) < SMALL:
            self._at(now + 1e-4, partial(self._end, [call]))
            return
        expected = 2 if op.peer is not None else len(self.job.members(call.rank, op.group))
        agreed = len({(one.op.name, one.op.size, one.op.dtype) for one in met}) == 1 or op.peer is not None
        if op.name == "recv" and any(one.done is not None for one in met):
            self._at(now + 1e-4, partial(self._end, [call]))
        elif len(met) == expected and agreed:
            self._at(now + 2e-4, partial(self._end, met))

    def _end(self, met: list[Call], now: float) -> None:
        if any(self._struck(call.rank, now, STOPS_DEVICE) for call in met):
            return
        for call in met:
            if call.done is not None:
                continue
            call.done = now
            if call.host_waits:
                self._at(now + 1e-4, partial(self._host, call.rank))
            for behind in call.then:
                behind.open -= 1
                if not behind.open:
                    self._start(behind, now)
            if call.op.name == "send":  # the other side may have waited for a small send
                for other in self._meetings[self._keys[id(call)]]:
                    if other.op.name == "recv" and other.done is None:
                        self._at(now + 1e-4, partial(self._end, [other]))

    def state(self, call: Call) -> Literal["scheduled", "started", "completed"]:
        """As the rank's watchdog knows it."""
        fault = self.faults.get(call.rank)
        known = fault.at - fault.blind if fault is not None and fault.damage == "device-stops" else math.inf
        if call.done is not None and call.done <= known:
            return "completed"
        return "started" if call.started is not None and call.started <= known else "scheduled"

    def shown(self) -> list[list[tuple[object, ...]]]:
        """What can be told from outside, rank by rank; nothing of a killed one."""
        killed = {fault.rank for fault in self.faults.values() if fault.damage == "killed"}
        return [
            [] if rank in killed else [(call.op, self.state(call)) for call in self.calls[rank]]
            for rank in range(self.job.world)
        ]
