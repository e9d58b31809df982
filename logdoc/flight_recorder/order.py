"""Who calls the collectives of several groups in another order than the others: ranks that skipped or repeated one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from logdoc.flight_recorder.waits import Node

Edges = Mapping[Node, Collection[Node]]


def out_of_order(edges: Edges, ranks: Collection[int]) -> list[int]:
    """Of `ranks` that wait for each other in a circle those that left the common order; empty where nobody can tell.

    Two ranks are at odds when each is in a call that the other has not come to. The one at odds with more ranks is
    astray, else the one that fewer ranks side with: those in its call and those that have not come to the other's.
    """
    odds = list(_at_odds(edges, set(ranks)))
    waiting = Counter(call for rank, calls in edges.items() if isinstance(rank, int) for call in calls)
    degree = Counter(rank for here, there, *_ in odds for rank in (here, there))
    astray = set()
    for here, there, ours, theirs in odds:
        sides = (
            (-degree[here], waiting[ours] + len(edges[theirs])),
            (-degree[there], waiting[theirs] + len(edges[ours])),
        )
        if sides[0] == sides[1]:
            return []
        astray.add(here if sides[0] < sides[1] else there)
    return sorted(astray)


def _at_odds(edges: Edges, ranks: set[int]) -> Iterator[tuple[int, int, Node, Node]]:
    """Pairs of ranks, the call in which the first waits for the second, and the collective where that waits for it."""
    seen: set[tuple[int, int]] = set()
    for rank in sorted(ranks):
        for call in edges[rank]:
            if not isinstance(call, tuple) or call[4] != "not-joined":
                continue
            for other in edges.get(call, ()):
                if not isinstance(other, int) or other not in ranks:
                    continue
                pair = (min(rank, other), max(rank, other))
                back = _waits_for(edges, other, rank) if pair not in seen else None
                if back is not None:
                    seen.add(pair)
                    yield rank, other, call, back


def _waits_for(edges: Edges, rank: int, target: int) -> Node | None:
    """The collective in which `rank` is and that `target` has not called, or called behind what it waits in itself."""
    calls = (node for node in edges[rank] if isinstance(node, tuple) and not node[1] and node[4] in _NOT_REACHED)
    return next((call for call in calls if target in edges.get(call, ())), None)


_NOT_REACHED = ("not-joined", "held-up")
