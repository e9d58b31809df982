"""What pasting does to a log: the whole of it indented as a code block or quoted as an answer does, or a traceback's
newlines lost. Undone here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from logdoc.kept.patterns import lazily

LEAST_LINES = 4  # that say by their common margin that the log is indented
_MARGIN = lazily(rb" *")
_FRAME = lazily(rb'File "|\^|~')
_SOURCE_LINE = '", line '
# a frame, or at the end the exception, behind a blank where a newline was
_FLAT = lazily(
    r'(?<! ) ++(?=File "[^"\n]{1,400}", line \d+, in \S)'
    r"|(?<! ) ++(?=(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: |$))"
)
_RANKS = lazily(r"(?<! ) ++(?=\[rank\d{1,6}\]: )")


def without_margin(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a log without the blanks, or the marks of a quotation, before all lines of its first block."""
    stream = iter(blocks)
    first = next(stream, b"")
    if _is_quoted(first):
        yield from _unquoted(chain((first,), stream))
        return
    margin = _margin(first)
    if not margin:
        yield from chain((first,), stream)
        return
    line_start, owed = re.compile(rb"\n {1,%d}" % margin), margin
    for block in chain((first,), stream):
        begin = min(owed, _width(block))
        yield line_start.sub(b"\n", block[begin:])
        _, newline, last = block.rpartition(b"\n")
        owed = margin if newline else owed
        owed = owed - len(last) if last == b" " * len(last) and len(last) < owed else 0


def _is_quoted(block: bytes) -> bool:
    lines = [line for line in block.split(b"\n") if line.strip()] if block.startswith(b">") else []
    return len(lines) >= LEAST_LINES and all(line.startswith(b">") for line in lines)


def _unquoted(blocks: Iterable[bytes]) -> Iterator[bytes]:
    mark, starts_line = re.compile(rb"\n> ?"), True
    for block in blocks:
        yield mark.sub(b"\n", block.removeprefix(b">").removeprefix(b" ") if starts_line else block)
        starts_line = block.endswith(b"\n") if block else starts_line


def _margin(block: bytes) -> int:
    if not block.startswith((b" ", b"\n")):
        return 0
    lines = [line for line in block.split(b"\n") if line.strip()]
    if len(lines) < LEAST_LINES:
        return 0
    widths = [_width(line) for line in lines]
    margin = min(widths)
    # of a traceback that lost its first line all lines are indented, and must stay so
    outermost = (line[margin:] for line, width in zip(lines, widths, strict=True) if width == margin)
    return 0 if all(_FRAME.match(line) for line in outermost) else margin


def _width(line: bytes) -> int:
    found = _MARGIN.match(line)
    return found.end() if found else 0


def without_emphasis(text: str) -> str:
    """A line that somebody made bold, as askers do with the error, without the marks."""
    return text[2:-2] if text.startswith("**") and text.endswith("**") and not text.startswith("***") else text


def unflattened(text: str) -> list[str]:
    """A traceback in one line as the lines it had; any other line as it is."""
    if text.count(_SOURCE_LINE) < 2:
        return _RANKS.split(text) if text.count("[rank") > 1 else [text]
    head, *frames = _FLAT.split(text)
    lines = [head]
    for part in frames:
        lines.append(part if not part.startswith('File "') else f"  {part}")
    return lines
