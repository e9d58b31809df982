"""Scanning on a Ray cluster: a real local one with two workers, whose deaths cost time and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from logdoc.engine import Engine, Options
from logdoc.reader import skim
from logdoc.render import render_json
from logdoc.scanner import ranges
from logdoc.scanner.ranges import Crew, Orders, Scanned, alone, processes, scan_all
from logdoc.scanner.ray_crew import ray_crew
from logdoc.scanner.triggers import TriggerScanner
from logdoc.scanner.windows import Counts, Edges, Piece
from logdoc.sources import discover
from logdoc.types.errors import InputError
from tests.rulekit import engine_of

ray = pytest.importorskip("ray")

ORDERS = Orders([], Edges(), ())


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits at which a log of this test is a large one."""
    for name, size in {
        "READ_IN_FULL": 2000,
        "LARGE": 8000,
        "OPENING_OF_LARGE": 1000,
        "OPENING_OF_STREAM": 1000,
    }.items():
        monkeypatch.setattr(skim, name, size)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 32 << 10)


def explained(engine: Engine, arguments: list[str], crew: Crew) -> str:
    value = json.loads(render_json(engine.explain(discover(arguments).sources, Options(crew=crew))))
    value["input"]["seconds"] = 0
    return json.dumps(value)


def test_the_report_is_the_local_one(tmp_path: Path, cluster: None, tight: None) -> None:
    engine = engine_of(tmp_path / "rules", a__fire="match: {seen: {regex: '^Fire in the (?P<what>\\w+)'}}")
    lines = [f"[rank{number % 8}]: beat {number}\n".encode() for number in range(20_000)]
    lines[7000] = b"[rank3]: Fire in the rack\n"
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "plain.log").write_bytes(b"".join(lines))
    (folder / "packed.log.gz").write_bytes(gzip.compress(b"".join(lines[:9000])))
    for place in (str(folder), f"local://{folder}/*"):  # the second through fsspec, as from an object store
        reports = {explained(engine, [place], crew) for crew in (alone, processes(2), ray_crew())}
        assert len(reports) == 1
        report = json.loads(reports.pop())
        assert report["diagnoses"][0]["rule"] == "a.fire"
        assert {one["line"] for one in report["diagnoses"][0]["evidence"]} == {7001}
        assert sorted(one["lines"] for one in report["input"]["sources"]) == [9000, 20_000]


def dying(marker: Path, deaths: int) -> ranges.Job:
    """A job that kills the worker that does it, so many times; told to workers by value, as they have no tests."""
    here = os.getpid()

    @dataclass
    class Dying:
        size: int = ranges.RANGE_BYTES

        def scan(self, orders: Orders, scanner: TriggerScanner) -> Scanned:
            died = len(marker.read_bytes()) if marker.exists() else 0
            if os.getpid() != here and died < deaths:
                with marker.open("ab") as file:
                    file.write(b"x")
                os._exit(9)
            return Scanned((Piece(1, b"done\n"),), Counts(1, 5), True)

        def given_up(self) -> Scanned:
            raise AssertionError

    return Dying()


@pytest.mark.parametrize("deaths", [1, 99])
def test_a_worker_that_is_lost_only_costs_time(tmp_path: Path, cluster: None, deaths: int) -> None:
    jobs = [dying(tmp_path / "one", 0), dying(tmp_path / "two", deaths), dying(tmp_path / "three", 0)]
    done = list(scan_all(jobs, ORDERS, ray_crew()))
    assert [one.pieces[0].data for one in done] == [b"done\n"] * 3
    assert (tmp_path / "two").exists()


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "logdoc\[ray\]"'):
        ray_crew()
