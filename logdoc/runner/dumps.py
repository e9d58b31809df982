"""Looks into the Python processes of a command with py-spy, which neither stops nor touches them; judges nothing."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from logdoc.sources import PathHints, Source, source_from_bytes

if TYPE_CHECKING:
    import psutil

    from logdoc.stacks.processes import Process

MOST_LOOKED_AT = 64  # ranks, and as many of their helpers; one takes a twentieth of a second
LOOK_SECONDS = 5.0
# Two looks tell a process that stands from one that runs past.
BETWEEN_LOOKS_SECONDS = 1.0
# Stopped by a signal, held by a debugger, or asleep in the kernel until a disk or a driver answers.
CANNOT_RUN = ("stopped", "tracing-stop", "disk-sleep")


@dataclass(frozen=True, slots=True)
class Member:
    """A Python process of the command. `rank` and `world_size` are what its launcher told it, if it did."""

    pid: int
    parent: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Dump:
    """What py-spy saw of a process, one look after the other; `error`: why it saw nothing. `state`: psutil's word for a
    process that cannot run; None for all others."""

    member: Member
    text: str
    error: str | None = None
    state: str | None = None

    def source(self) -> Source:
        """The text as a log of its own, which says whose it is."""
        member = self.member
        who = f"process {member.pid}" if member.rank is None else f"rank {member.rank}"
        hints = PathHints(rank=member.rank, local_rank=member.local_rank, pid=member.pid)
        return replace(source_from_bytes(f"<stack of {who}>", self.text.encode()), hints=hints)


def look(pid: int) -> list[Dump] | None:
    """Dumps of the ranks under process `pid`, and of the helpers of those that wait for no peer; of all Python
    processes where none is known to be a rank. None without py-spy."""
    spy = _py_spy()
    if spy is None:
        return None
    family = list(_python_processes(pid))
    ranks = _ranks(family)
    # Where no launcher says who is which rank, the programs' own variables may.
    command = [spy, "dump", "--nonblocking", *([] if ranks else ["--locals"]), "--pid"]
    dumps = [_dump(command, member) for member in (ranks or family)[:MOST_LOOKED_AT]]
    if ranks:
        late = {one.stacks.pid for one in processes(dumps) if one.waits == "no"}
        helpers = [Member(one.pid, one.parent) for one in family if one.parent in late and one not in ranks]
        dumps += [_dump(command, helper) for helper in helpers[:MOST_LOOKED_AT]]
    time.sleep(BETWEEN_LOOKS_SECONDS)
    return _without_strangers([dump if dump.error else _looked_again(command, dump) for dump in dumps])


def processes(dumps: Sequence[Dump]) -> list[Process]:
    """What the stacks room makes of these dumps."""
    from logdoc.reader import ReadState, read
    from logdoc.stacks import stacks_of
    from logdoc.stacks.processes import processes_of

    found, state = [], ReadState()
    for dump in dumps:
        source = dump.source()
        for batch in read(source.name, source.open_blocks(), state, source.hints.identity()):
            found += [(stacks, dump.member.rank) for record in batch if (stacks := stacks_of(record)) is not None]
    return processes_of(found, lambda who: None)


def _without_strangers(dumps: Sequence[Dump]) -> list[Dump]:
    """Beside known ranks, without the processes that are neither a rank nor work for one: a tracker's service waits for
    nobody and holds nobody up."""
    found = processes(dumps)
    if all(one.rank is None for one in found):
        return list(dumps)
    strangers = {one.stacks.pid for one in found if one.rank is None and one.role is None}
    return [dump for dump in dumps if dump.member.pid not in strangers]


def _py_spy() -> str | None:
    """On the PATH, or installed beside logdoc."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=os.path.dirname(sys.executable))


def _ranks(family: Sequence[Member]) -> list[Member]:
    """The processes that are a rank. What a rank starts inherits its variables and is none."""
    rank_of = {member.pid: member.rank for member in family}
    return [member for member in family if member.rank is not None and rank_of.get(member.parent) != member.rank]


def _python_processes(pid: int) -> Iterator[Member]:
    import psutil

    try:
        top = psutil.Process(pid)
        found = [top, *top.children(recursive=True)]
    except psutil.Error:
        return
    for process in found:
        try:
            if "python" in os.path.basename(process.exe()):
                yield _member(process)
        except (psutil.Error, OSError):
            continue


def _member(process: psutil.Process) -> Member:
    """RANK alone does not do: Kubernetes operators set it to the number of the pod, for the launcher too."""
    told = process.environ()
    numbers = {name: int(told[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE") if told.get(name, "").isdecimal()}
    if "RANK" not in numbers or "LOCAL_RANK" not in numbers:
        return Member(process.pid, process.ppid())
    return Member(process.pid, process.ppid(), numbers["RANK"], numbers["LOCAL_RANK"], numbers.get("WORLD_SIZE"))


def _dump(command: Sequence[str], member: Member) -> Dump:
    from logdoc.probes.collect.commands import run_command

    state = _state(member.pid)
    answer = run_command([*command, str(member.pid)], LOOK_SECONDS)
    if answer.state == "ok" and not answer.code:
        return Dump(member, answer.out, state=state)
    said = next((line.strip() for line in answer.err.splitlines() if line.strip()), answer.state)
    return Dump(member, "", said, state)


def _looked_again(command: Sequence[str], dump: Dump) -> Dump:
    """With a second look; one that fails takes nothing from the first."""
    again = _dump(command, dump.member)
    return replace(dump, text=f"{dump.text}\n{again.text}", state=dump.state if again.state == dump.state else None)


def _state(pid: int) -> str | None:
    import psutil

    try:
        state = psutil.Process(pid).status()
    except (psutil.Error, OSError):
        return None
    return state if state in CANNOT_RUN else None
