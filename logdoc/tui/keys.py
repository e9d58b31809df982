"""Bindings whose words are phrases, and the screen that says them in the language of the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.binding import ActiveBinding, Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Input

from logdoc.tui.phrases import Voice, phrases

LAST_TO_GO = ("help", "quit")  # the bindings that a narrow footer still shows


def bind(keys: str, action: str, name: str, *, show: bool = False, priority: bool = False) -> Binding:
    """A binding called `name`; its words are the phrases `key.<name>` (short, for the footer) and `tip.<name>`.

    `priority` for keys that move the focus: what is typed right behind them must already go to the new place.
    """
    short, long = (Voice().say(f"{kind}.{name}") for kind in ("key", "tip"))
    return Binding(keys, action, short, show=show, tooltip=long, id=name, priority=priority)


def in_words(binding: Binding, voice: Voice) -> Binding:
    """The binding with its words in the voice's language; one that is not ours stays as it is."""
    if binding.id is None or f"key.{binding.id}" not in phrases():
        return binding
    return replace(binding, description=voice.say(f"key.{binding.id}"), tooltip=voice.say(f"tip.{binding.id}"))


@dataclass(frozen=True, slots=True)
class Command:
    """Something the command palette offers."""

    title: str
    help: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """The keys that work in one place."""

    place: str
    bindings: tuple[Binding, ...]


class SpeakingScreen(Screen[None]):
    """A screen that can change its language while it is shown."""

    def __init__(self, voice: Voice) -> None:
        super().__init__()
        self.voice = voice

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """What the footer shows, in words of the language."""
        spoken = {}
        for key, active in super().active_bindings.items():
            binding = in_words(active.binding, self.voice)
            spoken[key] = active._replace(binding=binding, tooltip=binding.tooltip)
        fitting = self._fitting([active.binding for active in spoken.values() if active.binding.show])
        for key, active in spoken.items():
            if active.binding.show and active.binding.action not in fitting:
                spoken[key] = active._replace(binding=replace(active.binding, show=False))
        return spoken

    def _fitting(self, shown: Sequence[Binding]) -> set[str]:
        """The actions for whose keys the footer has room: the last to go first, then the others in their order."""
        by_action = {binding.action: binding for binding in reversed(shown)}
        wanted = dict.fromkeys(binding.action for binding in shown)
        fitting: set[str] = set()
        room = self.size.width + 1  # no blank is needed behind the last one
        for action in sorted(wanted, key=lambda action: by_action[action].id not in LAST_TO_GO):
            binding = by_action[action]
            room -= cell_len(f"{self.app.get_key_display(binding)} {binding.description} ")
            if room < 0:
                break
            fitting.add(action)
        return fitting

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, the key that starts a search is text."""
        return not (action in ("ask", "search") and isinstance(self.focused, Input))

    def speak(self) -> None:
        """Say everything again; called when the language has changed."""
        self.refresh_bindings()

    def commands(self) -> Iterable[Command]:
        """What the palette offers on this screen beside the app's own."""
        return ()

    def key_groups(self) -> Iterator[KeyGroup]:
        """Every key of ours that works here, by place: this screen, its parts, everywhere."""
        parts = {type(widget): widget for widget in reversed(self.query("*"))}
        for node in (self, *reversed(parts.values()), self.app):
            place = "everywhere" if node is self.app else type(node).__name__
            bindings = self._bindings_of(node)
            if bindings:
                yield KeyGroup(self.voice.say(f"place.{place}"), bindings)

    def _bindings_of(self, node: DOMNode) -> tuple[Binding, ...]:
        """A node's own bindings in words of the language; those of one name as one with all its keys."""
        own: dict[str, Binding] = {}
        for base in reversed(type(node).__mro__):
            for binding in vars(base).get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.id is not None and f"key.{binding.id}" in phrases():
                    known = own.get(binding.id)
                    keys = f"{known.key},{binding.key}" if known and known.key != binding.key else binding.key
                    own[binding.id] = replace(in_words(binding, self.voice), key=keys)
        return tuple(own.values())
