"""The Report for a terminal: at most 25 lines unless asked for more; never markup from a log, never colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from logdoc.render.cells import cell_len, cropped
from logdoc.render.plain import visible
from logdoc.render.wrap import wrapped
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Evidence, ProbeLine, Report
from logdoc.types.value import dataclass

MOST_LINES = 25
MOST_EVIDENCE = 3


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


_SIGNS = {"cause-found": "✗", "symptoms-only": "!", "unrecognised": "?", "healthy": "✓"}
_ASCII = str.maketrans({"✗": "x", "✓": "+", "→": ">", "·": "-", "“": '"', "”": '"', "—": "-", "…": "~", "│": "|"})
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
_RISKS = {"safe": "", "slower": " [slower]", "changes-results": " [changes results]", "needs-admin": " [needs admin]"}


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
        yield from _diagnosis(report.diagnoses[0], report, options, full=False)
        yield from _considered(report, options)
    else:
        yield from _unrecognised(report, options)
    yield from _environment(report, options, most=2)
    if report.outcome in ("symptoms-only", "unrecognised"):
        yield from _collect(report, options, most=2)
    if report.outcome == "healthy" and report.noise:
        yield from _paragraph(phrase("text.noise", report.language), ", ".join(report.noise), options)
    if report.outcome == "cause-found" and report.restart.advice != "unknown":
        yield from _restart(report, options)
    for warning in report.warnings[:2]:
        yield from _paragraph(phrase("text.warnings", report.language), warning, options)


def _long(report: Report, options: TextOptions) -> Iterator[_Row]:
    yield from _headline(report, options)
    for number, diagnosis in enumerate(report.diagnoses):
        if number:
            yield from (_Row(line, "bold") for line in wrapped(diagnosis.title, options.width, "  "))
        yield from _diagnosis(diagnosis, report, options, full=True)
        yield _Row("")
    if not report.diagnoses:
        yield from _unrecognised(report, options)
    yield from _environment(report, options, most=1000)
    yield from _collect(report, options, most=100)
    if report.outcome != "healthy":
        yield from _restart(report, options)
    yield from _ranks(report)
    yield from _timeline(report)
    if report.noise:
        yield from _paragraph(phrase("text.noise", report.language), ", ".join(report.noise), options)
    for warning in report.warnings:
        yield from _paragraph(phrase("text.warnings", report.language), warning, options)


def _headline(report: Report, options: TextOptions) -> Iterator[_Row]:
    style = _STYLES[report.outcome]
    for line in wrapped(f"{_SIGNS[report.outcome]} {report.headline}", options.width, "  "):
        yield _Row(line, style)


def _diagnosis(diagnosis: Diagnosis, report: Report, options: TextOptions, *, full: bool) -> Iterator[_Row]:
    language = report.language
    place = f"{diagnosis.origin.source}:{diagnosis.origin.line}"
    sure = f"{phrase('word.' + diagnosis.status, language)} ({diagnosis.confidence:.2f})"
    yield _Row(f"  {diagnosis.rule} · {sure} · {place}", "cyan")
    yield from _paragraph(phrase("text.why", language), diagnosis.summary, options)
    if len(diagnosis.attempts) > 1:
        yield _Row(f"  {phrase('text.recurring', language, n=len(diagnosis.attempts))}")
    yield from _evidence(diagnosis, options, 100 if full else MOST_EVIDENCE)
    yield from _fixes(diagnosis, report, options, full=full)
    for probe in diagnosis.probes if full else filter(_tells, diagnosis.probes):
        yield from _paragraph(phrase("text.probes", language), f"{probe.id} {probe.outcome}: {probe.summary}", options)
    if diagnosis.explains:
        yield from _paragraph(phrase("text.explains", language), ", ".join(diagnosis.explains), options)
    if options.why:
        yield _Row(f"  {phrase('text.terms', language)} {diagnosis.rule}", "bold")
        yield from (_Row(f"    {term.value:+5.2f}  {term.name}") for term in diagnosis.score)


def _tells(probe: ProbeLine) -> bool:
    """Whether a probe decided something, or could not be run to its end: that the driver hangs is news too."""
    return probe.outcome != "unknown" or (not probe.ran and bool(probe.summary))


def _evidence(diagnosis: Diagnosis, options: TextOptions, most: int) -> Iterator[_Row]:
    for line in diagnosis.evidence[:most]:
        yield _Row(_cut(f"    {_source(line)} │ {_one_line(line.text)}", options.width), "dim")


def _source(line: Evidence) -> str:
    rank = f" r{line.rank}" if line.rank is not None else ""
    return f"{line.source.rsplit('/', 1)[-1]}:{line.line}{rank}"


def _fixes(diagnosis: Diagnosis, report: Report, options: TextOptions, *, full: bool) -> Iterator[_Row]:
    """Each remedy once, with its commands for every environment; only the first one unless `full`."""
    language = report.language
    remedies = [list(lines) for _, lines in groupby(diagnosis.fixes, key=lambda fix: (fix.title, fix.risk))]
    for remedy in remedies if full else remedies[:1]:
        first = remedy[0]
        title = f"  {phrase('text.do_this', language)}: {first.title}{_RISKS[first.risk]}"
        yield from (_Row(line, "bold") for line in wrapped(title, options.width, "    "))
        for fix in remedy if full else remedy[:2]:
            if fix.applies != "any":
                yield _Row(f"    {fix.applies}:", "dim")
            yield from (_Row(f"    {command}", "green") for command in fix.commands)
        if full and first.why:
            yield from (_Row(line) for line in wrapped("    " + first.why, options.width, "    "))
        if first.verify:
            yield _Row(f"    {phrase('text.verify', language)}: {first.verify}")


def _considered(report: Report, options: TextOptions) -> Iterator[_Row]:
    others = [f"{other.rule} ({other.confidence:.2f})" for other in report.diagnoses[1:4]]
    if others:
        yield from _paragraph(phrase("text.also", report.language), ", ".join(others), options)


def _unrecognised(report: Report, options: TextOptions) -> Iterator[_Row]:
    if report.first_abnormal is not None:
        place = f"{report.first_abnormal.source}:{report.first_abnormal.line}"
        yield from _paragraph(phrase("text.where", report.language), place, options)
    for line in report.novel[:5]:
        where = f"{line.source}:{line.line}: {line.text}"
        yield from _paragraph(phrase("text.novel", report.language), where, options)
    for near in report.similar:
        yield from _paragraph(phrase("text.similar", report.language), f"{near.rule} ({near.score:.2f})", options)


def _environment(report: Report, options: TextOptions, most: int) -> Iterator[_Row]:
    for problem in report.environment[:most]:
        setting = problem.variable if problem.value is None else f"{problem.variable}={problem.value}"
        text = f"{setting}: {problem.problem} → {problem.fix}" if problem.fix else f"{setting}: {problem.problem}"
        yield from _paragraph(phrase("text.environment", report.language), text, options)


def _collect(report: Report, options: TextOptions, most: int) -> Iterator[_Row]:
    for advice in report.collect_next[:most]:
        yield from _paragraph(phrase("text.collect", report.language), advice, options)


def _restart(report: Report, options: TextOptions) -> Iterator[_Row]:
    text = f"{report.restart.advice}: {report.restart.reason}"
    yield from _paragraph(phrase("text.restart", report.language), text, options)


def _ranks(report: Report) -> Iterator[_Row]:
    if len(report.ranks.table) < 2:
        return
    size = report.ranks.world_size or "?"
    yield _Row(f"  {phrase('text.ranks', report.language)} ({report.ranks.seen}/{size})", "bold")
    for row in report.ranks.table:
        error = f"{row.first_error.source}:{row.first_error.line}" if row.first_error else "-"
        yield _Row(
            f"    {row.rank:>5}  {row.state:<9} {row.host or '-':<20} {error:<28} {row.milestone or ''}".rstrip()
        )


def _timeline(report: Report) -> Iterator[_Row]:
    if not report.timeline:
        return
    yield _Row(f"  {phrase('text.timeline', report.language)}", "bold")
    for entry in report.timeline[:50]:
        who = "-" if entry.rank is None else str(entry.rank)
        yield _Row(f"    {entry.time or '-':<24} {who:>5}  {entry.rule}  {entry.source}:{entry.line}")


def _paragraph(label: str, text: str, options: TextOptions) -> Iterable[_Row]:
    return [_Row(line) for line in wrapped(f"  {label}: {_one_line(text)}", options.width, "    ")]


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")).replace("\t", " ")


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else cropped(text, width - 1) + "…"
