"""The timeline grid as an inline SVG: ranks down, time across; kinds and rules by shape and number, not only colour."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from logdoc.render.parts import ranks
from logdoc.render.plain import cut, one_line
from logdoc.render.timeline import Grid, Mark, Row
from logdoc.reporting.wording import phrase

ROW_HEIGHT, HEAD_HEIGHT, LABEL_WIDTH = 26, 30, 230  # CSS pixels
LEAST_COLUMN, MOST_COLUMN, TICK_WIDTH = 26, 110, 74
DRAWING_WIDTH = 720
MOST_FLOWS = 80
LONGEST_LABEL = 30


def timeline_svg(grid: Grid, rules: dict[str, int], language: str) -> str:
    """The drawing as an `<svg>` element. `rules` gives each rule the number that stands in its marks."""
    step = max(LEAST_COLUMN, min(MOST_COLUMN, DRAWING_WIDTH // max(len(grid.columns), 1)))
    width = LABEL_WIDTH + step * len(grid.columns) + 20
    height = HEAD_HEIGHT + ROW_HEIGHT * len(grid.rows) + 8
    label = escape(phrase("text.timeline", language))
    body = [*_ticks(grid, step, height), *_flows(grid, step)]
    for number, row in enumerate(grid.rows):
        body += _row(row, number, width, language)
        body += (_mark(mark, column, number, step, rules) for column, mark in row.marks)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg role="img" aria-label="{label}" {size} xmlns="http://www.w3.org/2000/svg">{"".join(body)}</svg>'


def _ticks(grid: Grid, step: int, height: int) -> Iterator[str]:
    """What the clock shows, wherever there is room and it has moved on."""
    room, told = 0, ""
    for column, label in enumerate(grid.columns):
        x = _x(column, step)
        yield f'<line class="grid" x1="{x}" y1="{HEAD_HEIGHT - 6}" x2="{x}" y2="{height}"/>'
        if x >= room and label != told:
            yield f'<text x="{x - 4}" y="{HEAD_HEIGHT - 12}">{escape(label)}</text>'
            room, told = x + TICK_WIDTH, label


def _row(row: Row, number: int, width: int, language: str) -> Iterator[str]:
    y = _y(number)
    name = phrase("text.rank", language, rank=ranks(row.ranks)) if row.ranks else phrase("text.no_rank", language)
    state = f" · {phrase('word.' + row.state, language)}" if row.ranks and row.state != "unknown" else ""
    yield f'<line class="grid" x1="0" y1="{y + ROW_HEIGHT // 2}" x2="{width}" y2="{y + ROW_HEIGHT // 2}"/>'
    yield f'<text x="4" y="{y + 4}">{escape(cut(name + state, LONGEST_LABEL))}</text>'


def _mark(mark: Mark, column: int, number: int, step: int, rules: dict[str, int]) -> str:
    """A diamond for a cause, a disc for anything else; a ring round the first failure."""
    x, y, entry = _x(column, step), _y(number), mark.entry
    if entry.kind == "cause":
        shape = f'<path class="cause" d="M{x} {y - 10}l10 10l-10 10l-10 -10z"/>'
    else:
        shape = f'<circle class="{escape(entry.kind)}" cx="{x}" cy="{y}" r="8"/>'
    ring = f'<circle class="ring" cx="{x}" cy="{y}" r="12"/>' if mark.first else ""
    more = f" (+{mark.more})" if mark.more else ""
    said = f"{entry.rule}{more} · {entry.source}:{entry.line}" + (f" · {entry.time}" if entry.time else "")
    inside = f'<text class="inside" x="{x}" y="{y + 4}">{rules.get(entry.rule, "")}</text>'
    return f"<g><title>{escape(cut(one_line(said), 300))}</title>{ring}{shape}{inside}</g>"


def _flows(grid: Grid, step: int) -> Iterator[str]:
    """Lines from the first failure to what it explains."""
    origin = next(
        ((column, number) for number, row in enumerate(grid.rows) for column, mark in row.marks if mark.first), None
    )
    if origin is None:
        return
    reached = [(column, number) for number, row in enumerate(grid.rows) for column, mark in row.marks if mark.caused]
    x, y = _x(origin[0], step), _y(origin[1])
    for column, number in reached[:MOST_FLOWS]:
        to_x, to_y = _x(column, step), _y(number)
        yield f'<path class="flow" d="M{x} {y}Q{to_x} {y} {to_x} {to_y}"/>'


def _x(column: int, step: int) -> int:
    return LABEL_WIDTH + step * column + 16


def _y(number: int) -> int:
    return HEAD_HEIGHT + ROW_HEIGHT * number + ROW_HEIGHT // 2
