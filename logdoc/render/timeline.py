"""The report's timeline as a grid of ranks and moments, equal ranks joined, for pages to draw. Draws nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logdoc.kept.patterns import lazily
from logdoc.render.plain import one_line
from logdoc.types.report import Report, TimelineEntry
from logdoc.types.value import dataclass

MOST_COLUMNS = 30
MOST_ROWS = 60
MOST_ROWS_EACH = 32  # up to here every rank has its own row
_TIME_OF_DAY = lazily(r"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened to the ranks of a row at a moment: the first entry there. `more` counts further ones.

    `first`: this is the first failure; `caused`: the first failure accounts for it.
    """

    entry: TimelineEntry
    first: bool
    caused: bool
    more: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Ranks with the same marks and the same state; no ranks: what no rank printed."""

    ranks: tuple[int, ...]
    state: str
    marks: tuple[tuple[int, Mark], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """`columns` are the moments, as the clock shows them or by number; `clock` says which. `hidden`: rows left out."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    clock: bool
    hidden: int


def timeline_grid(report: Report) -> Grid:
    """Columns in the order things happened; the row of the first failure is always there."""
    moments = _moments(report.timeline)
    columns = _labels(report.timeline, moments)
    cells: dict[int | None, dict[int, Mark]] = {row.rank: {} for row in report.ranks.table}
    first = first_failure(report)
    explains = report.diagnoses[0].explains if first is not None else ()
    for number, (entry, column) in enumerate(zip(report.timeline, moments, strict=True)):
        here = cells.setdefault(entry.rank, {})
        mark = Mark(entry, first=number == first, caused=number != first and entry.rule in explains)
        here[column] = _joined(here[column], mark) if column in here else mark
    states: dict[int | None, str] = {row.rank: row.state for row in report.ranks.table}
    each = len(cells) <= MOST_ROWS_EACH
    rows = _rows(cells, states, each)
    clock = any(_TIME_OF_DAY.search(entry.time or "") for entry in report.timeline)
    return Grid(columns, tuple(rows[:MOST_ROWS]), clock, max(len(rows) - MOST_ROWS, 0))


def _moments(entries: Sequence[TimelineEntry]) -> list[int]:
    """For each entry its column: one a moment, several moments in one where there are too many."""
    moments: list[int] = []
    for number, entry in enumerate(entries):
        same = number > 0 and entry.time is not None and entry.time == entries[number - 1].time
        moments.append(moments[-1] + (not same) if moments else 0)
    count = moments[-1] + 1 if moments else 0
    return [moment * MOST_COLUMNS // count for moment in moments] if count > MOST_COLUMNS else moments


def _labels(entries: Sequence[TimelineEntry], moments: Sequence[int]) -> tuple[str, ...]:
    labels: dict[int, str] = {}
    for entry, moment in zip(entries, moments, strict=True):
        found = _TIME_OF_DAY.search(entry.time or "")
        labels.setdefault(moment, found[0] if found else one_line(entry.time or "")[:10] or f"#{moment + 1}")
    return tuple(labels[moment] for moment in sorted(labels))


def first_failure(report: Report) -> int | None:
    """The entry of the best cause, on the rank that failed first where the log names it."""
    if not report.diagnoses or report.diagnoses[0].kind != "cause":
        return None
    best = report.diagnoses[0]
    own = [number for number, entry in enumerate(report.timeline) if entry.rule == best.rule]
    there = [number for number in own if report.timeline[number].rank == report.ranks.first_failure]
    return next(iter(there or own), None)


def _joined(one: Mark, other: Mark) -> Mark:
    """Two things in one cell: the first failure shows, else the earlier."""
    shown = other if other.first else one
    return Mark(shown.entry, shown.first, one.caused or other.caused, one.more + other.more + 1)


def _rows(cells: dict[int | None, dict[int, Mark]], states: dict[int | None, str], each: bool) -> list[Row]:
    """A row for each rank, or for all ranks that look alike: then the first failure on top, and who failed earlier."""
    groups: dict[tuple[object, ...], list[int | None]] = {}
    for rank, marks in cells.items():
        shape = tuple((column, mark.entry.rule, mark.first, mark.more) for column, mark in sorted(marks.items()))
        key = (rank,) if each or rank is None else (states.get(rank), shape)
        groups.setdefault(key, []).append(rank)
    rows = [_row(ranks, cells, states) for ranks in groups.values()]
    if each:
        return sorted(rows, key=lambda row: row.ranks)
    return sorted(rows, key=lambda row: (not _has_first(row.marks), _earliest(row.marks), row.ranks))


def _row(ranks: Sequence[int | None], cells: dict[int | None, dict[int, Mark]], states: dict[int | None, str]) -> Row:
    named = tuple(sorted(rank for rank in ranks if rank is not None))
    return Row(named, states.get(ranks[0], "unknown"), tuple(sorted(cells[ranks[0]].items(), key=lambda cell: cell[0])))


def _earliest(marks: Sequence[tuple[int, Mark]]) -> int:
    return marks[0][0] if marks else MOST_COLUMNS


def _has_first(marks: Iterable[tuple[int, Mark]]) -> bool:
    return any(mark.first for _, mark in marks)
