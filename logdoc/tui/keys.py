"""Bindings whose words are phrases, and the screen that says them in the language of the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import App
from textual.binding import ActiveBinding, Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import OptionList

from logdoc.tui.phrases import Voice, phrases


def bind(keys: str, action: str, name: str, *, show: bool = False) -> Binding:
    """A binding called `name`; its words are the phrases `key.<name>` (short, for the footer) and `tip.<name>`."""
    voice = Voice()
    return Binding(keys, action, voice.say(f"key.{name}"), show=show, tooltip=voice.say(f"tip.{name}"), id=name)


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
        return spoken

    def speak(self) -> None:
        """Say everything again; called when the language has changed."""
        self.refresh_bindings()

    def commands(self) -> Iterable[Command]:
        """What the palette offers on this screen beside the app's own."""
        return ()

    def key_groups(self) -> Iterator[KeyGroup]:
        """Every key of ours that works here, by place: this screen, its parts that take the focus, everywhere."""
        yield self._group(f"place.{type(self).__name__}", self)
        seen: set[type] = set()
        for widget in self.query("*"):
            if widget.can_focus and type(widget) not in seen:
                seen.add(type(widget))
                yield self._group(f"place.{type(widget).__name__}", widget)
        yield self._group("place.everywhere", self.app)

    def _group(self, place: str, node: DOMNode | App[None]) -> KeyGroup:
        own: dict[str, Binding] = {}
        for base in reversed(type(node).__mro__):
            for binding in vars(base).get("BINDINGS", ()):
                if isinstance(binding, Binding) and binding.id is not None and f"key.{binding.id}" in phrases():
                    known = own.get(binding.id)
                    keys = f"{known.key},{binding.key}" if known and known.key != binding.key else binding.key
                    own[binding.id] = replace(in_words(binding, self.voice), key=keys)
        name = self.voice.say(place) if place in phrases() else ""
        return KeyGroup(name, tuple(own.values()))


class PickList(OptionList):
    """A list moved through by arrows or j and k; each row carries what it stands for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "cursor_down", "list.down"),
        bind("up,k", "cursor_up", "list.up"),
        bind("pagedown", "page_down", "list.page_down"),
        bind("pageup", "page_up", "list.page_up"),
        bind("home", "first", "list.first"),
        bind("end", "last", "list.last"),
        bind("enter", "select", "list.select"),
    ]
