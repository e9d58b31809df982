"""Many jobs at once: causes are counted, hosts ranked, healthy jobs left out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from logdoc.cli.commands import commands as main
from logdoc.engine import Engine, Options
from logdoc.sources import Source
from logdoc.types.report import Report

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


def test_a_job_that_is_too_much_is_told_and_the_others_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = Engine.explain

    def one_breaks(engine: Engine, sources: Iterable[Source], options: Options = Options()) -> Report:
        listed = list(sources)
        if "bad" in listed[0].name:
            raise OverflowError("too large")
        return explain(engine, listed, options)

    monkeypatch.setattr(Engine, "explain", one_breaks)
    for name in ("bad.log", "good.log"):
        (tmp_path / name).write_text(XID)
    result = CliRunner().invoke(main, ["triage", str(tmp_path)])
    assert (result.exit_code, result.stdout.split("\n")[0]) == (1, "1 jobs, 1 failed")
    assert result.stderr == f"logdoc: {tmp_path}/bad.log: not explained: OverflowError: too large\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_neither_a_files_name_nor_a_host_reaches_the_terminal_as_it_is(tmp_path: Path, form: str) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[31m.log"
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"Apr  9 01:21:38 no\u202ede\u009b31m kernel: {XID.split('] ', 1)[1]}")
    result = CliRunner().invoke(main, ["triage", str(tmp_path), "--format", form])
    assert result.exit_code == 1
    assert not {"\x1b", "\u202e", "\u009b", "\udcff"}.intersection(result.stdout)
