"""The app round the screens: language, theme, clipboard, palette, help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.screen import Screen
from textual.theme import ThemeProvider

from logdoc.engine import Engine
from logdoc.tui.case import Case
from logdoc.tui.explain_screen import ExplainScreen
from logdoc.tui.help_screen import HelpScreen
from logdoc.tui.keys import SpeakingScreen, bind
from logdoc.tui.marks import printable
from logdoc.tui.messages import Copy, OpenRule
from logdoc.tui.palette import ScreenCommands
from logdoc.tui.phrases import Voice
from logdoc.tui.room import HEIGHTS, WIDTHS
from logdoc.tui.rules_screen import RulesScreen

COPIED_SECONDS = 8.0  # how long a copied text is shown


class LogdocApp(App[None]):
    """Explains a case; without one, browses the rules."""

    TITLE = "logdoc"
    CSS_PATH = "logdoc.tcss"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {*App.COMMANDS, ScreenCommands}
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("l", "language", "language", show=True),
        bind("t", "change_theme", "theme"),
        bind("question_mark", "keys", "help", show=True),
        bind("q", "quit", "quit", show=True),
        bind("ctrl+p", "command_palette", "palette", show=True),
        bind("tab", "focus_next", "focus.next"),
        bind("shift+tab", "focus_previous", "focus.previous"),
    ]

    def __init__(self, engine: Callable[[], Engine], case: Case | None, language: str = "en") -> None:
        super().__init__()
        self.voice = Voice(language)
        self._engine = engine
        self._case = case

    def on_mount(self) -> None:
        if self._case is None:
            self.push_screen(RulesScreen(self._engine(), self.voice))
        else:
            self.push_screen(ExplainScreen(self._case, self.voice))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for name, action in (
            ("language", self.action_language),
            ("theme", self.action_change_theme),
            ("help", self.action_keys),
            ("zoom", screen.action_maximize),
            ("quit", self.action_quit),
        ):
            yield SystemCommand(self.voice.say(f"key.{name}"), self.voice.say(f"tip.{name}"), action)

    def action_language(self) -> None:
        """Speak the other language, on every screen."""
        self.voice.switch()
        for screen in self.screen_stack:
            if isinstance(screen, SpeakingScreen):
                screen.speak()

    def action_keys(self) -> None:
        """Show every key of the screen."""
        if isinstance(self.screen, SpeakingScreen):
            self.push_screen(HelpScreen(list(self.screen.key_groups()), self.voice))

    def action_help_quit(self) -> None:
        """Ctrl-C is often meant to end a program; here it copies, so say what does."""
        self.notify(self.voice.say("quit.how"), markup=False)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder=self.voice.say("palette.placeholder"), id="--command-palette"))

    def search_themes(self) -> None:
        """Choose a theme by name."""
        self.push_screen(
            CommandPalette(providers=[ThemeProvider], placeholder=self.voice.say("palette.themes")),
        )

    def notify(self, message: str, **how: Any) -> None:
        """Say this instead of what was said last: notes that pile up hide what they are about."""
        self.clear_notifications()
        super().notify(message, **how)

    def on_copy(self, message: Copy) -> None:
        """OSC 52 asks the terminal to copy; not every terminal does, so the text is shown too."""
        text = printable(message.text)
        self.copy_to_clipboard(text)
        self.notify(text, title=self.voice.say("copy.title"), markup=False, timeout=COPIED_SECONDS)

    def on_open_rule(self, message: OpenRule) -> None:
        self.push_screen(RulesScreen(self._engine(), self.voice, message.rule_id))
