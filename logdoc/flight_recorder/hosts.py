"""Whose host stopped calling although no call held it: told from ranks that went on past the same unfinished call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from logdoc.flight_recorder.compare import form, is_symmetric
from logdoc.flight_recorder.job import Call, Job

MOST_LOGGED = 1024  # elements; a result that is read in order to be printed has no more


def stopped(job: Job, needed: Mapping[int, object]) -> Iterator[tuple[int, Call]]:
    """Of the `needed` ranks (others wait for their next call) those that wait themselves, yet not with their host.

    All ranks of a training job run one program, so a host waits behind the same call on all of them. Excused are the
    first and the last rank behind a small result, which they often print, and calls whose root goes on alone.
    """
    for rank in needed:
        call = _last_call(job, rank) if rank in job.tracks else None
        if call is None or not call.pending or (rank in (job.world[0], job.world[-1]) and _is_small(call)):
            continue
        waiting = [one for one in _alike(job, call) if one.pending]
        went_on = [one for one in waiting if one.last.record < job.tracks[one.rank].dump.entries[-1].record]
        if len(went_on) * 2 > len(waiting):
            yield rank, call


def _last_call(job: Job, rank: int) -> Call | None:
    """The call of a rank's last entry, if it has not ended."""
    track = job.tracks[rank]
    last = max(track.pending(), key=lambda call: call.last.record, default=None)
    return last if last is not None and last.last.record == track.dump.entries[-1].record else None


def _is_small(call: Call) -> bool:
    return sum(map(math.prod, call.last.output_sizes)) <= MOST_LOGGED


def _alike(job: Job, call: Call) -> Iterator[Call]:
    """The same call on other ranks: of a collective on the members, of a send or receive on those of equal place in
    other groups of the kind (the stage's other ranks, with tensor or data parallelism)."""
    members = job.members(call.group)
    if not call.is_p2p:
        if is_symmetric(call.entries[0].op):  # a batch ends in an entry of its own
            for member in members:
                track = job.tracks.get(member)
                own = track.collectives.get(call.group, {}).get(call.seq) if track and member != call.rank else None
                if own is not None and form(own.last) == form(call.last):  # after a mismatch the numbers lie
                    yield own
        return
    place, kind = members.index(call.rank), job.groups[call.group].desc
    for number, group in enumerate(job.groups):
        if number != call.group and group.desc == kind and len(group.ranks) == len(members):
            track = job.tracks.get(group.ranks[place])
            for own in track.p2p if track else ():
                if own.group == number and own.seq == call.seq and own.last.op == call.last.op:
                    yield own
