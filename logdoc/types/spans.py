"""Ranks as a reader wants them: successive numbers as one span."""

from __future__ import annotations

from collections.abc import Iterable


def spans(numbers: Iterable[int]) -> str:
    """`0-6, 9` for 0, 1, …, 6, 9, in whatever order and however often they come."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, span)) for span in found)
