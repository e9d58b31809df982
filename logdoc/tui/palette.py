"""The command palette: what the screen offers, and the app's own commands, in the language of the moment."""

from __future__ import annotations

from collections.abc import Iterable

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.markup import escape

from logdoc.tui.keys import Command, SpeakingScreen
from logdoc.tui.marks import data, one_line

MOST_DISCOVERED = 30


class ScreenCommands(Provider):
    """The commands of the screen that is shown."""

    def _commands(self) -> Iterable[Command]:
        return self.screen.commands() if isinstance(self.screen, SpeakingScreen) else ()

    async def discover(self) -> Hits:
        for number, command in enumerate(self._commands()):
            if number == MOST_DISCOVERED:
                return
            yield DiscoveryHit(data(command.title), command.run, text=command.title, help=_escaped(command.help))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands():
            wanted = f"{command.title}  {one_line(command.help)}"
            score = matcher.match(wanted)
            if score > 0:
                yield Hit(score, matcher.highlight(wanted), command.run, text=wanted)


def _escaped(text: str) -> str:
    """The palette reads help as markup; this text is data."""
    return escape(one_line(text))
