"""What fits into a surface's limit: the most needed pieces first, shown in their own order. Cuts no piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Generic, TypeVar

from logdoc.types.value import dataclass

T = TypeVar("T")


class Need(IntEnum):
    """How much a reader needs a piece: the last ones are the first to be left out, fixes never are if anything fits."""

    HEADLINE = 0
    FIX = 1
    WHY = 2
    ADVICE = 3
    OTHERS = 4
    DETAIL = 5
    EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """A part of a message that is shown whole or not at all.

    `size` is in the unit of the surface's limit, `count` in elements where their number is limited too.
    """

    content: T
    size: int
    need: Need
    count: int = 1


def fitting(pieces: Iterable[Piece[T]], budget: int, most: int | None = None) -> tuple[Sequence[Piece[T]], int]:
    """The pieces that fit into `budget` (and hold at most `most` elements), and how many were left out."""
    numbered = list(enumerate(pieces))
    kept: list[tuple[int, Piece[T]]] = []
    room = sum(piece.count for _, piece in numbered) if most is None else most
    for number, piece in sorted(numbered, key=lambda one: one[1].need):
        if piece.size <= budget and piece.count <= room:
            budget -= piece.size
            room -= piece.count
            kept.append((number, piece))
    return [piece for _, piece in sorted(kept, key=lambda one: one[0])], len(numbered) - len(kept)
