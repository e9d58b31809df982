"""Stack dumps as py-spy, faulthandler and gdb print them, and what the stacks room says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from logdoc.matcher import Matcher, Prefilter
from logdoc.reader import ReadState, read
from logdoc.rulebase import build_index
from logdoc.rulebase.observations import STACKS, observations
from logdoc.sources.hints import path_hints
from logdoc.stacks import ProcessStacks, stack_verdict, stacks_of
from logdoc.types.finding import Match
from logdoc.types.record import Identity, Record

C10D = "torch/distributed/distributed_c10d.py"
LOADER = "torch/utils/data/dataloader.py"
SITE = "/opt/venv/lib/python3.11/site-packages/"
MAIN = ("<module>", "train.py", 120)

FrameText = tuple[str, str, int]


def waits(call: str = "all_reduce", line: int = 88) -> list[FrameText]:
    return [(call, C10D, 3252), ("wrapper", "torch/distributed/c10d_logger.py", 83), ("step", "train.py", line), MAIN]


def loads() -> list[FrameText]:
    inner = [("wait", "threading.py", 327), ("get", "queue.py", 171)]
    return [*inner, ("_try_get_data", LOADER, 1291), ("step", "train.py", 85), MAIN]


def computes(line: int = 86) -> list[FrameText]:
    return [("forward", "model.py", 31), ("step", "train.py", line), MAIN]


def pyspy(pid: int, frames: Sequence[FrameText], state: str = "idle", command: str = "python train.py") -> str:
    listed = "".join(f"    {function} ({file}:{line})\n" for function, file, line in frames)
    head = f"Process {pid}: {command}\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
    return f'{head}Thread {pid} ({state}): "MainThread"\n{listed}'


def faulthandler(frames: Sequence[FrameText], reason: str = "Timeout (0:05:00)!", address: int = 0x7F2A47E4CB80) -> str:
    listed = "".join(
        f'  File "{SITE + file if "/" in file else file}", line {line} in {function}\n'
        for function, file, line in frames
    )
    return f"{reason}\nThread {address:#018x} (most recent call first):\n{listed}"


def prefixed(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def records_of(files: Mapping[str, str]) -> list[Record]:
    state = ReadState()
    return [
        record
        for name, text in files.items()
        for batch in read(name, [text.encode()], state, path_hints(name).identity())
        for record in batch
    ]


@cache
def _prefilter() -> Prefilter:
    return Prefilter(build_index(observations().rules))


def seen(files: Mapping[str, str]) -> list[Match]:
    """The matches of the observation that finds stack dumps."""
    return [match for match in Matcher(_prefilter()).find(records_of(files)) if match.rule.id == STACKS]


def verdict(
    files: Mapping[str, str] | str, world: int | None = None, ranks: Mapping[int, int] | None = None, hung: bool = False
) -> list[tuple[int | None, str]]:
    """The sentences of the verdict with the rank each is of. `ranks`: the ranks of processes, by id."""
    told = {"log": files} if isinstance(files, str) else files

    def rank_of(who: Identity) -> int | None:
        return (ranks or {}).get(who.pid or 0) if who.host is None else None

    said = stack_verdict(seen(told), world, rank_of, hung=hung)
    return [(record.who.rank, record.body.removeprefix("stack dumps: ")) for record in said]


def dumps_in(text: str) -> list[ProcessStacks]:
    return [stacks for record in records_of({"log": text}) if (stacks := stacks_of(record)) is not None]
