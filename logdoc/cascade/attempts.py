"""Restarts within one log: which attempt of the job a record belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

from logdoc.rulebase.observations import MILESTONES, observations
from logdoc.types.finding import Match
from logdoc.types.record import Record
from logdoc.types.value import dataclass

# Of the milestones (observations.yaml): work, and what a process does but once; communicators may be made later, too.
STEP = "first-step"
STARTS = frozenset({"initializing", "rendezvous-done", "bootstrap"})


def number_attempts(matches: Iterable[Match], marks: Sequence[Match], milestones: Sequence[Match] = ()) -> None:
    """Set `record.attempt` of the matches from the restart marks of their source; their clocks are set already.

    Marks (observations.yaml, attempts): torchrun's announcement, its restart_count, and an agent that reports a failed
    worker a second time: what lies between its two reports is the next attempt. In a source without marks, work that
    begins anew tells, as often as another source tells of restarts; where it does not, the clocks of the marks do.
    Without any mark (a requeued job whose logs are appended) a process that had worked, failed, and starts tells.
    """
    starts: dict[str, list[int]] = {}
    for source in {mark.record.source for mark in marks}:
        starts[source] = _starts([mark for mark in marks if mark.record.source == source])
    listed = list(matches)
    times = _times(marks, starts)
    printers = _by_printer([*listed, *milestones], starts)
    restarts = max(map(len, starts.values()), default=0) or _implied(printers)
    if restarts:
        starts |= _renewals(printers, restarts)
    seen: set[int] = set()
    for match in listed:
        record = match.record
        if id(record) in seen:
            continue
        seen.add(id(record))
        if record.source in starts:
            record.attempt += bisect_left(starts[record.source], record.seq)
        elif times and record.near_time is not None and not record.attempt:
            record.attempt = bisect_left(times, record.near_time)


Printers = Mapping[str, Mapping[int | None, Sequence[Match]]]


def _by_printer(matches: Iterable[Match], marked: Collection[str]) -> Printers:
    """The matches of sources without marks by source and rank, in order; of a path that names the attempt (torchrun
    --log-dir) nothing is asked."""
    printers: dict[str, dict[int | None, list[Match]]] = {}
    for match in matches:
        if match.record.source not in marked and not match.record.attempt:
            printers.setdefault(match.record.source, {}).setdefault(match.rank, []).append(match)
    for by_rank in printers.values():
        for own in by_rank.values():
            own.sort(key=lambda match: match.record.seq)
    return printers


def _implied(printers: Printers) -> int:
    """How often a process that trained and then failed is seen to start again."""
    counts = [sum(fall.is_start for fall in _falls(own)) for by_rank in printers.values() for own in by_rank.values()]
    return max(counts, default=0)


def _renewals(printers: Printers, restarts: int) -> dict[str, list[int]]:
    """Sequence numbers after which a source's printers begin anew, where that happens as often as the job restarted.

    Falls after a failure count alone where those without one (epochs) are too many.
    """
    found = {}
    for source, by_rank in printers.items():
        told = []
        for falls in map(_falls, by_rank.values()):
            after_failure = [fall for fall in falls if fall.failed]
            fitting = next((some for some in (falls, after_failure) if len(some) == restarts), None)
            if fitting is not None:
                told.append([fall.seq for fall in fitting])
        if told:
            found[source] = [min(numbers) - 1 for numbers in zip(*told, strict=True)]
    return found


@dataclass(frozen=True, slots=True)
class Fall:
    """Where a printer's milestones fall back. `failed`: after a failure; `is_start`: from training that failed to an
    earlier step of the same rank, or to a point that a process passes once, as it starts."""

    seq: int
    failed: bool
    is_start: bool


def _falls(matches: Sequence[Match]) -> list[Fall]:
    """One printer's falls to a smaller step, or after a failure to a point of the start."""
    order = observations().milestones
    furthest: tuple[int, int] = (-1, 0)
    failed = False
    failure: Record | None = None
    falls: list[Fall] = []
    for match in matches:
        if match.rule.id != MILESTONES:
            if match.signature.role == "evidence" and not match.record.is_caught:
                failed, failure = True, match.record
            continue
        # the line below an exception may have been joined to it
        if match.record is failure or order[match.name].order > order[STEP].order:
            continue
        place = (order[match.name].order, _number(match, furthest[1]) if match.name == STEP else 0)
        if (place < furthest and (failed or match.name == STEP)) or (place == furthest and failed):
            worked = failed and furthest[0] == order[STEP].order
            anew = match.name in STARTS or (match.rank is not None and place < furthest)
            falls.append(Fall(match.record.seq, failed, worked and anew))
            furthest, failed = place, False
        furthest = max(furthest, place)
    return falls


def _number(step: Match, otherwise: int) -> int:
    text = step.captures.get("n", "")
    return int(text) if 0 < len(text) < 16 else otherwise


def _times(marks: Sequence[Match], starts: dict[str, list[int]]) -> list[float]:
    """When each attempt after the first began, from the source that tells of most: for files without marks.

    Nothing where a mark has no clock, or where the clocks of the hosts may differ by as much as an attempt lasts.
    """
    source = max(starts, key=lambda name: len(starts[name]), default=None)
    if source is None:
        return []
    stamped = [(mark.record.seq, mark.record.near_time) for mark in marks if mark.record.source == source]
    times = []
    for start in starts[source]:
        near = [time for seq, time in stamped if seq >= start and time is not None]
        if not near:
            return []
        times.append(near[0])
    return times


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
