"""The one door to the files of logdoc/data: each is parsed once, in one way, and kept so; knows no file's meaning."""

from __future__ import annotations

import os
import zlib
from functools import cache

from logdoc.kept import keep_value, keep_value_at, kept_value, kept_value_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data")
BUILT_SUFFIX = ".built"  # a data file's parsed form beside it, made when the wheel is built


@cache
def document(name: str) -> Any:
    """The content of a YAML or JSON file."""
    return parsed_once(os.path.join(DATA, name))


@cache
def rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a tab-separated table with a header line; an empty cell is an empty string."""
    return tuple(parsed_once(os.path.join(DATA, name)))


@cache
def text(name: str) -> str:
    """A file as it is."""
    return _read(os.path.join(DATA, name))


def parsed_once(path: str) -> Any:
    """The content of a file as PARSERS read it: built, kept by an earlier run, or parsed now. Raises as they do."""
    status = os.stat(path)
    value = kept_value_at(path + BUILT_SUFFIX, _built_key(path, status.st_size))
    if value is not None:
        return value
    name = f"{os.path.basename(path)}-{zlib.crc32(os.fsencode(path)):08x}"
    key = repr((path, status.st_size, status.st_mtime_ns))
    value = kept_value(name, key)
    if value is None:
        value = parse(path)
        keep_value(name, key, value)
    return value


def build(path: str, to: str | None = None) -> None:
    """Write a file's parsed form where `parsed_once` looks first, or to another place."""
    keep_value_at(to or path + BUILT_SUFFIX, _built_key(path, os.stat(path).st_size), parse(path))


def parse(path: str) -> Any:
    """The content of a file by its ending, as texts, numbers, lists and mappings."""
    return PARSERS[os.path.splitext(path)[1]](_read(path), os.path.basename(path))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _built_key(path: str, size: int) -> str:
    return repr((os.path.basename(path), size))


# What reads YAML, JSON and tables is imported for the first run only.
def _yaml(content: str, name: str) -> Any:
    from logdoc.kept.yaml_source import parse_yaml

    return parse_yaml(content, name)


def _json(content: str, _: str) -> Any:
    import json

    return json.loads(content)


def _table(content: str, _: str) -> list[dict[str, str]]:
    import csv

    return [dict(row) for row in csv.DictReader(content.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)]


PARSERS = {".yaml": _yaml, ".json": _json, ".tsv": _table}
