"""Draws the timeline grid, a rank a line, and lets the keyboard go from event to event; works out nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from logdoc.tui.keys import bind
from logdoc.tui.marks import KIND_SIGNS, one_line, rich_style
from logdoc.tui.phrases import Voice
from logdoc.tui.timeline_grid import Event, Grid, Row, grid
from logdoc.types.report import Report, TimelineEntry

NARROW = 70  # cells; below, hosts are left out
HOST_CELLS = 15
STATE_CELLS = 9
FIRST = "▶"


class TimelineView(ScrollView, can_focus=True):
    """Rows are ranks, columns steps of time. The first line, with the times, stays where it is."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"timeline--head", "timeline--cursor", "timeline--cascade"}
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "move(1)", "timeline.down"),
        bind("up,k", "move(-1)", "timeline.up"),
        bind("left", "event(-1)", "timeline.left"),
        bind("right", "event(1)", "timeline.right"),
        bind("home", "to(0)", "timeline.first"),
        bind("end", "to(-1)", "timeline.last"),
        bind("enter", "choose", "timeline.choose"),
    ]

    row: reactive[int] = reactive(0)
    event_number: reactive[int] = reactive(0)

    @dataclass
    class Pointed(Message):
        """The cursor stands on this row, and on this event if the row has any."""

        entry: TimelineEntry | None

    @dataclass
    class Chosen(Message):
        """The user wants to see where this event is in the log."""

        entry: TimelineEntry

    def __init__(self, voice: Voice) -> None:
        super().__init__(id="timeline")
        self._voice = voice
        self._report: Report | None = None
        self._grid = Grid((), 0, (), None)

    def show(self, report: Report) -> None:
        """Draw this report, the cursor on the first failure; if it was on an event already, on the same rank."""
        before, rank, number = self._pointed, self._rank, self.event_number
        self._report = report
        self._lay_out()
        origin = next((number for number, row in enumerate(self._grid.rows) if row.first), 0)
        self.row = origin
        rows = self._grid.rows
        self.event_number = next((n for n, event in enumerate(rows[origin].events) if event.first), 0) if rows else 0
        for place, row in enumerate(rows if before is not None else ()):
            if row.rank == rank:
                self.row, self.event_number = place, number
        self._reveal()
        self._point()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        if self._report is not None:
            self._grid = grid(self._report, self.size.width - self._label_cells - 1)
            self.virtual_size = Size(self.size.width, len(self._grid.rows) + 1)
            self.refresh()

    @property
    def _rank(self) -> int | None:
        """The rank the cursor stands on, if any."""
        rows = self._grid.rows
        return rows[self.row].rank if self.row < len(rows) else None

    @property
    def _pointed(self) -> Event | None:
        rows = self._grid.rows
        events = rows[self.row].events if self.row < len(rows) else []
        return events[min(self.event_number, len(events) - 1)] if events else None

    def _point(self) -> None:
        event = self._pointed
        self.post_message(self.Pointed(event.entry if event else None))

    def on_click(self, event: Click) -> None:
        row = event.y - 1 + self.scroll_offset.y
        if 0 <= row < len(self._grid.rows):
            self.action_to(row)

    def action_move(self, rows: int) -> None:
        self.action_to(max(0, min(self.row + rows, len(self._grid.rows) - 1)))

    def action_to(self, row: int) -> None:
        self.row = row % max(1, len(self._grid.rows))
        self.event_number = 0
        self._reveal()
        self._point()

    def action_event(self, step: int) -> None:
        rows = self._grid.rows
        count = len(rows[self.row].events) if rows else 0
        self.event_number = max(0, min(self.event_number + step, count - 1))
        self._point()

    def action_choose(self) -> None:
        if self._pointed is not None:
            self.post_message(self.Chosen(self._pointed.entry))

    def watch_row(self) -> None:
        self.refresh()

    def watch_event_number(self) -> None:
        self.refresh()

    def _reveal(self) -> None:
        height = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if not top <= self.row < top + height:
            self.scroll_to(y=max(0, self.row - height // 2), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        number = y - 1 + self.scroll_offset.y
        if y == 0:
            text = self._head()
        elif number < len(self._grid.rows):
            text = self._line(number, self._grid.rows[number])
        else:
            text = Text("")
        strip = Strip(text.render(self.app.console)).adjust_cell_length(self.size.width)
        return strip.apply_style(self.rich_style)

    @property
    def _label_cells(self) -> int:
        """What stands left of the grid: sign, rank, host where there is room, state."""
        return 2 + self._rank_cells + 1 + self._host_cells + STATE_CELLS

    @property
    def _rank_cells(self) -> int:
        ranks = [row.rank for row in self._grid.rows if row.rank is not None]
        return max(4, len(str(max(ranks, default=0))))

    @property
    def _host_cells(self) -> int:
        return HOST_CELLS if self.size.width >= NARROW else 0

    def _head(self) -> Text:
        text = Text(style=self.get_component_rich_style("timeline--head", partial=True), end="", no_wrap=True)
        text.append(_fitted(f"  {self._voice.say('timeline.rank'):>{self._rank_cells}}", self._label_cells))
        cells = 0
        for column, label in self._grid.ticks:
            text.append(" " * (column - cells) + label)
            cells = column + len(label)
        return text

    def _line(self, number: int, row: Row) -> Text:
        text = Text(end="", no_wrap=True)
        cursor = self.get_component_rich_style("timeline--cursor", partial=True)
        style = cursor if number == self.row else Style.null()
        rank = "–" if row.rank is None else str(row.rank)
        text.append(f"{FIRST if row.first else ' '} {rank:>{self._rank_cells}} ", style)
        text.append(_fitted(one_line(row.host or "–"), self._host_cells), style)
        text.append(_fitted(self._voice.say(f"state.{row.state}"), STATE_CELLS), style)
        self._draw(text, number, row)
        return text

    def _draw(self, text: Text, number: int, row: Row) -> None:
        """The events of a row, and the part of the cascade that runs through it."""
        line = [" "] * (self._grid.columns + 1)
        start = len(text)
        stem = self._grid.stem
        if stem is not None and stem[1] <= number <= stem[2]:
            _cascade(line, stem, number, row)
        for event in reversed(row.events):
            line[event.column] = KIND_SIGNS[event.entry.kind][0]
        text.append("".join(line), self.get_component_rich_style("timeline--cascade", partial=True))
        for event in reversed(row.events):
            style = rich_style(KIND_SIGNS[event.entry.kind][1], self.app)
            text.stylize(style, start + event.column, start + event.column + 1)
        pointed = self._pointed
        if number == self.row and pointed is not None:
            text.stylize("reverse", start + pointed.column, start + pointed.column + 1)


def _cascade(line: list[str], stem: tuple[int, int, int], number: int, row: Row) -> None:
    column, top, bottom = stem
    reached = row.consequence
    if row.first is None:
        turn = "╭" if number == top else "╰" if number == bottom else "├"
        line[column] = turn if reached else "│"
    if reached is not None and reached.column > column:
        for cell in range(column + 1, reached.column):
            line[cell] = "┄"


def _fitted(text: str, cells: int) -> str:
    """`text` in exactly so many cells, with a blank at its end."""
    return set_cell_size(text, cells - 1) + " " if cells else ""
