"""Lines whose shape a good run never printed: what to look at first where no rule knows the failure."""

from __future__ import annotations

from collections.abc import Iterable

from logdoc.reporting.similar import shape
from logdoc.types.record import Record
from logdoc.types.report import Abnormal
from logdoc.types.value import dataclass, field

MOST_SHAPES = 200_000  # of the good run; a larger one knows enough of its own lines
MOST_NOVEL = 10
LONGEST_SHAPE = 300  # characters


@dataclass(slots=True)
class Novelty:
    """Learns the shapes of a good run's lines, then keeps the first lines that have another one, each shape once."""

    known: set[str] = field(default_factory=set)
    found: list[Abnormal] = field(default_factory=list)

    def learn(self, records: Iterable[Record]) -> None:
        for record in records:
            if len(self.known) < MOST_SHAPES:
                self.known.add(_shape(record))

    def see(self, records: Iterable[Record]) -> None:
        for record in records:
            if len(self.found) >= MOST_NOVEL:
                return
            new = _shape(record)
            if new and new not in self.known:
                self.known.add(new)
                text = record.body.split("\n", 1)[0][:LONGEST_SHAPE]
                self.found.append(Abnormal(source=record.source, line=record.line, rank=record.who.rank, text=text))


def _shape(record: Record) -> str:
    """Of a traceback its last line tells more than its first."""
    lines = record.body.strip().split("\n")
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return shape(line[:LONGEST_SHAPE])
