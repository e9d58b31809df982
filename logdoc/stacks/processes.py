"""Puts the dumps of one process together: who it is, where its main thread stands, and whether it has moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from logdoc.kept.patterns import lazily
from logdoc.stacks.meaning import Kind, frames_within_role, is_crash, kind_of, local_rank_of, place_of, role_of
from logdoc.stacks.model import Place, ProcessStacks, Thread
from logdoc.types.record import Identity, Record
from logdoc.types.value import dataclass, field

_RANK_NAMES = ("global_rank", "rank")  # of locals that py-spy shows, in order of preference
# `pyspy-node-b-18104.txt`: what is left without the words for the dump and the process's id is the host
_TOOL_WORDS = lazily(
    r"(?i)(?:^|[-_.])(?:py-?spy|stacks?|dumps?|traces?|gdb|bt|pid|threads?|hang|native|locals|json)(?=[-_.]|$)"
)

Key = tuple[object, ...]
RankOf = Callable[[Identity], int | None]


@dataclass(slots=True, eq=False)
class Process:
    """One process that was dumped. `steady`: several dumps show its main thread in the same place; `crash` is the
    signal that ended it; `worker`: where a worker of its data loader stands."""

    stacks: ProcessStacks
    place: Place
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    role: str | None = None
    steady: bool = False
    crash: str | None = None
    dumps: list[ProcessStacks] = field(default_factory=list)

    @property
    def record(self) -> Record:
        return self.stacks.record

    @property
    def kind(self) -> Kind | None:
        return kind_of(self.place)

    @property
    def waits(self) -> str:
        return self.kind.waits if self.kind is not None else "no"

    @property
    def is_running(self) -> bool:
        """Its main thread was on a processor: it may as well be getting on."""
        main = self.stacks.main
        return main is not None and (main.state or "").startswith("active")

    @property
    def name(self) -> str:
        if self.rank is not None:
            return f"rank {self.rank}"
        if self.local_rank is not None:
            return f"local rank {self.number}"
        return f"process {self.number}"

    @property
    def number(self) -> str:
        """Its local rank or its id, with its host where that is known; else the place of its dump."""
        known = self.stacks.pid if self.local_rank is None else self.local_rank
        if known is not None:
            return f"{known} on {self.host}" if self.host else str(known)
        return f"of {self.record.source.rsplit('/', 1)[-1]}:{self.record.line}"


def processes_of(found: Iterable[tuple[ProcessStacks, int | None]], rank_of: RankOf) -> list[Process]:
    """The processes behind dumps, each with the rank that its printer has, if any; ordered by rank, then as read.

    `rank_of` is asked with what the dump alone tells of its process: its id, and its host if its file names one.
    """
    by_key: dict[Key, list[ProcessStacks]] = {}
    ranks: dict[Key, int | None] = {}
    for stacks, told in found:
        if stacks.main is None and not is_crash(stacks.reason):
            continue
        rank = told
        if rank is None and stacks.pid is not None:
            rank = rank_of(Identity(host=stacks.record.who.host or _host_in(stacks), pid=stacks.pid))
        rank = _rank_in(stacks.main) if rank is None else rank
        key = _key(stacks, rank)
        by_key.setdefault(key, []).append(stacks)
        ranks[key] = rank
    made = [_process(dumps, ranks[key]) for key, dumps in by_key.items()]
    return sorted(made, key=lambda one: (one.rank is None, one.rank or 0, one.record.seq))


def worker_site(process: Process) -> str:
    """Where a data loader's worker stands within its own code; empty while it waits for an order."""
    return place_of(Thread("", frames=tuple(frames_within_role(process.stacks)))).site


def _process(dumps: Sequence[ProcessStacks], rank: int | None) -> Process:
    newest = sorted(dumps, key=lambda one: one.record.seq, reverse=True)
    places = [place_of(one.main) if one.main is not None else Place() for one in newest]
    best = next((index for index, place in enumerate(places) if place.user is not None), 0)
    place = places[best]
    if place.kind is None:  # another dump of the process, a native one say, may know what it is doing
        told = next((one for one in places if one.kind is not None), place)
        place = Place(told.kind, told.call, place.user)
    sites = [one.site for one in places if one.user is not None]
    return Process(
        stacks=newest[best],
        place=place,
        rank=rank,
        local_rank=local_rank_of(newest[best]),
        host=newest[best].record.who.host or _host_in(newest[best]),
        role=role_of(newest[best]),
        steady=len(sites) > 1 and len(set(sites)) == 1,
        crash=next((one.reason for one in newest if is_crash(one.reason)), None),
        dumps=list(newest),
    )


def _key(stacks: ProcessStacks, rank: int | None) -> Key:
    role = role_of(stacks)
    if rank is not None and role is None:
        return ("rank", rank)
    who, main = stacks.record.who, stacks.main
    if stacks.pid is None and who.local_rank is not None:
        return (role, who.host or stacks.record.source, "local rank", who.local_rank)
    if stacks.pid is not None:
        # two pods have the same ids: only a file that is named by the id tells that it means one host's
        place = who.host or _host_in(stacks) or (None if _names_pid(stacks) else stacks.record.source)
        return (role, place, stacks.pid)
    return (role, stacks.record.source, main.number if main is not None else stacks.record.line)


def _rank_in(main: Thread | None) -> int | None:
    """What the program itself calls its rank, where all its frames agree."""
    for name in _RANK_NAMES:
        values = main.numbers.get(name, frozenset()) if main is not None else frozenset()
        if len(values) == 1 and min(values) >= 0:
            return next(iter(values))
    return None


def _host_in(stacks: ProcessStacks) -> str | None:
    if not _names_pid(stacks):
        return None
    bare = re.sub(rf"(?:^|[-_.]){stacks.pid}(?=[-_.]|$)", "", _file_name(stacks))
    rest = _TOOL_WORDS.sub("", bare).strip("-_.")
    # a host's name has a number or parts, unlike a word such as `deadlock`
    return rest if _TOOL_WORDS.search(bare) and re.fullmatch(r"(?=\w*[\d.-])[A-Za-z][\w.-]{0,62}", rest) else None


def _names_pid(stacks: ProcessStacks) -> bool:
    return stacks.pid is not None and str(stacks.pid) in re.split(r"[-_.]", _file_name(stacks))


def _file_name(stacks: ProcessStacks) -> str:
    return stacks.record.source.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]
