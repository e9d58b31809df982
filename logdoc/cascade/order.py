"""What came first: by line within a source, by clock across sources, unknown where neither tells."""

from __future__ import annotations

from collections.abc import Iterable

from logdoc.types.finding import Match

# Tailers poll each rank's file and clocks differ: nearer than this, the order of lines is the better witness.
CLOCK_SLACK_SECONDS = 5.0


def comes_before(one: Match, other: Match) -> bool | None:
    """Whether `one` happened first; None if the log cannot tell.

    Within a source the lines' order decides unless clocks clearly say otherwise (files that were concatenated); across
    sources only clocks do, and `near_time` is where a line without a stamp lies at the earliest.
    """
    a, b = one.record, other.record
    if a.near_time is not None and b.near_time is not None:
        slack = CLOCK_SLACK_SECONDS if a.source == b.source else 0.0
        if abs(a.near_time - b.near_time) > slack:
            return a.near_time < b.near_time
    if a.source == b.source:
        return a.seq < b.seq
    return None


def in_order(matches: Iterable[Match]) -> list[Match]:
    """Matches of the latest attempt first, each attempt's in the order they happened as far as the log tells."""
    listed = list(matches)
    clocked = all(match.record.near_time is not None for match in listed)
    several = len({match.record.source for match in listed}) > 1
    if clocked and several:
        return sorted(listed, key=lambda match: (-match.record.attempt, match.record.near_time, match.record.seq))
    return sorted(listed, key=lambda match: (-match.record.attempt, match.record.seq))
