"""A message template of a catalogue to the texts a log can hold. Knows no rule; what holes hold is data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from packaging.version import InvalidVersion, Version

from logdoc.rulebase.yaml_source import parse_yaml

_DATA = "message_forms.yaml"
_MOST_FILLINGS = 4
_PRINTF = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfgGcsp])")
_BEFORE = 80  # characters in front of a hole that tell what it holds


@dataclass(frozen=True, slots=True)
class Scene:
    """What a row of a table says beside its message. `level`: NCCL's, or nothing; versions are NCCL's or torch's."""

    file: str = ""
    line: str = ""
    level: str = ""
    component: str = ""
    since: str = ""
    until: str = ""


def appearances(template: str, scene: Scene) -> tuple[tuple[str, ...], ...]:
    """The message as logs show it: for each way to fill its holes, the texts with every prefix of its generation."""
    forms = [form for form in _data()["forms"] if _fits_form(form, template, scene)]
    return tuple(
        tuple(_framed(form, text, scene) for form in forms) if forms else (text,) for text in fillings(template, scene)
    )


def fillings(template: str, scene: Scene = Scene()) -> list[str]:
    """A message with plausible values for `%s`, `{name}`, `{a|b}` and `{ optional text}`, C escapes undone."""
    text = template.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    for rule in _data()["shorthand"]:
        text = re.sub(rule["regex"], rule["text"], text)
    found: list[str] = []
    for turn in range(_MOST_FILLINGS):
        filled = _filled(text, turn, scene)
        if filled in found:
            break
        found.append(filled)
    return found


def _filled(text: str, turn: int, scene: Scene) -> str:
    """Every hole takes its value number `turn`, beginning anew after its last."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        conversion = _PRINTF.match(text, at)
        if conversion is not None:
            parts.append(_converted(conversion, turn, scene))
            at = conversion.end()
        elif text[at] == "{" and (end := _closing(text, at)) > 0:
            parts.append(_braced(text[at + 1 : end], text[:at], text[end + 1 :], turn, scene))
            at = end + (2 if text[end + 1 : end + 2] == "*" else 1)
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


def _converted(conversion: re.Match[str], turn: int, scene: Scene) -> str:
    kind = conversion.group(1)
    if kind is None:
        return "%"
    if kind in _data()["printf"]:
        return str(_data()["printf"][kind])
    text = conversion.string
    return _value(None, text[: conversion.start()], text[conversion.end() :], turn, scene)


def _braced(inner: str, before: str, after: str, turn: int, scene: Scene) -> str:
    """`{a|b}` is a choice, `{ text with {holes}}` may be missing, `{{x}}` is a set, all else is a named hole."""
    if inner.startswith("{") and _closing(inner, 0) == len(inner) - 1:
        return "{" + _filled(inner, turn, scene) + "}"
    if "|" in inner and "{" not in inner:
        choices = [choice for choice in inner.split("|") if choice != ".."]
        return re.sub(r"\bN\b", "3", choices[turn % len(choices)])
    if "{" in inner or (inner[:1] in " .,;:" and inner != "..") or inner.endswith(" "):
        return (_filled(inner, turn, scene), "")[turn % 2]
    return _value(inner, before, after, turn, scene)


def _value(name: str | None, before: str, after: str, turn: int, scene: Scene) -> str:
    hole = next(hole for hole in _data()["holes"] if _fits_hole(hole, name, before, after, scene))
    return _turn(hole["values"], turn, name or "")


def _turn(values: list[Any], turn: int, name: str) -> str:
    return str(values[turn % len(values)]) if values else name


def _fits_hole(hole: dict[str, Any], name: str | None, before: str, after: str, scene: Scene) -> bool:
    return (
        ("name" not in hole or (name is not None and re.search(hole["name"], name) is not None))
        and ("name" in hole or name is None or "before" not in hole)
        and ("before" not in hole or re.search(hole["before"], before[-_BEFORE:]) is not None)
        and ("after" not in hole or re.search(hole["after"], after) is not None)
        and ("file" not in hole or hole["file"] in scene.file)
        and ("component" not in hole or hole["component"] in scene.component)
    )


def _fits_form(form: dict[str, Any], template: str, scene: Scene) -> bool:
    return (
        ("level" not in form or form["level"] == scene.level)
        and ("component" not in form or (not scene.level and re.search(form["component"], scene.component) is not None))
        and ("message" not in form or re.search(form["message"], template) is not None)
        and not (scene.until and "since" in form and _older(scene.until, form["since"]))
        and not (scene.since and "until" in form and _older(form["until"], scene.since))
    )


def _framed(form: dict[str, Any], message: str, scene: Scene) -> str:
    place = f"{scene.file.replace('src/', '', 1).split('@')[0] or 'init.cc'}:{scene.line or 1}"
    text = (
        str(form["text"])
        .replace("{place}", place)
        .replace("{message}", message.strip("\n") if scene.level else message)
    )
    each = form.get("each")
    return "\n".join(f"{each}{line}" for line in text.split("\n")) if each else text


def _older(first: str, second: str) -> bool:
    """Whether release `first` came before `second`; what is no version (`<=1.8` is 1.8) is older than all."""
    try:
        return Version(first.lstrip("<= ")).release < Version(second.lstrip("<= ")).release
    except InvalidVersion:
        return False


def _closing(text: str, start: int) -> int:
    """Where the brace opened at `start` closes, or -1."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


@cache
def _data() -> dict[str, Any]:
    """Read logdoc/data/message_forms.yaml, once."""
    data: dict[str, Any] = parse_yaml((resources.files("logdoc") / "data" / _DATA).read_text(encoding="utf-8"), _DATA)
    return data
