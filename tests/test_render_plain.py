"""What all surfaces share: text made harmless, cuts between signs, budgets, the words of both languages, the grid."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdoc.flight_recorder.model import Kind
from logdoc.kept.sentences import sentences
from logdoc.render import FORMATS, format_of, parts, rendered
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut, cut_bytes, one_line, visible
from logdoc.render.text import TextOptions, render_text
from logdoc.render.timeline import MOST_COLUMNS, MOST_ROWS, timeline_grid
from logdoc.types.errors import InputError
from logdoc.types.report import (
    Abnormal,
    FlightRecorder,
    ProbeLine,
    RankRow,
    Ranks,
    RecordedPlace,
    Report,
    Restart,
    TimelineEntry,
)
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


ENGLISH = {text.en for key, text in sentences("phrases.yaml").items() if key.startswith("word.")} | {
    "fix-first", "replace-node", "changes-results", "needs-admin", "first_error", "cannot-tell",
}  # fmt: skip


def in_every_state() -> Report:
    """A Chinese report in which every word of logdoc's own stands: states, risks, outcomes, advice, roles."""
    roles: tuple[Literal["culprit", "suspect", "waiting"], ...] = ("culprit", "suspect", "waiting")
    places = [
        RecordedPlace(rank=rank, role=role, group="tp", operation="ALLREDUCE", frame=None)
        for rank, role in enumerate(roles)
    ]
    recorded = FlightRecorder(
        source="a", kind="lagging", culprits=(0,), suspects=(1,), without_dump=(), places=tuple(places)
    )
    probes = [
        ProbeLine(id="p", outcome=outcome, summary="1", host="h", same_host=True, ran="x")
        for outcome in ("confirms", "refutes", "unknown")
    ]
    fixes = [fix("甲", why=None, risk=risk) for risk in ("safe", "slower", "changes-results", "needs-admin")]
    found = [
        diagnosis(
            rule=f"a.{status}", title="甲", summary="乙", status=status, probes=probes, fixes=fixes, attempts=(0, 1)
        )
        for status in ("confirmed", "likely", "possible", "refuted")
    ]
    states = ("failed", "killed", "waiting", "silent", "finished", "unknown")
    table = tuple(rank_row(rank, state) for rank, state in enumerate(states))
    return report(
        "zh",
        headline="甲",
        diagnoses=tuple(found),
        ranks=Ranks(world_size=6, seen=6, first_failure=0, silent=(3,), table=table),
        environment=(),
        restart=Restart(advice="fix-first", reason="丙"),
        warnings=("丁",),
        flight_recorder=(recorded,),
    )


@pytest.mark.parametrize("form", sorted({form.name for form in FORMATS} - {"json", "jsonl"}))
def test_a_chinese_report_says_no_word_of_its_own_in_english(form: str) -> None:
    told = [rendered(in_every_state(), form, redacted=False)]
    if form == "text":
        told = [render_text(in_every_state(), TextOptions(long=long, why=long)) for long in (False, True)]
    for text in told:
        readable = re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
        assert [word for word in ENGLISH if re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", readable)] == []


def test_what_broke_several_attempts_is_said_on_every_surface() -> None:
    recurring = report(diagnoses=(diagnosis(attempts=(0, 1, 2)),))
    for form in {form.name for form in FORMATS} - {"json", "jsonl"}:
        assert "It broke 3 attempts of this job in the same way." in re.sub(
            r"\s+|\\(?=[.,])", " ", rendered(recurring, form, redacted=False)
        )


def test_what_no_good_run_said_is_told_on_every_surface() -> None:
    new = Abnormal(source="logs/a.log", line=9, rank=None, text="flux capacitor at 12 degrees")
    for form in {form.name for form in FORMATS} - {"json", "jsonl"}:
        text = rendered(replace(unrecognised(), novel=(new,)), form, redacted=False)
        assert "flux capacitor at 12 degrees" in text, form


def test_every_kind_of_recorded_trouble_has_its_words() -> None:
    assert {f"recorded.{kind}" for kind in get_args(Kind)} <= set(sentences("phrases.yaml"))


@pytest.mark.parametrize(
    ("line", "is_code"),
    [
        ("from torch.distributed.elastic.multiprocessing.errors import record   # then @record", True),
        ("DataLoader(..., num_workers=0)", True),
        ("with Join([model]): ...", True),
        ("@record", True),
        ("x = x.contiguous()", True),
        ("if int(os.environ['RANK']) == 0: prepare()", True),
        ("nvidia-smi   # then look(at) = it", False),
        ("export NCCL_PROTO=Simple", False),
        ("NCCL_DEBUG=INFO torchrun ...", False),
        ("ulimit -l unlimited", False),
        ("python -c 'import torch; print(torch.__version__)'", False),
        ("kill $(pgrep -f train.py)", False),
        ("--overwrite_output_dir", False),
        ("#SBATCH --mem=0", False),
        ("f(" * 200, False),
        ("f(\ud800)\x00", False),
    ],
)
def test_a_line_for_the_script_is_told_from_a_command(line: str, is_code: bool) -> None:
    assert parts.is_python(line) is is_code


@pytest.mark.parametrize("language", ["en", "zh"])
def test_lines_for_the_script_are_marked(language: Language) -> None:
    typed = ("first --now", "DataLoader(ds, num_workers=0)", "x = 1", "last --now")
    shown = report(language, diagnoses=(diagnosis(fixes=(fix(commands=typed),)),))
    label = {"en": ("in the script:", "in the shell:"), "zh": ("写在脚本里：", "在终端执行：")}[language]
    lines = [line.strip() for line in render_text(shown).splitlines()]
    start = lines.index("first --now")
    assert lines[start : start + 6] == ["first --now", label[0], typed[1], typed[2], label[1], "last --now"]
    blocks = re.findall(r"```(sh|python)\n(.*?)\n```", rendered(shown, "markdown"), re.DOTALL)
    assert blocks[:3] == [("sh", "first --now"), ("python", f"{typed[1]}\n{typed[2]}"), ("sh", "last --now")]
    for form in ("html", "slack", "teams", "termination"):
        assert f"# {label[0][:-1]}" in rendered(shown, form)
