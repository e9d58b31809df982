"""How much room the terminal gives: the classes of narrow and low screens, and what is said where nothing fits."""

from __future__ import annotations

from textual.widgets import Footer

from logdoc.tui.folding import Prose
from logdoc.tui.marks import data
from logdoc.tui.phrases import Voice

NEEDED_WIDTH = 40  # cells
NEEDED_HEIGHT = 10  # lines
# From how many cells or lines on a screen has which class.
WIDTHS = [(0, "-tiny"), (NEEDED_WIDTH, "-slim"), (70, "-narrow"), (100, "-wide")]
HEIGHTS = [(0, "-flat"), (NEEDED_HEIGHT, "-high")]


class TooSmall(Prose):
    """Lies over all of a screen that has no room for its parts; they stay as they are."""

    def __init__(self, voice: Voice) -> None:
        super().__init__("too-small")
        self._voice = voice

    def on_mount(self) -> None:
        self.tell()

    def on_resize(self) -> None:
        super().on_resize()
        self.tell()

    def tell(self) -> None:
        """Say in the language of the moment how small the screen is, and what can be done."""
        width, height = self.app.size
        needed = {"needed_width": NEEDED_WIDTH, "needed_height": NEEDED_HEIGHT}
        self.say(data(self._voice.say("small.room", width=width, height=height, **needed)))


class KeyFooter(Footer):
    """The keys for which there is room; which those are its screen decides."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def on_resize(self) -> None:
        self.screen.refresh_bindings()
