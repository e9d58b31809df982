"""What healthy jobs print again and again: a literal that occurs in it would make every log slow to scan."""

from __future__ import annotations

from functools import cache

from logdoc.kept import data

# Examples of lines that come step by step (made by benchmarks/benign.py from the healthy corpus). Each form is far more
# than one line in 10,000 of its job's log, so a literal that occurs in any of them is too frequent.
_SAMPLE = "benign.txt"


def benign_line(literal: str, caseless: bool) -> str | None:
    """A line of a healthy job that holds this literal (lower case if caseless), None for a rare one."""
    text, lines, lowered = _sample()
    at = (lowered if caseless else text).find(literal)
    if at < 0:
        return None
    return lines[text.count("\n", 0, at)]


def is_frequent(literal: str, caseless: bool) -> bool:
    text, _, lowered = _sample()
    return literal in (lowered if caseless else text)


@cache
def _sample() -> tuple[str, list[str], str]:
    text = data.text(_SAMPLE)
    lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)  # every place stays
    return text, text.split("\n"), lowered
