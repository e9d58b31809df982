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
    assert text.startswith("4 jobs, 3 failed\n\nJobs   What broke them\n    3  gpu.fell-off-bus ")
    assert "\n\nJobs   Hosts on which failures began\n    2  node-b " in text


def test_each_job_has_a_line_the_latest_failure_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old", "newest", "newer"):
        (tmp_path / f"job-{name}").mkdir()
        (tmp_path / f"job-{name}" / "a.log").write_text("ValueError: bad lr\n" if name == "newer" else XID)
        os.utime(tmp_path / f"job-{name}", (0, 0))
        os.utime(tmp_path / f"job-{name}" / "a.log", (0, {"old": 1, "newer": 2, "newest": 3}[name]))
    (tmp_path / "job-fine.log").write_text("step 1\n")
    text = CliRunner().invoke(main, ["triage", str(tmp_path), "--lang", "en"]).stdout
    lines = text.partition("Each job, the latest failure first\n")[2].splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["job-newest", "gpu.fell-off-bus"],
        ["job-newer", "process.user-exception"],
        ["job-old", "gpu.fell-off-bus"],
        ["job-fine.log", "-"],
    ]
    assert "ValueError" in lines[1]
    monkeypatch.setattr("logdoc.cli.triage.MOST_JOBS", 1)
    cut = CliRunner().invoke(main, ["triage", str(tmp_path), "--lang", "en"]).stdout
    assert cut.endswith(f"{lines[0]}\n       and 3 more: --format json has them all\n")
    assert "各作业，最近失败的在前\n" in CliRunner().invoke(main, ["triage", str(tmp_path), "--lang", "zh"]).stdout


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
    assert (result.exit_code, result.stdout.split("\n")[0]) == (1, "1 job, 1 failed")
    assert result.stderr == f"logdoc: {tmp_path}/bad.log: not explained: OverflowError: too large\n"


def test_what_of_a_job_was_not_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "job-1").mkdir()
    (tmp_path / "job-1" / "a.log").write_text(XID)
    (tmp_path / "job-1" / "weights.log").write_bytes(bytes(range(256)) * 20)
    result = CliRunner().invoke(main, ["triage", str(tmp_path)])
    assert result.stderr == f"logdoc: 1 binary file ({tmp_path}/job-1/weights.log) skipped\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_neither_a_files_name_nor_a_host_reaches_the_terminal_as_it_is(tmp_path: Path, form: str) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[31m.log"
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"Apr  9 01:21:38 no\u202ede\u009b31m kernel: {XID.split('] ', 1)[1]}")
    result = CliRunner().invoke(main, ["triage", str(tmp_path), "--format", form])
    assert result.exit_code == 1
    assert not {"\x1b", "\u202e", "\u009b", "\udcff"}.intersection(result.stdout)
