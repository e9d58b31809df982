"""Silence as a symptom: where a log that simply stops got stuck, and on which ranks. Its verdict is a Record.

Only what the ranks' milestones contradict is said: some ranks passed a point of the start that others never reached.
A log that ends somewhere may as well have been cut there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from logdoc.cascade.collectives import DIALECT
from logdoc.cascade.ranks import RankTrack
from logdoc.rulebase.observations import observations
from logdoc.types.record import Identity, Record

PASSED = ("nccl-init-complete", "rendezvous-done")  # once some ranks are here, the others are expected to follow
MOST_BEHIND = 0.5  # of the ranks; if more are behind, the log of the first ones is merely longer
MOST_NAMED = 16


def stall_verdict(tracks: Mapping[int, RankTrack], world_size: int | None) -> list[Record]:
    """One Record for each rank that never passed a point of the start that most ranks passed."""
    order = observations().milestones
    reached = {rank: order[track.milestone].order for rank, track in tracks.items() if track.milestone}
    for point in PASSED:
        needed = order[point].order
        passed = [rank for rank, milestone in reached.items() if milestone >= needed]
        everybody = range(world_size) if world_size and max(tracks, default=0) < world_size <= 4096 else tracks
        behind = [rank for rank in everybody if rank not in passed]
        if passed and behind and len(behind) <= MOST_BEHIND * len(list(everybody)):
            witness = next(track.last for rank, track in sorted(tracks.items()) if rank in passed and track.last)
            count = f"{len(passed)} of {len(list(everybody))} ranks reached {order[point].title.en}"
            return [_said(witness, tracks.get(rank), rank, count) for rank in behind[:MOST_NAMED]]
    return []


def _said(witness: Record, track: RankTrack | None, rank: int, count: str) -> Record:
    order = observations().milestones
    if track is None or track.last is None:
        text = f"stall verdict: {count}; rank {rank} printed nothing at all"
    elif track.milestone:
        text = f"stall verdict: {count}; rank {rank} stopped after {order[track.milestone].title.en}"
    else:
        text = f"stall verdict: {count}; rank {rank} stopped before any of its milestones"
    last = track.last if track is not None and track.last is not None else witness
    return replace(last, body=text, raw=text, who=Identity(rank=rank), dialects=(DIALECT,), line_numbers=())
