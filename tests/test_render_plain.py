"""What all surfaces share: text made harmless, cuts between signs, budgets, the words of both languages, the grid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdoc.render import FORMATS, format_of, parts, rendered
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut, cut_bytes, one_line, visible
from logdoc.render.timeline import MOST_COLUMNS, MOST_ROWS, timeline_grid
from logdoc.types.errors import InputError
from logdoc.types.report import RankRow, Ranks, TimelineEntry
from tests.reportkit import Language, diagnosis, fix, healthy, hostile, rank_row, report, unrecognised

FAMILY = "👩‍👩‍👧‍👦"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31;1mred\x1b[0m \x1b]0;title\x07x \x1b]8;;http://e\x1b\\link", "red x link"),
        ("a\r\nb\rc\td", "a\nb\nc    d"),
        ("\u202eabc\u2066 \u2028 \u200b \ufeff \x00 \x9b", "\\u202eabc\\u2066 \\u2028 \\u200b \\ufeff \\x00 \\x9b"),
        ("\ud800 \ufffe \U000e0041", "\\ud800 \\ufffe \\U000e0041"),
        (f"{FAMILY} 显存 e\u0301 שלום", f"{FAMILY} 显存 e\u0301 שלום"),
        ("\x1b", ""),
    ],
)
def test_unseen_characters_are_spelt_out_and_terminal_sequences_gone(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@given(st.text(alphabet=st.characters(), max_size=80), st.integers(1, 60))
def test_a_cut_fits_and_never_splits_a_character(text: str, most: int) -> None:
    shown = visible(text)
    shown.encode()
    assert len(cut(shown, most)) <= max(most, 1)
    assert len(cut_bytes(shown, most + 3).encode()) <= most + 3
    for made in (cut(shown, most), cut_bytes(shown, most + 3)):
        assert made == shown or (made.endswith("…") and shown.startswith(made[:-1]))


def test_a_cut_keeps_the_parts_of_one_sign_together() -> None:
    assert cut(f"ab{FAMILY}cd", 6) == "ab…"
    assert cut("xe\u0301y", 3) == "x…"
    assert cut_bytes(f"ab{FAMILY}", 16) == "ab…"
    assert cut("👍🏽👍🏽", 2) == "…"


def test_the_needed_pieces_stay_and_keep_their_order() -> None:
    pieces = [Piece("evidence", 5, Need.EVIDENCE), Piece("fix", 5, Need.FIX, count=2), Piece("head", 5, Need.HEADLINE)]
    assert [piece.content for piece in fitting(pieces, 15)[0]] == ["evidence", "fix", "head"]
    assert [piece.content for piece in fitting(pieces, 11)[0]] == ["fix", "head"]
    assert fitting(pieces, 11)[1] == 1
    assert [piece.content for piece in fitting(pieces, 15, most=3)[0]] == ["fix", "head"]
    assert fitting(pieces, 4) == ([], 3)


def test_fixes_that_differ_only_in_the_environment_are_one_remedy() -> None:
    fixes = (
        fix(applies="pip", commands=("pip x",)),
        fix(applies="conda", commands=("conda x", "y")),
        fix("Other", risk="slower"),
    )
    first, other = parts.remedies(diagnosis(fixes=fixes), "en")
    assert list(parts.command_lines(first, 1000, "en")) == ["# pip", "pip x", "# conda", "conda x", "y"]
    assert other.heading == "Other [slower]"


def test_a_command_is_shown_whole_or_named() -> None:
    remedy = next(parts.remedies(diagnosis(fixes=(fix(commands=("first", "x" * 500, "last")),)), "en"))
    lines = list(parts.command_lines(remedy, 100, "en"))
    assert lines[0] == "first"
    assert lines[1].startswith("# a command of 500 characters")
    assert len(lines) == 2


def test_4096_ranks_are_a_few_groups() -> None:
    groups = parts.rank_groups(report(world=4096))
    assert groups[0].ranks == (3,)
    assert (groups[0].state, groups[0].first_error) == ("failed", "logs/rank_3.log:13")
    assert len(groups) == 2
    assert parts.ranks(groups[1].ranks) == "0-2, 4-4095"
    assert parts.ranks(range(0, 100, 2)).endswith("22, …")
    assert len(parts.rank_groups(report(world=8))) == 8


def test_the_grid_marks_the_first_failure_and_what_it_explains() -> None:
    grid = timeline_grid(report())
    assert (len(grid.rows), grid.clock, grid.hidden) == (8, True, 0)
    first = [(row.ranks, column) for row in grid.rows for column, mark in row.marks if mark.first]
    assert first == [((3,), 0)]
    assert all(mark.caused for row in grid.rows if row.ranks != (3,) for _, mark in row.marks)
    assert list(grid.columns)[:2] == ["12:00:01", "12:10:00"]


def test_the_grid_of_many_ranks_and_moments_stays_small_and_keeps_the_first_failure() -> None:
    grid = timeline_grid(report(world=4096))
    assert len(grid.columns) <= MOST_COLUMNS
    assert len(grid.rows) <= MOST_ROWS
    assert [mark.first for _, mark in grid.rows[0].marks] == [True]
    assert sum(len(row.ranks) for row in grid.rows) == 4096


def test_the_grid_without_clocks_and_without_ranks_shows_the_order() -> None:
    entries = tuple(
        TimelineEntry(time=None, rank=None, rule=f"a.b{line}", kind="symptom", line=line, source="x")
        for line in range(3)
    )
    bare = report(
        timeline=entries, ranks=Ranks(world_size=None, seen=0, first_failure=None, silent=(), table=()), diagnoses=()
    )
    grid = timeline_grid(bare)
    assert (grid.columns, grid.clock) == (("#1", "#2", "#3"), False)
    assert [row.ranks for row in grid.rows] == [()]
    assert timeline_grid(healthy()).rows == ()


def test_two_things_in_one_cell_are_counted_and_the_first_failure_shows() -> None:
    at = "2024-05-01 12:00:01"
    symptom = TimelineEntry(time=at, rank=3, rule="collective.test-peer-gone", kind="symptom", line=1, source="x")
    cause = TimelineEntry(time=at, rank=3, rule="memory.test-oom", kind="cause", line=2, source="x")
    (row,) = timeline_grid(
        report(
            world=1,
            timeline=(symptom, cause),
            ranks=Ranks(world_size=1, seen=1, first_failure=3, silent=(), table=(rank_row(3, "failed"),)),
        )
    ).rows
    assert [(mark.first, mark.more, mark.entry.line) for _, mark in row.marks] == [(True, 1, 2)]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", [form.name for form in FORMATS])
def test_every_format_shows_every_kind_of_report_in_both_languages(form: str, language: Language) -> None:
    for found in (report(language), healthy(language), unrecognised(language)):
        text = rendered(found, form, redacted=False)
        assert text.endswith("\n")
        text.encode()
    said = {"en": "Do this", "zh": "这样做"}
    if form not in ("json", "jsonl"):
        assert said[language] in rendered(report(language), form)
        assert said["zh" if language == "en" else "en"] not in rendered(report(language), form)


def test_formats_for_others_are_redacted_by_default() -> None:
    assert {form.name for form in FORMATS if form.redacted} == {"markdown", "slack", "teams", "html"}
    for form in FORMATS:
        assert ("node-b" in rendered(report(), form.name)) is not form.redacted
        assert "node-b" not in rendered(report(), form.name, redacted=True)
        assert "node-b" in rendered(report(), form.name, redacted=False)
    with pytest.raises(InputError, match="pdf is not a format; there are: text, json"):
        format_of("pdf")


@pytest.mark.parametrize("form", ["text", "markdown", "slack", "teams", "html", "termination"])
def test_no_unseen_character_of_a_log_reaches_a_reader(form: str) -> None:
    text = rendered(hostile(diagnoses=20, world=64), form, redacted=False)
    allowed = {"\n", "\u200b"} if form == "slack" else {"\n"}
    assert visible("".join(set(text) - allowed)) == "".join(set(text) - allowed)


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n  b\r\n\u2028c ") == "a b \\u2028c"
    row: RankRow = rank_row(1)
    assert row.rank == 1
