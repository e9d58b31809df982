"""Builds logs of failed jobs of 2 to 1,024 ranks with a known first failure: who it was, and why.

Messages are templates in the formats of NCCL and PyTorch (written from their sources, no GPU here); what varies is the
size, whether ranks share a file, their clocks and skews, how the log is cut, and how victims take it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

Layout = Literal["interleaved", "files"]
Clocks = Literal["iso", "glog", "none"]
START = datetime(2026, 5, 5, 6, 0, 0)
PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of first failure: the rule it must lead to, and what the failing rank prints."""

    cause: str
    lines: Callable[[int, random.Random], list[str]]


def _traceback(message: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/home/trainer/train.py", line 88, in <module>',
        "    main()",
        '  File "/home/trainer/train.py", line 61, in train_step',
        "    loss.backward()",
        message,
    ]


FAULTS: tuple[Fault, ...] = (
    Fault("process.user-exception", lambda rank, _: _traceback(f"ValueError: sample {rank * 7} has no label")),
    Fault(
        "memory.gpu-oom",
        lambda rank, dice: _traceback(
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {dice.randint(1, 9)}.00 GiB. GPU {rank % PER_NODE} "
            "has a total capacity of 79.15 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has "
            "78.60 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 310.00 MiB is reserved by "
            "PyTorch but unallocated."
        ),
    ),
    Fault(
        "gpu.illegal-memory-access",
        lambda _rank, _: _traceback("RuntimeError: CUDA error: an illegal memory access was encountered"),
    ),
    Fault("data.file-missing", lambda rank, _: _traceback(
        f"FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-{rank}.tar'")),
    Fault("host.disk-full", lambda _rank, _: _traceback("OSError: [Errno 28] No space left on device")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """One job to simulate. `skew_seconds`: the most a host's clock is off; `cut`: share of the log lost at its end."""

    seed: int
    world: int
    layout: Layout
    clocks: Clocks
    skew_seconds: float = 0.0
    cut: float = 0.0
    retries: int = 0
    straggler: bool = False


@dataclass(slots=True)
class Job:
    """A simulated job: its log lines by rank (None: the launcher), in true order, and the truth."""

    plan: Plan
    cause: str = ""
    first_rank: int = 0
    events: list[tuple[float, int, str]] = field(default_factory=list)

    def write(self, folder: Path) -> list[str]:
        """Write the logs as the plan's layout wants; the paths to explain."""
        ordered = sorted(self.events, key=lambda event: event[0])
        kept = ordered[: max(1, int(len(ordered) * (1 - self.plan.cut)))]
        if self.plan.layout == "interleaved":
            path = folder / "job.log"
            path.write_text("".join(f"[rank{rank}]: {text}\n" if rank >= 0 else f"{text}\n" for _, rank, text in kept))
            return [str(path)]
        for rank in range(self.plan.world):
            lines = [text for _, speaker, text in kept if speaker == rank]
            (folder / f"rank_{rank}.log").write_text("".join(f"{line}\n" for line in lines))
        return [str(folder)]


def simulate(plan: Plan) -> Job:
    """Play a job: steps, the first failure, what its peers print because of it, and the launcher's SIGTERMs."""
    dice = random.Random(plan.seed)
    job = Job(plan)
    skews = [dice.uniform(-plan.skew_seconds, plan.skew_seconds) for _ in range((plan.world - 1) // PER_NODE + 1)]
    for attempt in range(plan.retries + 1):
        _attempt(job, dice, skews, begin=attempt * 3600.0)
    return job


def _attempt(job: Job, dice: random.Random, skews: list[float], begin: float) -> None:
    plan, speak = job.plan, _speaker(job, skews)
    steps = 6
    for step in range(steps):
        for rank in range(plan.world):
            speak(begin + step * 10 + dice.uniform(0, 0.5), rank, f"step {step} loss {9 - step}.{rank % 10}", "INFO")
    broke = begin + steps * 10 + dice.uniform(1, 5)
    job.first_rank = dice.randrange(plan.world)
    if plan.straggler:
        _straggle(job, dice, broke, speak)
        return
    fault = dice.choice(FAULTS)
    job.cause = fault.cause
    for offset, line in enumerate(fault.lines(job.first_rank, dice)):
        speak(broke + offset * 1e-4, job.first_rank, line, None)
    for rank in range(plan.world):
        if rank != job.first_rank:
            _victim(rank, broke + dice.uniform(0.3, 8), dice, speak)
    _launcher(job, broke + 9)


Speak = Callable[[float, int, str, str | None], None]


def _speaker(job: Job, skews: list[float]) -> Speak:
    """Prints with the rank's own clock; raw lines (tracebacks) carry none, as in life."""

    def speak(at: float, rank: int, text: str, level: str | None) -> None:
        shown = START + timedelta(seconds=at + skews[rank // PER_NODE])
        stamp = ""
        if level is not None and job.plan.clocks == "iso":
            stamp = f"{shown:%Y-%m-%d %H:%M:%S},{shown.microsecond // 1000:03} - trainer - {level} - "
        elif level is not None and job.plan.clocks == "glog":
            stamp = f"{level[0]}{shown:%m%d %H:%M:%S}.{shown.microsecond:06} {4000 + rank} train.py:61] "
        job.events.append((at, rank, stamp + text))

    return speak


def _victim(rank: int, at: float, dice: random.Random, speak: Speak) -> None:
    """A rank whose peer went away: NCCL's warning and exception, gloo's, or only the launcher's signal."""
    way = dice.randrange(3)
    if way == 0:
        head = f"node-{rank // PER_NODE}:{1000 + rank}:{2000 + rank} [{rank % PER_NODE}]"
        speak(
            at,
            rank,
            f"{head} misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.9<4711>",
            None,
        )
        message = (
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, remote process exited or there was a network "
            "error, NCCL version 2.27.5"
        )
        lines = [*_traceback(message), "ncclRemoteError: A call failed possibly due to a network error or a remote process "
                 "exiting prematurely.", "Last error:", "socketProgress: Connection closed by remote peer 10.0.0.9<4711>"]  # fmt: skip
    elif way == 1:
        lines = _traceback("RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.9]:8578")
    else:
        lines = []
    for offset, line in enumerate(lines):
        speak(at + offset * 1e-4, rank, line, None)


def _straggle(job: Job, dice: random.Random, broke: float, speak: Speak) -> None:
    """One rank goes on with something else; the others' watchdogs give up after ten minutes."""
    job.cause = "collective.rank-straggled"
    seq = dice.randint(10, 90_000)
    for rank in range(job.plan.world):
        if rank == job.first_rank:
            continue
        at = broke + 600 + dice.uniform(0, 3)
        shown = START + timedelta(seconds=at)
        glog = f"[E{shown:%m%d %H:%M:%S}.{dice.randrange(10**9):09} ProcessGroupNCCL.cpp:685]"
        speak(at, rank, f"{glog} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
              f"OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600{dice.randint(10, 99)} "
              "milliseconds before timing out.", None)  # fmt: skip
        speak(at + 0.01, rank, f"{glog} [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work "
              f"sequence id: {seq} PG status: last enqueued work: {seq + 3}, last completed work: {seq - 1}", None)  # fmt: skip


def _launcher(job: Job, at: float) -> None:
    if job.plan.layout == "files":
        return
    shown = START + timedelta(seconds=at)
    prefix = f"{shown:%m%d %H:%M:%S}.100000 900 torch/distributed/elastic/multiprocessing/api.py"
    for rank in range(min(job.plan.world, 8)):
        if rank != job.first_rank:
            job.events.append((at, -1, f"W{prefix}:1028] Sending process {5000 + rank} closing signal SIGTERM"))
    job.events.append((at + 1, -1, f"E{prefix}:1002] failed (exitcode: 1) local_rank: {job.first_rank % PER_NODE} "
                       f"(pid: {5000 + job.first_rank}) of binary: /usr/bin/python3"))  # fmt: skip
