"""Multi-literal search that needs no automaton: for a small log, loading one takes longer than looking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from struct import unpack

START = 4  # bytes by which literals are told apart: most of thousands begin as nothing in a small log does
SHORT = -1  # in place of a start: literals of fewer bytes


def by_start(literals: Sequence[bytes]) -> dict[int, list[int]]:
    """The literals' numbers by their first bytes, these read as one little-endian number."""
    found: dict[int, list[int]] = {}
    for number, literal in enumerate(literals):
        start = int.from_bytes(literal[:START], "little") if len(literal) >= START else SHORT
        found.setdefault(start, []).append(number)
    return found


def _starts_in(buffer: bytes) -> set[int]:
    """Every START bytes of the buffer, as numbers; at each of their offsets in turn one call reads them all."""
    whole = [buffer[offset : len(buffer) - (len(buffer) - offset) % START] for offset in range(START)]
    return set(chain(*[unpack(f"<{len(words) // START}I", words) for words in whole]))


class PlainScanner:
    """Finds what the other scanners find, in the same order; its time grows with the text faster than theirs."""

    name = "plain"

    def __init__(self, literals: Sequence[bytes], starts: Mapping[int, Sequence[int]] | None = None) -> None:
        self._literals = literals
        self._by_start = by_start(literals) if starts is None else starts

    def ends(self, buffer: bytes) -> list[tuple[int, int]]:
        found = []
        for start in (self._by_start.keys() & _starts_in(buffer)) | (self._by_start.keys() & {SHORT}):
            for number in self._by_start[start]:
                literal = self._literals[number]
                at = buffer.find(literal)
                while at >= 0:
                    found.append((at + len(literal), number))
                    at = buffer.find(literal, at + 1)
        found.sort()
        return [(number, end) for end, number in found]
