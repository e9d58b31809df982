"""Recorded machines whose tools and files answer with rubbish: no section ends on it, and what it notes can be read."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.machine import Sheet
from logdoc.probes.collect.main import SECTIONS
from logdoc.probes.collect.pieces import json_line
from tests.test_probes_recorded import MACHINES, PLAYED, RecordedMachine, play

SIZES = re.compile(
    r"(?:^|\.)(?:total|used|free|memlock|stack|fsize|core|limit|usage|mtu|memory)(?:_hard|_per_cpu)?$|_bytes$|[^s]_free$"
)
TIMES = re.compile(r"(?:seconds|age|time|time_left|time_limit|max_error|offset)$")


def test_sizes_are_bytes_times_are_seconds_and_every_fact_has_its_source(tmp_path: Path) -> None:
    for name in MACHINES:
        sheet = play(name, tmp_path / name)
        for fact in sheet.facts:
            assert sheet.commands[fact.id], fact
            assert fact.host == sheet.host
            wanted = "bytes" if SIZES.search(fact.id) else "s" if TIMES.search(fact.id) else fact.unit
            number = isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
            assert not number or fact.unit == wanted, fact


GARBAGE = (
    "",
    "\n",
    "-1",
    "9" * 30,
    "[N/A]",
    "a b c d e f g h i\n" * 3,
    "\0\udcff",
    "Node #",
    "GPU0\tGPU1\n",
    "max 0",
    "0: 1",
    "]",
)


class BrokenMachine(RecordedMachine):
    """A recorded machine a fifth of whose files and answers are cut, doubled, replaced or late."""

    def __init__(self, name: str, root: Path, seed: int) -> None:
        super().__init__(name, root)
        self.chance = random.Random(seed)

    def read_bytes(self, path: str) -> bytes | None:
        data = super().read_bytes(path)
        broken = data is not None and self.chance.random() < 0.2
        return self.chance.choice(GARBAGE).encode("utf-8", "surrogateescape") if broken else data

    def answer(self, argv: Sequence[str], limit: float) -> Answer:
        answer = self.commands.get(" ".join(argv)) or Answer("missing", 127, "", "")
        if self.chance.random() > 0.2:
            return answer
        cut = answer.out[: self.chance.randrange(len(answer.out) + 1)]
        garbage = self.chance.choice(GARBAGE)
        states = ("timeout", "abandoned", "refused", "ok", "ok", "ok")
        out = self.chance.choice((cut, answer.out * 2, garbage))
        return Answer(self.chance.choice(states), self.chance.choice((0, 1)), out, garbage)


@pytest.mark.parametrize("name", MACHINES)
def test_no_section_ends_on_what_a_broken_machine_says(name: str, tmp_path: Path) -> None:
    machine = BrokenMachine(name, tmp_path, seed=len(name))
    for probe in PLAYED * 5:
        sheet = Sheet(probe)
        SECTIONS[probe][0](machine, sheet)
        # What is noted can be sent and read again.
        lines = [json_line(entry) for entry in (*sheet.facts, *sheet.errors)]
        assert [json.loads(line) for line in lines] == [*sheet.facts, *sheet.errors]
