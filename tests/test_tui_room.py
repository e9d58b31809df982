"""What is shown where there is little room: keys of the footer, parts of the screen, and a word where nothing fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Region
from textual.widgets._footer import FooterKey

from logdoc.tui.explain_screen import Hypotheses
from logdoc.tui.room import TooSmall
from tests.tuikit import FixedCase, app_of, explained, press, settled

SIZE = (80, 24)


async def test_help_and_quit_are_the_last_to_leave_the_footer(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=(200, 24)) as pilot:
        await settled(pilot)
        for width, others in ((80, "/nerpcl"), (60, "/nepr"), (40, "/ne"), (13, "")):
            await pilot.resize_terminal(width, 24)
            await settled(pilot)
            keys = list(pilot.app.screen.query(FooterKey))
            assert {key.key_display for key in keys} == {*others, "?", "q"}
            assert all(key.region.right <= width for key in keys)


@pytest.mark.parametrize("size", [(30, 24), (80, 8), (30, 8)])
async def test_a_terminal_that_is_too_small_is_told_so_and_shows_one_part(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=size) as pilot:
        await settled(pilot)
        notice = pilot.app.screen.query_one(TooSmall)
        assert notice.region == Region(0, 0, *size)
        assert f"{size[0]}×{size[1]} is too small" in notice.said.plain
        await press(pilot, "l", "z")
        assert "太小" in notice.said.plain
        assert not notice.region
        assert pilot.app.screen.query_one(Hypotheses).region.width == size[0]
        await press(pilot, "z")
        await pilot.resize_terminal(*SIZE)
        await settled(pilot)
        assert not notice.region
        assert pilot.app.focused is pilot.app.screen.query_one(Hypotheses)


@pytest.mark.parametrize("size", [(40, 10), (60, 15)])
async def test_a_small_terminal_shows_every_part(tmp_path: Path, size: tuple[int, int]) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=size) as pilot:
        await settled(pilot)
        screen = explained(pilot.app)
        for part in (screen.query_one(Hypotheses), screen.tabs, screen.log_panel):
            assert Region(0, 0, *size).contains_region(part.region)
            assert part.region.width >= 16
        assert "✗›" in screen.log_panel.pane.render_line(0).text + screen.log_panel.pane.render_line(1).text


async def test_ctrl_c_names_the_key_that_the_footer_names(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "ctrl+c")
        assert [note.message for note in pilot.app._notifications] == ["q leaves logdoc"]
