"""One time line from many clocks: years filled in, skews and time zones between hosts estimated from shared events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from logdoc.reader.clock import is_uptime, is_yearless, with_year, year_of
from logdoc.types.finding import Match
from logdoc.types.record import Record

Clock = tuple[str, str | int | None]

LEAST_SHARED = 2  # events two clocks must share before one is set by the other
LEAST_SKEW_SECONDS = 1.0  # a smaller difference is the spread of the event itself
ZONE_SECONDS = 1800.0  # what time zones differ by, or a multiple of it
ZONE_SPREAD = 30.0
MOST_SPREAD_SECONDS = 5.0  # if the differences vary more than this, the events were not simultaneous


def set_clocks(matches: Sequence[Match], milestones: Sequence[Match]) -> None:
    """Make `near_time` of all matched records comparable, as far as the log allows."""
    records = {id(match.record): match.record for match in [*matches, *milestones]}
    fill_years(records.values())
    # matches of a collective's sequence number that timed out are passed by all its ranks within seconds
    offsets = skews([*milestones, *(match for match in matches if "seq" in match.captures)])
    for record in records.values():
        offset = offsets.get(clock_of(record))
        if offset is not None and record.near_time is not None:
            record.near_time -= offset


def clock_of(record: Record) -> Clock:
    """Whose clock stamped a record: the host's where it is named, else its rank's, else the file's."""
    return (record.source, record.who.host if record.who.host is not None else record.who.rank)


def fill_years(records: Iterable[Record]) -> None:
    """Stamps without a year (glog, syslog) take the year of the job's other stamps; uptimes compare with nothing."""
    stamped = [record for record in records if record.near_time is not None]
    years = [year_of(record.near_time) for record in stamped if record.near_time and not is_yearless(record.near_time)]
    year = max((year for year in years if year > 2000), default=None)
    for record in stamped:
        if record.near_time is None:
            continue
        if is_uptime(record.near_time):
            record.near_time = None
        elif year is not None and is_yearless(record.near_time):
            record.near_time = with_year(record.near_time, year)


def skews(milestones: Iterable[Match]) -> Mapping[Clock, float]:
    """Seconds each clock runs ahead of the best-connected one, from events that all ranks pass at about one time.

    A clock that shares nothing with that one is set by those that are set already.
    """
    shared = [passed for passed in _events(milestones) if len(passed) > 1]
    counts = Counter(clock for passed in shared for clock in passed)
    if not counts:
        return {}
    reference = max(sorted(counts, key=str), key=lambda clock: counts[clock])
    known = {reference: 0.0}
    todo = set(counts) - {reference}
    while todo:
        found = {clock: offset for clock in todo if (offset := _offset(clock, shared, known)) is not None}
        if not found:
            break
        known |= found
        todo -= found.keys()
    return {clock: offset for clock, offset in known.items() if abs(offset) >= LEAST_SKEW_SECONDS}


def _events(milestones: Iterable[Match]) -> Iterator[Mapping[Clock, float]]:
    """When each clock first saw an event: a training step, or one collective that timed out on everybody.

    A step that a restart repeats is compared among clocks that saw it equally often: of the others some lines are lost,
    and their first may be another attempt's.
    """
    events: dict[tuple[str, ...], dict[Clock, list[float]]] = {}
    for match in milestones:
        time = match.record.near_time if match.record.time is not None else None
        if time is not None:
            said = match.captures
            event = (match.name, said.get("n", ""), said.get("seq", ""), said.get("op", ""))
            events.setdefault(event, {}).setdefault(clock_of(match.record), []).append(time)
    for passed in events.values():
        for count in {len(times) for times in passed.values()}:
            yield {clock: times[0] for clock, times in passed.items() if len(times) == count}


def _offset(clock: Clock, shared: Sequence[Mapping[Clock, float]], known: Mapping[Clock, float]) -> float | None:
    differences = []
    for passed in shared:
        others = [time - known[other] for other, time in passed.items() if other in known]
        if clock in passed and others:
            differences.append(passed[clock] - median(others))
    return _agreed(differences)


def _agreed(differences: Sequence[float]) -> float | None:
    """The common difference, zero for one that is no more than the events' own spread; None if they do not agree.

    One event is enough for a time zone: half hours and whole hours are no accident.
    """
    if not differences:
        return None
    middle = median(differences)
    if len(differences) < LEAST_SHARED and not _is_zone(middle):
        return None
    near = [one for one in differences if abs(one - middle) <= MOST_SPREAD_SECONDS]
    return middle if len(near) * 2 > len(differences) else None


def _is_zone(seconds: float) -> bool:
    return (
        abs(seconds) > ZONE_SECONDS / 2 and abs(seconds - round(seconds / ZONE_SECONDS) * ZONE_SECONDS) <= ZONE_SPREAD
    )


def median(values: Sequence[float]) -> float:
    """Of at least one; `statistics`, whose it is, takes long to import."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
