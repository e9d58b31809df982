"""What each rank was seen doing: first and last lines, hosts, milestones; and who a half-named printer is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logdoc.cascade.agents import Nodes, is_short_number, ranks_named_by_agents
from logdoc.cascade.progress import Progress
from logdoc.kept.patterns import lazily
from logdoc.reader.childfailed import DIALECT
from logdoc.rulebase.observations import observations
from logdoc.types.finding import Match
from logdoc.types.record import Identity, Record
from logdoc.types.value import dataclass, field

GROUP_RANK = ("[Rank ", "[PG ")  # such a rank may count within a group: weaker than what the launcher says


@dataclass(slots=True)
class RankTrack:
    """One rank through the log. `passed` are milestones (ids of observations.yaml), `milestone` the furthest one.

    `first` and `last` are its own words: what a launcher reports of a rank is not. So both may be None; `reported` is
    the source of such a report.
    """

    rank: int
    host: str | None = None
    local_rank: int | None = None
    first: Record | None = None
    last: Record | None = None
    milestone: str | None = None
    passed: set[str] = field(default_factory=set)
    reported: str | None = None


@dataclass(slots=True)
class Survey:
    """Everything that is known of who is talking. Feed it all records and the milestone matches, then `settle`."""

    tracks: dict[int, RankTrack] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    progress: Progress = field(default_factory=Progress)
    _nodes: Nodes = field(default_factory=Nodes)
    _last_of_source: dict[str, int] = field(default_factory=dict)
    _ranks_of_process: dict[tuple[str | None, int], set[int]] = field(default_factory=dict)
    _local_only: dict[int, RankTrack] = field(default_factory=dict)
    _tasks: dict[int, RankTrack] = field(default_factory=dict)
    _ranks_of_task: dict[int, set[int]] = field(default_factory=dict)
    _tasks_are_ranks: bool = False
    _local_is_global: bool = False

    def see(self, records: Iterable[Record]) -> None:
        """Note who printed these records."""
        for record in records:
            who = record.who
            self._last_of_source[record.source] = record.seq
            if who.host is not None:
                self.hosts.add(who.host)
                self._nodes.see(record)
            self._track(record, who.rank)
            if who.rank is not None and who.pid is not None:
                self._ranks_of_process.setdefault((who.host, who.pid), set()).add(who.rank)
            if who.rank is not None and who.task is not None and not record.body.startswith(GROUP_RANK):
                self._ranks_of_task.setdefault(who.task, set()).add(who.rank)

    def reach(self, milestones: Iterable[Match]) -> None:
        """Note how far each rank came. NCCL's init lines also tell which rank a process is."""
        for match in milestones:
            who = match.record.who
            if match.rank is not None and who.pid is not None and who.rank is None:
                self._ranks_of_process.setdefault((who.host, who.pid), set()).add(match.rank)
            self.progress.see(match)
            track = self._track(match.record, match.rank)
            if track is None:
                continue
            track.passed.add(match.name)
            track.milestone = _further(track.milestone, match.name)

    def heard(self) -> dict[int, RankTrack]:
        """The ranks that spoke themselves; a launcher's report may have added others."""
        return {rank: track for rank, track in self.tracks.items() if track.last is not None}

    def settle(self, several_nodes: bool) -> None:
        """On a single node the local rank is the global one, so printers known by it alone become ranks.

        A launcher's tasks (srun -l) are the ranks if there are more of them than hosts, and nothing says otherwise.
        """
        if self._tasks and self._one_task_a_rank():
            self._tasks_are_ranks = True
            self._adopt(self._tasks)
        if several_nodes or any(track.local_rank not in (None, rank) for rank, track in self.tracks.items()):
            return
        if self._local_only:
            self._local_is_global = True
        elif self.tracks:
            return
        self._adopt(self._local_only or self._tasks)

    def _adopt(self, tracks: dict[int, RankTrack]) -> None:
        """Take these numbers for ranks. What a rank said under both names is one track."""
        for number, track in tracks.items():
            known = self.tracks.setdefault(number, track)
            if known is track:
                continue
            known.host, known.first = known.host or track.host, _earlier(known.first, track.first)
            known.last = _later(known.last, track.last)
            known.passed |= track.passed
            known.milestone = _further(known.milestone, track.milestone)

    def _one_task_a_rank(self) -> bool:
        others = any(ranks != {task} for task, ranks in self._ranks_of_task.items())
        several = len(self._tasks) > max(1, len(self.hosts))
        return several and not others and not self._local_only and max(self.tracks, default=0) <= max(self._tasks)

    def rank_of(self, who: Identity) -> int | None:
        """The global rank of a printer, as far as anything in the log tells."""
        if who.rank is not None:
            return who.rank
        if who.pid is not None:
            ranks = self._ranks_of_process.get((who.host, who.pid), set())
            if len(ranks) == 1:
                return next(iter(ranks))
        if self._local_is_global and who.local_rank is not None:
            return who.local_rank
        if self._tasks_are_ranks and who.task is not None:
            return who.task
        number = who.local_rank if who.local_rank is not None else who.task
        if number is not None and self.tracks.get(number) in (self._local_only.get(number), self._tasks.get(number)):
            return number if number in self.tracks else None
        return None

    def was_last(self, match: Match) -> bool:
        """Whether this is the last thing that its rank, or where no rank is known its source, ever printed."""
        track = self.tracks.get(match.rank) if match.rank is not None else None
        if track is not None and track.last is not None:
            return track.last.seq == match.record.seq
        return self._last_of_source.get(match.record.source) == match.record.seq

    def name_ranks(self, matches: Sequence[Match]) -> None:
        """Give matches of half-named printers their rank, and those that name a process (the kernel's) its rank."""
        named = ranks_named_by_agents(matches, self._nodes, self._ranks_of_process, self.tracks.keys())
        for process, rank in named.items():
            self._ranks_of_process.setdefault(process, {rank})
        for match in matches:
            if self._tasks_are_ranks and match.record.who.task is not None and "rank" not in match.captures:
                match.rank = match.record.who.task
            if match.rank is not None or "rank" in match.captures:
                continue
            task = match.captures.get("task", "")
            if self._tasks_are_ranks and is_short_number(task):  # srun's own words on one of its tasks
                match.rank = int(task) if int(task) in self.tracks else None
                continue
            pid = match.captures.get("pid") or _pid_in_kernel_line(match.record)
            if pid is not None:
                match.rank = self._rank_of_pid(pid, match.host)
            if match.rank is None and "host" not in match.captures:
                match.rank = self.rank_of(match.record.who)

    def _rank_of_pid(self, text: str, host: str | None) -> int | None:
        """The only rank that ran as this process, on this host where both are known."""
        if not is_short_number(text):
            return None
        found: set[int] = set()
        for (where, pid), ranks in self._ranks_of_process.items():
            if pid == int(text) and (where is None or host is None or where == host):
                found |= ranks
        return found.pop() if len(found) == 1 else None

    def _track(self, record: Record, rank: int | None) -> RankTrack | None:
        """Note a record in its printer's track: that of its rank, or of what else it is known by."""
        who = record.who
        if rank is not None:
            return self._note(self.tracks, rank, record)
        if who.local_rank is not None:
            return self._note(self._local_only, who.local_rank, record)
        return self._note(self._tasks, who.task, record) if who.task is not None else None

    @staticmethod
    def _note(tracks: dict[int, RankTrack], number: int, record: Record) -> RankTrack:
        track = tracks.setdefault(number, RankTrack(number))
        track.host = track.host or record.who.host
        track.local_rank = record.who.local_rank if track.local_rank is None else track.local_rank
        if DIALECT in record.dialects:
            track.reported = record.source
            return track
        if track.first is None:
            track.first = record
        if track.last is None or record.seq >= track.last.seq:
            track.last = record
        return track


def _further(one: str | None, other: str | None) -> str | None:
    order = observations().milestones
    return max(one, other, key=lambda name: order[name].order) if one and other else one or other


def _earlier(one: Record | None, other: Record | None) -> Record | None:
    return min(one, other, key=lambda record: record.seq) if one and other else one or other


def _later(one: Record | None, other: Record | None) -> Record | None:
    return max(one, other, key=lambda record: record.seq) if one and other else one or other


_PID = lazily(r"\bpid(?:=| )'?(\d{1,8})\b")


def _pid_in_kernel_line(record: Record) -> str | None:
    """The process a line of the kernel is about: `NVRM: Xid (…): 79, pid=4711, name=python`."""
    found = _PID.search(record.body) if "kernel" in record.dialects else None
    return found[1] if found else None
