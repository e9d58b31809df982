"""Shows a LogFile: only the lines in view are read and drawn. Marks evidence and search hits; finds nothing itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from logdoc.tui.keys import bind
from logdoc.tui.logfile import LogFile
from logdoc.tui.marks import printable, rich_style

MOST_STRIPS = 1024  # drawn lines that are kept
SIGN_CELLS = 2  # a mark's sign, and the cursor's
CURSOR = "›"


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that a report names: the sign shown beside it, what of it matched, and the values captured in it."""

    sign: str
    style: str
    text: str
    values: tuple[str, ...] = ()
    chosen: bool = False


class LogPane(ScrollView, can_focus=True):
    """The lines of one log with their numbers. The cursor line is what jumps and searches start from."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"log--number", "log--cursor", "log--evidence", "log--chosen", "log--hit"}
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "move(1)", "log.down"),
        bind("up,k", "move(-1)", "log.up"),
        bind("pagedown,space", "page(1)", "log.page_down"),
        bind("pageup", "page(-1)", "log.page_up"),
        bind("home", "top", "log.top"),
        bind("end,G", "bottom", "log.bottom"),
        bind("left", "aside(-16)", "log.left"),
        bind("right", "aside(16)", "log.right"),
    ]

    cursor: reactive[int] = reactive(1)

    class Moved(Message):
        """The cursor stands on another line, or more lines are known."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._log: LogFile | None = None
        self._marks: Mapping[int, Sequence[Mark]] = {}
        self._pattern: re.Pattern[str] | None = None
        self._strips: LRUCache[int, Strip] = LRUCache(MOST_STRIPS)
        self._widest = 0
        self._wanted: int | None = None
        self._awaits = False

    @property
    def log_file(self) -> LogFile | None:
        return self._log

    def open(self, log: LogFile) -> None:
        """Show this log from its first line."""
        self._log, self._widest, self._wanted, self._awaits = log, 0, None, False
        self.forget()
        self.scroll_to(0, 0, animate=False, force=True)
        self.cursor = 1
        self.grow()

    def empty(self) -> None:
        """Show no log."""
        self._log, self._wanted, self._awaits = None, None, False
        self.virtual_size = Size(0, 0)
        self.forget()

    def wait(self) -> None:
        """The log is being read anew: until `exchange`, lines beyond its end may come to be."""
        self._awaits = True

    def exchange(self, log: LogFile) -> None:
        """Show the same log as it is now, and what is looked at where it is."""
        self._log, self._awaits = log, False
        self.cursor = max(1, min(self.cursor, log.line_count))
        self.forget()
        self.grow()

    def grow(self) -> None:
        """More lines of the log are known."""
        if self._log is None:
            return
        self._measure()
        self.refresh()
        if self._wanted is not None and (self._complete or self._wanted <= self._log.line_count):
            wanted, self._wanted = self._wanted, None
            self.go_to(wanted)
        self.post_message(self.Moved())

    @property
    def _complete(self) -> bool:
        """Are all lines known that there will be?"""
        return self._log is not None and self._log.complete and not self._awaits

    def mark(self, marks: Mapping[int, Sequence[Mark]]) -> None:
        """The lines of this log that a report names, by number."""
        self._marks = marks
        self.forget()

    def look_for(self, query: str) -> None:
        """Show every hit of a search; upper case in `query` makes case count, as in LogFile.find."""
        flags = re.IGNORECASE if query == query.lower() else re.NOFLAG
        self._pattern = re.compile(re.escape(printable(query)), flags) if query else None
        self.forget()

    def go_to(self, number: int) -> None:
        """Put the cursor on a line; on one not known yet as soon as it is known."""
        if self._log is None:
            return
        if number > self._log.line_count and not self._complete:
            self._wanted = number
            return
        self.cursor = max(1, min(number, self._log.line_count))
        self._reveal()
        self.scroll_to(x=self._left_edge(), animate=False, force=True)

    def forget(self) -> None:
        """Draw every line anew."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def watch_cursor(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        if self._log is not None and self._log.line_count:
            self._reveal()

    def on_click(self, event: Click) -> None:
        self.go_to(self.scroll_offset.y + event.y + 1)

    def action_move(self, lines: int) -> None:
        if self._log is not None:
            self.cursor = max(1, min(self.cursor + lines, self._log.line_count))
            self._reveal()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 1))

    def action_top(self) -> None:
        self.go_to(1)

    def action_bottom(self) -> None:
        self.go_to(self._log.line_count if self._log else 1)

    def action_aside(self, cells: int) -> None:
        self.scroll_to(x=max(0, self.scroll_offset.x + cells), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        number = self.scroll_offset.y + y + 1
        if self._log is None or number > self._log.line_count:
            return Strip.blank(self.size.width, self.rich_style)
        body = self._body(number)
        base = self.get_component_rich_style("log--cursor") if number == self.cursor else self.rich_style
        gutter = self._gutter(number)
        width = max(0, self.size.width - gutter.cell_length)
        shown = body.crop_extend(self.scroll_offset.x, self.scroll_offset.x + width, None)
        return (
            Strip.join([gutter, shown]).apply_style(base)
            if number == self.cursor
            else Strip.join([gutter, shown]).simplify().apply_style(base)
        )

    def _gutter(self, number: int) -> Strip:
        """Sign and line number; they stay where they are when the text moves aside."""
        marks = self._marks.get(number, ())
        sign = next((mark for mark in marks if mark.chosen), marks[0] if marks else None)
        segments = [
            Segment(sign.sign if sign else " ", rich_style(sign.style, self.app) if sign else Style.null()),
            Segment(CURSOR if number == self.cursor else " "),
            Segment(f"{number:>{self._digits()}} ", self.get_component_rich_style("log--number", partial=True)),
        ]
        return Strip(segments)

    def _room(self) -> int:
        """Cells for the text of a line."""
        return max(1, self.size.width - SIGN_CELLS - self._digits() - 1)

    def _digits(self) -> int:
        return max(3, len(str(self._log.line_count if self._log else 0)))

    def _body(self, number: int) -> Strip:
        strip = self._strips.get(number)
        if strip is None:
            assert self._log is not None
            text = self._styled(self._log.text(number), self._marks.get(number, ()))
            strip = Strip(text.render(self.app.console))
            self._strips[number] = strip
            if strip.cell_length > self._widest:
                self._widest = strip.cell_length
                self.call_later(self._measure)
        return strip

    def _styled(self, line: str, marks: Sequence[Mark]) -> Text:
        text = Text(line, end="", no_wrap=True)
        for mark in marks:
            style = self.get_component_rich_style("log--chosen" if mark.chosen else "log--evidence", partial=True)
            span = printable(mark.text)
            start = line.find(span) if span else -1
            if start < 0:  # the report says it in words of its own
                text.stylize(style)
                continue
            text.stylize(style, start, start + len(span))
            for value in filter(None, map(printable, mark.values)):
                at = line.find(value, start, start + len(span))
                if at >= 0:
                    text.stylize("bold underline", at, at + len(value))
        if self._pattern is not None:
            hit = self.get_component_rich_style("log--hit", partial=True)
            for found in self._pattern.finditer(line):
                text.stylize(hit, *found.span())
        return text

    def _measure(self) -> None:
        if self._log is not None:
            width = SIGN_CELLS + self._digits() + 1 + self._widest
            self.virtual_size = Size(width, self._log.line_count)

    def _reveal(self) -> None:
        """Scroll so that the cursor line and what is marked in it are in view, after a jump with lines round it."""
        height = self.size.height
        top = self.scroll_offset.y
        row = self.cursor - 1
        target = top
        if not top <= row < top + height:
            near = -1 <= row - top <= height
            target = (row if row < top else row - height + 1) if near else row - height // 2
        self.scroll_to(y=max(0, target), animate=False, force=True)

    def _left_edge(self) -> int:
        """The cell to begin with: 0 where what is marked in the cursor line is then in view, else a little before."""
        line = self._log.text(self.cursor) if self._log else ""
        found = self._pattern.search(line) if self._pattern else None
        chosen = next((mark for mark in self._marks.get(self.cursor, ()) if mark.chosen), None)
        if found is not None:
            begin, end = found.span()
        elif chosen is not None:
            begin = end = max(0, line.find(printable(chosen.text)))
        else:
            return 0
        return 0 if cell_len(line[:end]) < self._room() else max(0, cell_len(line[:begin]) - self._room() // 3)
