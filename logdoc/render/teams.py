"""The Report as a Microsoft Teams message with an Adaptive Card, for a Workflows webhook. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from logdoc.render import parts
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Report

MOST_BYTES = 20_000  # Teams refuses 28 KB, and in practice some messages of 21 KB
FRAME_BYTES = 1_000
LONGEST_TEXT = 3_000
LONGEST_COMMANDS = 6_000  # bytes of one fix
MOST_DIAGNOSES = 3
MOST_OTHERS = 10
MOST_EVIDENCE = 5
MOST_ADVICE = 10
_COLORS = {"cause-found": "attention", "symptoms-only": "warning", "unrecognised": "warning", "healthy": "good"}

Element = dict[str, Any]


def render_teams(report: Report) -> str:
    """The body to POST, as one line of JSON: a message with one Adaptive Card of version 1.4."""
    pieces = [Piece(element, len(_json(element).encode()) + 1, need) for element, need in _elements(report)]
    title = cut(parts.headline(report), 200)
    kept, left_out = fitting(pieces, MOST_BYTES - FRAME_BYTES - len(_without_markdown(title).encode()))
    body = [piece.content for piece in kept]
    if left_out:
        body.append(_text(phrase("text.left_out", report.language, n=left_out), isSubtle=True, size="small"))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "lang": report.language,
        "fallbackText": _without_markdown(title),
        "body": body,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return _json({"type": "message", "attachments": [attachment]}) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _elements(report: Report) -> Iterator[tuple[Element, Need]]:
    title = cut(parts.headline(report), 1_000)
    yield _text(title, size="large", weight="bolder", color=_COLORS[report.outcome]), Need.HEADLINE
    for number, diagnosis in enumerate(report.diagnoses[:MOST_DIAGNOSES]):
        yield from _diagnosis(diagnosis, report.language, first=number == 0)
    for other in report.diagnoses[MOST_DIAGNOSES:][:MOST_OTHERS]:
        told = f"{cut(one_line(other.title), 200)} ({other.confidence:.2f})"
        yield _labelled("also", told, report.language), Need.OTHERS
    for key, text in list(parts.advice(report))[:MOST_ADVICE]:
        yield _labelled(key, cut(text, 800), report.language), Need.ADVICE
    yield _text(parts.made_by(report), isSubtle=True, size="small"), Need.DETAIL


def _diagnosis(diagnosis: Diagnosis, language: str, *, first: bool) -> Iterator[tuple[Element, Need]]:
    if not first:
        title = parts.labelled("also", cut(one_line(diagnosis.title), 300), language)
        yield {**_text(title, weight="bolder"), "separator": True}, Need.OTHERS
    byline = cut(" · ".join(parts.byline(diagnosis, language)), 600)
    yield _text(byline, isSubtle=True), Need.HEADLINE if first else Need.OTHERS
    if why := parts.why(diagnosis, language):
        yield _labelled("why", cut(why, LONGEST_TEXT), language), Need.WHY if first else Need.OTHERS
    if diagnosis.evidence and first:
        lines = [cut(parts.quoted(line), parts.longest(line)) for line in diagnosis.evidence[:MOST_EVIDENCE]]
        yield _code(lines), Need.EVIDENCE
    for line in diagnosis.probes if first else ():
        yield _labelled("probes", cut(parts.probe(line, language), 600), language), Need.ADVICE
    remedies = list(parts.remedies(diagnosis, language))
    for remedy in remedies if first else remedies[:1]:
        yield _remedy(remedy, language), Need.FIX if first else Need.OTHERS


def _remedy(remedy: parts.Remedy, language: str) -> Element:
    """A fix is one element: it is shown with its commands or not at all."""
    items = [_text(cut(parts.labelled("do_this", remedy.heading, language), 400), weight="bolder")]
    if remedy.why:
        items.append(_text(cut(remedy.why, 800)))
    typed = list(parts.command_lines(remedy, LONGEST_COMMANDS, language))
    if typed:
        items.append(_code(typed))
    if remedy.verify:
        items.append(_labelled("verify", cut(remedy.verify, 800), language))
    return {"type": "Container", "items": items}


def _code(lines: list[str]) -> Element:
    """One block a line: how a line break inside a run is drawn differs between Teams' clients."""
    return {
        "type": "Container",
        "style": "emphasis",
        "items": [_text(line or " ", fontType="monospace") for line in lines],
    }


def _labelled(key: str, text: str, language: str) -> Element:
    label = parts.labelled(key, "", language)
    return {"type": "RichTextBlock", "inlines": [_run(label, weight="bolder"), _run(text)]}


def _text(text: str, **style: Any) -> Element:
    """A RichTextBlock: unlike a TextBlock, its runs are not read as Markdown, so log text stays text."""
    return {"type": "RichTextBlock", "inlines": [_run(text, **style)]}


def _run(text: str, **style: Any) -> Element:
    return {"type": "TextRun", "text": text, **style}


def _without_markdown(text: str) -> str:
    """fallbackText alone may be read as Markdown."""
    return "".join(f"\\{sign}" if sign in r"\`*_[]()<>#~|!" else sign for sign in text)
