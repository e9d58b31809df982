"""Silence as a symptom: where a log that simply stops got stuck, and on which ranks. Its verdict is a Record.

Only what the ranks' milestones contradict is said: some ranks passed a point of the start that others never reached.
A log that ends somewhere may as well have been cut there.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdoc.cascade.ranks import RankTrack
from logdoc.rulebase.observations import observations
from logdoc.types.record import VERDICT, Identity, Record

PASSED = ("nccl-init-complete", "rendezvous-done")  # once some ranks are here, the others are expected to follow
MOST_BEHIND = 0.5  # of the ranks; if more are behind, the log of the first ones is merely longer
MOST_NAMED = 16
MOST_WORLD = 4096


def stall_verdict(tracks: Mapping[int, RankTrack], world_size: int | None) -> list[Record]:
    """One Record for each rank that never passed a point of the start that most ranks passed.

    Many jobs print from rank 0 alone, so a rank is behind only if it was seen on its way to the point, or if it printed
    nothing at all where the world is known, all others, several, did, and the log shows the start.
    """
    order = observations().milestones
    for point in PASSED:
        passed = [rank for rank, track in sorted(tracks.items()) if point in track.passed]
        on_the_way = [rank for rank, track in sorted(tracks.items()) if _short_of(point, track)]
        is_whole = len(passed) + len(on_the_way) == len(tracks) and any(
            _from_before(point, tracks[rank]) for rank in passed
        )
        absent = _absent(tracks, world_size) if is_whole else []
        behind = on_the_way + absent
        if passed and behind and len(behind) <= MOST_BEHIND * (len(passed) + len(behind)):
            witness = next(record for rank in passed if (record := tracks[rank].last) is not None)
            count = f"{len(passed)} of {len(passed) + len(behind)} ranks reached {order[point].title.en}"
            return [_said(witness, tracks.get(rank), rank, count) for rank in behind[:MOST_NAMED]]
    return []


def _short_of(point: str, track: RankTrack) -> bool:
    """Whether a rank was seen before this point of the start and never at it or beyond."""
    order = observations().milestones
    needed = order[point].order
    return bool(track.passed) and all(order[passed].order < needed for passed in track.passed)


def _from_before(point: str, track: RankTrack) -> bool:
    """Whether a rank that passed this point was seen on its way there: else the log may begin after it."""
    order = observations().milestones
    return any(order[passed].order < order[point].order for passed in track.passed)


def _absent(tracks: Mapping[int, RankTrack], world_size: int | None) -> list[int]:
    if world_size is None or len(tracks) < 2 or not max(tracks) < world_size <= MOST_WORLD:
        return []
    return [rank for rank in range(world_size) if rank not in tracks]


def _said(witness: Record, track: RankTrack | None, rank: int, count: str) -> Record:
    order = observations().milestones
    if track is None or track.last is None:
        what = "printed nothing at all"
    elif track.milestone:
        what = f"stopped after {order[track.milestone].title.en}"
    else:
        what = "stopped before any of its milestones"
    last = track.last if track is not None and track.last is not None else witness
    return last.verdict(f"stall verdict: {count}; rank {rank} {what}", VERDICT, Identity(rank=rank))
