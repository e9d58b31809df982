"""One time line from many clocks: years filled in, skews and time zones between hosts estimated from shared events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from logdoc.reader.clock import is_uptime, is_yearless, with_year, year_of
from logdoc.types.finding import Match
from logdoc.types.record import Record

Clock = tuple[str, str | int | None]

LEAST_SHARED = 2  # events two clocks must share before one is set by the other
LEAST_SKEW_SECONDS = 1.0  # a smaller difference is the spread of the event itself
MOST_SPREAD_SECONDS = 5.0  # if the differences vary more than this, the events were not simultaneous


def set_clocks(matches: Sequence[Match], milestones: Sequence[Match]) -> None:
    """Make `near_time` of all matched records comparable, as far as the log allows."""
    records = {id(match.record): match.record for match in [*matches, *milestones]}
    _fill_years(records.values())
    offsets = skews(milestones)
    for record in records.values():
        offset = offsets.get(clock_of(record))
        if offset is not None and record.near_time is not None:
            record.near_time -= offset


def clock_of(record: Record) -> Clock:
    """Whose clock stamped a record: the host's where it is named, else its rank's, else the file's."""
    return (record.source, record.who.host if record.who.host is not None else record.who.rank)


def _fill_years(records: Iterable[Record]) -> None:
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
    """Seconds each clock runs ahead of the best-connected one, from events that all ranks pass at about one time."""
    events: dict[tuple[str, str], dict[Clock, float]] = {}
    for match in milestones:
        time = match.record.near_time if match.record.time is not None else None
        if time is not None:
            passed = events.setdefault((match.name, match.captures.get("n", "")), {})
            passed.setdefault(clock_of(match.record), time)
    shared = [passed for passed in events.values() if len(passed) > 1]
    counts: dict[Clock, int] = {}
    for passed in shared:
        for clock in passed:
            counts[clock] = counts.get(clock, 0) + 1
    if not counts:
        return {}
    reference = max(sorted(counts, key=str), key=lambda clock: counts[clock])
    offsets = {}
    for clock in counts:
        differences = [
            passed[clock] - passed[reference] for passed in shared if clock in passed and reference in passed
        ]
        offset = _agreed(differences)
        if clock != reference and offset is not None:
            offsets[clock] = offset
    return offsets


def _agreed(differences: Sequence[float]) -> float | None:
    if len(differences) < LEAST_SHARED:
        return None
    middle = median(differences)
    if abs(middle) < LEAST_SKEW_SECONDS:
        return None
    near = [one for one in differences if abs(one - middle) <= MOST_SPREAD_SECONDS]
    return middle if len(near) * 2 > len(differences) else None
