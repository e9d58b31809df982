"""Follows the chains of waiting to their ends: a rank there is a culprit, a knot or a circle gives suspects only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from logdoc.flight_recorder.hosts import stopped
from logdoc.flight_recorder.job import Job
from logdoc.flight_recorder.model import Kind
from logdoc.flight_recorder.order import out_of_order
from logdoc.flight_recorder.waits import Hold, Node, WaitGraph, is_firm

# Of two equally frequent kinds the one that says more about the cause.
_TELLING: Sequence[Kind] = ("mismatch", "stuck-in-collective", "lagging", "missing-rank", "no-dump", "unknown")


class Blame:
    """`culprits` with what each did; `suspects` of which one is at fault."""

    def __init__(self, job: Job, graph: WaitGraph) -> None:
        self._job = job
        self._graph = graph
        self._needed_by = _needed_by(graph.edges)
        self.culprits: dict[int, Kind] = {}
        self.suspects: set[int] = set()
        self._suspicions: Counter[Kind] = Counter()
        for rank, call in stopped(job, self._needed_by):
            if rank not in graph.broken:
                graph.broken[rank] = (self._absence(rank), call)
                graph.edges.pop(rank, None)
        self.culprits.update((rank, kind) for rank, (kind, _) in graph.broken.items())
        for end in ends(graph.edges):
            self._judge(end)
        absent = [rank for rank, kind in self.culprits.items() if kind == "no-dump"]
        if len(absent) < len(self.culprits):  # nobody knows whom these wait for; a known culprit explains them too
            for rank in absent:
                del self.culprits[rank]
        if not self.culprits and not self.suspects:
            self._judge_silent()
        self.suspects -= self.culprits.keys()

    @property
    def kind(self) -> Kind:
        found = Counter(self.culprits.values()) or self._suspicions
        if found:
            return min(found, key=lambda kind: (-found[kind], _TELLING.index(kind)))
        if not self._job.tracks:
            return "unknown"
        return "no-dump" if self._job.without_dump else "healthy"

    def _judge(self, end: Collection[Node]) -> None:
        if len(end) > 1:
            self._circle(end)
            return
        (node,) = end
        if isinstance(node, int):
            self._lone(node)
        elif node in self._graph.knots:
            self._suspect(*self._graph.knots[node])

    def _lone(self, rank: int) -> None:
        """Others wait for this rank and it waits for nobody."""
        if rank in self.culprits:
            return
        if self._needed_by.get(rank):
            self.culprits[rank] = self._absence(rank)
        else:
            # Held up by an operation of its own that both sides joined; an unfinished entry may also be a leftover.
            self._suspect("stuck-in-collective", [rank])

    def _circle(self, end: Collection[Node]) -> None:
        """Ranks wait for each other. Being held up on the device is the weaker reason: look without it first."""
        edges = self._graph.edges
        ranks = sorted(node for node in end if isinstance(node, int))
        astray = out_of_order(edges, ranks)
        if astray:
            self.culprits.update((rank, "mismatch") for rank in astray)
            return
        idle = [rank for rank in ranks if self._needed_by.get(rank) and not any(map(is_firm, edges[rank]))]
        if idle:
            self.culprits.update((rank, self._absence(rank)) for rank in idle)
            return
        # Each rank entered the other's collective first: they call them in different orders.
        crossed = all(isinstance(node, int) or (is_firm(node) and not node[1]) for node in end)
        self._suspect("mismatch" if crossed else "stuck-in-collective", ranks)

    def _judge_silent(self) -> None:
        """Nobody waits, but ranks called different things at one number: wrong results instead of a hang."""
        for meeting in self._graph.silent:
            assert meeting.disagreement is not None
            self._suspicions["mismatch"] += 1
            self.culprits.update((rank, "mismatch") for rank in meeting.disagreement.minority)
            if not meeting.disagreement.minority:
                self.suspects.update(meeting.calls)

    def _suspect(self, kind: Kind, ranks: Sequence[int]) -> None:
        self.suspects.update(ranks)
        self._suspicions[kind] += 1

    def _absence(self, rank: int) -> Kind:
        if rank not in self._job.tracks:
            return "no-dump"
        groups = [node[0] for node in self._needed_by[rank] if node[4] == "not-joined" and not node[1]]
        if any(self._job.reach(rank, group) == 0 for group in groups):
            return "missing-rank"
        joined = all(node[4] == "not-started" for node in self._needed_by[rank])
        return "stuck-in-collective" if joined else "lagging"


def _needed_by(edges: Mapping[Node, Collection[Node]]) -> dict[int, list[Hold]]:
    """The operations that cannot end before a rank acts."""
    needed: dict[int, list[Hold]] = {}
    for node, targets in edges.items():
        if isinstance(node, tuple) and is_firm(node):
            for rank in targets:
                if isinstance(rank, int):
                    needed.setdefault(rank, []).append(node)
    return needed


def ends(edges: Mapping[Node, Collection[Node]]) -> Iterator[list[Node]]:
    """The strongly connected parts of the graph that no edge leaves (Tarjan's algorithm, without recursion)."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    part_of: dict[Node, int] = {}
    parts = 0
    stack: list[Node] = []
    for root in edges:
        if root in order:
            continue
        work: list[tuple[Node, Iterator[Node]]] = [(root, iter(edges.get(root, ())))]
        order[root] = low[root] = len(order)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target not in part_of:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    part = _pop_part(stack, node)
                    part_of.update(dict.fromkeys(part, parts))
                    if all(part_of[target] == parts for member in part for target in edges.get(member, ())):
                        yield part
                    parts += 1


def _pop_part(stack: list[Node], node: Node) -> list[Node]:
    start = stack.index(node)
    part = stack[start:]
    del stack[start:]
    return part
