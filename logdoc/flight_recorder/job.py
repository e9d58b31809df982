"""Puts the dumps of one job side by side: one track a rank, the same process group one number everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from logdoc.flight_recorder.model import Dump, Entry, Group, Status

Progress = Literal["waiting", "started", "over", "finished"]

# torch records no device events for these: an entry stays "scheduled" for ever, and `retired` says only that the
# call returned, not that it worked (seen with torch 2.13: a timed-out all_reduce is retired and counted completed).
_WITHOUT_EVENTS = frozenset({"gloo"})
_BATCH_ENDS = frozenset({"coalesced", "ALLGATHER_coalesced", "REDUCE_SCATTER_coalesced"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a rank: one entry, or those of a coalesced batch, which share a sequence number.

    `progress`: "over" means that it returned and nobody knows how. `group` numbers `Job.groups`.
    """

    rank: int
    group: int
    seq: int
    is_p2p: bool
    entries: tuple[Entry, ...]
    progress: Progress

    @property
    def last(self) -> Entry:
        return self.entries[-1]

    @property
    def comparable(self) -> Entry | None:
        """The entry that names the call. A batch whose end is not in the dump has none."""
        return self.last if len(self.entries) == 1 or self.last.op in _BATCH_ENDS else None

    @property
    def pending(self) -> bool:
        return self.progress in ("waiting", "started")


class Track:
    """What one rank did, by group number."""

    def __init__(self, dump: Dump, numbers: Mapping[tuple[str, tuple[int, ...]], int]) -> None:
        self.dump = dump
        self.rank = dump.rank
        self._names = {number: name for (name, _), number in numbers.items()}
        self.newest: dict[int, int] = {}
        self.collectives: dict[int, dict[int, Call]] = {}
        self.p2p: list[Call] = []
        self._read_calls(numbers)
        self.head = min((call.entries[0].record for call in self.pending()), default=None)

    def _read_calls(self, numbers: Mapping[tuple[str, tuple[int, ...]], int]) -> None:
        by_object: dict[int, int] = {}  # entries share their groups, whose thousands of ranks are slow to hash
        batches: dict[tuple[int, bool, int], list[Entry]] = {}
        for entry in self.dump.entries:
            group = by_object.get(id(entry.group))
            if group is None:
                group = by_object[id(entry.group)] = numbers[entry.group.name, entry.group.ranks]
            if not entry.is_p2p or self.unfiltered:
                self.newest[group] = max(self.newest.get(group, 0), entry.seq)
            seq = entry.p2p_seq if entry.is_p2p else entry.seq
            batches.setdefault((group, entry.is_p2p, seq), []).append(entry)
        last_of = {(group, is_p2p): seq for group, is_p2p, seq in batches}
        for (group, is_p2p, seq), entries in batches.items():
            status = None if (group, not is_p2p) in last_of else self.dump.status.get(entries[0].group.name)
            passed = last_of[group, is_p2p] != seq or (status is not None and (status.completed or 0) >= seq)
            progress = _progress(entries, passed)
            call = Call(self.rank, group, seq, is_p2p, tuple(entries), progress)
            if is_p2p:
                self.p2p.append(call)
            else:
                self.collectives.setdefault(group, {})[seq] = call

    def pending(self) -> list[Call]:
        """Calls that are not finished, oldest first."""
        calls = [*self.p2p, *(call for calls in self.collectives.values() for call in calls.values())]
        return sorted((call for call in calls if call.pending), key=lambda call: call.entries[0].record)

    def is_head(self, call: Call) -> bool:
        """Nothing older is unfinished on this rank, so only this call itself can hold it up."""
        return self.head is None or call.entries[0].record <= self.head

    @property
    def unfiltered(self) -> bool:
        """No operation was left out between the first and the last; some dumps leave the finished ones out."""
        entries = self.dump.entries
        if not entries or entries[-1].record - entries[0].record != len(entries) - 1:
            return False
        finished = (entry.state == "completed" or entry.backend in _WITHOUT_EVENTS for entry in entries)
        return entries[0].record == 0 or any(finished)

    @property
    def whole(self) -> bool:
        """The dump holds everything this rank ever did: nothing overwritten either."""
        entries = self.dump.entries
        return self.unfiltered and entries[0].record == 0 if entries else not self.dump.status

    @property
    def lost_unfinished(self) -> bool:
        """The buffer holds the newest calls and none of them is finished, so those it has lost need not be."""
        return self.head == self.dump.entries[0].record > 0 if self.dump.entries and not self.dump.status else False

    def reach(self, group: int, mixed: bool) -> int | None:
        """The last collective this rank enqueued in the group; None: its dump does not say.

        `mixed`: the group also sends and receives, so its status counts something else.
        """
        if group in self.newest:
            return self.newest[group]
        if self.whole:
            return 0
        status = self.status(group)
        if status is None:
            return 0 if self.dump.status_complete else None
        return None if mixed else status.enqueued or 0

    def status(self, group: int) -> Status | None:
        return self.dump.status.get(self._names[group]) if group in self._names else None


