"""Reads the data files of logdoc/data, each once and only when asked for; knows their form, not their meaning."""

from __future__ import annotations

import os
from functools import cache

from logdoc.kept import kept_document
from logdoc.types.rule import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data")


@cache
def rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a tab-separated table with a header line; an empty cell is an empty string."""
    return tuple(kept_document(os.path.join(DATA, name), parse_rows))


@cache
def document(name: str) -> Any:
    """The content of a YAML file."""
    return kept_document(os.path.join(DATA, name), parse_document)


def parse_rows(text: str) -> list[dict[str, str]]:
    """A table's rows, as `kept_document` keeps them."""
    import csv

    return [dict(row) for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)]


def parse_document(text: str) -> Any:
    """A YAML text's value, as `kept_document` keeps it."""
    import yaml  # for the first run only

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def meaning(row: Mapping[str, str], column: str = "meaning") -> Text:
    """The two language columns of a row; where the Chinese is missing, the English stands in."""
    english = row[f"{column}_en"]
    return Text(en=english, zh=row[f"{column}_zh"] or english)


def bilingual(value: str | Mapping[str, str]) -> Text:
    """A YAML text: `{en, zh}`, or one string that is the same in both languages (a command, an assignment)."""
    return Text(en=value, zh=value) if isinstance(value, str) else Text(en=value["en"], zh=value["zh"])
