"""A report's timeline as rank × time: which sign stands where, and how the first failure reached the others. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from logdoc.render.timeline import first_failure
from logdoc.types.report import Report, TimelineEntry

MOST_CELLS_A_STEP = 6
CASCADE_CELLS = 2
TICK_CELLS = 9  # of a time label with the blank behind it
_TIME_OF_DAY = re.compile(r"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Event:
    """A timeline entry in its column. `caused`: the first failure accounts for it."""

    column: int
    entry: TimelineEntry
    first: bool
    caused: bool


@dataclass(slots=True)
class Row:
    """A rank (None: whatever no rank printed), how it was left, and what happened to it in order."""

    rank: int | None
    host: str | None
    state: str
    events: list[Event] = field(default_factory=list)

    @property
    def first(self) -> Event | None:
        """The first failure, if it is this rank's."""
        return next((event for event in self.events if event.first), None)

    @property
    def consequence(self) -> Event | None:
        """The first thing that the first failure did to this rank."""
        return next((event for event in self.events if event.caused), None)


@dataclass(frozen=True, slots=True)
class Grid:
    """`stem`: column and first and last row of the line from the first failure to its consequences.

    `ticks` are columns with what is written above them; `columns` is the width of the drawing in cells.
    """

    rows: tuple[Row, ...]
    columns: int
    ticks: tuple[tuple[int, str], ...]
    stem: tuple[int, int, int] | None


def grid(report: Report, width: int) -> Grid:
    """The timeline in at most `width` columns of a cell, one step of time a column or more."""
    entries = report.timeline
    first = first_failure(report)
    moments = _moments(entries, first)
    columns = _columns(
        max(moments, default=0) + 1, max(width, TICK_CELLS), moments[first] if first is not None else None
    )
    rows = _rows(report)
    explains = set(report.diagnoses[0].explains) if report.diagnoses else set()
    for number, (entry, moment) in enumerate(zip(entries, moments, strict=True)):
        caused = first is not None and number > first and entry.rule in explains
        rows[entry.rank].events.append(Event(columns[moment], entry, number == first, caused))
    ordered = tuple(rows[rank] for rank in sorted(rows, key=lambda rank: -1 if rank is None else rank))
    used = columns[-1] + 1 if entries else 0
    return Grid(ordered, used, _ticks(entries, [columns[moment] for moment in moments]), _stem(ordered))


def _moments(entries: Sequence[TimelineEntry], first: int | None) -> list[int]:
    """For each entry the step of time it belongs to; the first failure has one of its own."""
    moments: list[int] = []
    now = -1
    previous: TimelineEntry | None = None
    for number, entry in enumerate(entries):
        same = previous is not None and entry.time is not None and entry.time == previous.time
        if not same or number == first or (first is not None and number == first + 1):
            now += 1
        moments.append(now)
        previous = entry
    return moments


def _columns(steps: int, width: int, first: int | None) -> list[int]:
    """The column of each step: evenly spread; several steps in one where there is no room.

    What follows the first failure's step stays CASCADE_CELLS away from it, so that the cascade can be drawn.
    """
    each = min(MOST_CELLS_A_STEP, (width - 1) // steps)
    if each >= 1:
        return [step * each for step in range(steps)]
    room = max(1, width - 1 - CASCADE_CELLS)
    return [
        step * room // (steps - 1) + (CASCADE_CELLS if first is not None and step > first else 0)
        for step in range(steps)
    ]


def _rows(report: Report) -> dict[int | None, Row]:
    rows: dict[int | None, Row] = {row.rank: Row(row.rank, row.host, row.state) for row in report.ranks.table}
    for rank in report.ranks.silent:
        rows.setdefault(rank, Row(rank, None, "silent"))
    for entry in report.timeline:
        rows.setdefault(entry.rank, Row(entry.rank, None, "unknown"))
    return rows


def _ticks(entries: Sequence[TimelineEntry], columns: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """The clock as the log shows it, wherever there is room and it has moved on."""
    ticks: list[tuple[int, str]] = []
    told, room = "", 0
    for entry, column in zip(entries, columns, strict=True):
        label = _clock(entry.time)
        if label and label != told and column >= room:
            ticks.append((column, label))
            told, room = label, column + TICK_CELLS
    return tuple(ticks)


def _clock(time: str | None) -> str:
    """The time of day in a stamp, else its last characters (dmesg counts seconds since boot)."""
    found = _TIME_OF_DAY.search(time or "")
    return found[0] if found else (time or "")[: TICK_CELLS - 1]


def _stem(rows: Sequence[Row]) -> tuple[int, int, int] | None:
    origin = next((number for number, row in enumerate(rows) if row.first), None)
    if origin is None:
        return None
    first = rows[origin].first
    assert first is not None
    reached = [number for number, row in enumerate(rows) if row.consequence and number != origin]
    if not reached:
        return None
    return first.column, min(origin, *reached), max(origin, *reached)
