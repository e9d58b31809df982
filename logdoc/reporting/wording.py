"""Texts with placeholders to sentences: captured numbers filled in, sentences whose numbers nobody knows left out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache

from logdoc.kept import kept_document
from logdoc.kept.patterns import lazily
from logdoc.types.quantity import size_in_bytes
from logdoc.types.rule import FactValue, Text

PLACEHOLDER = lazily(r"\{(?P<name>[a-z_][\w.-]*)(?::(?P<filter>[a-z_]+))?(?:\|(?P<default>[^{}]*))?\}")
_PLAIN_WORD = lazily(r"[\w@%+=:,./-]+")
_SPACE_AFTER_CHINESE_STOP = lazily(r"(?<=[。！？；]) ")
_SENTENCE_END = lazily(r"(?<=[.!?;])\s+(?=[A-Z{“\"(])|(?<=[。！？；])\s*")


def _gib(value: FactValue) -> str:
    return f"{_as_number(value) / 2**30:.2f} GiB"


def _seconds(value: FactValue) -> str:
    seconds = _as_number(value)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.0f} {unit}" if abs(amount - round(amount)) < 0.05 else f"{amount:.1f} {unit}"
    return f"{seconds:g} s"


def _as_number(value: FactValue) -> float:
    number = size_in_bytes(value)
    if number is None:
        raise ValueError(value)
    return number


FILTERS: dict[str, Callable[[FactValue], str]] = {
    "gib": _gib,
    "mib": lambda value: f"{_as_number(value) / 2**20:.0f} MiB",
    "n": lambda value: f"{_as_number(value):,.0f}",
    "s": _seconds,
    "ms": lambda value: _seconds(_as_number(value) / 1000),
    "cuda": lambda value: f"{_as_number(value) // 1000:.0f}.{_as_number(value) % 1000 // 10:.0f}",  # 12020 is 12.2
    "percent": lambda value: f"{100 * _as_number(value):.0f} %",
}


def fill(template: str, values: Mapping[str, FactValue]) -> str:
    """`template` with its placeholders filled; a sentence with an unknown one is not said. May be empty."""
    sentences = [_filled(sentence, values) for sentence in _SENTENCE_END.split(template.strip())]
    joined = " ".join(sentence for sentence in sentences if sentence)
    return _SPACE_AFTER_CHINESE_STOP.sub("", joined)


def fill_command(template: str, values: Mapping[str, FactValue]) -> str:
    """A command with its placeholders filled; unknown ones stay visible as `<name>` for the user to set.

    What a log says may be hostile: a captured text that a shell would not read as one plain word is quoted.
    """

    def filled(found: re.Match[str]) -> str:
        value = values.get(found["name"])
        if isinstance(value, str) and found["filter"] is None and not _PLAIN_WORD.fullmatch(value):
            import shlex  # brings a lexer; few values need it

            return shlex.quote(" ".join(value.split()))
        return _value(found, values) or f"<{found['name']}>"

    return PLACEHOLDER.sub(filled, template)


def in_language(text: Text, language: str, values: Mapping[str, FactValue]) -> str:
    return fill(text.in_language(language), values)


def title(text: Text, language: str, values: Mapping[str, FactValue]) -> str:
    """A title is always said: what it does not know is an ellipsis."""
    return PLACEHOLDER.sub(lambda found: _value(found, values) or "…", text.in_language(language))


def _filled(sentence: str, values: Mapping[str, FactValue]) -> str | None:
    parts: list[str] = []
    end = 0
    for found in PLACEHOLDER.finditer(sentence):
        value = _value(found, values)
        if value is None:
            return None
        parts += [sentence[end : found.start()], value]
        end = found.end()
    return "".join([*parts, sentence[end:]])


def _value(found: re.Match[str], values: Mapping[str, FactValue]) -> str | None:
    """The filled placeholder, its default, or None: for what is unknown, and for a size below zero (no size)."""
    value = values.get(found["name"])
    if value is None:
        return found["default"]
    if found["filter"] is None:
        return str(value)
    try:
        return None if _as_number(value) < 0 else FILTERS[found["filter"]](value)
    except (KeyError, ValueError):
        return str(value)


PHRASES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "phrases.yaml")


@cache
def phrases() -> dict[str, Text]:
    """logdoc's own sentences, logdoc/data/phrases.yaml."""
    return {key: Text(**value) for key, value in kept_document(PHRASES, parse_phrases).items()}


def parse_phrases(text: str) -> dict[str, dict[str, str]]:
    """The file's content, as `kept_document` keeps it."""
    import yaml  # for the first run only

    data: dict[str, dict[str, str]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return data


def phrase(key: str, language: str, **values: FactValue) -> str:
    """One of logdoc's own sentences. Every placeholder must be given."""
    text = phrases()[key].in_language(language)
    return PLACEHOLDER.sub(lambda found: str(values[found["name"]]), text)
