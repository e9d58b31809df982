"""The timeline as rank × time: where the signs stand, which is first, and what the cascade reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdoc.tui.timeline_grid import Grid, grid
from logdoc.types.report import Ranks, TimelineEntry
from tests import reportkit
from tests.tuikit import report


def columns(drawn: Grid) -> dict[int | None, list[int]]:
    return {row.rank: [event.column for event in row.events] for row in drawn.rows}


def test_ranks_are_rows_and_moments_columns_in_order() -> None:
    drawn = grid(report(), 60)
    assert columns(drawn) == {0: [6], 1: [12], 2: [18], 3: [0]}
    assert [row.state for row in drawn.rows] == ["waiting", "waiting", "killed", "failed"]
    assert drawn.ticks == ((0, "09:41:49"), (12, "09:41:51"))
    assert drawn.columns == 19


def test_the_first_failure_is_marked_and_the_cascade_reaches_what_it_explains() -> None:
    drawn = grid(report(), 60)
    assert [row.rank for row in drawn.rows if row.first] == [3]
    assert [row.rank for row in drawn.rows if row.consequence] == [0, 1, 2]
    assert drawn.stem == (0, 0, 3)


def test_nothing_is_said_to_follow_from_what_does_not_explain_it() -> None:
    given = report()
    own = replace(given.diagnoses[0], explains=())
    drawn = grid(replace(given, diagnoses=(own, *given.diagnoses[1:])), 60)
    assert drawn.stem is None
    assert not any(row.consequence for row in drawn.rows)


def test_a_symptom_is_no_first_failure() -> None:
    given = report()
    own = replace(given.diagnoses[0], kind="symptom")
    drawn = grid(replace(given, diagnoses=(own,)), 60)
    assert not any(row.first for row in drawn.rows)


def test_events_of_the_same_moment_share_a_column() -> None:
    given = report()
    entries = [replace(entry, time="2024-11-05 09:50:00") for entry in given.timeline[1:]]
    drawn = grid(replace(given, timeline=(given.timeline[0], *entries)), 60)
    assert columns(drawn) == {0: [6], 1: [6], 2: [6], 3: [0]}


def test_without_clocks_the_order_of_the_log_is_kept() -> None:
    given = report()
    drawn = grid(replace(given, timeline=tuple(replace(entry, time=None) for entry in given.timeline)), 60)
    assert columns(drawn) == {0: [6], 1: [12], 2: [18], 3: [0]}
    assert drawn.ticks == ()


@pytest.mark.parametrize("width", [9, 30, 80, 200])
def test_any_number_of_moments_fits_any_width_with_room_for_the_cascade(width: int) -> None:
    given = reportkit.report(world=200)
    entries = (
        given.timeline[0],
        *(replace(entry, time=str(number)) for number, entry in enumerate(given.timeline[1:])),
    )
    drawn = grid(replace(given, timeline=entries), width)
    first = next(row.first.column for row in drawn.rows if row.first)
    later = [event.column for row in drawn.rows for event in row.events if not event.first]
    assert drawn.columns <= width
    assert min(later) > first + (1 if width < 200 else 0)


def test_ranks_without_events_and_events_without_rank_have_rows() -> None:
    given = report()
    kernel = TimelineEntry(time=None, rank=None, rule="gpu.test-bus", kind="cause", line=2, source="dmesg")
    ranks = replace(given.ranks, silent=(4, 5))
    drawn = grid(replace(given, ranks=ranks, timeline=(*given.timeline, kernel)), 60)
    assert [row.rank for row in drawn.rows] == [None, 0, 1, 2, 3, 4, 5]
    assert [row.state for row in drawn.rows[-2:]] == ["silent", "silent"]


def test_no_timeline_no_columns() -> None:
    ranks = Ranks(world_size=None, seen=0, first_failure=None, silent=(), table=())
    drawn = grid(replace(report(), diagnoses=(), timeline=(), ranks=ranks), 60)
    assert (drawn.rows, drawn.columns, drawn.ticks, drawn.stem) == ((), 0, (), None)
