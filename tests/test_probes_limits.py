"""No probe hangs: hung tools, deaf children, crashes and broken interpreters cost no more than their limit."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from logdoc.probes.collect.commands import Answer, run_command
from logdoc.probes.collecting import job_python, run_collector
from logdoc.probes.sheets import FactSheet
from logdoc.types.errors import InputError
from tests.test_probes import run_script


def stub(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def gone(pid: int) -> bool:
    """Whether a process has ended, given a second to."""
    limit = time.monotonic() + 1.0
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
    return False


@pytest.mark.parametrize("manners", ["", "trap '' TERM INT HUP"], ids=["polite", "deaf"])
def test_a_hung_nvidia_smi_costs_no_more_than_the_budget(
    manners: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    stub(tmp_path, "nvidia-smi", f"{manners}\necho $$ >> {pids}\nsleep 300 &\necho $! >> {pids}\nwait\nsleep 300")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    began = time.monotonic()
    sheet = run_collector(["gpu-list", "gpu-memory", "topology", "shm"], sys.executable, budget=3.0)
    assert time.monotonic() - began < 4.0
    assert set(sheet.timed_out) == {"gpu-list", "gpu-memory", "topology"}
    assert sheet.value("gpu.count") is None
    unanswered = sheet.value("gpu.unanswered_seconds")
    assert isinstance(unanswered, float)
    assert 0.1 < unanswered < 3.0
    assert sheet.value("shm.total")
    started = [int(line) for line in pids.read_text().split()]
    assert started
    assert all(gone(pid) for pid in started)


def test_an_nvml_that_hangs_in_the_driver_is_told_as_nvidia_smi_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text("import time\n\ndef nvmlInit():\n    time.sleep(300)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sheet = run_collector(["gpu-list", "shm"], sys.executable, budget=3.0)
    assert sheet.timed_out == ("gpu-list",)
    assert "last step: nvmlInit" in sheet.errors[0].error
    unanswered = sheet.value("gpu.unanswered_seconds")
    assert isinstance(unanswered, float)
    assert 0.1 < unanswered < 3.0
    assert sheet.value("gpu.count") is None


SLEEPER = "SECTIONS.clear(); SECTIONS['shm'] = ({body}, 1.0)"


def test_a_section_that_hangs_is_stopped_and_keeps_what_it_said() -> None:
    body = "lambda machine, sheet: (sheet.add('shm.total', 7, 'x'), sheet.doing('statvfs'), time.sleep(300))"
    began = time.monotonic()
    result = run_script(change=SLEEPER.format(body=body))
    assert time.monotonic() - began < 3.0
    assert [fact["value"] for fact in result["facts"]] == [7]
    [error] = result["errors"]
    assert error["kind"] == "timeout"
    assert "last step: statvfs" in error["error"]


def test_a_section_the_kernel_holds_is_left_behind_and_named() -> None:
    # A kill that does nothing stands for a process in state D.
    body = "lambda machine, sheet: (sheet.add('shm.total', os.getpid(), 'x'), time.sleep(300))"
    began = time.monotonic()
    result = run_script(change=SLEEPER.format(body=body) + "\nkill = lambda pid: None")
    os.kill(result["facts"][0]["value"], signal.SIGKILL)
    assert time.monotonic() - began < 3.0
    [error] = result["errors"]
    assert error["kind"] == "abandoned"
    assert "left behind" in error["error"]


def test_many_sections_that_the_kernel_holds_cost_no_more_than_one() -> None:
    body = "lambda machine, sheet: (sheet.add('shm.total', os.getpid(), 'x'), time.sleep(300))"
    many = f"SECTIONS.clear(); SECTIONS.update((f'probe-{{n}}', ({body}, 1.0)) for n in range(16))"
    began = time.monotonic()
    result = run_script(change=many + "\nkill = lambda pid: None")
    took = time.monotonic() - began
    for fact in result["facts"]:
        os.kill(fact["value"], signal.SIGKILL)
    assert [error["kind"] for error in result["errors"]] == ["abandoned"] * 16
    assert took < 3.0  # a quarter of a second for all, not for each


def test_a_section_that_crashes_is_an_entry_not_an_end() -> None:
    result = run_script(change=SLEEPER.format(body="lambda machine, sheet: os.abort()"))
    assert "signal 6" in result["errors"][0]["error"]
    result = run_script(change=SLEEPER.format(body="lambda machine, sheet: 1 / 0"))
    assert "ZeroDivisionError" in result["errors"][0]["error"]


def test_a_command_that_does_not_die_is_abandoned() -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
    began = time.monotonic()
    answer = run_command([sys.executable, "-I", "-S", "-c", code], 1.0, stop=lambda pid, sig: None)
    assert time.monotonic() - began < 2.5
    assert answer.state == "abandoned"
    os.kill(int(answer.out), signal.SIGKILL)


def test_a_command_is_heard_though_its_child_keeps_the_pipe_open(tmp_path: Path) -> None:
    command = stub(tmp_path, "parent", "sleep 300 &\necho $!")
    began = time.monotonic()
    answer = run_command([str(command)], 5.0)
    assert time.monotonic() - began < 2.0
    assert answer.state == "ok"
    assert gone(int(answer.out))


def test_a_flood_of_output_is_cut_not_kept() -> None:
    answer = run_command(
        [sys.executable, "-c", "import sys\nfor _ in range(200): sys.stdout.write('x' * 100_000)"], 20.0
    )
    assert answer.state == "ok"
    assert len(answer.out) <= (8 << 20) + (1 << 16)


def test_the_jobs_python_is_the_active_environments(tmp_path: Path) -> None:
    for name in ("venv", "conda", "path"):
        (tmp_path / name / "bin").mkdir(parents=True)
    venv = stub(tmp_path / "venv" / "bin", "python", "")
    conda = stub(tmp_path / "conda" / "bin", "python", "")
    plain = stub(tmp_path / "path" / "bin", "python3", "")
    env = {"VIRTUAL_ENV": str(venv.parents[1]), "CONDA_PREFIX": str(conda.parents[1]), "PATH": str(plain.parent)}
    assert job_python("/some/python", env) == "/some/python"
    assert job_python(None, env) == str(venv)
    del env["VIRTUAL_ENV"]
    assert job_python(None, env) == str(conda)
    env["CONDA_PREFIX"] = str(tmp_path / "nowhere")
    assert job_python(None, env) == str(plain)
    assert job_python(None, {"PATH": str(tmp_path)}) == sys.executable


def test_an_interpreter_that_cannot_run_the_collector_is_said(tmp_path: Path) -> None:
    missing = run_collector(["shm"], str(tmp_path / "python"))
    assert "does not exist" in missing.errors[0].error
    old = stub(tmp_path, "python2", "echo '  File \"-\"' >&2; echo 'SyntaxError: invalid syntax' >&2; exit 1")
    sheet = run_collector(["shm", "clock"], str(old))
    assert [error.probe for error in sheet.errors] == ["shm", "clock"]
    assert "SyntaxError: invalid syntax (exit code 1); the collector needs Python 3.8" in sheet.errors[0].error
    assert sheet.facts == ()
    lying = stub(tmp_path, "liar", """echo '{"schema": "logdoc.facts/v1", "host": 3}'""")
    sheet = run_collector(["shm"], str(lying))
    assert (sheet.facts, "gave no result: no word either (exit code 0)" in sheet.errors[0].error) == ((), True)


@pytest.mark.parametrize(
    ("answer", "kind", "fate"),
    [
        (Answer("missing", 127, "", ""), "failed", "python3 does not exist"),
        (Answer("refused", 126, "", "Exec format error"), "failed", "it could not be started: Exec format error"),
        (
            Answer("timeout", -15, "", "queued\nwaiting\nforce terminated\n"),
            "timeout",
            "it gave no result within the time limit and was stopped (queued | waiting)",
        ),
        (
            Answer("abandoned", -1, "", ""),
            "abandoned",
            "it hangs in the kernel and does not react to SIGKILL; left behind",
        ),
        (Answer("late", -1, "", ""), "failed", "it was not started: the time was over"),
        (Answer("ok", 3, "", "one\ntwo\nthree\n"), "failed", "it gave no result: two | three (exit code 3)"),
    ],
)
def test_what_became_of_a_command_is_told_one_way(answer: Answer, kind: str, fate: str) -> None:
    assert (answer.kind, answer.fate("it", "python3")) == (kind, fate)
    sheet = FactSheet.unanswered(["shm", "clock"], answer, fate, "python3", host="n7")
    assert [(error.probe, error.kind, error.error) for error in sheet.errors] == [
        (id, kind, fate) for id in ("shm", "clock")
    ]
    assert (sheet.host, sheet.facts) == ("n7", ())


def test_what_a_probe_has_seen_says_what_is_known_where_and_in_which_unit() -> None:
    values = {"a.ok": False, "a.error": "", "a.run_seconds": 0.5, "a.0.peak_used": 7, "a.none": None}
    sheet = FactSheet.live("a-probe", values, "a --command", error="half of it failed")
    told = [(fact.id, fact.value, fact.unit) for fact in sheet.facts]
    assert told == [("a.ok", False, ""), ("a.run_seconds", 0.5, "s"), ("a.0.peak_used", 7, "bytes")]
    assert {fact.origin for fact in sheet.facts} == {f"a-probe@{sheet.host}"}
    assert sheet.commands == dict.fromkeys(["a.ok", "a.run_seconds", "a.0.peak_used"], "a --command")
    assert [(error.probe, error.error) for error in sheet.errors] == [("a-probe", "half of it failed")]


def test_an_interpreter_that_hangs_costs_no_more_than_the_budget(tmp_path: Path) -> None:
    hung = stub(tmp_path, "python", "sleep 300")
    deaf = stub(tmp_path, "deaf", "trap '' TERM\nsleep 300 & sleep 300; sleep 300")
    for python in (hung, deaf):
        began = time.monotonic()
        sheet = run_collector(["shm"], str(python), budget=2.0)
        assert time.monotonic() - began < 3.0
        assert sheet.timed_out == ("shm",)


def test_an_interpreter_that_starts_slowly_still_tells_what_it_can(tmp_path: Path) -> None:
    slow = stub(tmp_path, "python", f'sleep 1.2\nexec {sys.executable} "$@"')
    stub(tmp_path, "nvidia-smi", "sleep 300")
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        sheet = run_collector(["gpu-list", "shm"], str(slow), budget=3.0)
    assert time.monotonic() - began < 4.0
    assert sheet.value("shm.total")
    assert sheet.timed_out == ("gpu-list",)


def test_chatter_of_the_interpreter_does_not_hide_the_facts(tmp_path: Path) -> None:
    chatty = stub(tmp_path, "python", f"echo 'Welcome {{to}} the cluster'\nexec {sys.executable} \"$@\"")
    assert run_collector(["shm"], str(chatty), budget=10.0).value("shm.total")


def test_only_passive_probes_are_run_by_the_collector() -> None:
    with pytest.raises(InputError, match="active"):
        run_collector(["gloo-pair"])
    with pytest.raises(InputError, match="not a probe"):
        run_collector(["gloo"])
