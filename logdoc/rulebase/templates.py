"""A message template of a catalogue to the texts a log can hold. Knows no rule; what holes hold is data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

from logdoc.kept.data import document

_MOST_FILLINGS = 4
_PRINTF = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfgGcsp])")
_BEFORE = 80  # characters in front of a hole that tell what it holds


@dataclass(frozen=True, slots=True)
class Slots:
    """What a row of a table says beside its message. `level`: NCCL's, or nothing; versions are NCCL's or torch's."""

    file: str = ""
    line: str = ""
    level: str = ""
    component: str = ""
    since: str = ""
    until: str = ""


def appearances(template: str, slots: Slots) -> tuple[tuple[str, ...], ...]:
    """The message as logs show it: for each way to fill its holes, the texts with every prefix of its generation."""
    forms = [form for form in _data()["forms"] if _fits_form(form, template, slots)]
    return tuple(
        tuple(_framed(form, text, slots) for form in forms) if forms else (text,) for text in fillings(template, slots)
    )


def fillings(template: str, slots: Slots = Slots()) -> list[str]:
    """A message with plausible values for `%s`, `{name}`, `{a|b}` and `{ optional text}`, C escapes undone."""
    text = template.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    for rule in _data()["shorthand"]:
        text = re.sub(rule["regex"], rule["text"], text)
    found: list[str] = []
    for turn in range(_MOST_FILLINGS):
        filled = _filled(text, turn, slots)
        if filled in found:
            break
        found.append(filled)
    return found


def _filled(text: str, turn: int, slots: Slots) -> str:
    """Every hole takes its value number `turn`, beginning anew after its last."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        conversion = _PRINTF.match(text, at)
        if conversion is not None:
            parts.append(_converted(conversion, turn, slots))
            at = conversion.end()
        elif text[at] == "{" and (end := _closing(text, at)) > 0:
            parts.append(_braced(text[at + 1 : end], text[:at], text[end + 1 :], turn, slots))
            at = end + (2 if text[end + 1 : end + 2] == "*" else 1)
        else:
            parts.append(text[at])
            at += 1
    return "".join(parts)


def _converted(conversion: re.Match[str], turn: int, slots: Slots) -> str:
    kind = conversion.group(1)
    if kind is None:
        return "%"
    if kind in _data()["printf"]:
        return str(_data()["printf"][kind])
    text = conversion.string
    return _value(None, text[: conversion.start()], text[conversion.end() :], turn, slots)


def _braced(inner: str, before: str, after: str, turn: int, slots: Slots) -> str:
    """`{a|b}` is a choice, `{ text with {holes}}` may be missing, `{{x}}` is a set, all else is a named hole."""
    if inner.startswith("{") and _closing(inner, 0) == len(inner) - 1:
        return "{" + _filled(inner, turn, slots) + "}"
    if "|" in inner and "{" not in inner:
        choices = [choice for choice in inner.split("|") if choice != ".."]
        return re.sub(r"\bN\b", "3", choices[turn % len(choices)])
    if "{" in inner or (inner[:1] in " .,;:" and inner != "..") or inner.endswith(" "):
        return (_filled(inner, turn, slots), "")[turn % 2]
    return _value(inner, before, after, turn, slots)


def _value(name: str | None, before: str, after: str, turn: int, slots: Slots) -> str:
    hole = next(hole for hole in _data()["holes"] if _fits_hole(hole, name, before, after, slots))
    return _turn(hole["values"], turn, name or "")


def _turn(values: list[Any], turn: int, name: str) -> str:
    return str(values[turn % len(values)]) if values else name


def _fits_hole(hole: dict[str, Any], name: str | None, before: str, after: str, slots: Slots) -> bool:
    return (
        ("name" not in hole or (name is not None and re.search(hole["name"], name) is not None))
        and ("name" in hole or name is None or "before" not in hole)
        and ("before" not in hole or re.search(hole["before"], before[-_BEFORE:]) is not None)
        and ("after" not in hole or re.search(hole["after"], after) is not None)
        and ("file" not in hole or hole["file"] in slots.file)
        and ("component" not in hole or hole["component"] in slots.component)
    )


def _fits_form(form: dict[str, Any], template: str, slots: Slots) -> bool:
    return (
        ("level" not in form or form["level"] == slots.level)
        and ("component" not in form or (not slots.level and re.search(form["component"], slots.component) is not None))
        and ("message" not in form or re.search(form["message"], template) is not None)
        and not (slots.until and "since" in form and _older(slots.until, form["since"]))
        and not (slots.since and "until" in form and _older(form["until"], slots.since))
    )


def _framed(form: dict[str, Any], message: str, slots: Slots) -> str:
    place = f"{slots.file.replace('src/', '', 1).split('@')[0] or 'init.cc'}:{slots.line or 1}"
    text = (
        str(form["text"])
        .replace("{place}", place)
        .replace("{message}", message.strip("\n") if slots.level else message)
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


def _data() -> dict[str, Any]:
    data: dict[str, Any] = document("message_forms.yaml")
    return data
