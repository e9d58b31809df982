"""What consoles and reports do to a traceback on its way to the log: a margin before each line, and, where the console
is narrow, messages broken between words. Undone here, since rules know a message by its beginning and in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logdoc.kept.patterns import lazily
from logdoc.reader.peel import Line
from logdoc.types.value import replace

NARROWEST = 50  # columns; shorter lines were broken by whoever wrote them
LEAST_LINES = 3  # fewer may have that length by chance, but for a sentence that goes on
FRAME_MARGIN = 2  # blanks before a frame where nothing was put before it
_FIRST = lazily(r' *(?=Traceback \(most recent call last\):|(File "[^"\n]{1,400}", line \d+))')
_EXCEPTION = lazily(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failed|Failure|Timeout): \S")
_PATH = lazily(r"['\"]?(?:/|[A-Za-z]:\\)\S*$")


def restored(lines: list[Line]) -> list[Line]:
    """The lines of a record as the program wrote them."""
    return lines if len(lines) < 2 else _unbroken(_at_the_margin(lines))


def _at_the_margin(lines: list[Line]) -> list[Line]:
    """A traceback's lines without the blanks that were put before all of them."""
    found = _FIRST.match(lines[0].text)
    if found is None:
        return lines
    margin = found.end() - (FRAME_MARGIN if found[1] else 0)
    if margin <= 0:
        return lines
    return [replace(line, text=line.text[min(margin, _blanks(line.text)) :]) for line in lines]


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _unbroken(lines: list[Line]) -> list[Line]:
    """An exception's first paragraph made one line again where a console broke it, as rich does."""
    made: list[Line] = []
    at = 0
    while at < len(lines):
        count = _broken(lines[at:]) if _EXCEPTION.match(lines[at].text) else 1
        made.append(lines[at] if count == 1 else _as_one(lines[at : at + count]))
        at += count
    return made


def _as_one(lines: Sequence[Line]) -> Line:
    return replace(lines[0], text=" ".join(line.text.strip() for line in lines))


def _broken(lines: Sequence[Line]) -> int:
    """How many of these lines are one paragraph: each but the last was full, as its next line's first word shows."""
    texts = [line.text.rstrip() for line in lines]
    if len(texts) > 1 and texts[0].endswith(":") and _PATH.match(texts[1]):
        return 2
    count, widest, narrowest = 1, len(texts[0]), 1 << 30
    for text, following in pairwise(texts):
        if not following or following[0].isspace() or _EXCEPTION.match(following):
            break
        narrowest = min(narrowest, len(text) + len(following.split(" ", 1)[0]))  # the width is no more than this
        widest = max(widest, len(following))
        if narrowest < widest:
            break
        count += 1
    sure = count >= LEAST_LINES or (count == 2 and _goes_on(texts[0], texts[1]))
    return count if sure and widest >= NARROWEST else 1


def _goes_on(text: str, following: str) -> bool:
    """Whether one sentence stands on both lines."""
    word = following.split(" ", 1)[0].rstrip(",.")
    return text[-1].isalnum() and word.isalpha() and word.islower()
