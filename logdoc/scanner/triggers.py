"""The literals that make a part of a large log worth reading, compiled for one pass over raw bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from logdoc.scanner.engines import AhoCorasickScanner, hyperscan_database

BENIGN_STRIDE = 64 << 10  # a trigger that comes more often than once in this many bytes belongs to the healthy log
LEAST_BENIGN = 16  # … but so many hits say nothing: a failure comes in bursts
FEW = 8  # live triggers that are looked for one by one


@dataclass(frozen=True, slots=True)
class Trigger:
    """A literal and what it speaks for; a caseless one is lower case."""

    literal: bytes
    caseless: bool
    label: str


def with_escapes(triggers: Iterable[Trigger]) -> list[Trigger]:
    """The triggers, and the forms that JSON lines give to quotes, backslashes and letters beyond ASCII."""
    found: dict[tuple[bytes, bool], Trigger] = {}
    for trigger in triggers:
        text = trigger.literal.decode("utf-8", "replace")
        for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
            literal = form.encode()
            found.setdefault((literal, trigger.caseless), Trigger(literal, trigger.caseless, trigger.label))
    return list(found.values())


class TriggerScanner(Protocol):
    """Finds triggers by number."""

    def present(self, text: bytes) -> set[int]:
        """Which triggers occur in `text`."""

    def ends(self, text: bytes, live: set[int]) -> list[tuple[int, int]]:
        """(end offset, trigger) of every occurrence of the `live` ones, in order."""


def _found(triggers: Sequence[Trigger], text: bytes, live: set[int]) -> list[tuple[int, int]]:
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
    """Two databases over the same literals: whether they occur (each is reported once), and where."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        import hyperscan

        self._triggers = triggers
        literals = [trigger.literal for trigger in triggers]
        flags = [hyperscan.HS_FLAG_CASELESS if trigger.caseless else 0 for trigger in triggers]
        once = [flag | hyperscan.HS_FLAG_SINGLEMATCH for flag in flags]
        self._present: Any = hyperscan_database(literals, once)
        self._ends: Any = hyperscan_database(literals, flags)
        self._scratches = (hyperscan.Scratch(self._present), hyperscan.Scratch(self._ends))

    def present(self, text: bytes) -> set[int]:
        found: set[int] = set()

        def note(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            found.add(number)

        self._present.scan(text, match_event_handler=note, scratch=self._scratches[0])
        return found

    def ends(self, text: bytes, live: set[int]) -> list[tuple[int, int]]:
        if len(live) <= FEW:
            return _found(self._triggers, text, live)
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if number in live:
                found.append((end, number))

        self._ends.scan(text, match_event_handler=note, scratch=self._scratches[1])
        found.sort()
        return found


class AhoCorasickTriggers:
    """ahocorasick-rs, with equal results."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        self._numbers = [
            [number for number, trigger in enumerate(triggers) if trigger.caseless is caseless]
            for caseless in (False, True)
        ]
        self._scanners = [
            AhoCorasickScanner([triggers[number].literal for number in numbers]) if numbers else None
            for numbers in self._numbers
        ]

    def present(self, text: bytes) -> set[int]:
        return {number for _, number in self._all(text)}

    def ends(self, text: bytes, live: set[int]) -> list[tuple[int, int]]:
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
        scanner = HyperscanTriggers(triggers)
        sample = b"\n".join(trigger.literal for trigger in triggers)
        if scanner.present(sample) == set(range(len(triggers))):
            return scanner
    except Exception:
        # a wheel for another CPU fails in many ways (ImportError, OSError, hyperscan.error); the other engine is equal
        return AhoCorasickTriggers(triggers)
    return AhoCorasickTriggers(triggers)


def benign(scanner: TriggerScanner, sample: bytes, count: int) -> frozenset[int]:
    """Which of `count` triggers are part of a healthy log's opening: they come too often to tell anything."""
    hits: dict[int, int] = {}
    for _, number in scanner.ends(sample, set(range(count))):
        hits[number] = hits.get(number, 0) + 1
    most = max(LEAST_BENIGN, len(sample) // BENIGN_STRIDE)
    return frozenset(number for number, times in hits.items() if times > most)
