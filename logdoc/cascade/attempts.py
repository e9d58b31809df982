"""Restarts within one log: which attempt of the job a record belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from logdoc.types.finding import Match


def number_attempts(matches: Iterable[Match], marks: Sequence[Match]) -> None:
    """Set `record.attempt` of the matches from the restart marks of their source.

    Marks (observations.yaml, attempts): torchrun's announcement, its restart_count, and an agent that reports a failed
    worker a second time: what lies between its two reports is the next attempt.
    """
    starts: dict[str, list[int]] = {}
    for source in {mark.record.source for mark in marks}:
        starts[source] = _starts([mark for mark in marks if mark.record.source == source])
    seen: set[int] = set()
    for match in matches:
        record = match.record
        if record.source in starts and id(record) not in seen:
            seen.add(id(record))
            record.attempt += bisect_left(starts[record.source], record.seq)


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
