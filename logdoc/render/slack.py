"""The Report as a Slack message (Block Kit), within Slack's limits. Sends nothing; no log text becomes mrkdwn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from logdoc.render import parts
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Report

# Documented: 50 blocks, 150 characters of header, 3,000 of section text. Not documented: a message of more than about
# 13,200 characters is refused as msg_blocks_too_long (slackapi/bolt-js#2509).
MOST_CHARACTERS = 12_000
MOST_BLOCKS = 50
LONGEST_HEADER = 150
LONGEST_TEXT = 3_000
LONGEST_FALLBACK = 1_000
LONGEST_COMMANDS = 4_000  # bytes of one fix
MOST_DIAGNOSES = 3
MOST_OTHERS = 5
MOST_EVIDENCE = 5
MOST_ADVICE = 6
FRAME = 500  # characters kept for what stands round the blocks and the note on what is left out

Block = dict[str, Any]
_CONTROL = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_INVISIBLE_BREAK = "\u200b"


def render_slack(report: Report) -> str:
    """The payload of chat.postMessage or an incoming webhook, as one line of JSON."""
    fallback = bounded(parts.headline(report), LONGEST_FALLBACK)
    pieces = [_piece(blocks, need) for blocks, need in _groups(report)]
    kept, left_out = fitting(pieces, MOST_CHARACTERS - length(_json(fallback)) - FRAME, MOST_BLOCKS - 1)
    blocks = [block for piece in kept for block in piece.content]
    if left_out:
        blocks.append(_context(phrase("text.left_out", report.language, n=left_out)))
    return _json({"text": fallback, "blocks": blocks}) + "\n"


def _piece(blocks: list[Block], need: Need) -> Piece[list[Block]]:
    return Piece(blocks, length(_json(blocks)), need, len(blocks))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _groups(report: Report) -> Iterator[tuple[list[Block], Need]]:
    """Blocks that belong together; a fix is one group, shown with its commands or not at all."""
    title, language = parts.headline(report), report.language
    yield [{"type": "header", "text": _plain(title, LONGEST_HEADER)}], Need.HEADLINE
    if length(escaped(title)) > LONGEST_HEADER:
        yield [_section(title)], Need.WHY
    for number, diagnosis in enumerate(report.diagnoses[:MOST_DIAGNOSES]):
        yield from _best(diagnosis, language) if number == 0 else _other(diagnosis, language)
    rest = report.diagnoses[MOST_DIAGNOSES:][:MOST_OTHERS]
    if rest:
        told = "; ".join(f"{cut(one_line(one.title), 200)} ({one.confidence:.2f})" for one in rest)
        yield [_context(parts.labelled("also", told, language))], Need.OTHERS
    for key, text in list(parts.advice(report))[:MOST_ADVICE]:
        yield [_section(parts.labelled(key, text, language), 600)], Need.ADVICE
    yield [_context(parts.made_by(report))], Need.DETAIL


def _best(diagnosis: Diagnosis, language: str) -> Iterator[tuple[list[Block], Need]]:
    yield [_byline(diagnosis, language)], Need.HEADLINE
    if why := parts.why(diagnosis, language):
        yield [_section(parts.labelled("why", why, language))], Need.WHY
    if diagnosis.evidence:
        lines = [whole(escaped(parts.quoted(line)), parts.longest(line)) for line in diagnosis.evidence[:MOST_EVIDENCE]]
        yield _fenced(lines), Need.EVIDENCE
    for line in diagnosis.probes:
        yield [_context(parts.labelled("probes", parts.probe(line, language), language))], Need.ADVICE
    for remedy in parts.remedies(diagnosis, language):
        yield _remedy(remedy, language), Need.FIX


def _other(diagnosis: Diagnosis, language: str) -> Iterator[tuple[list[Block], Need]]:
    """A further hypothesis with its best fix, where there is room."""
    title = _section(parts.labelled("also", one_line(diagnosis.title), language), 300)
    blocks = [{"type": "divider"}, title, _byline(diagnosis, language)]
    if why := parts.why(diagnosis, language):
        blocks.append(_section(parts.labelled("why", why, language), 900))
    for remedy in list(parts.remedies(diagnosis, language))[:1]:
        blocks += _remedy(remedy, language)
    yield blocks, Need.OTHERS


def _byline(diagnosis: Diagnosis, language: str) -> Block:
    return _context(" · ".join(parts.byline(diagnosis, language)), 600)


def _remedy(remedy: parts.Remedy, language: str) -> list[Block]:
    text = parts.labelled("do_this", remedy.heading, language)
    blocks = [_section(text + (f"\n{remedy.why}" if remedy.why else ""), 900)]
    blocks += _fenced([escaped(line) for line in parts.command_lines(remedy, LONGEST_COMMANDS, language)])
    if remedy.verify:
        blocks.append(_context(parts.labelled("verify", remedy.verify, language), 600))
    return blocks


def _fenced(lines: list[str]) -> list[Block]:
    """Escaped lines as code in as few blocks as hold them. Slack has no escape for its fence: an unseen break does."""
    bodies: list[str] = []
    for line in lines:
        line = whole(re.sub("`(?=``)", f"`{_INVISIBLE_BREAK}", line), LONGEST_TEXT - 8)
        if bodies and length(bodies[-1]) + length(line) + 1 <= LONGEST_TEXT - 8:
            bodies[-1] += f"\n{line}"
        else:
            bodies.append(line)
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": f"```\n{body}\n```", "verbatim": True}}
        for body in bodies
        if body.strip()
    ]


def _section(text: str, most: int = LONGEST_TEXT) -> Block:
    return {"type": "section", "text": _plain(text, most)}


def _context(text: str, most: int = 1_000) -> Block:
    return {"type": "context", "elements": [_plain(text, most)]}


def _plain(text: str, most: int) -> Block:
    """plain_text reads no mrkdwn, so nothing in it needs more than Slack's three control characters escaped."""
    return {"type": "plain_text", "text": bounded(text, most), "emoji": False}


def bounded(text: str, most: int) -> str:
    """Escaped text of at most `most` characters."""
    return whole(escaped(cut(text, most)), most)


def escaped(text: str) -> str:
    return text.translate(_CONTROL)


def whole(text: str, most: int) -> str:
    """Escaped text cut to `most` characters, never inside an entity such as `&lt;`."""
    while (excess := length(text) - most) > 0:
        kept = cut(text, len(text) - (excess + 1) // 2).removesuffix("…")
        text = re.sub(r"&[a-z]{0,3}$", "", kept) + "…"
    return text


def length(text: str) -> int:
    """Characters as JavaScript counts them, an emoji as two: the stricter of the two ways to read Slack's limits."""
    return len(text.encode("utf-16-le")) // 2
