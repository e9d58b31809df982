"""Size changes neither the answer nor the memory: long streams, endless lines, storms, many files. No clock is asked."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.reader import skim
from logdoc.reader.sharpen import sharpened, start_of
from logdoc.scanner.triggers import AhoCorasickTriggers, Trigger
from logdoc.scanner.windows import Edges, WindowScan
from logdoc.sources import discover
from tests.rulekit import engine_of

MIB = 1 << 20
SCANNER = AhoCorasickTriggers([Trigger(b"Fire in the rack", False, "fire")])


def peak(blocks: Iterable[bytes]) -> tuple[int, int]:
    """The most bytes held while a stream is scanned, and how many were given out to be read."""
    scan = WindowScan(SCANNER, Edges())
    tracemalloc.start()
    read = sum(len(piece.data) for piece in scan.pieces(blocks))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most, read


def healthy(mib: int) -> Iterator[bytes]:
    block = b"[rank0]: step 1 loss 0.5 and what else a healthy job prints\n" * (MIB // 61)
    return (block for _ in range(mib))


def test_memory_does_not_grow_with_the_log() -> None:
    short, long = peak(healthy(8)), peak(healthy(64))
    assert long[0] < 1.2 * short[0] < 12 * MIB
    assert long[1] == short[1] < 80 << 10


def test_a_storm_of_hits_stays_small() -> None:
    storm = (b"Fire in the rack\n" * 60_000 for _ in range(16))
    most, read = peak(storm)
    assert most < 40 * MIB
    assert read < MIB


def test_one_endless_line() -> None:
    most, read = peak(b"x" * MIB for _ in range(48))
    assert most < 16 * MIB
    assert read < 4 * MIB


@pytest.fixture
def small(tmp_path: Path) -> Engine:
    return engine_of(tmp_path / "rules", a__fire="match: {seen: {regex: '^Fire in the (?P<what>\\w+)'}}")


def test_an_endless_line_of_a_large_log_hides_nothing(tmp_path: Path, small: Engine) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"x" * (skim.READ_IN_FULL + 3 * MIB) + b"\n[rank2]: Fire in the rack\n")
    report = small.explain(discover([str(path)]).sources)
    assert (report.diagnoses[0].origin.line, report.diagnoses[0].origin.rank) == (2, 2)
    assert report.input.sources[0].lines == 2


def test_a_storm_keeps_the_first_and_the_count(tmp_path: Path, small: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skim, "READ_IN_FULL", 1 << 14)
    path = tmp_path / "log.txt"
    path.write_bytes(b"step 1\n" * 9 + b"[rank1]: Fire in the rack\n" * 200_000)
    report = small.explain(discover([str(path)]).sources)
    assert report.diagnoses[0].origin.line == 10
    assert report.diagnoses[0].occurrences <= 1000
    assert report.input.sources[0].lines == 200_009
    assert any("a.fire/seen" in warning for warning in report.warnings)


def test_many_small_files(tmp_path: Path, small: Engine) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(512):
        text = "Fire in the rack\n" if number == 300 else f"step {number}\n"
        (folder / f"rank_{number}.log").write_text(text)
    report = small.explain(discover([str(folder)]).sources)
    assert (len(report.input.sources), report.diagnoses[0].origin.rank) == (512, 300)


def test_looking_into_patterns_changes_no_line() -> None:
    from logdoc.dialects import ALL

    lines = ["[rank3]: x", "[Mon Nov 30 10:00:00 2026] x", "2026-11-30 10:00:00,1 - a - INFO - x", "I1130 10:00:00.1 7 a.cc:9] x",
             "node01:1:2 [0] NCCL INFO x", "3: x", "(Worker pid=3) x", "[1,3]<stdout>: x", "worker-1  | x", "é x", "[é] x", "{x"]  # fmt: skip
    for line in lines:
        kept = {one.name: one for one in sharpened(ALL, start_of(line))}
        for dialect in ALL:
            if not dialect.starts or line[0] in dialect.starts:
                wanted = dialect.peel(line)
                assert (kept[dialect.name].peel(line) if dialect.name in kept else None) == wanted, (dialect.name, line)
