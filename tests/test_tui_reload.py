"""A log that goes on being written: what has become of it is seen, and one key reads and explains it anew."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from textual.content import Content
from textual.pilot import Pilot

from logdoc.engine import Engine
from logdoc.sources import discover, source_from_bytes
from logdoc.tui.case import LogCase, Watch
from logdoc.tui.freshness import Change, Freshness
from logdoc.tui.log_pane import LogPane
from logdoc.types.errors import InputError, LogdocError
from logdoc.types.report import Report
from tests.reportkit import healthy
from tests.tuikit import FixedCase, app_of, explained, press, report, settled, small_rules

SIZE = (80, 24)
OOM = "[rank3]: RuntimeError: CUDA out of memory [/not a tag]\n"


def opened(root: Path, *arguments: str) -> LogCase:
    """A case of what the arguments name, that knows two small rules."""
    engine = Engine(small_rules(root / "rules"))
    found = discover(arguments)
    return LogCase(lambda: engine, found.sources, arguments=arguments, warnings=found.warnings)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def later(path: Path) -> None:
    """Give the file a later time, whatever the clock of the file system is like."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run" / "attempt_0"
    made.mkdir(parents=True)
    (made / "0.log").write_text("[rank0]: step 1\n[rank0]: step 2\n")
    return tmp_path / "run"


def fresh(folder: Path) -> Freshness:
    return Freshness(discover([str(folder)]).sources, [str(folder)])


def test_what_became_of_the_files_is_told_apart(folder: Path) -> None:
    log = folder / "attempt_0" / "0.log"
    assert fresh(folder).change() == ""
    seen = fresh(folder)
    append(log, "more\n")
    assert seen.change() == "grown"
    assert fresh(folder).change() == ""
    for spoil in (lambda: log.write_text(""), lambda: later(log), log.unlink):
        seen = fresh(folder)
        spoil()
        assert seen.change() == "changed"
        log.write_text("again\n")


def test_a_new_log_is_seen_in_the_folder_and_in_a_new_one_below(folder: Path) -> None:
    seen = fresh(folder)
    (folder / "attempt_0" / "image.png").write_bytes(b"\x89PNG\0\0")
    later(folder / "attempt_0")
    assert seen.change() == ""  # no log
    below = folder / "attempt_1"
    below.mkdir()
    later(folder)
    assert seen.change() == ""
    (below / "1.log").write_text("[rank1]: step 1\n")
    later(below)
    assert seen.change() == "new"
    assert seen.change() == "new"  # until it is read
    assert fresh(folder).change() == ""


def test_a_new_log_that_a_pattern_takes_is_seen(folder: Path) -> None:
    pattern = str(folder / "attempt_0" / "*.log")
    seen = Freshness(discover([pattern]).sources, [pattern])
    (folder / "attempt_0" / "1.log").write_text("[rank1]: step 1\n")
    later(folder / "attempt_0")
    assert seen.change() == "new"


def test_a_quiet_folder_is_not_searched_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = fresh(folder)
    monkeypatch.setattr("logdoc.tui.freshness.discover", lambda arguments: pytest.fail("searched"))
    append(folder / "attempt_0" / "0.log", "more\n")
    assert seen.change() == "grown"


def test_rereading_explains_what_came_since_new_files_too(tmp_path: Path, folder: Path) -> None:
    case = opened(tmp_path, str(folder))
    assert case.report("en", Watch()).outcome == "healthy"
    assert case.change() == ""
    (folder / "attempt_0" / "1.log").write_text(OOM)
    later(folder / "attempt_0")
    assert case.change() == "new"
    assert case.report("en", Watch()).outcome == "healthy"  # not on its own
    assert [one.rule for one in case.reread("en", Watch()).diagnoses] == ["memory.test-oom"]
    assert [source.name.rpartition("/")[2] for source in case.sources] == ["0.log", "1.log"]
    assert case.report("zh", Watch()).diagnoses
    assert case.change() == ""


def test_without_what_was_typed_the_files_are_found_again(tmp_path: Path, folder: Path) -> None:
    log = folder / "attempt_0" / "0.log"
    case = replace(opened(tmp_path, str(log)), arguments=())
    case.report("en", Watch())
    append(log, OOM)
    assert case.change() == "grown"
    assert case.reread("en", Watch()).diagnoses


def test_when_nothing_is_left_all_stays_as_it_was(tmp_path: Path, folder: Path) -> None:
    case = opened(tmp_path, str(folder))
    before, sources = case.report("en", Watch()), case.sources
    (folder / "attempt_0" / "0.log").unlink()
    with pytest.raises(LogdocError):
        case.reread("en", Watch())
    assert case.report("en", Watch()) is before
    assert case.sources is sources


def test_what_was_piped_is_kept_and_the_files_beside_it_are_read_again(tmp_path: Path, folder: Path) -> None:
    log = folder / "attempt_0" / "0.log"
    case = opened(tmp_path, str(log))
    piped = source_from_bytes("<stdin>", b"[rank7]: step 1\n")
    case.sources, case.arguments = (piped, *case.sources), ("-", str(log))
    assert case.rereadable
    case.report("en", Watch())
    append(log, OOM)
    assert case.reread("en", Watch()).diagnoses
    assert [source.name for source in case.sources] == ["<stdin>", str(log)]
    assert not replace(case, sources=(piped,)).rereadable


