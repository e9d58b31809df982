"""The Report for a terminal: at most 25 lines unless asked for more; never markup from a log, never colour alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from logdoc.render import parts
from logdoc.render.cells import cell_len, cropped
from logdoc.render.plain import one_line, visible
from logdoc.render.wrap import wrapped
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Evidence, ProbeLine, Report
from logdoc.types.value import dataclass

MOST_LINES = 25
MOST_EVIDENCE = 3
MOST_ADVICE = {"environment": 2, "collect": 2, "warnings": 2, "similar": 3, "novel": 5}  # else one of a kind
MOST_ROWS = 64  # of a table
WIDEST_CELL = 160


@dataclass(frozen=True, slots=True)
class TextOptions:
    """`width` in terminal cells; `long`: everything; `why`: the terms of every score; `ascii`: no other signs."""

    width: int = 100
    long: bool = False
    why: bool = False
    color: bool = False
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """A line to print: text and the style of all of it."""

    text: str
    style: str = ""


_ASCII = str.maketrans("✗✓→·“”—…│⏎", 'x+>-""-~|/')
_STYLES = {
    "cause-found": "bold red",
    "symptoms-only": "bold yellow",
    "unrecognised": "bold yellow",
    "healthy": "bold green",
}
# what a terminal calls the styles (ECMA-48, SGR); rich would take longer to import than a small log to explain
_SGR = {
    "bold": "1",
    "dim": "2",
    "green": "32",
    "cyan": "36",
    "bold red": "1;31",
    "bold green": "1;32",
    "bold yellow": "1;33",
}
_PLAIN = TextOptions()


def render_text(report: Report, options: TextOptions = _PLAIN) -> str:
    """The report as lines of at most `width` cells, with ANSI colours only if asked for."""
    rows = list(_long(report, options) if options.long else _short(report, options))
    if not options.long and not options.why:
        rows = _at_most(rows, MOST_LINES, report.language)
    return "".join(_printed(row, options) for row in rows)


def _at_most(rows: list[_Row], most: int, language: str) -> list[_Row]:
    if len(rows) <= most:
        return rows
    return [*rows[: most - 1], _Row(f"  … {phrase('text.more', language)}", "dim")]


def _printed(row: _Row, options: TextOptions) -> str:
    text = visible(row.text)
    text = text.translate(_ASCII) if options.ascii else text
    if not options.color or not row.style:
        return text + "\n"
    return "".join(f"\x1b[{_SGR[row.style]}m{line}\x1b[0m\n" if line else "\n" for line in text.split("\n"))


def _short(report: Report, options: TextOptions) -> Iterator[_Row]:
    yield from _headline(report, options)
    if report.diagnoses:
        yield from _diagnosis(report.diagnoses[0], report.language, options, full=False)
    others = [f"{other.rule} ({other.confidence:.2f})" for other in report.diagnoses[1:4]]
    if others:
        yield from _labelled("also", ", ".join(others), report.language, options)
    told = Counter[str]()
    for key, text in parts.advice(report):
        told[key] += 1
        if told[key] <= MOST_ADVICE.get(key, 1) and (key != "noise" or report.outcome == "healthy"):
            yield from _labelled(key, text, report.language, options)


def _long(report: Report, options: TextOptions) -> Iterator[_Row]:
    yield from _headline(report, options)
    for number, diagnosis in enumerate(report.diagnoses):
        if number:
            yield from _wrapped(f"  {one_line(diagnosis.title)}", options, "    ", "bold")
        yield from _diagnosis(diagnosis, report.language, options, full=True)
        yield _Row("")
    for key, text in parts.advice(report):
        yield from _labelled(key, text, report.language, options)
    for table in (parts.rank_table(report, MOST_ROWS), parts.timeline_table(report, MOST_ROWS)):
        if table is not None:
            yield from _table(table)


def _headline(report: Report, options: TextOptions) -> Iterator[_Row]:
    return _wrapped(parts.headline(report), options, "  ", _STYLES[report.outcome])


def _diagnosis(diagnosis: Diagnosis, language: str, options: TextOptions, *, full: bool) -> Iterator[_Row]:
    spot = parts.at(diagnosis.origin)  # who and where the headline says
    yield _Row(f"  {diagnosis.rule} · {parts.sureness(diagnosis, language)} · {spot}", "cyan")
    if why := parts.why(diagnosis, language):
        yield from _labelled("why", why, language, options)
    for line in diagnosis.evidence[: 100 if full else MOST_EVIDENCE]:
        yield from _evidence(line, options)
    remedies = list(parts.remedies(diagnosis, language))
    for remedy in remedies if full else remedies[:1]:
        yield from _remedy(remedy, language, options, full=full)
    for probe in diagnosis.probes if full else filter(_tells, diagnosis.probes):
        yield from _labelled("probes", parts.probe(probe, language), language, options)
    if diagnosis.explains:
        yield from _labelled("explains", ", ".join(diagnosis.explains), language, options)
    if options.why:
        yield _Row(f"  {phrase('text.terms', language)} {diagnosis.rule}", "bold")
        yield from (_Row(f"    {term.value:+5.2f}  {term.name}") for term in diagnosis.score)


def _evidence(line: Evidence, options: TextOptions) -> Iterator[_Row]:
    """A line of the log, cut to the width; what logdoc says itself, whole."""
    text = f"    {parts.quoted(line)}"
    return (
        _wrapped(text, options, "      ", "dim") if line.own_words else iter([_Row(_cut(text, options.width), "dim")])
    )


def _tells(probe: ProbeLine) -> bool:
    """Whether a probe decided something, or could not be run to its end: that the driver hangs is news too."""
    return probe.outcome != "unknown" or (not probe.ran and bool(probe.summary))


def _remedy(remedy: parts.Remedy, language: str, options: TextOptions, *, full: bool) -> Iterator[_Row]:
    """A remedy with its commands for every environment; the reason, and more than two environments, only if `full`."""
    yield from _wrapped(f"  {parts.labelled('do_this', remedy.heading, language)}", options, "    ", "bold")
    for applies, commands in remedy.runs if full else remedy.runs[:2]:
        if applies != "any":
            yield _Row(f"    {applies}:", "dim")
        for label, lines in parts.labels(parts.kinds(commands), language):
            if label is not None:
                yield _Row(f"    {phrase('text.labelled', language, label=label, text='').rstrip()}", "dim")
            yield from (_Row(f"    {command}", "green") for command in lines)
    if full and remedy.why:
        yield from _wrapped(f"    {remedy.why}", options, "    ")
    if remedy.verify:
        yield _Row(f"    {parts.labelled('verify', remedy.verify, language)}")


def _table(table: parts.Table) -> Iterator[_Row]:
    """Its rows in columns, heads above."""
    yield _Row(f"  {table.title}", "bold")
    lines = [[_cut(one_line(cell), WIDEST_CELL) for cell in row] for row in (table.heads, *table.rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
        yield _Row(f"    {'  '.join(padded)}".rstrip(), "" if number else "dim")
    if table.more:
        yield _Row(f"    {table.more}", "dim")


def _labelled(key: str, text: str, language: str, options: TextOptions) -> Iterator[_Row]:
    return _wrapped(f"  {parts.labelled(key, text, language)}", options, "    ")


def _wrapped(text: str, options: TextOptions, indent: str, style: str = "") -> Iterator[_Row]:
    return (_Row(line, style) for line in wrapped(text, options.width, indent))


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else cropped(text, width - 1) + "…"
