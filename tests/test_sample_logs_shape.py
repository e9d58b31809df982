"""Every sample log is labelled, really there and free of this machine's traces; says nothing about diagnoses."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

SAMPLE_LOGS = Path(__file__).resolve().parent.parent / "sample_logs"
KEYS = {
    "id",
    "cause",
    "accept",
    "symptoms_present",
    "failing_rank",
    "why",
    "fix",
    "env_claims",
    "difficulty",
    "tags",
    "origin",
}
CAUSE_ID = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
# A build path of PyTorch itself (/__w/pytorch/…) is part of its messages and no trace of this machine.
LOCAL_PATH = re.compile(r"(?<![\w/.-])/(work|root|tmp/pytest|tmp/job-|tmp/bash_jobs)\b|\.pyenv|192\.0\.2\.")
CASES = sorted(path.parent for path in SAMPLE_LOGS.glob("*/*/case.yaml"))


def load_maker() -> ModuleType:
    """sample_logs/ is no package, so its maker is loaded by path."""
    spec = importlib.util.spec_from_file_location("sample_logs_make", SAMPLE_LOGS / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLE = {f"{sample.folder}/{sample.case}": sample for sample in load_maker().read_table()}


def label_of(case: Path) -> dict[str, Any]:
    label = yaml.safe_load((case / "case.yaml").read_text(encoding="utf-8"))
    assert isinstance(label, dict)
    return label


def logs_of(case: Path) -> list[Path]:
    tree = sorted(path for path in (case / "logs").rglob("*") if path.is_file())
    return tree or [case / "log.txt"]


def name_of(case: Path) -> str:
    return f"{case.parent.name}/{case.name}"


def is_cause_id(value: object) -> bool:
    return isinstance(value, str) and CAUSE_ID.fullmatch(value) is not None


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_label_has_the_evaluators_keys_and_types(case: Path) -> None:
    label = label_of(case)
    assert set(label) == (KEYS | {"command"} if label["origin"] == "run" else KEYS)
    assert label["id"] == case.name
    assert label["origin"] in {"run", "stand-in", "written"}
    assert label["cause"] == "none" or is_cause_id(label["cause"])
    assert case.parent.name == ("healthy" if label["cause"] == "none" else label["cause"])
    assert all(value == "none" or is_cause_id(value) for value in label["accept"])
    assert all(is_cause_id(value) for value in label["symptoms_present"])
    assert label["cause"] not in [*label["accept"], *label["symptoms_present"]]
    rank = label["failing_rank"]
    assert rank is None or (type(rank) is int and rank >= 0)
    assert all(isinstance(label[key], str) and label[key].strip() for key in ("why", "fix"))
    assert isinstance(label["env_claims"], dict)
    assert label["difficulty"] in {"easy", "medium", "hard"}
    assert label["tags"]
    assert all(isinstance(tag, str) for tag in label["tags"])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_log_is_there_in_one_form_and_not_empty(case: Path) -> None:
    assert (case / "log.txt").is_file() != (case / "logs").is_dir()
    assert any(log.read_bytes().strip() for log in logs_of(case))


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_nothing_names_a_path_of_the_machine_that_made_it(case: Path) -> None:
    for path in [case / "case.yaml", *logs_of(case)]:
        found = LOCAL_PATH.search(path.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{path.relative_to(case)}: {found}"


@pytest.mark.parametrize(
    "text", ['File "/' + 'root/x.py"', "in /" + "work/venv", "/tmp/pytest-3/a", "/tmp/job-ab12/jobs/train.py"]
)
def test_local_paths_would_be_noticed(text: str) -> None:
    assert LOCAL_PATH.search(text)


@pytest.mark.parametrize(
    "text", ["[/__w/pytorch/pytorch/gloo.cc:1]", "/home/trainer/jobs/x.py", "Root Cause", "invalid root rank"]
)
def test_stand_ins_and_build_paths_are_allowed(text: str) -> None:
    assert not LOCAL_PATH.search(text)


@pytest.mark.parametrize("case", [case for case in CASES if label_of(case)["origin"] == "run"], ids=name_of)
def test_run_case_agrees_with_the_makers_table(case: Path) -> None:
    sample = TABLE[name_of(case)]
    label = label_of(case)
    assert label["command"] == sample.command
    stated = {key: value for key, value in sample.label.items() if value is not None and key != "symptoms_present"}
    assert {key: label[key] for key in stated} == stated
    assert any(sample.shows in log.read_text(encoding="utf-8", errors="replace") for log in logs_of(case))


def test_every_table_entry_has_been_made() -> None:
    made = {name_of(case) for case in CASES}
    assert sorted(set(TABLE) - made) == []


def test_names_are_unique_and_every_job_script_is_used() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)
    lines = "\n".join(f"{sample.setup}\n{sample.wrap}\n{sample.command}" for sample in TABLE.values())
    unused = [script.name for script in (SAMPLE_LOGS / "jobs").glob("*.py") if script.name not in lines]
    assert unused == []


def test_the_set_is_as_large_as_it_should_be() -> None:
    labels = [label_of(case) for case in CASES]
    broken_runs = [label for label in labels if label["origin"] == "run" and label["cause"] != "none"]
    healthy_runs = [label for label in labels if label["origin"] == "run" and label["cause"] == "none"]
    written = [label for label in labels if label["origin"] == "written"]
    assert len(broken_runs) >= 28
    assert len(healthy_runs) >= 5
    assert len(written) >= 14
