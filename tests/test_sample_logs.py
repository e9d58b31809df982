"""Whole jobs: every sample log leads to its labelled cause and rank, and a healthy one to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from logdoc.engine import Engine
from logdoc.sources import discover
from logdoc.types.report import Report

ROOT = Path(__file__).resolve().parents[1] / "sample_logs"
CASES = sorted(path.parent for path in ROOT.glob("*/*/case.yaml"))


def explained(engine: Engine, case: Path) -> Report:
    log = case / "log.txt"
    return engine.explain(discover([str(log if log.exists() else case / "logs")]).sources)


def label(case: Path) -> dict[str, Any]:
    value = yaml.safe_load((case / "case.yaml").read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_the_labelled_answer_is_the_top_one(case: Path, engine: Engine) -> None:
    wanted, report = label(case), explained(engine, case)
    if wanted["cause"] == "none":
        assert (report.outcome, [one.rule for one in report.diagnoses]) == ("healthy", [])
        return
    top = report.diagnoses[0]
    assert top.rule in {wanted["cause"], *wanted["accept"]}
    if wanted["failing_rank"] is not None and top.origin.rank is not None:
        assert top.origin.rank == wanted["failing_rank"]


def test_there_are_enough_of_them() -> None:
    labels = [label(case) for case in CASES]
    assert sum(one["origin"] == "run" for one in labels) >= 20
    assert sum(one["cause"] == "none" for one in labels) >= 3
