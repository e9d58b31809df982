"""What each rank was seen doing: first and last lines, hosts, milestones; and who a half-named printer is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from logdoc.rulebase.observations import observations
from logdoc.types.finding import Match
from logdoc.types.record import Identity, Record

STEPS = "first-step"  # the milestone of training going on
ENOUGH_STEPS = 3  # a rank may still print one or two that it had done before it failed


@dataclass(slots=True)
class RankTrack:
    """One rank through the log. `passed` are milestones (ids of observations.yaml), `milestone` the furthest one."""

    rank: int
    host: str | None = None
    local_rank: int | None = None
    first: Record | None = None
    last: Record | None = None
    milestone: str | None = None
    passed: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Survey:
    """Everything that is known of who is talking. Feed it all records and the milestone matches, then `settle`."""

    tracks: dict[int, RankTrack] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    _last_of_source: dict[str, int] = field(default_factory=dict)
    _ranks_of_process: dict[tuple[str | None, int], set[int]] = field(default_factory=dict)
    _local_only: dict[int, RankTrack] = field(default_factory=dict)
    _tasks: dict[int, RankTrack] = field(default_factory=dict)
    _last_steps: dict[int | str, deque[int]] = field(default_factory=dict)

    def see(self, records: Iterable[Record]) -> None:
        """Note who printed these records."""
        for record in records:
            who = record.who
            self._last_of_source[record.source] = record.seq
            if who.host is not None:
                self.hosts.add(who.host)
            if who.rank is not None:
                self._note(self.tracks, who.rank, record)
            elif who.local_rank is not None:
                self._note(self._local_only, who.local_rank, record)
            elif who.task is not None:
                self._note(self._tasks, who.task, record)
            if who.rank is not None and who.pid is not None:
                self._ranks_of_process.setdefault((who.host, who.pid), set()).add(who.rank)

    def reach(self, milestones: Iterable[Match]) -> None:
        """Note how far each rank came. NCCL's init lines also tell which rank a process is."""
        order = observations().milestones
        for match in milestones:
            who = match.record.who
            if match.rank is not None and who.pid is not None and who.rank is None:
                self._ranks_of_process.setdefault((who.host, who.pid), set()).add(match.rank)
            if match.name == STEPS:
                for printer in {match.rank, match.record.source} - {None}:
                    self._last_steps.setdefault(printer, deque(maxlen=ENOUGH_STEPS)).append(match.record.seq)
            if match.rank is None:
                continue
            track = self._note(self.tracks, match.rank, match.record)
            track.passed.add(match.name)
            if track.milestone is None or order[match.name].order > order[track.milestone].order:
                track.milestone = match.name

    def settle(self, several_nodes: bool) -> None:
        """On a single node the local rank is the global one, so printers known by it alone become ranks."""
        if several_nodes or self.tracks:
            return
        for number, track in (self._local_only or self._tasks).items():
            self.tracks[number] = track

    def rank_of(self, who: Identity) -> int | None:
        """The global rank of a printer, as far as anything in the log tells."""
        if who.rank is not None:
            return who.rank
        if who.pid is not None:
            ranks = self._ranks_of_process.get((who.host, who.pid), set())
            if len(ranks) == 1:
                return next(iter(ranks))
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

    def went_on(self, match: Match) -> bool:
        """Whether its rank trained on after it; where no rank is known, whether anybody did after a mere warning."""
        record = match.record
        if match.rank is None and (record.level != "WARNING" or "nccl" in record.dialects):
            return False
        steps = self._last_steps.get(record.source if match.rank is None else match.rank, ())
        return len(steps) == ENOUGH_STEPS and steps[0] > record.seq

    def name_ranks(self, matches: Sequence[Match]) -> None:
        """Give matches of half-named printers their rank."""
        for match in matches:
            if match.rank is None and "rank" not in match.captures and "host" not in match.captures:
                match.rank = self.rank_of(match.record.who)

    @staticmethod
    def _note(tracks: dict[int, RankTrack], number: int, record: Record) -> RankTrack:
        track = tracks.setdefault(number, RankTrack(number))
        track.host = track.host or record.who.host
        track.local_rank = record.who.local_rank if track.local_rank is None else track.local_rank
        if track.first is None:
            track.first = record
        if track.last is None or record.seq >= track.last.seq:
            track.last = record
        return track
