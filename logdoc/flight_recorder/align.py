"""Lines up the collectives of one process group by sequence number and keeps those that not everybody completed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from logdoc.flight_recorder.compare import disagreement
from logdoc.flight_recorder.job import Call, Job
from logdoc.flight_recorder.model import Disagreement, GroupReport


@dataclass(frozen=True, slots=True)
class Meeting:
    """One collective of a group that is not over and done with. `calls` holds those entries that are in the dumps.

    `finished` ranks completed it (or it fell out of their buffer), `unfinished` enqueued it only, `missing` did not
    enqueue it, `unclear` have a dump that does not say, `absent` have no dump.
    """

    group: int
    seq: int
    calls: dict[int, Call]
    finished: tuple[int, ...]
    unfinished: tuple[int, ...]
    missing: tuple[int, ...]
    unclear: tuple[int, ...]
    absent: tuple[int, ...]
    disagreement: Disagreement | None

    @property
    def op(self) -> str:
        """The operation most ranks called."""
        names = Counter(call.last.op for _, call in sorted(self.calls.items()))
        return names.most_common(1)[0][0]

    @property
    def started(self) -> tuple[int, ...]:
        return tuple(rank for rank in self.unfinished if rank in self.calls and self.calls[rank].progress == "started")


def meetings(job: Job, group: int, left: Mapping[int, Call]) -> Iterator[Meeting]:
    """The collectives of the group that somebody has not completed or that its members call differently, in order.

    `left`: ranks that left their program, with the first call out of place; from there on theirs say nothing.
    """
    by_seq: dict[int, dict[int, Call]] = {}
    present = [rank for rank in job.members(group) if rank in job.tracks]
    absent = tuple(rank for rank in job.members(group) if rank not in job.tracks)
    for rank in present:
        for seq, call in job.tracks[rank].collectives.get(group, {}).items():
            by_seq.setdefault(seq, {})[rank] = call
    reach = {rank: job.reach(rank, group) for rank in present}
    astray: set[int] = set()  # called something else before, so that their numbers count other calls from there on
    for seq in sorted(by_seq):
        beyond = {rank for rank, call in by_seq[seq].items() if rank in left and _is_beyond(call, left[rank])}
        meeting = _meeting(job, group, seq, by_seq[seq], reach, absent, astray | beyond)
        if meeting.unfinished or meeting.missing or meeting.disagreement:
            yield meeting
        astray.update(meeting.disagreement.minority if meeting.disagreement else ())


def _is_beyond(call: Call, left: Call) -> bool:
    return call.entries[0].record >= left.entries[0].record


def _meeting(
    job: Job,
    group: int,
    seq: int,
    calls: dict[int, Call],
    reach: dict[int, int | None],
    absent: tuple[int, ...],
    astray: Collection[int],
) -> Meeting:
    missing = tuple(rank for rank, last in reach.items() if last is not None and last < seq)
    unclear = tuple(rank for rank, last in reach.items() if last is None)
    comparable = {rank: call.comparable for rank, call in calls.items() if rank not in astray}
    named = {rank: entry for rank, entry in comparable.items() if entry is not None}
    differ = disagreement(named, everybody=len(named) == len(job.members(group)))
    # A call of which only the return is known cannot have worked while somebody never joined or called another thing.
    failed = bool(missing) or differ is not None
    unfinished = tuple(
        rank for rank, call in sorted(calls.items()) if call.pending or (failed and call.progress == "over")
    )
    done = {r for r in reach if r not in unfinished and (r in calls or job.may_have_completed(r, group, seq))}
    return Meeting(
        group=group,
        seq=seq,
        calls=calls,
        finished=tuple(r for r in reach if r in done and r not in missing and r not in unclear),
        unfinished=unfinished,
        missing=missing,
        unclear=unclear,
        absent=absent,
        disagreement=differ,
    )


def report(job: Job, group: int, first: Meeting | None) -> GroupReport:
    """The public account of a group whose first unfinished collective is `first`."""
    members = job.members(group)
    absent = tuple(rank for rank in members if rank not in job.tracks)
    if first is None:
        return GroupReport(group=job.groups[group], expected=members, without_dump=absent)
    return GroupReport(
        group=job.groups[group],
        expected=members,
        without_dump=absent,
        seq=first.seq,
        op=first.op,
        joined=tuple(sorted((*first.finished, *first.unfinished))),
        missing=first.missing,
        unclear=first.unclear,
        finished=first.finished,
        unfinished=first.unfinished,
        started=first.started,
        disagreement=first.disagreement,
    )
