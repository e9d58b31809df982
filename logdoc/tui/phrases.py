"""What the terminal UI says by itself, in the language of the moment; the sentences are data/tui_phrases.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from logdoc.reporting.wording import PLACEHOLDER
from logdoc.types.rule import FactValue, Text

LANGUAGES = ("en", "zh")


@cache
def phrases() -> dict[str, Text]:
    """Every sentence of the UI by its key."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    path = resources.files("logdoc") / "data" / "tui_phrases.yaml"
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    return {key: Text(**value) for key, value in data.items()}


@dataclass(slots=True)
class Voice:
    """The language the UI speaks, shared by all its screens: `en` or `zh`."""

    language: str = "en"

    def say(self, key: str, **values: FactValue) -> str:
        """The sentence `key`. Every placeholder must be given."""
        text = phrases()[key].in_language(self.language)
        return PLACEHOLDER.sub(lambda found: str(values[found["name"]]), text)

    def switch(self) -> None:
        """Speak the next language from now on."""
        self.language = LANGUAGES[(LANGUAGES.index(self.language) + 1) % len(LANGUAGES)]