def _progress(entries: Sequence[Entry], passed: bool) -> Progress:
    """How far a call is. `passed`: the group is known to have gone beyond it."""
    last = entries[-1]
    if len(entries) > 1 and last.op not in _BATCH_ENDS:
        # Only the end of a batch has events. It is missing when it finished and the dump leaves finished operations
        # out, or when the rank is still inside the batch.
        return "finished" if passed else "waiting"
    if last.state == "completed":
        return "finished"
    if last.retired and last.backend in _WITHOUT_EVENTS:
        return "over"
    return "started" if last.state == "started" else "waiting"


class Job:
    """The tracks of all ranks that left a dump. `groups` have the ranks the dumps together give them."""

    def __init__(self, dumps: Iterable[Dump]) -> None:
        chosen = _one_per_rank(dumps)
        self.groups, by_rank = _number_groups(chosen)
        self.tracks = {rank: Track(dump, by_rank[rank]) for rank, dump in sorted(chosen.items())}
        self.mixed = {call.group for track in self.tracks.values() for call in track.p2p}
        self.world = tuple(sorted({*chosen, *(rank for group in self.groups for rank in group.ranks)}))
        self.without_dump = tuple(rank for rank in self.world if rank not in chosen)

    def members(self, group: int) -> tuple[int, ...]:
        return self.groups[group].ranks

    def reach(self, rank: int, group: int) -> int | None:
        return self.tracks[rank].reach(group, group in self.mixed)

    def may_have_completed(self, rank: int, group: int, seq: int) -> bool:
        """Of a call not in the dump: finished ones are left out, but a full buffer loses unfinished ones too."""
        status = self.tracks[rank].status(group)
        if status is None:
            return not self.tracks[rank].lost_unfinished
        return group in self.mixed or (status.completed or 0) >= seq

    def peer(self, call: Call, entry: Entry) -> int | None:
        """The global rank on the other side of a send or receive."""
        ranks = self.members(call.group)
        return ranks[entry.peer] if entry.peer is not None and entry.peer < len(ranks) else None


def _one_per_rank(dumps: Iterable[Dump]) -> dict[int, Dump]:
    """Of two dumps of one rank the one that ends later: an earlier attempt, or a dump on demand, may have left one."""
    chosen: dict[int, Dump] = {}
    for dump in dumps:
        if dump.rank not in chosen or _end(dump) > _end(chosen[dump.rank]):
            chosen[dump.rank] = dump
    return chosen


def _end(dump: Dump) -> tuple[int, int]:
    return max((entry.created_ns or 0 for entry in dump.entries), default=0), len(dump.entries)


Numbers = dict[tuple[str, tuple[int, ...]], int]


def _everybody(dumps: Mapping[int, Dump]) -> Iterable[int]:
    """The ranks of the job, as far as the dumps' own ranks tell: a few may be missing among them."""
    count = max(dumps) + 1
    return range(count) if count < 2 * len(dumps) else dumps


def _number_groups(dumps: Mapping[int, Dump]) -> tuple[list[Group], dict[int, Numbers]]:
    """Number the groups, the same group alike on every rank. Two groups may share a name (split_group), not ranks too.

    A dump that does not know a group's ranks (gloo) takes them from a dump that does, else from who used the group.
    """
    numbers: Numbers = {}
    groups: list[Group] = []
    for group in (group for dump in dumps.values() for group in dump.groups if group.ranks):
        if (group.name, group.ranks) not in numbers:
            numbers[group.name, group.ranks] = len(groups)
            groups.append(group)
    rankless: dict[str, set[int]] = {}
    for rank, dump in dumps.items():
        for group in dump.groups:
            if not group.ranks:
                everybody = _everybody(dumps) if group.desc == "default_pg" else [rank]
                rankless.setdefault(group.name, set()).update(everybody)
    by_rank: dict[int, Numbers] = {}
    for rank, dump in sorted(dumps.items()):
        own: Numbers = {}
        for group in dump.groups:
            found = numbers.get((group.name, group.ranks))
            if found is None:
                known = [n for n, other in enumerate(groups) if other.name == group.name and rank in other.ranks]
                found = known[0] if len(known) == 1 else len(groups)
                if found == len(groups):
                    groups.append(Group(group.name, group.desc, tuple(sorted(rankless[group.name]))))
            own[group.name, group.ranks] = found
        by_rank[rank] = own
    return groups, by_rank
