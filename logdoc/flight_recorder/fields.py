"""Checked access to the fields of a decoded dump: each function gives the type it promises or raises MalformedError."""

from __future__ import annotations

import re
from collections.abc import Mapping

from logdoc.flight_recorder.model import Sizes

MAX_RANKS = 1 << 20
MAX_TENSORS = 4096
MAX_DIMENSIONS = 64
_RANKS = re.compile(r"[\[(]?[ \d,]*[\])]?", re.ASCII)
_TOO_LONG = "0" * 8
_LARGEST = 1 << 63


class MalformedError(Exception):
    """A field that is not what every flight recorder writes there; the message names it."""


def mapping(row: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = row.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedError(f"{_short(key)} is no dict")
    return value


def rows(row: Mapping[str, object], key: str, limit: int) -> list[Mapping[str, object]]:
    value = row.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > limit:
        raise MalformedError(f"{_short(key)} is no list of at most {limit}")
    if not all(isinstance(item, dict) for item in value):
        raise MalformedError(f"{_short(key)} holds something that is no dict")
    return value


def text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str):
        raise MalformedError(f"{_short(key)} is no text")
    return value


def number(row: Mapping[str, object], key: str, default: int = 0) -> int:
    """An integer; a JSON dump writes some of them as text."""
    value = row.get(key, default)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value, re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _LARGEST:
        raise MalformedError(f"{_short(key)} is no number")
    return value


def time(row: Mapping[str, object], key: str) -> int | None:
    """Nanoseconds or milliseconds; a pickle says None and JSON says 0 for "not yet"."""
    return None if row.get(key) is None else number(row, key) or None


def pair(row: Mapping[str, object], key: str) -> tuple[str, str]:
    value = row.get(key)
    if isinstance(value, tuple | list) and len(value) == 2:
        first, second = value
        if isinstance(first, str) and isinstance(second, str):
            return first, second
    raise MalformedError(f"{_short(key)} is no pair of texts")


class Lists:
    """Converts each list once: a hostile dump can refer to one long list a million times at two bytes each."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, tuple[int, ...]] = {}
        self._tensors: dict[int, Sizes] = {}

    def texts(self, row: Mapping[str, object], key: str) -> tuple[str, ...]:
        value = row.get(key)
        if id(value) not in self._texts:
            self._texts[id(value)] = tuple(_one_text(item, key) for item in _items(value, key, MAX_TENSORS))
        return self._texts[id(value)]

    def sizes(self, row: Mapping[str, object], key: str) -> Sizes:
        value = row.get(key)
        if id(value) not in self._tensors:
            self._tensors[id(value)] = tuple(self._dimensions(item, key) for item in _items(value, key, MAX_TENSORS))
        return self._tensors[id(value)]

    def _dimensions(self, value: object, key: str) -> tuple[int, ...]:
        if id(value) not in self._sizes:
            self._sizes[id(value)] = tuple(_dimension(size, key) for size in _items(value, key, MAX_DIMENSIONS))
        return self._sizes[id(value)]


def ranks(value: object) -> tuple[int, ...]:
    """Global ranks, which torch writes as text: "[0, 1]". Read without evaluating it."""
    if isinstance(value, str):
        numbers = re.findall(r"\d+", value, re.ASCII) if _RANKS.fullmatch(value) else [_TOO_LONG]
        if any(len(number) > 7 for number in numbers):
            raise MalformedError("ranks is no list of numbers")
        return tuple(dict.fromkeys(map(int, numbers)))
    return tuple(dict.fromkeys(_dimension(rank, "ranks") for rank in _items(value, "ranks", MAX_RANKS)))


def _items(value: object, key: str, limit: int) -> list[object] | tuple[object, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > limit:
        raise MalformedError(f"{_short(key)} is no list of at most {limit}")
    return value


def _one_text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise MalformedError(f"{_short(key)} holds something that is no text")
    return value


def _dimension(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        raise MalformedError(f"{_short(key)} holds something that is no size")
    return value


def _short(key: str) -> str:
    """A key is text of the dump: keep it to one short line."""
    return "".join(char if char.isprintable() else "?" for char in key[:60])
