"""Restarts within one log: which attempt of the job a record belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from logdoc.cascade.clocks import fill_years
from logdoc.types.finding import Match


def number_attempts(matches: Iterable[Match], marks: Sequence[Match]) -> None:
    """Set `record.attempt` of the matches from the restart marks of their source.

    Marks (observations.yaml, attempts): torchrun's announcement, its restart_count, and an agent that reports a failed
    worker a second time: what lies between its two reports is the next attempt.
    """
    starts: dict[str, list[int]] = {}
    for source in {mark.record.source for mark in marks}:
        starts[source] = _starts([mark for mark in marks if mark.record.source == source])
    listed = list(matches)
    fill_years(match.record for match in [*listed, *marks])
    times = _times(marks, starts)
    seen: set[int] = set()
    for match in listed:
        record = match.record
        if id(record) in seen:
            continue
        seen.add(id(record))
        if record.source in starts:
            record.attempt += bisect_left(starts[record.source], record.seq)
        elif times and record.near_time is not None and not record.attempt:
            record.attempt = bisect_left(times, record.near_time)


def _times(marks: Sequence[Match], starts: dict[str, list[int]]) -> list[float]:
    """When each attempt after the first began, from the source that tells of most: for files without marks.

    Nothing where a mark has no clock, or where the clocks of the hosts may differ by as much as an attempt lasts.
    """
    source = max(starts, key=lambda name: len(starts[name]), default=None)
    if source is None:
        return []
    stamped = [(mark.record.seq, mark.record.near_time) for mark in marks if mark.record.source == source]
    times = []
    for start in starts[source]:
        near = [time for seq, time in stamped if seq >= start and time is not None]
        if not near:
            return []
        times.append(near[0])
    return times


def _starts(marks: Sequence[Match]) -> list[int]:
    """Sequence numbers after which a new attempt runs; of several kinds of marks the one that tells of most."""
    announced = [mark.record.seq for mark in marks if mark.name == "torchrun"]
    counted: dict[str, int] = {}
    agents: dict[object, list[int]] = {}
    for mark in marks:
        if mark.name == "restart_count":
            counted.setdefault(mark.captures["count"], mark.record.seq - 1)
        if mark.name == "agent" and mark.record.who.thread is not None:
            agents.setdefault(mark.record.who.thread, []).append(mark.record.seq)
    told = [announced, list(counted.values()), *(reports[:-1] for reports in agents.values())]
    most = max(len(starts) for starts in told)
    return sorted(next(starts for starts in told if len(starts) == most))
