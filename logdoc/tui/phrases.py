"""What the terminal UI says by itself, in the language of the moment; the sentences are data/tui_phrases.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from logdoc.kept.sentences import say, sentences
from logdoc.types.rule import FactValue, Text

_FILE = "tui_phrases.yaml"
LANGUAGES = ("en", "zh")


def phrases() -> Mapping[str, Text]:
    """Every sentence of the UI by its key."""
    return sentences(_FILE)


@dataclass(slots=True)
class Voice:
    """The language the UI speaks, shared by all its screens: `en` or `zh`."""

    language: str = "en"

    def say(self, key: str, **values: FactValue) -> str:
        """The sentence `key`. Every placeholder must be given."""
        return say(_FILE, key, self.language, **values)

    def switch(self) -> None:
        """Speak the next language from now on."""
        self.language = LANGUAGES[(LANGUAGES.index(self.language) + 1) % len(LANGUAGES)]
