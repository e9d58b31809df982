"""The line for a search or a line number: what is typed behind Enter is meant for the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tuikit import OOM_LINE, TEXTS, FixedCase, app_of, explained, press, settled

SIZE = (80, 24)


@pytest.mark.parametrize(("end", "line", "query"), [("enter", 12, "shard"), ("escape", OOM_LINE, "")])
async def test_a_key_that_comes_with_enter_is_no_part_of_the_search(
    tmp_path: Path, end: str, line: int, query: str
) -> None:
    """A terminal may hand over several keys at once, before anybody has seen to the first."""
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"shard")
        panel = explained(pilot.app).log_panel
        for key, character in ((end, None), ("l", "l")):
            pilot.app.post_message(events.Key(key, character))
        await settled(pilot)
        assert (panel.prompt.display, panel.prompt.value, panel.query_text) == (False, "shard", query)
        assert panel.pane.cursor == line
        assert TEXTS["zh"]["headline"] in str(pilot.app.screen.query_one("#headline").render())


async def test_after_a_word_that_is_no_line_number_one_types_on(tmp_path: Path) -> None:
    async with app_of(FixedCase(), tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "g", "x", "enter", "backspace", *"40", "enter")
        assert explained(pilot.app).log_panel.pane.cursor == 40
