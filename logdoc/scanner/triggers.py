"""The literals that make a part of a large log worth reading, compiled for one pass over raw bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from logdoc.scanner.engines import AhoCorasickScanner, hyperscan_database
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object

BENIGN_STRIDE = 64 << 10  # a trigger that comes more often than once in this many bytes belongs to the healthy log
LEAST_BENIGN = 16  # … but so many hits say nothing: a failure comes in bursts
FEW = 8  # live triggers that are looked for one by one
# One literal of two control characters makes Vectorscan 5.4.12 choose a matcher that is a quarter faster (measured by
# benchmarks/run.py; a line that holds it is looked at in vain).
SPUR = b"\x01\x02"
MOST_GATES = 4  # compiled in one process: each takes as long as scanning some 50 MB


@dataclass(frozen=True, slots=True)
class Trigger:
    """A literal and what it speaks for; a caseless one is lower case."""

    literal: bytes
    caseless: bool
    label: str


def with_escapes(triggers: Iterable[Trigger]) -> list[Trigger]:
    """The triggers, and the forms that JSON lines give to quotes, backslashes and letters beyond ASCII."""
    import json  # here: only large logs are scanned for triggers

    found: dict[tuple[bytes, bool], Trigger] = {}
    for trigger in triggers:
        text = trigger.literal.decode("utf-8", "replace")
        for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
            literal = form.encode()
            found.setdefault((literal, trigger.caseless), Trigger(literal, trigger.caseless, trigger.label))
    return list(found.values())


class TriggerScanner(Protocol):
    """Finds triggers by number; there are `count`."""

    count: int

    def places(self, text: bytes, cut: frozenset[int]) -> list[int]:
        """End offsets, in order, on at least all lines that hold a trigger not in `cut`: the quick question."""

    def sharpen(self, cut: frozenset[int]) -> None:
        """From now on, be told less often of the triggers in `cut`, where that can be had."""

    def present(self, text: bytes) -> set[int]:
        """Which triggers occur in `text`."""

    def ends(self, text: bytes, live: Collection[int]) -> list[tuple[int, int]]:
        """(end offset, trigger) of every occurrence of the `live` ones, in order."""


def _found(triggers: Sequence[Trigger], text: bytes, live: Collection[int]) -> list[tuple[int, int]]:
    """The occurrences of a few triggers, without being told of all others."""
    found = []
    lower = text.lower() if any(triggers[number].caseless for number in live) else text
    for number in live:
        literal, buffer = triggers[number].literal, lower if triggers[number].caseless else text
        at = buffer.find(literal)
        while at >= 0:
            found.append((at + len(literal), number))
            at = buffer.find(literal, at + 1)
    return sorted(found)


class HyperscanTriggers:
    """Several databases over the same literals: the fewest that tell whether a line holds any (the gate), whether each
    occurs (each is reported once), and where. Raises ValueError where the engine does not find what it must."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        import hyperscan

        self.count = len(triggers)
        self._triggers = triggers
        self._literals = [trigger.literal for trigger in triggers]
        self._flags = [hyperscan.HS_FLAG_CASELESS if trigger.caseless else 0 for trigger in triggers]
        self._once: _Compiled | None = None
        self._all = _Compiled(hyperscan_database(self._literals, self._flags))
        self._parts = self._parts_of_literals()
        self._gates = {frozenset[int](): self._gate(frozenset())}

    def places(self, text: bytes, cut: frozenset[int]) -> list[int]:
        gate = self._gates[cut if cut in self._gates else frozenset()]
        found: list[int] = []
        if gate is not None:
            note = found.append
            gate.database.scan(
                text, match_event_handler=lambda _number, _start, end, _flags, _context: note(end), scratch=gate.scratch
            )
            found.sort()
        return found

    def present(self, text: bytes) -> set[int]:
        if self._once is None:
            import hyperscan

            once = [flag | hyperscan.HS_FLAG_SINGLEMATCH for flag in self._flags]
            self._once = _Compiled(hyperscan_database(self._literals, once))
        found: set[int] = set()

        def note(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(number)

        self._once.database.scan(text, match_event_handler=note, scratch=self._once.scratch)
        return found

    def ends(self, text: bytes, live: Collection[int]) -> list[tuple[int, int]]:
        if len(live) <= FEW:
            return _found(self._triggers, text, live)
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if number in live:
                found.append((end, number))

        self._all.database.scan(text, match_event_handler=note, scratch=self._all.scratch)
        found.sort()
        return found

    def sharpen(self, cut: frozenset[int]) -> None:
        if cut not in self._gates and len(self._gates) < MOST_GATES:
            self._gates[cut] = self._gate(cut)

    def _gate(self, cut: frozenset[int]) -> _Compiled | None:
        """The triggers that hold no other one: half of them, and so nearly twice as fast."""
        live = [number for number in range(self.count) if number not in cut]
        fewest = [number for number in live if not any(part not in cut for part in self._parts[number])]
        if not fewest:
            return None
        literals, flags = [self._literals[number] for number in fewest], [self._flags[number] for number in fewest]
        return _Compiled(hyperscan_database([*literals, SPUR], [*flags, 0], is_kept=not cut))

    def _parts_of_literals(self) -> list[list[int]]:
        """For each trigger, the others that occur wherever it does: those within its literal."""
        bounds, at = [], 0
        for literal in self._literals:
            bounds.append(at)
            at += len(literal) + 1
        parts: list[list[int]] = [[] for _ in bounds]
        missing = set(range(len(bounds)))
        whole = 0
        for end, number in self.ends(b"\n".join(self._literals), missing.copy()):
            while whole + 1 < len(bounds) and bounds[whole + 1] < end:
                whole += 1
            if number == whole:
                missing.discard(number)
            elif self._covers(number, whole):
                parts[whole].append(number)
        if missing:
            raise ValueError(f"{len(missing)} literals are not found in themselves")
        return parts

    def _covers(self, part: int, whole: int) -> bool:
        """Whether `part`, which occurs in the literal of `whole`, does so in every letter case; of twins, the first."""
        if self._flags[part] != self._flags[whole]:
            return self._flags[part] > self._flags[whole]
        return len(self._literals[part]) < len(self._literals[whole]) or part < whole


class _Compiled:
    """A database with the scratch space that one scan at a time needs."""

    def __init__(self, database: Any) -> None:
        import hyperscan

        self.database = database
        self.scratch: Any = hyperscan.Scratch(database)


class AhoCorasickTriggers:
    """ahocorasick-rs, with equal results."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        self.count = len(triggers)
        self._numbers = [
            [number for number, trigger in enumerate(triggers) if trigger.caseless is caseless]
            for caseless in (False, True)
        ]
        self._scanners = [
            AhoCorasickScanner([triggers[number].literal for number in numbers]) if numbers else None
            for numbers in self._numbers
        ]

    def places(self, text: bytes, cut: frozenset[int]) -> list[int]:
        return [end for end, number in self._all(text) if number not in cut]

    def sharpen(self, cut: frozenset[int]) -> None:
        """There is but one automaton."""

    def present(self, text: bytes) -> set[int]:
        return {number for _, number in self._all(text)}

    def ends(self, text: bytes, live: Collection[int]) -> list[tuple[int, int]]:
        return [hit for hit in self._all(text) if hit[1] in live]

    def _all(self, text: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for scanner, numbers, buffer in zip(self._scanners, self._numbers, (text, text.lower()), strict=True):
            if scanner is not None:
                found += [(end, numbers[number]) for number, end in scanner.ends(buffer)]
        found.sort()
        return found


def trigger_scanner(triggers: Sequence[Trigger]) -> TriggerScanner:
    """hyperscan where it works on this machine and finds what it must, else ahocorasick-rs."""
    try:
        return HyperscanTriggers(triggers)
    except Exception:
        # a wheel for another CPU fails in many ways (ImportError, OSError, hyperscan.error); the other engine is equal
        return AhoCorasickTriggers(triggers)


_latest: list[tuple[Sequence[Trigger], TriggerScanner]] = []


def ready_scanner(triggers: Sequence[Trigger]) -> TriggerScanner:
    """The scanner of these triggers, made once in this process and for those that are forked from it."""
    known = _latest[0] if _latest else None
    if known is None or known[0] != triggers:
        known = (triggers, trigger_scanner(triggers))
        _latest[:] = [known]
    return known[1]


def benign(scanner: TriggerScanner, sample: bytes) -> frozenset[int]:
    """Which triggers are part of a healthy log's opening: they come too often to tell anything."""
    hits: dict[int, int] = {}
    for _, number in scanner.ends(sample, range(scanner.count)):
        hits[number] = hits.get(number, 0) + 1
    most = max(LEAST_BENIGN, len(sample) // BENIGN_STRIDE)
    return frozenset(number for number, times in hits.items() if times > most)
