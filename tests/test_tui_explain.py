"""The explain screen by keyboard: what each key does, what is shown, and that log text stays text."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Static

from logdoc.sources import source_from_bytes
from logdoc.tui.case import Stopped, Watch
from logdoc.tui.detail_tabs import DetailTabs, Rows
from logdoc.tui.explain_screen import Hypotheses
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.help_screen import HelpScreen, key_names
from logdoc.tui.log_pane import LogPane
from logdoc.tui.rules_screen import RulesScreen
from logdoc.types.errors import InputError, RuleProblem, RulesError
from logdoc.types.report import Report
from tests.reportkit import healthy, hostile, unrecognised
from tests.tuikit import LOG_NAME, OOM_LINE, OTHER_NAME, TEXTS, FixedCase, app_of, explained, press, report, settled

SIZE = (80, 24)


def shown(pilot: Pilot[None], selector: str) -> str:
    """The plain text of a part of the screen, before it was folded."""
    widget = pilot.app.screen.query_one(selector, Static)
    return widget.said.plain if isinstance(widget, Prose) else str(widget.content)


def rows(pilot: Pilot[None], selector: str) -> list[str]:
    """The plain texts of a list, before they were folded."""
    return [text.plain for text in pilot.app.screen.query_one(selector, PickList).texts]


def log(pilot: Pilot[None]) -> LogPane:
    return pilot.app.screen.query_one(LogPane)


def drawn(pilot: Pilot[None]) -> str:
    """The log pane as it is on the screen."""
    pane = log(pilot)
    return "\n".join(pane.render_line(y).text for y in range(pane.size.height))


async def test_it_opens_on_the_best_hypothesis_at_its_evidence(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert TEXTS["en"]["headline"] in shown(pilot, "#headline")
        listed = rows(pilot, "#hypotheses")
        assert [row.split()[0] for row in listed] == ["✗", "?", "-"]
        assert "0.94 likely rank 3" in listed[0]
        assert "0.31 possible" in listed[1]
        assert "refuted" in listed[2]
        assert TEXTS["en"]["summary"] in shown(pilot, "#why-text")
        assert log(pilot).cursor == OOM_LINE
        assert f"✗›  {OOM_LINE} [rank3]: torch.OutOfMemoryError" in drawn(pilot)


async def test_another_hypothesis_shows_its_own_tabs_and_evidence_in_another_log(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "end")
        assert TEXTS["en"]["refuted"] in shown(pilot, "#why-text")
        assert "No fix is known" in rows(pilot, "#fix-rows")[0]
        log_file = log(pilot).log_file
        assert log_file is not None
        assert (log_file.name, log(pilot).cursor) == (OTHER_NAME, 2)


async def test_numbers_open_the_tabs_and_give_them_the_keys(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        for number, tab in enumerate(("why", "fix", "evidence", "probes", "timeline", "job"), start=1):
            await press(pilot, str(number))
            assert pilot.app.screen.query_one(DetailTabs).active == tab
            focused = pilot.app.focused
            assert focused is not None
            assert pilot.app.screen.query_one(f"#{tab}") in focused.ancestors


async def test_the_job_tab_tells_what_belongs_to_no_hypothesis(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        told = shown(pilot, "#job-text")
        for part in (
            "NCCL_ALGO=simple: no algorithm → NCCL_PROTO=Simple",
            "breaks the job",
            "not readable",
            "A100",
            "2.20.5",
        ):
            assert part in told


async def test_enter_on_a_row_of_evidence_goes_to_its_line(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "3", "down", "enter")
        assert log(pilot).cursor == 8


async def test_e_and_n_step_through_the_evidence_and_come_round(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        seen = []
        for key in ("e", "n", "N"):
            await press(pilot, key)
            seen.append(log(pilot).cursor)
        assert seen == [8, OOM_LINE, 8]


async def test_search_as_you_type_then_next_and_previous(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"shard")
        assert log(pilot).cursor == 12
        await press(pilot, "space", "2")
        assert log(pilot).cursor == 13
        await press(pilot, "enter", "n")
        assert log(pilot).cursor == 31
        await press(pilot, "N")
        assert log(pilot).cursor == 13
        await press(pilot, "N")  # round, from the first to the last
        assert log(pilot).cursor == 40
        await press(pilot, "escape")
        assert explained(pilot.app).log_panel.query_text == ""


async def test_a_search_that_is_given_up_goes_back_to_where_it_began(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"shard")
        assert log(pilot).cursor == 12
        await press(pilot, "escape")
        assert log(pilot).cursor == OOM_LINE
        await press(pilot, "slash", *"nowhere")
        assert "not in this log" in str(explained(pilot.app).log_panel.border_subtitle)
        assert log(pilot).cursor == OOM_LINE


async def test_every_letter_can_be_searched_for(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", "slash", *"qlptcn?", "left_square_bracket")
        assert explained(pilot.app).log_panel.prompt.value == "/qlptcn?["


async def test_goto_a_line(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "g", *"40", "enter")
        assert log(pilot).cursor == 40
        assert "shard 29" in drawn(pilot)
        await press(pilot, "g", *"9999", "enter")
        assert log(pilot).cursor == 41
        await press(pilot, "g", *"1,000", "enter", "g", *"x", "enter")
        assert log(pilot).cursor == 41
        assert [note.message for note in pilot.app._notifications] == ["Type a line number, 1 to 41"]
        assert explained(pilot.app).log_panel.prompt.display


async def test_brackets_turn_to_the_other_logs(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        names = []
        for key in ("right_square_bracket", "right_square_bracket", "left_square_bracket"):
            await press(pilot, key)
            log_file = log(pilot).log_file
            assert log_file is not None
            names.append(log_file.name)
        assert names == [OTHER_NAME, LOG_NAME, OTHER_NAME]


async def test_copying_asks_the_terminal_and_shows_the_text(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "c")
        assert pilot.app.clipboard == "torchrun train.py --micro-batch 1\ntorchrun train.py --accumulate 16"
        assert any(pilot.app.clipboard in note.message for note in pilot.app._notifications)
        await press(pilot, "2", "down", "down", "down", "c")
        assert pilot.app.clipboard == "torchrun train.py --accumulate 16"


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((), ".diagnoses[0]"),
        (("down",), ".diagnoses[1]"),
        (("2", "down", "down"), ".diagnoses[0].fixes[0].commands[0]"),
        (("3", "down"), ".diagnoses[0].evidence[1]"),
        (("5",), ".timeline[0]"),
        (("5", "up"), ".timeline[3]"),
        (("6",), "."),
    ],
)
async def test_y_copies_the_place_in_the_json(tmp_path: Path, keys: tuple[str, ...], path: str) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, *keys, "y")
        assert pilot.app.clipboard == path


async def test_probes_run_when_asked_and_their_word_is_shown(tmp_path: Path) -> None:
    case = FixedCase()
    async with app_of(case, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert case.asked == ["report en"]
        assert "press p" in rows(pilot, "#probes-rows")[0]
        await press(pilot, "p")
        assert case.asked == ["report en", "probe en"]
        row = rows(pilot, "#probes-rows")[0]
        assert row.startswith("✓ gpu-memory: confirms it")
        assert "node-b, where it failed" in row
        assert "0.94 confirmed" in rows(pilot, "#hypotheses")[0]


async def test_probes_can_be_stopped(tmp_path: Path) -> None:
    started, ended = threading.Event(), threading.Event()

    class Slow(FixedCase):
        def probe(self, language: str, watch: Watch) -> Report:
            started.set()
            while not watch.stopped():
                threading.Event().wait(0.01)
            ended.set()
            raise Stopped

    async with app_of(Slow(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("p")
        assert started.wait(5)
        assert explained(pilot.app).busy == "probing"
        await pilot.press("p")
        await settled(pilot)
        assert ended.is_set()
        assert explained(pilot.app).busy == ""
        assert "likely" in rows(pilot, "#hypotheses")[0]


async def test_the_language_changes_while_it_is_shown(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "2", "down", "down", "l")
        assert TEXTS["zh"]["headline"] in shown(pilot, "#headline")
        assert TEXTS["zh"]["fix"] in rows(pilot, "#fix-rows")[0]
        assert pilot.app.screen.query_one("#fix-rows", Rows).highlighted == 2  # the cursor stays
        words = {active.binding.description for active in pilot.app.screen.active_bindings.values()}
        assert {"搜索", "退出"} <= words
        await press(pilot, "l")
        assert TEXTS["en"]["headline"] in shown(pilot, "#headline")


async def test_help_lists_every_key_of_the_screen(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        screen = explained(pilot.app)
        bound = {binding.key for binding in screen._bindings.shown_keys} | {"/", "e", "g"}
        listed = " ".join(key_names(binding.key) for group in screen.key_groups() for binding in group.bindings).split()
        assert {key_names(key) for key in bound} <= set(listed)
        assert {"Ctrl+p", "q", "PgDn", "G", "1", "6", "["} <= set(listed)
        for group in screen.key_groups():
            assert group.place
            assert all(binding.tooltip for binding in group.bindings)
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        await press(pilot, "escape")
        assert pilot.app.screen is screen


async def test_the_palette_finds_logs_tabs_and_hypotheses(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "ctrl+p", *"dmesg")
        assert isinstance(pilot.app.screen, CommandPalette)
        await pilot.pause(0.5)
        await press(pilot, "down", "enter")
        log_file = log(pilot).log_file
        assert log_file is not None
        assert log_file.name == OTHER_NAME


async def test_t_offers_the_themes(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "t", *"nord")
        await pilot.pause(0.5)
        await press(pilot, "down", "enter")
        assert pilot.app.theme == "nord"


async def test_zoom_gives_the_screen_to_one_part_and_back(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "0", "z")
        assert log(pilot).size.height > 18
        await press(pilot, "escape")
        assert log(pilot).size.height < 10
        assert pilot.app.screen.maximized is None


async def test_capital_r_shows_the_rule_and_escape_comes_back(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "R")
        assert isinstance(pilot.app.screen, RulesScreen)
        assert pilot.app.screen.shown == "memory.test-oom"
        await press(pilot, "escape")
        assert explained(pilot.app)


async def test_the_zoom_goes_where_the_keys_go(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        screen = explained(pilot.app)
        await press(pilot, "z", "down")
        assert screen.maximized is screen.query_one(Hypotheses)
        for keys, part in (("3", screen.tabs), ("e", screen.log_panel), ("2", screen.tabs), ("/", screen.log_panel)):
            await press(pilot, *keys)
            assert screen.maximized is not None
            assert part in screen.maximized.ancestors_with_self
        await press(pilot, "enter", "3", "down", "enter")
        assert screen.maximized is screen.log_panel
        assert "›  8 " in drawn(pilot)


async def test_a_job_without_lines_gives_its_room_away(tmp_path: Path) -> None:
    dump = replace(source_from_bytes("nccl_trace_rank_0", b"\x80"), kind="flight-recorder")
    async with app_of(FixedCase(sources=(dump,)), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert list(pilot.app._notifications) == []
        assert explained(pilot.app).log_panel.region.height == 2
        for key in ("slash", "g", "0"):
            await press(pilot, key)
            assert [note.message for note in pilot.app._notifications] == ["No log with lines to show"]
            assert pilot.app.focused is pilot.app.screen.query_one(Hypotheses)
        await press(pilot, "e")
        assert [LOG_NAME in note.message for note in pilot.app._notifications] == [True]


async def test_the_timeline_leads_to_the_log(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "5", "up", "up", "enter")
        assert log(pilot).cursor == 10
        assert "rank 1 · collective.test-timeout" in shown(pilot, "#pointed")


@pytest.mark.parametrize("made", [healthy, unrecognised])
async def test_a_log_without_diagnosis_has_a_screen_too(tmp_path: Path, made: object) -> None:
    assert callable(made)
    case = FixedCase(made=lambda language, probed: made(language))
    async with app_of(case, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert rows(pilot, "#hypotheses")[0].split()[0] in "✓?"
        await press(pilot, *"123456", "e", "n", "c", "y", "R", "r", "p", "l")
        assert made("en").headline in shown(pilot, "#headline")


async def test_the_first_abnormal_line_is_evidence(tmp_path: Path) -> None:
    odd = replace(unrecognised(), first_abnormal=replace(unrecognised().first_abnormal, source=LOG_NAME, line=9))  # type: ignore[type-var]
    async with app_of(FixedCase(made=lambda language, probed: odd), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert log(pilot).cursor == 9
        assert "?›  9 " in drawn(pilot)


async def test_log_text_is_never_markup(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "g", "9", "enter")
        assert "[rank0]: watchdog: [/not a tag] collective timed out [bold]600 s[/]" in drawn(pilot)


async def test_the_worst_report_is_shown_and_every_key_works(tmp_path: Path) -> None:
    case = FixedCase(made=lambda language, probed: hostile("en"))
    async with app_of(case, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, *"123456", "end", "c", "y", "e", "n", "5", "end", "enter", "escape", "down", "question_mark")
        assert len(explained_below(pilot).query_one(Hypotheses).options) == 200


def explained_below(pilot: Pilot[None]) -> RulesScreen | HelpScreen:
    return pilot.app.screen_stack[1]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (InputError("x.log: [/gone] no such file"), "x.log: [/gone] no such file"),
        (OverflowError("[/x] too large"), "OverflowError: [/x] too large"),
    ],
)
async def test_what_goes_wrong_is_said_in_one_line(tmp_path: Path, fault: Exception, said: str) -> None:
    class Unreadable(FixedCase):
        def report(self, language: str, watch: Watch) -> Report:
            raise fault

    async with app_of(Unreadable(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert [note.message for note in pilot.app._notifications] == [said]
        await press(pilot, "c", "y", "e", "p", "R")


async def test_invalid_rules_end_the_ui_with_their_exit_code(tmp_path: Path) -> None:
    class Invalid(FixedCase):
        def report(self, language: str, watch: Watch) -> Report:
            raise RulesError([RuleProblem("a.yaml", 1, 2, "no such key [/x]")])

    app = app_of(Invalid(), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
    assert app.return_code == 3


async def test_a_click_moves_the_cursor(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.click(LogPane, offset=(10, 2))
        await settled(pilot)
        assert log(pilot).cursor == 3


async def test_leaving_stops_the_threads(tmp_path: Path) -> None:
    stopped = threading.Event()

    class Endless(FixedCase):
        def report(self, language: str, watch: Watch) -> Report:
            while not watch.stopped():
                threading.Event().wait(0.01)
            stopped.set()
            raise Stopped

    async with app_of(Endless(), tmp_path).run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("q")
    assert stopped.wait(5)


def test_the_report_fixture_is_the_same_in_both_languages() -> None:
    assert [one.rule for one in report("en").diagnoses] == [one.rule for one in report("zh").diagnoses]
