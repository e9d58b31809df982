"""Who waits for whom, over all process groups: the edges from which the verdict reads who broke first.

An edge never goes from rank to rank but over the operation between them: 1,000 ranks waiting for 500 are 1,500 edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from logdoc.flight_recorder.align import Meeting, meetings
from logdoc.flight_recorder.compare import is_symmetric
from logdoc.flight_recorder.job import Call, Job, Track
from logdoc.flight_recorder.model import Entry, Kind, Wait, Why
from logdoc.flight_recorder.program import left_program

# An operation, and why it does not end: two reasons can hold for one operation.
Hold = tuple[int, bool, int, int, Why]
Node = int | Hold


@dataclass(slots=True)
class WaitGraph:
    """Ranks (integers) point at operations, operations at the ranks they need.

    `left`: ranks that left their program, with their first call out of place; whatever they wait for says nothing.
    `broken`: ranks shown to be at fault by themselves, these among them. `knots`: operations that nobody can be
    blamed for alone; the ranks that one of which is at fault. `firm`: the operation cannot end before its target acts;
    the others are only held up behind something older.
    """

    left: Mapping[int, Call]
    edges: dict[Node, set[Node]] = field(default_factory=dict)
    broken: dict[int, tuple[Kind, Call]] = field(default_factory=dict)
    knots: dict[Node, tuple[Kind, tuple[int, ...]]] = field(default_factory=dict)
    waits: list[tuple[Wait, Call | None]] = field(default_factory=list)
    first: dict[int, Meeting] = field(default_factory=dict)
    silent: list[Meeting] = field(default_factory=list)

    def hold(self, node: Hold, waiting: Iterable[int], needed: Iterable[int]) -> None:
        held = [rank for rank in waiting if rank not in self.left]
        for rank in held:
            self.edges.setdefault(rank, set()).add(node)
        if held:
            self.edges.setdefault(node, set()).update(needed)


def is_firm(node: Node) -> bool:
    return isinstance(node, tuple) and node[4] != "held-up"


def build(job: Job) -> WaitGraph:
    """The graph; if somebody waits at all, once more without what ranks that left their program wait for."""
    graph = _build(job, {})
    left = left_program(job) if graph.edges else {}
    return _build(job, left) if left else graph


def _build(job: Job, left: Mapping[int, Call]) -> WaitGraph:
    graph = WaitGraph(left=left, broken={rank: ("mismatch", call) for rank, call in left.items()})
    # With most dumps missing, "its dump is missing" says nothing about a rank.
    few_absent = 2 * len(job.tracks) >= len(job.world)
    for group in range(len(job.groups)):
        _Collectives(job, graph, few_absent).add(group)
    point_to_point = _PointToPoint(job, graph, few_absent)
    for track in job.tracks.values():
        for call in track.p2p:
            if call.pending:
                point_to_point.add(track, call)
    for rank in graph.broken:
        graph.edges.pop(rank, None)
    return graph


class _Collectives:
    def __init__(self, job: Job, graph: WaitGraph, few_absent: bool) -> None:
        self._job = job
        self._graph = graph
        self._few_absent = few_absent

    def add(self, group: int) -> None:
        differ = False
        for meeting in meetings(self._job, group, self._graph.left):
            self._graph.first.setdefault(group, meeting)
            if meeting.disagreement:
                differ = True
                self._differ(meeting)
                if not meeting.disagreement.minority:
                    return  # nobody can tell whose numbers mean anything from here on
            elif not differ:
                self._unfinished(meeting)

    def _differ(self, meeting: Meeting) -> None:
        """Ranks called different things: they hold up each other, and whoever waits later in the group."""
        assert meeting.disagreement is not None
        tracks = self._job.tracks
        waiting = set(meeting.unfinished)
        for rank in self._job.members(meeting.group):
            calls = tracks[rank].collectives.get(meeting.group, {}) if rank in tracks else {}
            if any(call.pending for seq, call in calls.items() if seq > meeting.seq):
                waiting.add(rank)
        if not waiting:
            self._graph.silent.append(meeting)
            return
        minority = meeting.disagreement.minority
        node = self._node(meeting, "mismatch")
        self._graph.hold(node, sorted(waiting - set(minority)), minority)
        self._tell(meeting, "mismatch", minority or tuple(sorted(waiting)), waiting - set(minority))
        for rank in minority:
            self._graph.broken[rank] = ("mismatch", meeting.calls[rank])
        if not minority:
            parties = (rank for variant in meeting.disagreement.variants for rank in variant.ranks)
            self._graph.knots[node] = ("mismatch", tuple(sorted(parties)))

    def _unfinished(self, meeting: Meeting) -> None:
        if meeting.missing:
            self._need(meeting, "not-joined", meeting.missing)
        elif meeting.absent and meeting.unfinished and not self._took_part(meeting):
            self._need(meeting, "no-dump", meeting.absent)
            if not self._few_absent:
                self._graph.knots[self._node(meeting, "no-dump")] = ("no-dump", meeting.absent)
        elif meeting.unclear:
            self._need(meeting, "unknown", ())
            self._graph.knots[self._node(meeting, "unknown")] = ("unknown", meeting.unclear)
        else:
            self._all_joined(meeting)

    @staticmethod
    def _took_part(meeting: Meeting) -> bool:
        """Whether ranks without a dump have put in their data, or none could have finished."""
        return bool(meeting.finished) and is_symmetric(meeting.op)

    def _need(self, meeting: Meeting, why: Why, needed: tuple[int, ...]) -> None:
        targets = needed if why != "no-dump" or self._few_absent else ()
        self._graph.hold(self._node(meeting, why), meeting.unfinished, targets)
        self._tell(meeting, why, needed or meeting.unclear, meeting.unfinished)

    def _all_joined(self, meeting: Meeting) -> None:
        """Nobody is missing, yet it does not end: some rank's device is at fault, or behind."""
        left = tuple(rank for rank in meeting.calls if rank in self._graph.left)
        if left and set(meeting.unfinished) - set(left):  # what they call here is something else
            self._need(meeting, "mismatch", left)
            return
        stuck, done = meeting.unfinished, meeting.finished
        alone = len(self._job.members(meeting.group)) == 1
        late = tuple(rank for rank in stuck if rank not in meeting.started)
        if alone or (done and is_symmetric(meeting.op) and len(stuck) <= len(done)):
            for rank in stuck:
                self._stuck(meeting.calls[rank])
            self._tell(meeting, "unfinished", stuck, stuck)
        elif meeting.started and late:
            self._graph.hold(self._node(meeting, "not-started"), meeting.started, late)
            self._tell(meeting, "not-started", late, meeting.started)
        else:
            self._held_up(meeting)

    def _stuck(self, call: Call) -> None:
        """Keep the oldest operation in which a rank is stuck; a mismatch says more."""
        known = self._graph.broken.get(call.rank)
        if known is None or (known[0] != "mismatch" and call.entries[0].record < known[1].entries[0].record):
            self._graph.broken[call.rank] = ("stuck-in-collective", call)

    def _held_up(self, meeting: Meeting) -> None:
        tracks = self._job.tracks
        heads = tuple(rank for rank in meeting.unfinished if tracks[rank].is_head(meeting.calls[rank]))
        behind = tuple(rank for rank in meeting.unfinished if rank not in heads)
        node = self._node(meeting, "held-up")
        self._graph.hold(node, heads, behind)
        self._tell(meeting, "held-up", behind or heads, heads)
        if not behind:
            self._graph.knots[node] = ("stuck-in-collective", meeting.unfinished)

    def _node(self, meeting: Meeting, why: Why) -> Hold:
        return (meeting.group, False, meeting.seq, -1, why)

    def _tell(self, meeting: Meeting, why: Why, on: tuple[int, ...], waiting: Iterable[int]) -> None:
        for rank in sorted(waiting):
            call = meeting.calls.get(rank)
            op = call.last.op if call else meeting.op
            group = self._job.groups[meeting.group]
            wait = Wait(rank=rank, on=on, why=why, group=group, seq=meeting.seq, op=op, is_p2p=False)
            self._graph.waits.append((wait, call))


