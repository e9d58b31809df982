"""Whose facts count: of many hosts none counts twice, a confirmation beats silence, and a stranger's facts decide nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from logdoc.engine import Engine, Options
from logdoc.facts import FactSet
from logdoc.probes.collecting import run_collector
from logdoc.probes.judge import by_host, facts_here, judge
from logdoc.probes.sheets import FactSheet, ProbeError, load_fact_sheets, sheet_json
from logdoc.rulebase import RuleSet
from logdoc.types.finding import Fact, Hypothesis, Match
from logdoc.types.record import Identity, Record
from logdoc.types.report import Diagnosis
from logdoc.types.rule import FactValue
from tests.rulekit import engine_of

RULE = """
match: {seen: {regex: 'Fire here'}}
probes: [{use: torch-build, confirms: {fact: torch.has_nccl, eq: false}, refutes: {fact: torch.has_nccl, eq: true}}]
"""


def sheet(host: str, time: str = "", probe: str = "torch-build", **values: FactValue) -> FactSheet:
    facts = tuple(
        Fact(id=name.replace("__", "."), value=value, origin=f"{probe}@{host}", host=host)
        for name, value in values.items()
    )
    return FactSheet(host=host, facts=facts, errors=(), python="python", source="facts.json", time=time)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return engine_of(tmp_path, a__fire=RULE)


def top(engine: Engine, *sheets: FactSheet, log: str = "Fire here\n") -> Diagnosis:
    return engine.explain_text(log, Options(sheets=sheets)).diagnoses[0]


def test_what_chooses_a_fix_is_asked_too(rule_set: RuleSet) -> None:
    """Live, as in a file with all facts, the fix shown is the one for this machine."""
    asked: list[tuple[str, ...]] = []

    def prober(probes: Sequence[str]) -> FactSheet:
        asked.append(tuple(probes))
        return sheet("node-1", torch__has_nccl=False)

    log = "RuntimeError: Distributed package doesn't have NCCL built in\n"
    Engine(rule_set).explain_text(log, Options(prober=prober))
    assert asked == [("torch-build", "gpu-list")]


@pytest.mark.parametrize(
    ("pid", "kills", "status"), [(10668, 0, "confirmed"), (12146, 0, "likely"), (12146, 1, "confirmed")]
)
def test_an_old_kill_of_another_process_confirms_no_kill(rule_set: RuleSet, pid: int, kills: int, status: str) -> None:
    log = "[rank0]: step 3\nE1130 18:23:51.992000 9508 torch/distributed/elastic/multiprocessing/api.py:1002] "
    log += "failed (exitcode: -9) local_rank: 1 (pid: 10668) of binary: /opt/env/bin/python3\n"
    facts = {"kernel__oom_kills": 8, "kernel__last_oom_age": 9741.0, "kernel__last_oom_pid": pid}
    seen = sheet("node-1", probe="host-memory", cgroup__oom_kills=kills, **facts)
    diagnosis = top(Engine(rule_set), seen, log=log)
    assert (diagnosis.rule, diagnosis.status) == ("memory.host-oom-kill", status)


def test_facts_from_a_file_say_what_facts_live_say(rule_set: RuleSet, tmp_path: Path) -> None:
    """A live look asks only what is relevant, a file holds everything: the verdict and its fixes are the same."""
    log = "RuntimeError: Distributed package doesn't have NCCL built in\n"
    engine = Engine(rule_set)
    live = engine.explain_text(log, Options(prober=lambda probes: run_collector(probes, sys.executable, 20.0)))
    path = tmp_path / "facts.json"
    path.write_text(sheet_json(run_collector((), sys.executable, 20.0)))
    from_file = engine.explain_text(log, Options(sheets=load_fact_sheets(path)))
    assert live.diagnoses[0].probes
    assert live.diagnoses == from_file.diagnoses


def test_a_probe_shows_what_its_facts_were_compared_with(tmp_path: Path) -> None:
    """`gpu.cuda_driver_major = 11` alone does not tell why the driver is too old: the 12 of torch-build does."""
    engine = engine_of(
        tmp_path,
        a__fire="match: {seen: {regex: 'Fire here'}}\n"
        "probes: [{use: gpu-list, confirms: {fact: gpu.cuda_driver_major, lt: {fact: torch.cuda_major}}}]",
    )
    here = sheet("node-1", probe="gpu-list", gpu__cuda_driver_major=11, gpu__count=8)
    torch = sheet("node-1", probe="torch-build", torch__cuda_major=12)
    [line] = top(engine, here, torch).probes
    assert (line.outcome, line.summary) == ("confirms", "gpu.cuda_driver_major = 11, torch.cuda_major = 12")
    assert top(engine, torch).probes == ()


def test_many_hosts_that_refute_count_once(engine: Engine) -> None:
    hosts = [sheet(f"node-{number}", torch__has_nccl=True) for number in range(8)]
    one, many = top(engine, hosts[0]), top(engine, *hosts)
    assert (many.status, many.confidence) == (one.status, one.confidence) == ("refuted", one.confidence)


def test_one_sick_host_among_many_confirms(engine: Engine) -> None:
    hosts = [sheet(f"node-{number}", torch__has_nccl=number != 5) for number in range(8)]
    found = top(engine, *hosts)
    assert found.status == "confirmed"
    assert found.confidence == top(engine, hosts[5]).confidence
    assert [line.host for line in found.probes if line.same_host is not False] == ["node-5"]


def test_hosts_that_disagree_refute_nothing(engine: Engine) -> None:
    silent = sheet("node-2", torch__version="2.6.0")
    found = top(engine, sheet("node-1", torch__has_nccl=True), silent)
    assert found.confidence == top(engine, silent).confidence
    assert found.status == "likely"


def test_only_the_failing_hosts_facts_count(engine: Engine) -> None:
    log = "node-b:1:2 [0] NCCL INFO Fire here\n"
    a, b = sheet("node-a", torch__has_nccl=False), sheet("node-b.example", torch__has_nccl=True)
    assert top(engine, a, b, log=log).status == "refuted"
    assert top(engine, a, log=log).status == "likely"


def test_a_host_named_by_its_address_is_the_host_that_has_it(engine: Engine) -> None:
    log = "10.1.0.7:1:2 [0] NCCL INFO Fire here\n"
    values: dict[str, FactValue] = {"torch__has_nccl": False, "net__interfaces": "lo 127.0.0.1,::1 up; ib0 10.1.0.7 up"}
    assert top(engine, sheet("node-a", **values), log=log).status == "confirmed"
    values["net__interfaces"] = "lo 127.0.0.1 up; ib0 10.1.0.70 up"
    assert top(engine, sheet("node-a", **values), log=log).status == "likely"


def test_a_machine_outside_the_job_does_not_speak_for_it(engine: Engine) -> None:
    hypothesis = unplaced(engine)
    judge([hypothesis], [sheet("laptop", torch__has_nccl=False)], FactSet(), job={"node-1", "node-2"})
    assert [(result.outcome, result.same_host) for result in hypothesis.probe_results] == [("confirms", False)]
    judge([hypothesis], [sheet("node-2.example", torch__has_nccl=False)], FactSet(), job={"node-1", "node-2"})
    assert [result.same_host for result in hypothesis.probe_results] == [None]
    assert facts_here([sheet("laptop", torch__version="2.6.0")], None, job={"node-1"}) == []


@pytest.mark.parametrize(
    ("named", "probed", "status"),
    [("cn02", "login1", "likely"), ("cn02", "cn02.example", "confirmed"), ("cn[01-04]", "login1", "confirmed")],
)
def test_the_node_that_the_scheduler_names_is_the_failing_host(
    tmp_path: Path, named: str, probed: str, status: str
) -> None:
    """`srun: error: cn02: task 1: Out Of Memory` was said by srun, wherever that ran; a list of nodes is no place."""
    engine = engine_of(tmp_path, a__fire=RULE.replace("Fire here", r"srun: error: (?P<node>\S+): task"))
    log = f"srun: error: {named}: task 1: Out Of Memory\n"
    assert top(engine, sheet(probed, torch__has_nccl=False), log=log).status == status


def test_two_sheets_of_one_host_are_one_and_the_later_counts(engine: Engine) -> None:
    old = sheet("node-1", "2025-11-03T09:00:00Z", torch__has_nccl=False, torch__version="2.5.0")
    new = sheet("node-1.example", "2025-11-03T10:00:00Z", torch__has_nccl=True)
    other = sheet("node-1", "2025-11-03T08:00:00Z", probe="tcp-reach", tcp__ok=True)
    assert top(engine, new, old, other).status == "refuted"
    [merged] = by_host([new, old, other])
    assert [merged.value(name) for name in ("torch.has_nccl", "torch.version", "tcp.ok")] == [True, "2.5.0", True]


def test_errors_of_a_host_are_kept_beside_its_facts() -> None:
    error = ProbeError(probe="gpu-list", error="no answer", kind="timeout")
    broken = FactSheet(host="node-1", facts=(), errors=(error,), python="", source="a.json", time="2")
    [merged] = by_host([sheet("node-1", "1", torch__has_nccl=True), broken])
    assert (merged.errors, merged.value("torch.has_nccl")) == ((error,), True)


def test_facts_of_hosts_that_differ_are_nobodys() -> None:
    one = sheet("node-1", torch__version="2.6.0", gpu__count=8)
    two = sheet("node-2", torch__version="2.6.0", gpu__count=4)
    assert {fact.id for fact in facts_here([one, two], None)} == {"torch.version"}
    assert {(fact.id, fact.host) for fact in facts_here([one, two], "node-2")} == {
        ("torch.version", "node-2"),
        ("gpu.count", "node-2"),
    }


def unplaced(engine: Engine) -> Hypothesis:
    """The rule, seen on a line that names no host."""
    rule = engine.rules.rules["a.fire"]
    body = "Fire here"
    record = Record(seq=0, source="x.log", line=1, end_line=1, body=body, raw=body, who=Identity())
    match = Match(rule, "seen", rule.match["seen"], record, 0, len(body), {}, 1, None, None, None)
    return Hypothesis(rule, [match])
