"""The Report as one page that needs nothing else: no scripts, no network, light and dark. Log text stays text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from html import escape

from logdoc.kept import data
from logdoc.kept.patterns import lazily
from logdoc.render import parts
from logdoc.render.plain import cut, one_line, visible
from logdoc.render.timeline import timeline_grid
from logdoc.render.timeline_svg import timeline_svg
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, FlightRecorder, Report

LONGEST_TEXT = 4_000
LONGEST_ADVICE = 1_000
LONGEST_COMMANDS = 32_000  # bytes of one fix
MOST_RANK_ROWS = 200
MOST_EVENTS = 300
MOST_PLACES = 64
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LINK = lazily(r"https?://[^\s<>\"'\\]{1,500}")


def render_html(report: Report) -> str:
    """A complete HTML document; the text of the report is readable without opening anything but its details."""
    language = "zh-CN" if report.language == "zh" else "en"
    title = _text(parts.headline(report), 200)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="{language}" dir="ltr">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}</title>",
            f"<style>{_style()}</style></head>",
            "<body>",
            *_body(report),
            "</body></html>",
            "",
        ]
    )


@cache
def _style() -> str:
    return data.text("report.css").strip()


def _body(report: Report) -> Iterator[str]:
    yield f'<header><h1 class="{report.outcome}">{_text(parts.headline(report), 1_000)}</h1>'
    best = report.diagnoses[0] if report.diagnoses else None
    yield f"{_byline(best, report.language) if best else ''}</header><main>"
    if best:
        yield from _account(best, report.language, opened=True)
    for key, text in parts.advice(report):
        yield _labelled(key, cut(text, LONGEST_ADVICE), report.language)
    yield from _timeline(report)
    yield from _others(report)
    yield from _rank_table(report)
    yield from (part for recorded in report.flight_recorder for part in _recorded(recorded, report.language))
    yield from _facts(report)
    yield f'</main><footer><p class="soft">{_text(parts.made_by(report))}</p></footer>'


def _byline(diagnosis: Diagnosis, language: str) -> str:
    return f'<p class="soft">{_text(" · ".join(parts.byline(diagnosis, language)))}</p>'


def _account(diagnosis: Diagnosis, language: str, *, opened: bool) -> Iterator[str]:
    """Why, what to do, what probes and the log say."""
    if why := parts.why(diagnosis, language):
        yield _labelled("why", why, language)
    for remedy in parts.remedies(diagnosis, language):
        yield from _remedy(remedy, language)
    for line in diagnosis.probes:
        yield _labelled("probes", parts.probe(line, language), language)
    if diagnosis.evidence:
        count = _text(phrase("text.evidence", language, n=len(diagnosis.evidence)))
        lines = "\n".join(cut(parts.quoted(line), LONGEST_TEXT) for line in diagnosis.evidence)
        yield f"<details{' open' if opened else ''}><summary>{count}</summary>{_pre(lines)}</details>"
    if diagnosis.explains:
        yield _labelled("explains", ", ".join(diagnosis.explains), language)
    if diagnosis.references:
        links = " · ".join(_link(reference) for reference in diagnosis.references)
        yield f'<p class="soft">{_label("references", language)}{links}</p>'


def _remedy(remedy: parts.Remedy, language: str) -> Iterator[str]:
    yield f"<section><h3>{_text(parts.labelled('do_this', remedy.heading, language))}</h3>"
    if remedy.why:
        yield f"<p>{_text(remedy.why)}</p>"
    typed = list(parts.command_lines(remedy, LONGEST_COMMANDS, language))
    if typed:
        yield _pre("\n".join(typed))
    if remedy.verify:
        yield f"<p>{_label('verify', language)}<code>{_text(remedy.verify)}</code></p>"
    yield "</section>"


def _others(report: Report) -> Iterator[str]:
    language = report.language
    if len(report.diagnoses) > 1:
        yield f"<h2>{_text(phrase('text.also', language))}</h2>"
    for diagnosis in report.diagnoses[1:]:
        title = f"{one_line(diagnosis.title)} · {parts.sureness(diagnosis, language)}"
        inside = "\n".join(_account(diagnosis, language, opened=False))
        yield f"<details><summary>{_text(title, 400)}</summary>{_byline(diagnosis, language)}{inside}</details>"


def _timeline(report: Report) -> Iterator[str]:
    """The drawing, its legend, and the same as a table."""
    table = parts.timeline_table(report, MOST_EVENTS)
    if table is None:
        return
    language = report.language
    grid = timeline_grid(report)
    numbers = {rule: number for number, rule in enumerate(dict.fromkeys(entry.rule for entry in report.timeline), 1)}
    kinds = {entry.rule: entry.kind for entry in report.timeline}
    yield f"<h2>{_text(phrase('text.timeline', language))}</h2>"
    yield f'<div class="wide">{timeline_svg(grid, numbers, language)}</div>'
    legend = [f"{number} {'◆' if kinds[rule] == 'cause' else '●'} {one_line(rule)}" for rule, number in numbers.items()]
    first = f"◎ {phrase('text.first_failure', language)} · ┄ {phrase('text.explained', language)}"
    order = [] if grid.clock else [f"→ {phrase('text.order', language)}"]
    hidden = [phrase("text.more_ranks", language, n=grid.hidden)] if grid.hidden else []
    yield f'<p class="soft">{_text(" · ".join([first, *legend, *order, *hidden]))}</p>'
    yield _folded(table)


def _rank_table(report: Report) -> Iterator[str]:
    table = parts.rank_table(report, MOST_RANK_ROWS)
    if table is not None:
        yield _folded(table)


def _folded(table: parts.Table) -> str:
    more = f"<p>{_text(table.more)}</p>" if table.more else ""
    return f"<details><summary>{_text(table.title, 300)}</summary>{_table(table.heads, table.rows)}{more}</details>"


def _recorded(recorded: FlightRecorder, language: str) -> Iterator[str]:
    """Where the flight recorder shows the ranks."""
    heads = ("rank", *(phrase(f"text.{head}", language) for head in ("state", "event", "where")))
    rows = tuple(
        (
            str(one.rank),
            phrase(f"word.{one.role}", language),
            " ".join(part for part in (one.group, one.operation) if part),
            one.frame or "",
        )
        for one in recorded.places[:MOST_PLACES]
    )
    title = phrase("text.recorded", language, kind=phrase(f"recorded.{recorded.kind}", language))
    yield _folded(parts.Table(f"{title} · {recorded.source}", heads, rows))


def _facts(report: Report) -> Iterator[str]:
    facts, driver = report.facts, phrase("text.driver", report.language)
    named = {"PyTorch": facts.torch, "NCCL": facts.nccl, "CUDA": facts.cuda, driver: facts.driver}
    rows = [(name, value) for name, value in named.items() if value]
    rows += [("GPU", gpu) for gpu in dict.fromkeys(facts.gpus)]
    rows += list(facts.env.items())
    if rows:
        yield f"<details><summary>{_text(phrase('text.facts', report.language))}</summary>{_table([], rows)}</details>"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell, 400)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _labelled(key: str, text: str, language: str) -> str:
    return f"<p><strong>{_label(key, language)}</strong>{_text(text)}</p>"


def _label(key: str, language: str) -> str:
    """A label with its colon; a Chinese one needs no blank behind it."""
    return escape(parts.labelled(key, "", language))


def _pre(text: str) -> str:
    return f"<pre>{escape(visible(text))}</pre>"


def _text(text: str, most: int = LONGEST_TEXT) -> str:
    return escape(cut(one_line(text), most))


def _link(reference: str) -> str:
    """A link only for a plain web address; anything else is text."""
    if not _LINK.fullmatch(reference):
        return _text(reference, 300)
    return f'<a href="{escape(reference)}" rel="noopener noreferrer">{_text(reference, 300)}</a>'
