"""Scores are sums of named terms; causes go before symptoms, earlier before later, and probes of the right host decide."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from logdoc.engine import Engine, Options
from logdoc.probes.judge import same_host
from logdoc.probes.sheets import FactSheet
from logdoc.ranking import weights
from logdoc.types.finding import Fact
from logdoc.types.report import Report
from tests.rulekit import engine_of

PROBED = """
match: {seen: {regex: 'Fire here'}}
probes: [{use: torch-build, confirms: {fact: torch.has_nccl, eq: false}, refutes: {fact: torch.has_nccl, eq: true}, strength: conclusive}]
"""


@pytest.fixture
def engine_with_probe(tmp_path: Path) -> Engine:
    return engine_of(tmp_path, a__fire=PROBED, a__water="match: {seen: {regex: 'Water here', strength: weak}}")


def sheet(has_nccl: bool, host: str = "node-a") -> FactSheet:
    fact = Fact(id="torch.has_nccl", value=has_nccl, origin=f"torch-build@{host}")
    return FactSheet(
        host=host, facts=(fact,), errors=(), python="python", source="live", commands={"torch.has_nccl": "import torch"}
    )


def explained(engine: Engine, log: str, *sheets: FactSheet) -> Report:
    return engine.explain_text(log, Options(sheets=sheets))


def test_the_confidence_is_the_sigmoid_of_the_printed_terms(engine_with_probe: Engine) -> None:
    top = explained(engine_with_probe, "Fire here\n").diagnoses[0]
    scale = weights()["scale"]
    odds = scale["slope"] * sum(term.value for term in top.score) + scale["offset"]
    assert top.confidence == pytest.approx(min(1 / (1 + math.exp(-odds)), weights()["most"]), abs=1e-3)


def test_a_weak_hint_alone_is_only_possible(engine_with_probe: Engine) -> None:
    report = explained(engine_with_probe, "Water here\n")
    assert (report.outcome, report.diagnoses[0].confidence < 0.5) == ("symptoms-only", True)
    assert report.diagnoses[0].confidence < explained(engine_with_probe, "Fire here\n").diagnoses[0].confidence


def test_a_weak_hint_before_takes_nothing_from_a_strong_cause(engine_with_probe: Engine) -> None:
    alone = explained(engine_with_probe, "Fire here\n").diagnoses[0]
    after = explained(engine_with_probe, "Water here\nFire here\n").diagnoses[0]
    assert (after.rule, after.confidence) == (alone.rule, alone.confidence)


def test_a_hint_read_from_the_symptom_s_own_line_explains_it_as_little_as_none(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        a__hint="match: {seen: {regex: 'exit code two', strength: weak}}",
        a__other="match: {seen: {regex: 'usage was shown', strength: weak}}",
        a__failed="symptom:\nmatch: {seen: {regex: 'worker ended with exit code'}}\nexplained_by: ['a.hint', 'a.other']",
    )
    assert explained(engine, "worker ended with exit code two\n").diagnoses[0].rule == "a.failed"
    assert explained(engine, "usage was shown\nworker ended with exit code\n").diagnoses[0].rule == "a.other"


def steps(count: int, prefix: str = "[rank1]: ") -> str:
    return "".join(f"{prefix}step {number} loss 2.0\n" for number in range(count))


@pytest.mark.parametrize(
    ("log", "outcome"),
    [
        (f"[rank1]: Fire here\n{steps(200)}", "healthy"),
        (f"{steps(300)}[rank1]: Fire here\n{steps(200)}", "healthy"),
        (f"{steps(300)}[rank1]: Fire here\n", "cause-found"),
        (f"{steps(300)}[rank1]: Fire here\n{steps(100)}", "cause-found"),  # stdout was held back, stderr was not
        (f"[rank0]: Fire here\n{steps(200)}", "healthy"),
        (f"{steps(3, '[rank0]: ')}[rank0]: Fire here\n{steps(200)}", "cause-found"),
        (f"[rank1]: Fire here\n{steps(200)}[rank1]: Fire here\n", "cause-found"),
        (f"Fire here\n{steps(100, '')}", "cause-found"),
        (f"Fire here\n{steps(200, '')}", "healthy"),
        (f"Fire here\nINFO vllm Avg prompt throughput: 1 tokens/s\n{'Decode batch. #running: 1' * 30}", "cause-found"),
        ("Fire here\n" + "Decode batch. #running-req: 1\n" * 200, "healthy"),
        (f"[W socket.cpp:663] Fire here\n{steps(8)}", "healthy"),
        (f"[E socket.cpp:663] Fire here\n{steps(8)}", "cause-found"),
        ("[W socket.cpp:663] Fire here\nTraining finished\n", "cause-found"),
        ("Training finished\n[W socket.cpp:663] Fire here\n", "healthy"),
        ("Training finished\nFire here\n", "cause-found"),
        (f"[  123.456789] Fire here\n{steps(200, '')}", "cause-found"),
        (f"Fire here\n2/3 attempts left; will restart worker group\n{steps(200, '')}", "cause-found"),
    ],
)
def test_what_the_job_survived_is_no_failure(engine_with_probe: Engine, log: str, outcome: str) -> None:
    report = explained(engine_with_probe, log)
    assert (report.outcome, "a.fire" in report.noise) == (outcome, outcome == "healthy")


CRASH = """[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 8, in <module>
[rank0]: KeyError: 'bleu'
"""
DEATH = "match: {seen: {regex: '^KeyError: ', strength: strong}}\nfallback: true"


@pytest.mark.parametrize(
    ("log", "top"),
    [
        (f"[rank0]: Fire here\n{steps(3, '[rank0]: ')}{CRASH}", "b.death"),
        (f"[rank0]: Fire here\n{steps(2, '[rank0]: ')}{CRASH}", "a.fire"),
        (f"[rank0]: WARNING:trainer:Fire here\n{steps(1, '[rank0]: ')}{CRASH}", "b.death"),
        (f"[rank1]: Fire here\n{steps(9, '[rank0]: ')}{CRASH}", "a.fire"),
        (f"[rank0]: Fire here\n{CRASH}{steps(9, '[rank0]: ')}", "a.fire"),  # what stdout held back
        (f"[  123.456789] Fire here\n{steps(50, '[rank0]: ')}{CRASH}", "b.death"),
        (f"[  123.456789] Fire here\n{steps(9, '[rank0]: ')}{CRASH}", "a.fire"),
        (
            "2026-03-02 04:00:00 gpu-a1 kernel: Fire here\n2026-03-02 08:00:00 [rank0]: step 1000 loss 1.2\n" + CRASH,
            "b.death",
        ),
    ],
)
def test_a_line_that_a_process_outlived_is_not_what_it_died_of(tmp_path: Path, log: str, top: str) -> None:
    engine = engine_of(tmp_path, a__fire=PROBED, b__death=DEATH)
    assert explained(engine, log).diagnoses[0].rule == top


def test_an_exception_that_a_rule_knows_may_be_what_the_line_announced(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, a__fire=PROBED, b__death=DEATH.replace("true", "false"))
    assert explained(engine, f"[rank0]: Fire here\n{steps(9, '[rank0]: ')}{CRASH}").diagnoses[0].rule == "a.fire"


def test_an_unknown_error_that_the_job_survived_is_none(engine_with_probe: Engine) -> None:
    log = steps(3, "") + "ValueError: one sample is empty\n"
    assert explained(engine_with_probe, log + steps(200, "")).outcome == "healthy"
    assert explained(engine_with_probe, log).outcome == "unrecognised"


def test_what_a_rank_survived_is_not_the_first_failure(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, a__fire=PROBED, a__flood="match: {seen: {regex: 'Flood here'}}")
    alone = explained(engine, "[rank1]: Flood here\n").diagnoses[0]
    after = explained(engine, f"[rank1]: Fire here\n{steps(200)}[rank1]: Flood here\n").diagnoses[0]
    assert (after.rule, after.confidence) == (alone.rule, alone.confidence)


@pytest.mark.parametrize(("has_nccl", "status"), [(False, "confirmed"), (True, "refuted")])
def test_a_probe_of_the_failing_host_confirms_or_refutes(
    engine_with_probe: Engine, has_nccl: bool, status: str
) -> None:
    log = "node-a:1:2 [0] NCCL INFO Fire here\n"
    top = explained(engine_with_probe, log, sheet(has_nccl)).diagnoses[0]
    assert top.status == status
    assert [(line.outcome, line.same_host, line.ran) for line in top.probes] == [
        ("refutes" if has_nccl else "confirms", True, "import torch")
    ]


def test_a_probe_of_another_host_is_shown_and_decides_nothing(engine_with_probe: Engine) -> None:
    log = "node-b:1:2 [0] NCCL INFO Fire here\n"
    plain, probed = explained(engine_with_probe, log), explained(engine_with_probe, log, sheet(True, "node-a"))
    assert probed.diagnoses[0].confidence == plain.diagnoses[0].confidence
    assert probed.diagnoses[0].probes[0].same_host is False


def test_only_probes_of_live_hypotheses_are_asked(engine_with_probe: Engine) -> None:
    asked: list[tuple[str, ...]] = []

    def prober(probes: object) -> FactSheet:
        asked.append(tuple(probes))  # type: ignore[arg-type]
        return sheet(False)

    engine_with_probe.explain_text("nothing wrong\n", Options(prober=prober))
    assert asked == []
    assert engine_with_probe.explain_text("Fire here\n", Options(prober=prober)).diagnoses[0].status == "confirmed"
    assert asked == [("torch-build",)]


@pytest.mark.parametrize(
    ("failed", "probed", "same"),
    [("node-a", "node-a.cluster.example", True), ("node-a", "node-b", False), (None, "node-a", None),
     ("localhost", "node-a", None), ("10.0.0.8", "10.0.0.9", False), ("NODE-A", "node-a", True)],
)  # fmt: skip
def test_whose_host_a_probe_saw(failed: str | None, probed: str, same: bool | None) -> None:
    assert same_host(failed, probed) is same


def test_an_abort_is_explained_by_a_timeout_of_the_same_rank_only(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        a__abort="symptom:match: {seen: {regex: 'process aborted'}}\nexplained_by: [{rule: a.late, where: same-rank}]",
        a__late="symptom:match: {seen: {regex: 'collective timed out'}}\nexplained_by: [{rule: a.abort, where: other-rank}]",
    )
    same = engine.explain_text("[rank1]: collective timed out\n[rank1]: process aborted\n")
    assert same.diagnoses[0].rule == "a.late"
    other = engine.explain_text("[rank0]: collective timed out\n[rank1]: process aborted\n")
    assert other.diagnoses[0].rule == "a.abort"


def test_settings_from_a_fact_sheet_are_linted(engine_with_probe: Engine) -> None:
    fact = Fact(id="env.NCCL_ALGO", value="simple", origin="env@node-a")
    seen = FactSheet(host="node-a", facts=(fact,), errors=(), python="python", source="facts.json", commands={})
    report = explained(engine_with_probe, "Fire here\n", seen)
    assert [problem.variable for problem in report.environment] == ["NCCL_ALGO"]
