"""Builds logs of failed jobs of 2 to 1,024 ranks with a known first failure: who it was, and why.

No GPU here: the messages are templates (`simulate_faults`); what varies is the size, whether ranks share a file, who
collected the lines, their clocks and skews, how the log is cut, what is missing, and how victims take it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from tests.simulate_faults import BY_KIND, FAULTS, PER_GROUP, PER_NODE, Fault, decoy, noise, traceback, victim, watchdog

Layout = Literal["interleaved", "files"]
Clocks = Literal["iso", "glog", "none"]
Prefix = Literal["rank", "tee", "local", "srun", "kubectl", "mpirun", "ray", "none"]
START = datetime(2026, 5, 5, 6, 0, 0)
EASY = ("exception", "gpu-oom", "illegal-access", "file-missing", "disk-full")
LAUNCHER, KERNEL = -1, -2


LONG = 200  # steps: after so many an error was survived, whatever stdout may have held back


@dataclass(frozen=True, slots=True)
class Plan:
    """One job to simulate.

    `skew_seconds`: the most a host's clock is off; `zones`: hosts write local times of different zones; `cut`,
    `cut_head`, `cut_middle`: shares of the log that are lost there; `missing`: share of the ranks whose lines are lost
    (never the failing one's); `kind`: of `simulate_faults`, None draws one; `noise`: harmless lines in between;
    `halves`: lines of other ranks break into longer ones. `decoys`: errors that other ranks caught, LONG before;
    `hangs`: the victims hang until their watchdogs give up; `late`: the failing rank's lines are flushed last.
    """

    seed: int
    world: int
    layout: Layout
    clocks: Clocks
    skew_seconds: float = 0.0
    cut: float = 0.0
    retries: int = 0
    straggler: bool = False
    kind: str | None = None
    prefix: Prefix = "rank"
    zones: bool = False
    cut_head: float = 0.0
    cut_middle: float = 0.0
    missing: float = 0.0
    noise: bool = False
    halves: bool = False
    decoys: bool = False
    hangs: bool = False
    late: bool = False


@dataclass(slots=True)
class Job:
    """A simulated job: its log lines by rank (or LAUNCHER, KERNEL), in true order, and the truth."""

    plan: Plan
    cause: str = ""
    causes: tuple[str, ...] = ()
    first_rank: int = 0
    events: list[tuple[float, int, str]] = field(default_factory=list)

    def write(self, folder: Path) -> list[str]:
        """Write the logs as the plan's layout wants; the paths to explain."""
        kept = self._kept()
        if self.plan.layout == "interleaved":
            path = folder / "job.log"
            text = "".join(f"{_prefixed(rank, line, self.plan.prefix)}\n" for _, rank, line in kept)
            path.write_text(_broken(text, random.Random(self.plan.seed)) if self.plan.halves else text)
            return [str(path)]
        for rank in range(self.plan.world):
            lines = [text for _, speaker, text in kept if speaker == rank]
            if lines or not self.plan.missing:
                (folder / f"rank_{rank}.log").write_text("".join(f"{line}\n" for line in lines))
        for who, name in ((KERNEL, "dmesg.log"), (LAUNCHER, "console.log")):
            lines = [text for _, speaker, text in kept if speaker == who]
            if lines:
                (folder / name).write_text("".join(f"{line}\n" for line in lines))
        return [str(folder)]

    def _kept(self) -> list[tuple[float, int, str]]:
        plan, ordered = self.plan, sorted(self.events, key=lambda event: event[0])
        dice = random.Random(plan.seed + 1)
        lost = {rank for rank in range(plan.world) if rank != self.first_rank and dice.random() < plan.missing}
        ordered = [event for event in ordered if event[1] not in lost]
        count = len(ordered)
        kept = ordered[int(count * plan.cut_head) : max(1, int(count * (1 - plan.cut)))]
        if plan.cut_middle:
            begin = int(count * 0.2)
            del kept[begin : begin + int(count * plan.cut_middle)]
        return kept


def _prefixed(rank: int, text: str, prefix: Prefix) -> str:
    if rank < 0 or prefix == "none":
        return text
    node, local = divmod(rank, PER_NODE)
    if prefix == "tee":
        return f"[default{local}]:[rank{rank}]: {text}"
    if prefix == "local":
        return f"[default{local}]:{text}"
    if prefix == "srun":
        return f"{rank:4d}: {text}"
    if prefix == "kubectl":
        return f"[pod/train-worker-{node}/pytorch] [rank{rank}]: {text}"
    if prefix == "mpirun":
        return f"[1,{rank}]<stderr>:{text}"
    if prefix == "ray":
        return f"(RayTrainWorker rank={rank} pid={5000 + rank}, ip=10.0.{node // 250}.{node % 250}) {text}"
    return f"[rank{rank}]: {text}"


def _broken(text: str, dice: random.Random) -> str:
    """Now and then a harmless line begins within the one before it, whose rest follows on a line of its own."""
    lines = text.splitlines()
    for place in range(len(lines) - 1):
        if " step " in lines[place] and " step " in lines[place + 1] and dice.random() < 0.05:
            cut = len(lines[place]) // 2
            rest = lines[place][cut:]
            lines[place], lines[place + 1] = lines[place][:cut] + lines[place + 1], rest
    return "".join(f"{line}\n" for line in lines)


def simulate(plan: Plan) -> Job:
    """Play a job: steps, the first failure, what its peers print because of it, and the launcher's SIGTERMs."""
    dice = random.Random(plan.seed)
    job = Job(plan)
    hosts = (plan.world - 1) // PER_NODE + 1
    skews = [dice.uniform(-plan.skew_seconds, plan.skew_seconds) for _ in range(hosts)]
    if plan.zones:
        skews = [skew + 3600 * dice.choice((-8, -7, 0, 1, 2, 8)) for skew in skews]
    for attempt in range(plan.retries + 1):
        _attempt(job, dice, skews, attempt)
    return job


def _attempt(job: Job, dice: random.Random, skews: list[float], attempt: int) -> None:
    plan, speak, begin = job.plan, _speaker(job, skews), attempt * 3600.0
    steps = LONG if plan.decoys else 6
    for step in range(steps):
        for rank in range(plan.world):
            at = begin + step * 10 + dice.uniform(0, 0.5)
            speak(at, rank, f"step {step} loss {9 - step}.{rank % 10}", "INFO")
            if plan.noise and (said := noise(rank, step, dice)) is not None:
                speak(at + dice.uniform(0, 5), rank, said, "WARNING")
            if plan.decoys and step == 2 and dice.random() < 2 / plan.world:
                head, *lines = decoy(rank, dice)
                speak(at + 1, rank, head, "WARNING")
                for offset, line in enumerate(lines, start=1):
                    speak(at + 1 + offset * 1e-4, rank, line, None)
    broke = begin + steps * 10 + dice.uniform(1, 5)
    job.first_rank = dice.randrange(plan.world)
    kind = plan.kind or ("straggler" if plan.straggler else dice.choice(EASY))
    fault = BY_KIND[kind]
    job.cause, job.causes = fault.causes[0], fault.causes
    _fail(job, fault, dice, broke, speak, skews)
    if fault.victims_time_out:
        _time_out(job, fault, dice, broke, speak, skews)
        victims = [rank for rank in range(plan.world) if rank != job.first_rank]
        _launcher(job, dice.choice(victims), -6, broke + 605, skews, attempt)
        return
    if plan.hangs:
        _time_out(job, fault, dice, broke, speak, skews)
        _launcher(job, job.first_rank, fault.exitcode, broke + 609, skews, attempt)
        return
    for rank in range(plan.world):
        if rank != job.first_rank:
            at = broke + dice.uniform(0.3, 8)
            for offset, line in enumerate(victim(rank, dice)):
                speak(at + offset * 1e-4, rank, line, None)
    _launcher(job, job.first_rank, fault.exitcode, broke + 9, skews, attempt)


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


def _fail(job: Job, fault: Fault, dice: random.Random, broke: float, speak: Speak, skews: Sequence[float]) -> None:
    """The failing rank, or its host's kernel, says what happened; a loss of the GPU also raises."""
    rank = job.first_rank
    lines = fault.lines(rank, dice)
    if fault.voice == "kernel":
        shown = START + timedelta(seconds=broke + skews[rank // PER_NODE])
        host = f"{shown:%b} {shown.day:2d} {shown:%H:%M:%S} node-{rank // PER_NODE} kernel: "
        job.events += [(broke, KERNEL, host + line) for line in lines]
        if fault.exitcode != 1:
            return
        lines = traceback("RuntimeError: CUDA error: unspecified launch failure")
    level = "INFO" if fault.voice == "logger" else None
    delay = 8.5 if job.plan.late else 0.01
    for offset, line in enumerate(lines):
        speak(broke + delay + offset * 1e-4, rank, line, level)


def _time_out(job: Job, fault: Fault, dice: random.Random, broke: float, speak: Speak, skews: Sequence[float]) -> None:
    """One rank goes on with something else or calls something else; watchdogs give up after ten minutes.

    In a job of several groups the late rank's own group waits in its collective, and everybody else in one of all.
    """
    seq = dice.randint(10, 90_000)
    for rank in range(job.plan.world):
        odd = rank == job.first_rank
        if odd and fault.kind != "mismatch":
            continue
        near = fault.kind == "group-straggler" and rank // PER_GROUP == job.first_rank // PER_GROUP
        at = broke + 600 + dice.uniform(0, 3)
        shown = START + timedelta(seconds=at + skews[rank // PER_NODE])
        ahead = 0 if fault.kind == "mismatch" else 3
        lines = watchdog(rank, shown, dice, 7 * seq if near else seq, odd, ahead, "tp" if near else "")
        for offset, line in enumerate(lines):
            speak(at + offset * 0.01, rank, line, None)


def _launcher(job: Job, rank: int, exitcode: int, at: float, skews: Sequence[float], attempt: int) -> None:
    """torchrun's agent on the node of the process that left first: signals to the survivors, what it saw, and its report."""
    shown = START + timedelta(seconds=at + skews[rank // PER_NODE])
    prefix = f"{shown:%m%d %H:%M:%S}.100000 900 torch/distributed/elastic/multiprocessing/api.py"
    node, failed = divmod(rank, PER_NODE)
    survivors = [r for r in range(node * PER_NODE, min(job.plan.world, (node + 1) * PER_NODE)) if r != rank]
    said = [f"W{prefix}:1028] Sending process {5000 + other} closing signal SIGTERM" for other in survivors]
    said.append(f"E{prefix}:1002] failed (exitcode: {exitcode}) local_rank: {failed} (pid: {5000 + rank}) "
                "of binary: /usr/bin/python3")  # fmt: skip
    if attempt < job.plan.retries:
        left = f"{job.plan.retries - attempt}/{job.plan.retries} attempts left; will restart worker group"
        restart = f"W{shown:%m%d %H:%M:%S}.200000 900 torch/distributed/elastic/agent/server/api.py:719] [default] "
        job.events += [(at + offset * 1e-3, LAUNCHER, line) for offset, line in enumerate(said)]
        job.events.append((at + 0.1, LAUNCHER, f"{restart}Worker group FAILED. {left}"))
        return
    why = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    if exitcode < 0:
        name = {-6: "SIGABRT", -9: "SIGKILL", -11: "SIGSEGV"}[exitcode]
        why = f"Signal {-exitcode} ({name}) received by PID {5000 + rank}"
    said += [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {shown - timedelta(seconds=1):%Y-%m-%d_%H:%M:%S}",
        f"  host      : node-{node}",
        f"  rank      : {rank} (local_rank: {failed})",
        f"  exitcode  : {exitcode} (pid: {5000 + rank})",
        "  error_file: <N/A>",
        f"  traceback : {why}",
        "=" * 60,
    ]
    job.events += [(at + offset * 1e-3, LAUNCHER, line) for offset, line in enumerate(said)]


KINDS = tuple(fault.kind for fault in FAULTS)
