"""The terminal UI as pictures, at the smallest size it is made for and at a comfortable one. Look before updating."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tuikit import FixedCase, app_of, press, settled

SIZES = [(80, 24), (120, 40)]


def after(*keys: str) -> Any:
    """Press these keys once the report is on the screen."""

    async def run(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await press(pilot, *keys)

    return run


KEYS = {
    "why": (),
    "fix": ("2", "down", "down"),
    "evidence": ("3",),
    "probes": ("p", "4"),
    "timeline": ("5",),
    "job": ("6",),
    "search": ("slash", *"step"),
    "help": ("question_mark",),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", KEYS)
def test_explain(snap_compare: Any, tmp_path: Path, size: tuple[int, int], name: str) -> None:
    assert snap_compare(app_of(FixedCase(), tmp_path), terminal_size=size, run_before=after(*KEYS[name]))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["why", "timeline"])
def test_explain_in_chinese(snap_compare: Any, tmp_path: Path, size: tuple[int, int], name: str) -> None:
    assert snap_compare(app_of(FixedCase(), tmp_path, "zh"), terminal_size=size, run_before=after(*KEYS[name]))


@pytest.mark.parametrize("size", [(30, 8)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_small_terminals(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    assert snap_compare(app_of(FixedCase(), tmp_path), terminal_size=size, run_before=after())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_rules(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    assert snap_compare(app_of(None, tmp_path), terminal_size=size, run_before=after())


def test_light_theme(snap_compare: Any, tmp_path: Path) -> None:
    app = app_of(FixedCase(), tmp_path)
    app.theme = "textual-light"
    assert snap_compare(app, terminal_size=SIZES[0], run_before=after())
