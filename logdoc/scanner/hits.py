"""Which lines of a range hold a trigger that is worth following; one that comes all the time is given up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from logdoc.scanner.text import bare
from logdoc.scanner.triggers import BENIGN_STRIDE, TriggerScanner
from logdoc.types.value import dataclass, field

MOST_WINDOWS = 50  # of one trigger in one range; later ones tell the same
MOST_HITS = 2000  # of one trigger in one range: from there on it is only known to occur
LEAST_CUT = 64  # so many hits are let pass in any case: a failure comes in bursts
IDLE = 200  # places in one block, of which most lead nowhere: worth a sharper gate
PART = 64 << 10  # bytes of a dense block at a time
DENSE = 2000  # places in one block, from which on looking line by line costs more than the whole block


@dataclass(slots=True)
class Counts:
    """What one range held: lines, and for each trigger its hits; `cut` triggers went on unread."""

    lines: int = 0
    bytes: int = 0
    hits: dict[int, int] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)


class HitScan:
    """One pass over the blocks of a range. `cut`: triggers known to belong to the healthy log. Whoever hands blocks in
    keeps `counts.bytes` and `counts.lines`."""

    def __init__(self, scanner: TriggerScanner, cut: Collection[int]) -> None:
        self.counts = Counts(cut=set(cut))
        self._scanner = scanner
        self._gated = frozenset(cut)
        self._live = _others(scanner.count, self._gated)

    def hits(self, block: bytes, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """The triggers in a block of lines that are still worth it, in order: an offset on the line, and the number.

        Only those that end behind `start` and not behind `end`, where only a part of the block is meant.
        """
        end = len(block) if end is None else end
        text = bare(block)
        if text is not block:  # a line that is torn is looked at from its start again
            text = bare(block := block[:end])
            found = same_lines(text, block, self._worthy(text, self._scanner.places(text, self._gated)))
            return [hit for hit in found if block.find(b"\n", hit[0], start) < 0]
        places = self._scanner.places(block, self._gated)
        if places and (start or end < len(block)):
            places = [place for place in places if start < place <= end]
        return self._worthy(block, places, start, end)

    def _worthy(
        self, text: bytes, places: Sequence[int], start: int = 0, end: int | None = None
    ) -> list[tuple[int, int]]:
        if not places:
            return []
        end = len(text) if end is None else end
        found = self._everywhere(text) if len(places) > DENSE else self._on_lines(text, places)
        kept = [(at - 1, number) for at, number in found if start < at <= end and self._is_worth_it(number)]
        if len(places) > IDLE and len(kept) < len(places) // 2:
            self._gated = frozenset(self.counts.cut)
            self._live = _others(self._scanner.count, self._gated)
            self._scanner.sharpen(self._gated)
        return kept

    def _everywhere(self, text: bytes) -> Iterator[tuple[int, int]]:
        """All triggers of a text full of them, a part at a time: what is given up meanwhile is not looked for again."""
        start = 0
        while start < len(text):
            end = text.find(b"\n", start + PART) + 1 or len(text)
            part = text[start:end]
            live = self._scanner.present(part) - self.counts.cut
            if live:
                yield from ((start + at, number) for at, number in self._scanner.ends(part, live))
            start = end

    def _on_lines(self, text: bytes, places: Sequence[int]) -> list[tuple[int, int]]:
        """All triggers on the lines of these places."""
        lines, moved = [], []  # the lines one below the other, and how far each has moved
        reached = size = 0
        for place in places:
            if place <= reached:
                continue
            start = text.rfind(b"\n", 0, place) + 1
            reached = text.find(b"\n", place) + 1 or len(text)
            lines.append(text[start:reached])
            moved.append((size, start - size))
            size += reached - start
        found, line = [], 0
        for end, number in self._scanner.ends(b"".join(lines), self._live):
            while line + 1 < len(moved) and moved[line + 1][0] < end:
                line += 1
            found.append((end + moved[line][1], number))
        return found

    def _is_worth_it(self, number: int) -> bool:
        counts = self.counts
        if number in counts.cut:
            return False
        count = counts.hits[number] = counts.hits.get(number, 0) + 1
        if count > max(LEAST_CUT, counts.bytes // BENIGN_STRIDE) or count > MOST_HITS:
            counts.cut.add(number)
        return count <= MOST_WINDOWS


@lru_cache(maxsize=8)
def _others(count: int, cut: frozenset[int]) -> frozenset[int]:
    return frozenset(range(count)) - cut


def same_lines(cleaned: bytes, raw: bytes, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in the cleaned text as places on the same lines of the raw text."""
    found, at, start = [], 0, 0
    for place, number in places:
        for _ in range(cleaned.count(b"\n", at, place)):
            start = raw.find(b"\n", start) + 1
        at = place
        found.append((start, number))
    return found
