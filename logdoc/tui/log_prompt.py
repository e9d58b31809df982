"""The line in which a search or a line number is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from logdoc.tui.keys import bind

ENDS = ("enter", "escape")


class LogPrompt(Input):
    """Its keys wait their turn behind what has been typed, which those with priority would not.

    `answered`: Enter or Escape was pressed. What they do is done a moment later, on the way through the screen; what is
    typed in between is meant for the log, not for this line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("enter", "submit", "prompt.keep", show=True),
        bind("escape", "leave", "prompt.leave", show=True),
    ]
    answered = False

    class Left(Message):
        """The user gives up what was typed."""

    def action_leave(self) -> None:
        self.post_message(self.Left())

    async def _on_key(self, event: events.Key) -> None:
        if self.answered:
            event.stop()
            event.prevent_default()
            self.app.post_message(events.Key(event.key, event.character))  # to whom has the focus by then
            return
        self.answered = event.key in ENDS
        await super()._on_key(event)
