"""Reads the data files of logdoc/data, each once and only when asked for; knows their form, not their meaning."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from logdoc.types.rule import Text

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a tab-separated table with a header line; an empty cell is an empty string."""
    lines = _read(name).splitlines()
    return tuple(MappingProxyType(row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def document(name: str) -> Any:
    """The content of a YAML file."""
    return yaml.load(_read(name), Loader=_Loader)


def meaning(row: Mapping[str, str], column: str = "meaning") -> Text:
    """The two language columns of a row; where the Chinese is missing, the English stands in."""
    english = row[f"{column}_en"]
    return Text(en=english, zh=row[f"{column}_zh"] or english)


def bilingual(value: str | Mapping[str, str]) -> Text:
    """A YAML text: `{en, zh}`, or one string that is the same in both languages (a command, an assignment)."""
    return Text(en=value, zh=value) if isinstance(value, str) else Text(en=value["en"], zh=value["zh"])


def _read(name: str) -> str:
    return (resources.files("logdoc") / "data" / name).read_text(encoding="utf-8")
