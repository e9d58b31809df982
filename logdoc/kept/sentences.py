"""Texts in both languages as the data files have them, and logdoc's own sentences, said with their values filled in."""

from __future__ import annotations

from functools import cache

from logdoc.kept.data import document
from logdoc.kept.patterns import lazily
from logdoc.types.rule import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from logdoc.types.rule import FactValue

# `{name}`, `{name:filter}`, `{name|what is said where nobody knows}`: in rules, sentences and doctor's table.
PLACEHOLDER = lazily(r"\{(?P<name>[a-z_][\w.-]*)(?::(?P<filter>[a-z_]+))?(?:\|(?P<default>[^{}]*))?\}")


def _time(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.0f} {unit}" if abs(amount - round(amount)) < 0.05 else f"{amount:.1f} {unit}"
    return f"{seconds:g} s"


# How a number is written: bytes as GiB or MiB, seconds or milliseconds as a time, CUDA's own version 12020 as 12.2.
FILTERS: Mapping[str, Callable[[float], str]] = {
    "gib": lambda number: f"{number / 2**30:.2f} GiB",
    "mib": lambda number: f"{number / 2**20:.0f} MiB",
    "n": lambda number: f"{number:,.0f}",
    "s": _time,
    "ms": lambda number: _time(number / 1000),
    "cuda": lambda number: f"{number // 1000:.0f}.{number % 1000 // 10:.0f}",
    "percent": lambda number: f"{100 * number:.0f} %",
}


def say(file: str, key: str, language: str, /, **values: FactValue) -> str:
    """A sentence of a data file. Every placeholder must be given."""
    sentence = sentences(file)[key].in_language(language)
    return PLACEHOLDER.sub(lambda found: str(values[found["name"]]), sentence)


@cache
def sentences(file: str) -> Mapping[str, Text]:
    """Every text of a data file by its key."""
    return {key: bilingual(value) for key, value in document(file).items()}


def bilingual(value: str | Mapping[str, str]) -> Text:
    """A YAML text: `{en, zh}`, or one string that is the same in both languages (a command, an assignment)."""
    return Text(en=value, zh=value) if isinstance(value, str) else Text(en=value["en"], zh=value["zh"])


def meaning(row: Mapping[str, str], column: str = "meaning") -> Text:
    """The two language columns of a table's row; where the Chinese is missing, the English stands in."""
    english = row[f"{column}_en"]
    return Text(en=english, zh=row[f"{column}_zh"] or english)
