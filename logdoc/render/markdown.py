"""The Report as GitHub Markdown for an issue or a comment, at most 65,536 characters. No log text becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from logdoc.kept.patterns import lazily
from logdoc.render import parts
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Report

MOST_CHARACTERS = 65_536  # of a GitHub issue or comment
LONGEST_PROSE = 4_000
LONGEST_COMMANDS = 16_000  # bytes of one fix
MOST_RANK_ROWS = 64
MOST_EVENTS = 50

_SPECIAL = lazily(r"[\\`*_{}\[\]<>()~|&$!^=]")
# GitHub turns these into links after Markdown is done, where a backslash no longer helps; an empty comment does.
_REFERENCE = lazily(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=:)(?=[\w+-]{1,64}:)|(?<=:)(?=//)|(?<=//)(?=\w)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-)"
)
_LINE_START = lazily(r"^(\d{0,9})([#+.>-])")
_LINK = lazily(r"https?://[\w.~:/?#@!$&'*+,;=%-]{1,500}")
_APART = "<!-- -->"


def render_markdown(report: Report) -> str:
    """The best hypothesis open, its evidence and everything else folded; evidence goes first where room is short."""
    pieces = [_piece(text, need) for text, need in _pieces(report)]
    note = phrase("text.left_out", report.language, n=len(pieces))
    kept, left_out = fitting(pieces, MOST_CHARACTERS - len(note) - 32)
    texts = [piece.content for piece in kept]
    if left_out:
        texts.append(f"<sub>{phrase('text.left_out', report.language, n=left_out)}</sub>\n")
    return "\n".join(texts)


def _piece(text: str, need: Need) -> Piece[str]:
    return Piece(text, len(text) + 1, need)


def _pieces(report: Report) -> Iterator[tuple[str, Need]]:
    yield f"## {prose(parts.headline(report), 400)}\n", Need.HEADLINE
    for number, diagnosis in enumerate(report.diagnoses):
        yield from _best(diagnosis, report) if number == 0 else _other(diagnosis, report)
    for key, text in parts.advice(report):
        yield _labelled(key, prose(text), report.language), Need.ADVICE
    for table in (parts.rank_table(report, MOST_RANK_ROWS), parts.timeline_table(report, MOST_EVENTS)):
        if table is not None:
            yield _table(table), Need.DETAIL
    yield f"<sub>{_html(parts.made_by(report))}</sub>\n", Need.ADVICE


def _best(diagnosis: Diagnosis, report: Report) -> Iterator[tuple[str, Need]]:
    language = report.language
    yield f"{_byline(diagnosis, language)}\n", Need.HEADLINE
    if why := parts.why(diagnosis, language):
        yield _labelled("why", prose(why), language), Need.WHY
    for remedy in parts.remedies(diagnosis, language):
        yield _remedy(remedy, language), Need.FIX
    for line in diagnosis.probes:
        yield _labelled("probes", prose(parts.probe(line, language)), language), Need.WHY
    if diagnosis.evidence:
        yield _evidence(diagnosis, phrase("text.evidence", language, n=len(diagnosis.evidence))), Need.EVIDENCE
    if diagnosis.explains:
        yield _labelled("explains", prose(", ".join(diagnosis.explains)), language), Need.OTHERS
    if links := [link for link in map(_link, diagnosis.references) if link]:
        yield _labelled("references", " · ".join(links), language), Need.OTHERS


def _other(diagnosis: Diagnosis, report: Report) -> Iterator[tuple[str, Need]]:
    language = report.language
    title = f"{cut(one_line(diagnosis.title), 300)} · {parts.sureness(diagnosis, language)}"
    inside = [f"{_byline(diagnosis, language)}\n", f"{prose(parts.why(diagnosis, language))}\n"]
    inside += [_remedy(remedy, language) for remedy in parts.remedies(diagnosis, language)]
    yield _folded(title, "\n".join(inside)), Need.OTHERS
    if diagnosis.evidence:
        count = phrase("text.evidence", language, n=len(diagnosis.evidence))
        yield _evidence(diagnosis, f"{count} · {one_line(diagnosis.rule)}"), Need.EVIDENCE


def _byline(diagnosis: Diagnosis, language: str) -> str:
    rule, sure, where, *often = parts.byline(diagnosis, language)
    return " · ".join([code(rule), sure, code(cut(where, 300)), *map(prose, often)])


def _labelled(key: str, text: str, language: str) -> str:
    """A paragraph of escaped text behind a bold label."""
    return f"**{parts.labelled(key, '', language).strip()}** {text}\n"


def _remedy(remedy: parts.Remedy, language: str) -> str:
    lines = [f"**{parts.labelled('do_this', prose(remedy.heading), language)}**\n"]
    if remedy.why:
        lines.append(f"{prose(remedy.why)}\n")
    for is_code, blocks in groupby(
        parts.command_blocks(remedy, LONGEST_COMMANDS, language), key=lambda block: block[0]
    ):
        typed = "\n".join(line for _, block in blocks for line in block)
        lines.append(fenced(typed, "python" if is_code else "sh"))
    if remedy.verify:
        lines.append(f"{parts.labelled('verify', code(cut(remedy.verify, 1_000)), language)}\n")
    return "\n".join(lines)


def _evidence(diagnosis: Diagnosis, title: str) -> str:
    lines = [cut(parts.quoted(line), parts.longest(line)) for line in diagnosis.evidence]
    return _folded(title, fenced("\n".join(lines), "text"))


def _table(table: parts.Table) -> str:
    lines = [table.heads, ["---"] * len(table.heads), *([prose(cell, 200) for cell in row] for row in table.rows)]
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    return _folded(table.title, "\n".join([*rows, *(["", table.more] if table.more else [])]) + "\n")


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{_html(title)}</summary>\n\n{inside}\n</details>\n"


def prose(text: str, most: int = LONGEST_PROSE) -> str:
    """Text as text: nothing in it is emphasis, code, a link, HTML, a mention, an issue or an emoji."""
    plain = cut(one_line(text), most)
    escaped = [_SPECIAL.sub(r"\\\g<0>", part) for part in _REFERENCE.split(plain)]
    return _LINE_START.sub(r"\1\\\2", _APART.join(escaped))


def code(text: str) -> str:
    """A code span that no backtick in `text` ends."""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[:1] in "` " or text[-1:] in "` " else ""
    return f"{fence}{pad}{text or ' '}{pad}{fence}"


def fenced(text: str, language: str) -> str:
    """A code block that no fence in `text` ends."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _html(text: str) -> str:
    """Text inside a tag on one line, where Markdown is not read but GitHub's references are."""
    return _APART.join(escape(part) for part in _REFERENCE.split(one_line(text)))


def _link(reference: str) -> str | None:
    """A link only for a plain web address; a rule pack may name a book."""
    return f"<{reference}>" if _LINK.fullmatch(reference) else code(cut(one_line(reference), 300))
