"""Finds secrets in a text: tokens by their form, anything else by the name or the words before it. Replaces nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from logdoc.kept.data import document
from logdoc.kept.patterns import lazily
from logdoc.types.value import dataclass

_ASSIGNED = lazily(
    r"(?<![\w.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*+)"
    r"(?P<link>\\?[\"']?\]?\s{0,4}(?:=>|:=|==?|:)\s{0,4}|>)(?P<quote>\\?[\"'])?"
)
_FLAGGED = lazily(r"(?<![\w-])--?(?P<name>[A-Za-z][\w-]*+)(?P<link>\s{1,4})(?P<quote>\\?[\"'])?(?![\s-])")
_JUDGED = 200  # characters of a value that are enough to tell whether it is a secret
_SIGNS = {
    '"': r"(?:[^\"\\\n]|\\.)",
    "'": r"(?:[^'\\\n]|\\.)",
    "\\": r"[^\"'\\\n]",
    "env": r"[^\s\"'`]",
    "": r"[^\s\"'`,;&|<>(){}\[\]]",
    "certain": r"[^\s\"'`;&<]",
}
_HEADS = {shape: lazily(f"{sign}{{0,{_JUDGED}}}+") for shape, sign in _SIGNS.items()}
_WHOLES = {shape: lazily(f"{sign}*+") for shape, sign in _SIGNS.items()}
_CAMEL = lazily(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBER = lazily(r"[-+]?[\d.,:_eE+/-]+[A-Za-z%]{0,4}")
_PATH = lazily(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|[a-z]{2,10}://(?![^\s/]*@))")
_WORDS = lazily(r"_?[A-Za-z]?[a-z]+(?:[._ -]_?[A-Za-z]?[a-z]+){0,6}")  # plain words, or a name of the program
_LONGEST_NAME = 100
_LONG_TOKEN = 24  # a token this long needs no digit to be one


class Secret(NamedTuple):
    """A stretch of a text. `by_form`: it would be found anywhere; else only what stood before it told."""

    start: int
    end: int
    by_form: bool


@dataclass(frozen=True, slots=True)
class _Shape:
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Names:
    certain: re.Pattern[str]
    likely: re.Pattern[str]
    token: re.Pattern[str]
    never: re.Pattern[str]
    no_values: re.Pattern[str]
    placeholder: re.Pattern[str]
    shortest: int
    shortest_token: int


def knowledge() -> dict[str, Any]:
    """logdoc/data/secrets.yaml as it is."""
    data: dict[str, Any] = document("secrets.yaml")
    return data


@cache
def _shapes(key: str) -> tuple[_Shape, ...]:
    return tuple(_Shape(tuple(one["needs"]), re.compile(one["regex"])) for one in knowledge()[key])


@cache
def _names() -> _Names:
    data = knowledge()
    names = data["secret_names"]
    compiled = {key: re.compile(names[key]) for key in ("certain", "likely", "token", "never")}
    return _Names(
        **compiled,
        no_values=re.compile(data["no_values"]),
        placeholder=re.compile(data["placeholder"]),
        shortest=names["shortest"],
        shortest_token=names["shortest_token"],
    )


def find_secrets(text: str) -> list[Secret]:
    """All secrets, in order and without overlap."""
    found = sorted({*_by_shape(text, "shapes"), *_by_shape(text, "contexts"), *_by_name(text)})
    merged: list[Secret] = []
    for secret in found:
        if merged and secret.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Secret(last.start, max(last.end, secret.end), last.by_form and secret.by_form)
        elif secret.end > secret.start:
            merged.append(secret)
    return merged


def _by_shape(text: str, key: str) -> Iterator[Secret]:
    lower = text.lower()
    for shape in _shapes(key):
        if not any(need in lower for need in shape.needs):
            continue
        for found in shape.pattern.finditer(text):
            start, end = found.span("secret" if "secret" in shape.pattern.groupindex else 0)
            if key == "shapes" or not _stands_for_none(found[0][start - found.start() : end - found.start()]):
                yield Secret(start, end, key == "shapes")


def _by_name(text: str) -> Iterator[Secret]:
    """`NAME=value`, `"name": "value"`, `--name value`: the name tells."""
    for pattern in (_ASSIGNED, _FLAGGED):
        done = 0
        for found in pattern.finditer(text):
            if found.start() < done or len(found["name"]) > _LONGEST_NAME:
                continue
            kind = kind_of(found["name"])
            if kind is None or (found["link"] == ">" and kind != "certain"):
                continue
            strict = pattern is _FLAGGED or (found["name"].isupper() and "=" in found["link"])
            done = _value_end(text, found.end(), found["quote"], kind, strict)
            if done > found.end():
                yield Secret(found.end(), done, by_form=False)


def _value_end(text: str, start: int, quote: str | None, kind: str, strict: bool) -> int:
    """Where the secret value that starts here ends; `start` if it is none. Judged by its head, so that no text is
    read again and again."""
    shape = quote[0] if quote else "certain" if kind == "certain" else "env" if strict else ""
    head = _matched(_HEADS[shape], text, start)
    if not quote:
        is_call = kind != "certain" and text[start + len(head) : start + len(head) + 1] in ("(", "[")
        head = "" if is_call else head.rstrip(".,)]}")
    if not is_secret(kind, head, strict or quote is not None):
        return start
    whole = _matched(_WHOLES[shape], text, start)
    return start + len(whole if quote else whole.rstrip(".,)]}"))


def _matched(pattern: re.Pattern[str], text: str, start: int) -> str:
    found = pattern.match(text, start)
    return found[0] if found else ""


def normalised(name: str) -> str:
    """`apiKey`, `API-KEY` and `config.api_key` end alike."""
    return _CAMEL.sub("_", name.strip("-")).replace("-", "_").replace(".", "_").lower()


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """`certain`, `likely` or `token` if the value of this name is a secret."""
    names, plain = _names(), normalised(name[:_LONGEST_NAME])
    if names.never.search(plain):
        return None
    return next((kind for kind in ("certain", "likely", "token") if getattr(names, kind).search(plain)), None)


def is_secret(kind: str, value: str, strict: bool) -> bool:
    """Whether this value is one to hide. `strict`: written as settings are, so that a plain word may be one too."""
    names = _names()
    if _stands_for_none(value):
        return False
    if kind == "certain":
        return True
    if _NUMBER.fullmatch(value) or _PATH.match(value):
        return False
    if kind == "likely":
        return len(value) >= 4 if strict else len(value) >= names.shortest and not _WORDS.fullmatch(value)
    digit = any(sign.isdigit() for sign in value)
    if strict and digit:
        return len(value) >= names.shortest
    return len(value) >= names.shortest_token and (strict or digit or len(value) >= _LONG_TOKEN)


def _stands_for_none(value: str) -> bool:
    names = _names()
    return not value or bool(names.placeholder.match(value) or names.no_values.match(value))
