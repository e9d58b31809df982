"""The help: every key that works on a screen, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from logdoc.tui.detail_tabs import Page
from logdoc.tui.keys import KeyGroup, bind
from logdoc.tui.phrases import Voice

ROOM_FOR_COLUMNS = 50  # cells
KEY_CELLS = 12

_NAMES = {
    "slash": "/", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]", "up": "↑",
    "down": "↓", "left": "←", "right": "→", "enter": "Enter", "escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn",
    "home": "Home", "end": "End", "space": "Space", "backspace": "⌫", "tab": "Tab",
}  # fmt: skip


class HelpScreen(ModalScreen[None]):
    """The keys of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [bind("escape,question_mark,q", "app.pop_screen", "help.close")]

    def __init__(self, groups: Sequence[KeyGroup], voice: Voice) -> None:
        super().__init__()
        self._groups = groups
        self._voice = voice

    def compose(self) -> ComposeResult:
        with Page(id="help-box"):
            yield Static(
                self._told() if self.app.size.width >= ROOM_FOR_COLUMNS else self._told_narrowly(), markup=False
            )
            yield Static(self._voice.say("help.signs"), markup=False)

    def on_mount(self) -> None:
        box = self.query_one("#help-box")
        box.border_title = self._voice.say("help.title")
        box.border_subtitle = self._voice.say("help.keys")
        box.focus()

    def _told(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, min_width=KEY_CELLS)
        table.add_column(overflow="fold")
        for group in self._groups:
            table.add_row(Text(group.place, style="bold underline"), "")
            for binding in group.bindings:
                table.add_row(Text(key_names(binding.key), style="bold"), Text(binding.tooltip))
            table.add_row("", "")
        return table

    def _told_narrowly(self) -> Text:
        """Each key with its words behind it."""
        told = Text()
        for group in self._groups:
            told.append(f"{group.place}\n", "bold underline")
            for binding in group.bindings:
                told.append(f"{key_names(binding.key)}  ", "bold").append(f"{binding.tooltip}\n")
            told.append("\n")
        return told


def key_names(keys: str) -> str:
    """The keys of a binding as they are written on a keyboard."""
    return " ".join(_NAMES.get(key.strip(), key.strip().replace("ctrl+", "Ctrl+")) for key in keys.split(","))
