"""Reports made in a thread: kept, stopped, and made again when the machine has spoken."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.probes.collecting import Runner
from logdoc.probes.sheets import FactSheet
from logdoc.sources import discover
from logdoc.tui import case as case_module
from logdoc.tui.case import LogCase, Stopped, Watch, stoppable
from logdoc.types.finding import Fact
from logdoc.types.report import Report
from tests.rulekit import write_rule

PROBED = """\
match: {torch: {regex: CUDA out of memory}}
probes: [{use: gpu-memory, confirms: {fact: gpu.free, lt: 100}, refutes: {fact: gpu.free, gt: 1000}}]
"""


def sheet(free: int) -> FactSheet:
    fact = Fact(id="gpu.free", value=free, origin="gpu-memory@here", host="here")
    return FactSheet(host="here", facts=(fact,), errors=(), python="python", source="live")


@pytest.fixture
def case(tmp_path: Path) -> LogCase:
    from logdoc.rulebase import load_rules

    write_rule(tmp_path / "rules", "memory.test-oom", PROBED)
    log = tmp_path / "a.log"
    log.write_text("[rank3]: RuntimeError: CUDA out of memory\n")
    engine = Engine(load_rules([tmp_path / "rules"]))
    return LogCase(lambda: engine, discover([str(log)]).sources)


def outcomes(report: Report) -> list[str]:
    return [probe.outcome for diagnosis in report.diagnoses for probe in diagnosis.probes]


def test_a_report_is_made_once_a_language(case: LogCase) -> None:
    first = case.report("en", Watch())
    assert case.report("en", Watch()) is first
    assert case.report("zh", Watch()).language == "zh"
    assert outcomes(first) == []


def test_what_the_probes_said_stays(case: LogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def collector(probes: Sequence[str], python: str | None, budget: float, runner: Runner) -> FactSheet:
        asked.append(probes)
        return sheet(50)

    monkeypatch.setattr(case_module, "run_collector", collector)
    case.report("en", Watch())
    assert outcomes(case.probe("en", Watch())) == ["confirms"]
    assert outcomes(case.report("zh", Watch())) == ["confirms"]
    assert asked == [("gpu-memory",)]


def test_facts_from_a_file_speak_until_the_probes_know_better(case: LogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_module, "run_collector", lambda *arguments: sheet(50))
    case.sheets = (sheet(5000),)
    assert outcomes(case.report("en", Watch())) == ["refutes"]
    assert outcomes(case.probe("en", Watch())) == ["confirms"]


def test_reading_stops_when_told_and_says_how_far_it_is(case: LogCase) -> None:
    with pytest.raises(Stopped):
        case.report("en", Watch(stopped=lambda: True))
    read: list[int] = []
    case.report("en", Watch(read=read.append))
    assert sum(read) >= 41


def test_the_logs_are_read_once_for_both_languages_and_the_probes(
    case: LogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_module, "run_collector", lambda *arguments: sheet(50))
    case.report("en", Watch())
    read: list[int] = []
    assert case.report("zh", Watch(read=read.append)).language == "zh"
    assert outcomes(case.probe("en", Watch(read=read.append))) == ["confirms"]
    assert outcomes(case.report("zh", Watch(read=read.append))) == ["confirms"]
    assert read == []


def test_a_command_runs_to_its_end() -> None:
    script = "import sys; print(len(sys.stdin.read())); print('x', file=sys.stderr); sys.exit(3)"
    answer = stoppable(Watch())([sys.executable, "-c", script], 30.0, "a" * 300_000)
    assert (answer.state, answer.code, answer.out.strip(), answer.err.strip()) == ("ok", 3, "300000", "x")
    assert stoppable(Watch())(["/no/such/program"], 1.0, "").state == "missing"


def test_a_command_is_ended_in_time_or_when_called_off() -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    started = time.monotonic()
    assert stoppable(Watch())(sleeping, 0.3, "").state == "timeout"
    with pytest.raises(Stopped):
        stoppable(Watch(stopped=lambda: True))(sleeping, 60.0, "")
    assert time.monotonic() - started < 20
