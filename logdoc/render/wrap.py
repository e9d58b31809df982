"""Text to lines of a terminal's width, counting cells: Chinese characters take two, and break anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.render.cells import cell_len, chopped


def wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    """`text` in lines of at most `width` cells; from the second on they start with `indent`."""
    width = max(width, 30)
    line = ""
    for word in _words(text):
        if line and cell_len(line) + cell_len(word.rstrip()) > width:
            yield line.rstrip()
            line = indent
            word = word.lstrip()
        while cell_len(line) + cell_len(word.rstrip()) > width:
            head, *rest = chopped(word, max(width - cell_len(line), 2))
            yield line + head
            line, word = indent, "".join(rest)
        line += word
    if line.strip():
        yield line.rstrip()


def _words(text: str) -> Iterator[str]:
    """Pieces between which a line may break: after blanks, and round each wide character."""
    word = ""
    for character in text:
        if word and word[-1] == " " and character != " " and word.strip():
            yield word
            word = ""
        if cell_len(character) == 2:
            if word:
                yield word
            yield character
            word = ""
        else:
            word += character
    if word:
        yield word
