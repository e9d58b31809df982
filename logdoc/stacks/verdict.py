"""Compares the main threads of a job's processes: who waits in which call, and who keeps them waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logdoc.stacks.processes import Process, worker_site
from logdoc.types.spans import spans
from logdoc.types.value import dataclass

MOST_NAMED = 16
LEAST_ALIKE = 3  # that many processes at one line of code stand there rather than pass it


@dataclass(frozen=True, slots=True)
class Saying:
    """One sentence of the verdict. `about`: the process it names, None for all; `witness`: whose dump it points at."""

    witness: Process
    about: Process | None
    text: str


def sayings(processes: Sequence[Process], world_size: int | None, hung: bool) -> Iterator[Saying]:
    """What the dumps of one job say together; nothing of a job in which nobody waits. `hung`: it is known to hang, so
    that a dump is more than one look at a running job."""
    for one in processes:
        if one.crash is not None:
            yield Saying(one, one, f"{one.name} crashed ({one.crash}){_crash_site(one)}")
    workers = [one for one in processes if one.role == "loader-worker"]
    alive = [one for one in processes if one.role is None and one.crash is None]
    if not alive:
        return
    waiting = [one for one in alive if one.waits == "peers"]
    perhaps = [one for one in alive if one.waits == "maybe"] or ([] if waiting else _alike(alive))
    elsewhere = [one for one in alive if one not in waiting and one not in perhaps]
    if len(alive) == 1:
        yield from _lone(alive[0])
    elif elsewhere and len(elsewhere) <= len(waiting) + len(perhaps):
        hung = hung or any(one.stacks.reason is not None for one in alive)
        yield from _late(elsewhere, waiting or perhaps, workers, hung)
    elif not elsewhere:
        yield from _all_wait(waiting, perhaps, world_size)
    elif not waiting and not perhaps:
        yield from _all_busy(elsewhere)


def at_odds(processes: Sequence[Process]) -> Iterator[Saying]:
    """What the tracebacks of ranks that gave up waiting, or were left by such a one, say: only that their calls differ.
    That they are the same says nothing of who is missing."""
    waiting = [one for one in processes if one.waits == "peers"]
    if len(waiting) == len(processes) and len({one.place.call for one in waiting}) > 1:
        yield from _all_wait(waiting, [], None)


def _alike(alive: Sequence[Process]) -> list[Process]:
    """A majority that stands at one line of its own code: it waits for something that no frame names."""
    by_site: dict[str, list[Process]] = {}
    for one in alive:
        if one.place.site and one.place.kind is None:
            by_site.setdefault(one.place.site, []).append(one)
    most = max(by_site.values(), key=len, default=[])
    return most if len(most) >= LEAST_ALIKE and 2 * len(most) > len(alive) and len(most) < len(alive) else []


def _lone(one: Process) -> Iterator[Saying]:
    """The one dump there is. Where a timer or a signal made it while nothing of a peer was awaited, the reason is told:
    that the process was still at it counts for something."""
    if one.kind is not None:
        stopped = f" ({one.stacks.reason})" if one.stacks.reason is not None and one.kind.waits == "no" else ""
        yield Saying(one, one, f"only {one.name} was dumped{stopped}: it {does(one)}{_steadily(one)}")


def _late(late: Sequence[Process], held: Sequence[Process], workers: Sequence[Process], hung: bool) -> Iterator[Saying]:
    waiting = held[0].waits == "peers"
    others = _groups_text(held, "wait" if waiting else "stand")
    for one in late[:MOST_NAMED]:
        still = hung or one.steady
        sure = still or not one.is_running if waiting else still and one.kind is not None
        verb = "holds the others up" if sure else "may hold the others up"
        text = f"{one.name} {verb}: it {does(one)}{_steadily(one)}{_worker(one, late, workers)}; {others}"
        yield Saying(one, one, text)


def _worker(one: Process, late: Sequence[Process], workers: Sequence[Process]) -> str:
    sites = sorted({site for worker in workers if (site := worker_site(worker))})
    if one.place.kind != "loader" or len(late) > 1 or len(sites) != 1:
        return ""
    return f" (a loader worker stands in {sites[0]})"


def _all_wait(waiting: Sequence[Process], perhaps: Sequence[Process], world_size: int | None) -> Iterator[Saying]:
    held = [*waiting, *perhaps]
    groups = _groups(held)
    if len(groups) == 1:
        text = f"each of all {len(held)} dumped {_plural(held)} {does(held[0])}; none is elsewhere"
        yield Saying(held[0], None, text + _undumped(held, world_size))
        return
    if not waiting or perhaps:
        return  # some are in a call that may or may not wait for the others: that proves nothing
    calls = {one.place.call if one.place.kind != "start" else "" for one in waiting}
    paired = any(one.place.kind == "point-to-point" for one in waiting)
    sure = len(calls) > 1 and not paired
    what = "wait in different calls" if sure else "wait at different places"
    most, *others = sorted(groups.values(), key=len, reverse=True)
    about = others[0][0] if len(others) == 1 and len(others[0]) == 1 < len(most) else None
    yield Saying(about or most[0], about, f"the {_plural(waiting)} {what}: {_groups_text(waiting, 'wait')}")


def _all_busy(busy: Sequence[Process]) -> Iterator[Saying]:
    """Nobody waits for a peer. That all of them do the same tells where the job spends its time."""
    kinds = {one.place.kind for one in busy}
    if len(kinds) == 1 and busy[0].kind is not None:
        yield Saying(busy[0], None, f"each of all {len(busy)} dumped {_plural(busy)} {does(busy[0])}")


def _undumped(dumped: Sequence[Process], world_size: int | None) -> str:
    ranks = {one.rank for one in dumped}
    if world_size is None or None in ranks or world_size > 2 * len(ranks):
        return ""
    missing = [rank for rank in range(world_size) if rank not in ranks]
    return f"; no dump is of {_ranks(missing)}" if missing else ""


def does(one: Process) -> str:
    """What a process does and where: `writes a checkpoint in save (train.py:23)`."""
    site = one.place.site
    if one.kind is None:
        return f"runs {site}" if site else "runs code that no frame names"
    phrase = one.kind.does.replace("{call}", one.place.call or "")
    if not site:
        return phrase
    return f"{phrase} called at {site}" if "{call}" in one.kind.does else f"{phrase} in {site}"


def _steadily(one: Process) -> str:
    return f" (in all {len(one.dumps)} of its dumps)" if one.steady else ""


def _crash_site(one: Process) -> str:
    thread = one.stacks.current or one.stacks.main
    if thread is None or not thread.frames:
        return ""
    inner = thread.frames[0]
    line = f":{inner.line}" if inner.line else ""
    return f" in {inner.function} ({(inner.file or '').rsplit('/', 1)[-1]}{line})"


def _call(one: Process) -> str:
    """In which call a process waits; all steps of joining a process group wait for the rank that never came."""
    if one.place.kind == "start":
        return "the start of the process group"
    site = f" called at {one.place.site}" if one.place.site else ""
    return f"{one.place.call}{site}" if one.place.call else one.place.site


def _groups(held: Sequence[Process]) -> dict[str, list[Process]]:
    groups: dict[str, list[Process]] = {}
    for one in held:
        groups.setdefault(_call(one), []).append(one)
    return groups


def _groups_text(held: Sequence[Process], verb: str) -> str:
    said = []
    for call, members in sorted(_groups(held).items(), key=lambda item: -len(item[1]))[:4]:
        said.append(f"{_named(members)} {verb}{'s' if len(members) == 1 else ''} in {call}")
    return "; ".join(said)


def _named(members: Sequence[Process]) -> str:
    ranks = [one.rank for one in members if one.rank is not None]
    if len(ranks) == len(members):
        return _ranks(ranks)
    if len(members) == 1:
        return members[0].name
    more = f" and {len(members) - MOST_NAMED} more" if len(members) > MOST_NAMED else ""
    local = all(one.rank is None and one.local_rank is not None for one in members)
    return ("local ranks " if local else "processes ") + ", ".join(one.number for one in members[:MOST_NAMED]) + more


def _plural(members: Sequence[Process]) -> str:
    return "ranks" if all(one.rank is not None or one.local_rank is not None for one in members) else "processes"


def _ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 4`."""
    named = spans(ranks).split(", ")
    more = ", …" if len(named) > MOST_NAMED else ""
    return f"rank{'' if len(set(ranks)) == 1 else 's'} {', '.join(named[:MOST_NAMED])}{more}"
