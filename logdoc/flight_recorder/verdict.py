"""Puts the account of a job together from its dumps: groups, waits, blame, and where in the code everybody is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from logdoc.flight_recorder.align import report
from logdoc.flight_recorder.blame import Blame
from logdoc.flight_recorder.frames import user_frame
from logdoc.flight_recorder.job import Call, Job
from logdoc.flight_recorder.model import Analysis, Dump, Place, Wait
from logdoc.flight_recorder.waits import WaitGraph, build


def analyse(dumps: Sequence[Dump]) -> Analysis:
    """What the dumps of one job say together; kind "unknown" when they say nothing."""
    job = Job(dumps)
    graph = build(job)
    blame = Blame(job, graph)
    foremost = _foremost(graph)
    return Analysis(
        kind=blame.kind,
        culprits=tuple(sorted(blame.culprits)),
        suspects=tuple(sorted(blame.suspects)),
        world=job.world,
        without_dump=job.without_dump,
        groups=tuple(report(job, group, graph.first.get(group)) for group in range(len(job.groups))),
        waits=tuple(wait for rank, (wait, _) in sorted(foremost.items()) if rank not in graph.broken),
        places=tuple(_places(job, graph, blame, {rank: call for rank, (_, call) in foremost.items()})),
    )


def _foremost(graph: WaitGraph) -> dict[int, tuple[Wait, Call | None]]:
    """For each waiting rank its oldest wait that the other side must end, else the oldest of all."""

    def age(found: tuple[Wait, Call | None]) -> tuple[bool, int]:
        wait, call = found
        return wait.why == "held-up", call.entries[0].record if call else 0

    waits: dict[int, tuple[Wait, Call | None]] = {}
    for found in graph.waits:
        rank = found[0].rank
        if rank not in waits or age(found) < age(waits[rank]):
            waits[rank] = found
    return waits


def _places(job: Job, graph: WaitGraph, blame: Blame, waiting: dict[int, Call | None]) -> Iterator[Place]:
    for rank, kind in sorted(blame.culprits.items()):
        broken = graph.broken.get(rank)
        yield _place(job, Place(rank, "culprit", kind), broken[1] if broken else None)
    for rank in sorted(blame.suspects):
        yield _place(job, Place(rank, "suspect", blame.kind), waiting.get(rank))
    for rank in sorted(waiting.keys() - blame.culprits.keys() - blame.suspects):
        yield _place(job, Place(rank, "waiting", blame.kind), waiting[rank])


def _place(job: Job, place: Place, call: Call | None) -> Place:
    """`place` with the operation of `call`, else with the last one of the rank."""
    if place.rank not in job.tracks:
        return place
    last = job.tracks[place.rank].dump.entries[-1:]
    entry = call.last if call else last[0] if last else None
    if entry is None:
        return place
    stacks = [one.frames for one in call.entries] if call else [entry.frames]
    return replace(
        place,
        group=job.groups[call.group] if call else entry.group,
        seq=entry.p2p_seq if entry.is_p2p else entry.seq,
        op=entry.op,
        is_p2p=entry.is_p2p,
        frame=next(filter(None, map(user_frame, stacks)), None),
    )
