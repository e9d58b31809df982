"""Bytes to clean physical lines: encodings, ANSI, carriage returns, progress bars. Knows no log format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logdoc.kept.patterns import lazily
from logdoc.reader.pasted import unflattened, without_margin
from logdoc.scanner.text import LONGEST_LINE, as_utf8

LONGEST_PIECE = 1 << 14  # characters; a longer line is read in pieces that keep its number
MOST_BLANK = 8  # empty lines in a row that may mean something

_ANSI = lazily(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, hyperlinks
    rb"|[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    rb"|[ -/]*[0-~])"  # two-byte escapes
)
_CONTROLS = lazily(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
# tqdm: `75%|███▌ | 3/4 [01:51<00:25, 25.36s/it]`; what follows the bracket was printed by somebody else
_BAR_END = lazily(
    r"\d{1,12}/\d{1,12} \[[^\]\n]{0,80}(?:it|s|B|iB|steps?|ex|examples?|\?)(?:/[a-z]{1,12})?[^\]\n]{0,60}\] ?"
)
_BAR = lazily(r"\d{1,3}%\|")
_OF_THE_BAR = lazily(r"\s*(?:$|[{,|]|loss)")  # what a bar's own program prints behind it


def physical_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines of a byte stream as (line number from 1, clean text); a `\\r`-line gives several with one number."""
    return utf8_lines(as_utf8(blocks), 1)


def utf8_lines(blocks: Iterable[bytes], first: int) -> Iterator[tuple[int, str]]:
    """The same of a part of a stream, in UTF-8 already, whose first line has the number `first`."""
    blocks = without_margin(blocks) if first == 1 else blocks
    number, blank = first, 0
    for line, is_whole in _split(blocks):
        blank = 0 if line else blank + 1
        if blank <= MOST_BLANK:
            yield from ((number, text) for text in _clean(line))
        number += is_whole
    if blank > MOST_BLANK:
        yield number - 1, ""  # how many lines there are is still told


def _split(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Lines without their newline, and whether the line ends there; memory holds one block and one piece of a line,
    however long the line is."""
    rest: list[bytes] = []
    held = 0
    for block in blocks:
        lines = block.split(b"\n")
        if len(lines) == 1:
            rest.append(block)
            held += len(block)
            if held > LONGEST_LINE:
                piece, last = _cut(b"".join(rest))
                yield piece, False
                rest, held = [last], len(last)
            continue
        yield b"".join((*rest, lines[0])), True
        yield from ((line, True) for line in lines[1:-1])
        rest, held = ([lines[-1]], len(lines[-1])) if lines[-1] else ([], 0)
    if held:
        yield b"".join(rest), True


def _cut(line: bytes) -> tuple[bytes, bytes]:
    """The start of an endless line and the rest: cut where a progress bar was drawn anew, or at a blank."""
    for sign in (b"\r", b" "):
        place = line.rfind(sign, len(line) - LONGEST_PIECE) + 1
        if place:
            return line[:place], line[place:]
    return line, b""


def _clean(line: bytes) -> Iterator[str]:
    if b"\x1b" in line:
        line = _ANSI.sub(b"", line)
    if line.endswith(b"\r"):
        line = line[:-1]
    if _CONTROLS.search(line):
        line = _CONTROLS.sub(b"", line)
    text = line.decode("utf-8", errors="replace")
    if "\r" in text:
        yield from _overwritten(text)
    elif "%|" in text:
        yield from _unglued(text)
    elif '", line ' in text:
        for part in unflattened(text):
            yield from _pieces(part)
    else:
        yield from _pieces(text)


def _overwritten(text: str) -> Iterator[str]:
    """What a terminal wrote over with carriage returns: all messages, but of successive progress bars the last."""
    segments = [segment for segment in text.split("\r") if segment.strip()]
    for index, segment in enumerate(segments):
        parts = list(_unglued(segment))
        followed = index + 1 < len(segments)
        if followed and len(parts) == 1 and _BAR.search(parts[0]):
            continue
        yield from parts


def _unglued(text: str) -> Iterator[str]:
    """Split `bar] message` where a logger wrote right behind a progress bar."""
    last_bar = max((found.start() for found in _BAR.finditer(text)), default=-1)
    start = at = 0
    for found in _BAR_END.finditer(text):
        if at > last_bar:
            break
        at = found.end()
        if not _OF_THE_BAR.match(text, at):
            yield from _pieces(text[start:at])
            start = at
    yield from _pieces(text[start:])


def _pieces(text: str) -> Iterator[str]:
    if len(text) <= LONGEST_PIECE:
        yield text
        return
    start = 0
    while start < len(text):
        end = min(start + LONGEST_PIECE, len(text))
        if end < len(text):
            blank = text.rfind(" ", start + LONGEST_PIECE - 4096, end)
            end = blank if blank > start else end
        yield text[start:end]
        start = end
