"""Many jobs at once: causes are counted, hosts ranked, healthy jobs left out."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from logdoc.cli.commands import commands as main

XID = "[Tue Apr  9 01:21:38 2024] NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


def test_a_folder_of_jobs_becomes_a_table_with_the_worst_host_first(tmp_path: Path) -> None:
    for number, host in enumerate(("node-b", "node-b", "node-a")):
        (tmp_path / f"job-{number}.log").write_text(f"Apr  9 01:21:38 {host} kernel: {XID.split('] ', 1)[1]}")
    (tmp_path / "job-3.log").write_text("step 1\nstep 2\n")
    result = CliRunner().invoke(main, ["triage", str(tmp_path), "--format", "json"])
    assert result.exit_code == 1
    table = json.loads(result.stdout)
    assert [(one["rule"], one["jobs"]) for one in table["causes"]] == [("gpu.fell-off-bus", 3)]
    assert [(one["host"], one["failures"]) for one in table["hosts"]] == [("node-b", 2), ("node-a", 1)]
    text = CliRunner().invoke(main, ["triage", str(tmp_path)]).stdout
    assert text.startswith("4 jobs, 3 failed\n")


def test_healthy_jobs_exit_zero_and_unreadable_ones_two(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("step 1\n")
    assert CliRunner().invoke(main, ["triage", str(tmp_path / "job.log")]).exit_code == 0
    assert CliRunner().invoke(main, ["triage", str(tmp_path / "missing")]).exit_code == 2
