"""`probe --expect`, `verify` and `doctor` as scripts use them: their exit codes are their answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from logdoc.cli import main


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        ("limit.nofile>1", 0), ("limit.nofile>=1", 0), ("limit.nofile<1", 1), ("limit.nofile!=1", 0), ("limit.nofile=1", 1),
        ("nobody.knows=1", 1), ("nonsense", 2),
    ],
)  # fmt: skip
def test_expectations(expect: str, code: int) -> None:
    assert CliRunner().invoke(main, ["probe", "limits", "--expect", expect]).exit_code == code


def test_an_active_probe_needs_leave_and_an_unknown_one_is_named() -> None:
    refused = CliRunner().invoke(main, ["probe", "gloo-pair"])
    assert refused.exit_code == 2
    assert "--active" in refused.stderr
    assert CliRunner().invoke(main, ["probe", "no-such"]).exit_code == 2


def test_the_collector_as_a_script_and_the_list_of_probes() -> None:
    script = CliRunner().invoke(main, ["probe", "--script"]).stdout
    compile(script, "probe.py", "exec")
    assert "torch-build" in CliRunner().invoke(main, ["probe", "--list"]).stdout


def test_doctor_judges_a_fact_file(tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(CliRunner().invoke(main, ["probe", "torch-build", "limits", "shm"]).stdout)
    result = CliRunner().invoke(main, ["doctor", "--facts", str(facts), "--format", "json"])
    document = json.loads(result.stdout)
    assert document["schema"] == "logdoc.doctor/v1"
    assert result.exit_code == int(any(one["severity"] in ("fatal", "error") for one in document["findings"]))