Lane = tuple[int, int, str, int]
"""All sends, or all receives, of one rank to or from one peer in one group."""


class _PointToPoint:
    def __init__(self, job: Job, graph: WaitGraph, few_absent: bool) -> None:
        self._job = job
        self._graph = graph
        self._few_absent = few_absent
        self._all: dict[Lane, list[Call]] = {}
        self._pending: dict[Lane, list[Call]] = {}
        self._places: dict[int, tuple[int, int]] = {}  # of an entry in both lists
        for call in (call for track in job.tracks.values() for call in track.p2p):
            for entry in call.entries:
                peer = job.peer(call, entry)
                if peer is not None:
                    self._place((call.rank, call.group, entry.op, peer), call, entry)

    def _place(self, lane: Lane, call: Call, entry: Entry) -> None:
        every, pending = self._all.setdefault(lane, []), self._pending.setdefault(lane, [])
        self._places[id(entry)] = len(every), len(pending)
        every.append(call)
        if call.pending:
            pending.append(call)

    def add(self, track: Track, call: Call) -> None:
        """A send or receive (or a batch of them) needs the other side of each."""
        for entry in call.entries:
            peer = self._job.peer(call, entry)
            if peer is None or peer == track.rank:
                continue
            if peer not in self._job.tracks:
                self._wait(track.rank, call, entry, peer, "no-dump")
                continue
            other = self._other_side(track, self._job.tracks[peer], call, entry)
            if other is None:
                self._wait(track.rank, call, entry, peer, "not-joined")
            elif other.pending and track.is_head(call):
                self._both_posted(track, call, entry, other)

    def _other_side(self, track: Track, peer: Track, call: Call, entry: Entry) -> Call | None:
        """The matching call of the peer, by order: sends to one rank arrive in the order they were posted.

        Only whole dumps show how many there were; else the unfinished ones of both sides are paired.
        """
        whole = track.whole and peer.whole
        lane = (peer.rank, call.group, "recv" if entry.op == "send" else "send", track.rank)
        theirs = (self._all if whole else self._pending).get(lane, [])
        place = self._places[id(entry)][0 if whole else 1]
        return theirs[place] if place < len(theirs) else None

    def _both_posted(self, track: Track, call: Call, entry: Entry, other: Call) -> None:
        if self._job.tracks[other.rank].is_head(other):
            node = self._wait(track.rank, call, entry, other.rank, "held-up", point=False)
            self._graph.knots[node] = ("stuck-in-collective", tuple(sorted((track.rank, other.rank))))
        else:
            self._wait(track.rank, call, entry, other.rank, "held-up")

    def _wait(self, rank: int, call: Call, entry: Entry, peer: int, why: Why, point: bool = True) -> Hold:
        node: Hold = (call.group, True, call.seq, rank, why)
        if why == "no-dump" and not self._few_absent:
            point = False
            self._graph.knots[node] = ("no-dump", (peer,))
        self._graph.hold(node, [rank], [peer] if point else [])
        group = self._job.groups[call.group]
        wait = Wait(rank=rank, on=(peer,), why=why, group=group, seq=call.seq, op=entry.op, is_p2p=True)
        self._graph.waits.append((wait, call))
        return node