def pane(pilot: Pilot[None]) -> LogPane:
    return pilot.app.screen.query_one(LogPane)


def drawn(pilot: Pilot[None]) -> str:
    return "\n".join(pane(pilot).render_line(y).text for y in range(pane(pilot).size.height))


def subtitle(pilot: Pilot[None]) -> str:
    return Content.from_markup(str(explained(pilot.app).log_panel.border_subtitle)).plain


async def test_r_reads_a_job_that_has_failed_meanwhile(tmp_path: Path, folder: Path) -> None:
    log = folder / "attempt_0" / "0.log"
    case = opened(tmp_path, str(log))
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert "grown" not in subtitle(pilot)
        append(log, "[rank0]: step 3\n" + OOM)
        explained(pilot.app)._look()
        await settled(pilot)
        assert "grown, r reads it again · line 1 of 2" in subtitle(pilot)
        assert "✓" in str(explained(pilot.app).query_one("#headline").render())
        await press(pilot, "r")
        assert "line 4 of 4" in subtitle(pilot)
        assert "grown" not in subtitle(pilot)
        assert "✗›  4 [rank3]: RuntimeError: CUDA out of memory [/not a tag]" in drawn(pilot)


async def test_r_keeps_the_hypothesis_its_row_and_the_line_that_is_looked_at(tmp_path: Path) -> None:
    case = FixedCase()
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "3", "down", "g", "3", "0", "enter", "up")
        top = pane(pilot).scroll_offset.y
        first, *others = report().diagnoses
        case.made = lambda language, probed: replace(report(language), diagnoses=(*others, first))
        await press(pilot, "r")
        screen = explained(pilot.app)
        assert case.asked == ["report en", "reread en"]
        assert screen.chosen == 2  # where the same rule stands now
        assert screen.tabs.copied().endswith("SIGTERM")
        assert (pane(pilot).cursor, pane(pilot).scroll_offset.y) == (29, top)


async def test_r_shows_the_best_hypothesis_when_the_chosen_one_is_gone(tmp_path: Path) -> None:
    case = FixedCase()
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "down")
        case.made = lambda language, probed: replace(report(language), diagnoses=report().diagnoses[:1])
        await press(pilot, "r")
        assert explained(pilot.app).chosen == 0
        case.made = lambda language, probed: healthy(language)
        await press(pilot, "r", "r", *"123456")
        assert explained(pilot.app).chosen is None


async def test_the_files_are_looked_at_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logdoc.tui.explain_screen.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("logdoc.tui.explain_screen.LOOK_SHARE", 0)
    case = FixedCase()
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        changes: tuple[tuple[Change, str], ...] = (
            ("new", "new files, r"),
            ("changed", "changed, r"),
            ("", "line 7 of"),
        )
        for change, said in changes:
            case.changed = change
            for _ in range(200):
                await pilot.pause(0.02)
                if subtitle(pilot).startswith(said):
                    break
            assert subtitle(pilot).startswith(said)
        await press(pilot, "l")


async def test_standard_input_is_refused_kindly(tmp_path: Path) -> None:
    case = FixedCase(rereadable=False)
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "r")
        assert case.asked == ["report en"]
        assert ["only once" in note.message for note in pilot.app._notifications] == [True]


async def test_a_log_that_cannot_be_read_again_stays_on_the_screen(tmp_path: Path) -> None:
    class Gone(FixedCase):
        def reread(self, language: str, watch: Watch) -> Report:
            raise InputError("[/gone] no such file")

    async with app_of(Gone(), tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "r")
        assert [note.message for note in pilot.app._notifications] == ["[/gone] no such file"]
        assert explained(pilot.app).busy == ""
        assert "line 7 of 41" in subtitle(pilot)


async def test_another_log_is_shown_when_the_one_on_the_screen_is_gone(tmp_path: Path, folder: Path) -> None:
    other = folder / "attempt_0" / "1.log"
    other.write_text("[rank1]: a\n[rank1]: b\n[rank1]: c\n")
    case = opened(tmp_path, str(folder))
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "right_square_bracket")
        assert "[rank1]: c" in drawn(pilot)
        other.unlink()
        await press(pilot, "r")
        assert "[rank0]: step 2" in drawn(pilot)
        assert "line 1 of 2" in subtitle(pilot)


async def test_a_log_emptied_under_the_screen_breaks_nothing(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"[rank0]: step {step} {'x' * 100}\n" for step in range(3000)))
    case = opened(tmp_path, str(log))
    async with app_of(case, tmp_path / "app").run_test(size=SIZE) as pilot:
        await settled(pilot)
        log.write_text("[rank0]: step 0\n")
        await press(pilot, "0", "G", "pageup", "slash", *"step", "enter", "n", "home", "r", "G")
        assert "line 1 of 1" in subtitle(pilot)
        assert "[rank0]: step 0" in drawn(pilot)
