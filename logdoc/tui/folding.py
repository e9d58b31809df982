"""Texts folded to a width as Chinese and English are read: Textual itself breaks lines at blanks only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from logdoc.tui.keys import bind

_OPENING = "（【《〈“‘「『"
_CLOSING = "，。、；：！？）】》〉”’」』…"
_WIDE = "\u2e80-\u2fff\u3003-\u3007\u3012-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffef"
# A piece that no line may be broken in: one wide character or one word, with the signs that cling to it.
_PIECE = re.compile(
    rf"[{_OPENING}]*(?:(?![{_OPENING}{_CLOSING}])[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+)?[{_CLOSING}]*\s*"
)
_INDENT = re.compile(r" *(?:[›▸·✗!?✓-] )?")
NARROWEST = 10  # cells


def fold(text: Content, width: int) -> Content:
    """`text` in lines of at most `width` cells; what a line goes on in starts where its text did."""
    width = max(width, NARROWEST)
    return Content("\n").join(part for line in text.split("\n", allow_blank=True) for part in _folded(line, width))


def _folded(line: Content, width: int) -> Iterator[Content]:
    found = _INDENT.match(line.plain)
    indent = min(cell_len(found[0]) if found else 0, width // 2)
    parts = line.divide(list(_breaks(line.plain, width, indent)))
    yield parts[0].rstrip()
    yield from (Content(" " * indent).append(part.rstrip()) for part in parts[1:])


def _breaks(line: str, width: int, indent: int) -> Iterator[int]:
    """The offsets at which `line` goes on below."""
    used = 0
    for found in _PIECE.finditer(line):
        cells = cell_len(found[0].rstrip())
        if used and used + cells > width and used > indent:
            yield found.start()
            used = indent
        if used + cells > width:
            chopped = list(_chopped(found[0].rstrip(), width - used, width - indent))
            offset = found.start()
            for part in chopped[:-1]:
                offset += len(part)
                yield offset
            used = indent + cell_len(chopped[-1])
        else:
            used += cells
        used += len(found[0]) - len(found[0].rstrip())


def _chopped(word: str, first: int, rest: int) -> Iterator[str]:
    """A word longer than a line in parts that fit, the first one into what is left of its line."""
    head = chop_cells(word, max(first, 1))[0]
    yield head
    yield from chop_cells(word[len(head) :], max(rest, 1))


class Prose(Static):
    """A text folded to the widget's width, whatever that becomes."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, markup=False)
        self.said = Content("")
        self._width = 0

    def say(self, text: Content) -> None:
        """Show this text."""
        self.said = text
        self.update(fold(text, self._width) if self._width else text)

    def on_resize(self) -> None:
        if self._width != self.size.width:
            self._width = self.size.width
            self.update(fold(self.said, self._width))


class PickList(OptionList):
    """A list moved through by arrows or j and k, its rows folded to its width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "cursor_down", "list.down"),
        bind("up,k", "cursor_up", "list.up"),
        bind("pagedown", "page_down", "list.page_down"),
        bind("pageup", "page_up", "list.page_up"),
        bind("home", "first", "list.first"),
        bind("end", "last", "list.last"),
        bind("enter", "select", "list.select"),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(id=id, markup=False, compact=True)
        self.texts: Sequence[Content] = ()
        self._width = 0

    def fill(self, texts: Sequence[Content], *, disabled: bool = False) -> None:
        """List these texts and nothing else."""
        self.texts = texts
        self.clear_options()
        self.add_options([Option(self._folded(text), disabled=disabled) for text in texts])

    def on_resize(self) -> None:
        if self._width != self.size.width:
            self._width = self.size.width
            for number, text in enumerate(self.texts):
                self.replace_option_prompt_at_index(number, self._folded(text))

    def _folded(self, text: Content) -> Content:
        return fold(text, self._width - 1) if self._width else text  # a scroll bar may take a cell
