"""`probe --expect`, `verify` and `doctor` as scripts use them: their exit codes are their answers."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from logdoc.cli.commands import commands as main
from logdoc.probes.sheets import FactSheet, ProbeError, sheet_json
from logdoc.types.finding import Fact


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        ("limit.nofile>1", 0), ("limit.nofile>=1", 0), ("limit.nofile<1", 1), ("limit.nofile!=1", 0), ("limit.nofile=1", 1),
        ("nobody.knows=1", 2), ("nonsense", 2), ("gpu.count>0", 2), ("limit.nofile>=8Gigs", 2), ("limit.nofile=many", 2),
        ("limit.nofile<unlimited", 0), ("limit.memlock>=0B", 0),
    ],
)  # fmt: skip
def test_expectations(expect: str, code: int) -> None:
    assert CliRunner().invoke(main, ["probe", "limits", "--expect", expect]).exit_code == code


class Seen:
    """This machine's facts, as a test wants them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def show(self, id: str, value: str | float | bool | None, unit: str = "", error: str = "") -> None:
        facts = () if value is None else (Fact(id=id, value=value, unit=unit, origin="p@n"),)
        errors = (ProbeError(probe="p", error=error),) if error else ()
        known = (Fact(id="os.system", value="Linux", origin="container@n"),)
        sheet = FactSheet(host="n", facts=(*facts, *known), errors=errors, python="", source="live")
        self._monkeypatch.setattr("logdoc.cli.probe.looked", lambda *_: sheet)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


@pytest.mark.parametrize(
    ("probe", "expect", "value", "unit", "code", "said"),
    [
        ("shm", "shm.total>8GiB", 64 << 20, "bytes", 1, "shm.total = 64 MiB; expected > 8GiB: does not hold"),
        ("shm", "shm.total>8GiB", 16 << 30, "bytes", 0, "shm.total = 16.00 GiB; expected > 8GiB: holds"),
        ("limits", "limit.core>=1", 0, "bytes", 1, "limit.core = 0 bytes; expected >= 1: does not hold"),
        ("limits", "limit.memlock=unlimited", 2**63 - 1, "bytes", 0, "limit.memlock = unlimited; expected = unlimited: holds"),
        ("clock", "clock.max_error<1m", 16.0, "s", 0, "clock.max_error = 16 s; expected < 1m: holds"),
        ("clock", "clock.max_error<10ms", 0.5, "s", 1, "clock.max_error = 0.5 s; expected < 10ms: does not hold"),
        ("gpu-list", "gpu.mig=false", False, "", 0, "gpu.mig = false; expected = false: holds"),
        ("gpu-list", "gpu.compute_mode=Default", "Prohibited", "", 1, "gpu.compute_mode = Prohibited; expected = Default: does not hold"),
        ("torch-build", "torch.version>=2.10", "2.9.1+cu128", "", 1, "torch.version = 2.9.1+cu128; expected >= 2.10: does not hold"),
        ("env", "env.NCCL_DEBUG=WARN", None, "", 1, "env.NCCL_DEBUG is not known here; expected = WARN: cannot tell"),
    ],
)  # fmt: skip
def test_an_expectation_is_answered_in_a_line(
    probe: str, expect: str, value: str | float | bool | None, unit: str, code: int, said: str, seen: Seen
) -> None:
    seen.show(expect[: re.search("[<>=]", expect).start()], value, unit)  # type: ignore[union-attr]
    done = run("probe", probe, "--expect", expect, "--lang", "en")
    assert (done.exit_code, done.stdout, done.stderr) == (code, f"{said}\n", "")
    chinese = run("probe", probe, "--expect", expect, "--lang", "zh")
    assert ("期望" in chinese.stdout, chinese.stdout.count("\n")) == (True, 1)
    both = run("probe", probe, "--expect", expect, "--json", "--lang", "en")
    assert (both.exit_code, both.stderr) == (code, f"{said}\n")
    assert json.loads(both.stdout)["schema"] == "logdoc.facts/v1"


@pytest.mark.parametrize(
    ("arguments", "value", "unit", "said"),
    [
        ("limits --expect limit.nofil>=1", None, "", "no probe gives limit.nofil; did you mean limit.nofile?"),
        ("limits --expect gpu.count>=1", None, "", "limits does not give gpu.count: logdoc probe gpu-list --expect …"),
        ("--expect gpu.count>=1", None, "", "name the probe that gives gpu.count: logdoc probe gpu-list --expect …"),
        ("shm --expect shm.total>8GiBs", None, "", "--expect shm.total > 8GiBs: 'gibs' is no unit of it; did you mean GiB?"),
        ("clock --expect clock.max_error<1GiB", 1.0, "s", "--expect clock.max_error < 1GiB: 'gib' is no unit of it; there are us, "),
        ("shm --expect shm.total>much", 5, "bytes", "shm.total is a number, and 'much' is none"),
        ("gpu-list --expect gpu.mig=off", False, "", "gpu.mig is true or false: expect gpu.mig=true or gpu.mig=false"),
        ("container --expect os.kernel>5", "5.15.0-91-generic", "", "os.kernel = 5.15.0-91-generic is neither a number nor a version"),
        ("limts --expect limit.nofile>=1", None, "", "limts is not a probe; did you mean limits?"),
    ],
)  # fmt: skip
def test_an_expectation_that_cannot_be_meant_is_no_answer(
    arguments: str, value: str | float | bool | None, unit: str, said: str, seen: Seen
) -> None:
    seen.show(re.split("[<>=]", arguments.split()[-1])[0], value, unit)
    done = run("probe", *arguments.split())
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"logdoc: {said}")


def test_why_nobody_can_tell_is_told(seen: Seen) -> None:
    seen.show("gpu.free", None, error="nvidia-smi hung")
    done = run("probe", "gpu-memory", "--expect", "gpu.free>1GiB", "--lang", "en")
    assert (done.exit_code, done.stderr) == (1, "logdoc: p: nvidia-smi hung\n")
    assert "cannot tell" in done.stdout
    seen.show("gpu.free", 1, "bytes", error="another matter")
    assert run("probe", "gpu-memory", "--expect", "gpu.free>1GiB").stderr == ""


def test_an_active_probe_needs_leave_and_an_unknown_one_is_named() -> None:
    refused = CliRunner().invoke(main, ["probe", "gloo-pair"])
    assert refused.exit_code == 2
    assert "--active" in refused.stderr
    assert CliRunner().invoke(main, ["probe", "no-such"]).exit_code == 2


def test_the_collector_as_a_script_and_the_list_of_probes() -> None:
    script = CliRunner().invoke(main, ["probe", "--script"]).stdout
    compile(script, "probe.py", "exec")
    assert "torch-build" in CliRunner().invoke(main, ["probe", "--list"]).stdout


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_an_expectation_must_hold_wherever_it_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sheets(*values: bool | None) -> Callable[..., list[FactSheet]]:
        told = [
            FactSheet(
                host=f"n{number}",
                facts=(Fact(id="gloo.rank", value=number, origin="gloo-hosts@n"),)
                + (() if value is None else (Fact(id="gloo.hosts_ok", value=value, origin="gloo-hosts@n"),)),
                errors=(),
                python="",
                source="live",
            )
            for number, value in enumerate(values)
        ]
        return lambda *_arguments, **_options: told

    wanted = ["probe", "--active", "gloo-hosts", "--hosts", "a,b", "--launch", "ssh", "--expect", "gloo.hosts_ok=true"]
    for values, code in (((True, True), 0), ((True, None), 0), ((True, False), 1), ((None, None), 1)):
        monkeypatch.setattr("logdoc.probes.gloo_hosts.launch", sheets(*values))
        assert run(*wanted).exit_code == code, values


def test_hosts_are_reached_by_name_and_port() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        where = ["--hosts", "127.0.0.1,localhost", "--port", str(server.getsockname()[1])]
        done = run("probe", "--active", "tcp-reach", *where, "--expect", "tcp.ok=true")
    assert (done.exit_code, done.stdout.count(": tcp.ok = true; expected = true: holds\n")) == (0, 2)
    assert run("probe", "--active", "tcp-reach", *where, "--expect", "tcp.ok=true").exit_code == 1


def test_nothing_could_be_looked_at_is_no_success(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "python")
    for command in (["probe", "--all"], ["doctor"], ["doctor", "--format", "json"]):
        done = run(*command, "--python", nowhere)
        assert done.exit_code == 2, command
    # One line for all probes, not one for each.
    assert run("probe", "--all", "--python", nowhere).stderr.count("\n") == 1
    verified = run("verify", "install.torch-cpu-build", "--python", nowhere)
    assert (verified.exit_code, verified.stdout.count("does not exist")) == (1, 1)


def test_a_hung_tool_is_one_line_for_all_its_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nsleep 300\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    began = time.monotonic()
    done = run("doctor")  # the default: five seconds
    assert time.monotonic() - began < 6.0
    [line] = [line for line in done.stdout.splitlines() if "did not answer" in line]
    assert line.startswith("? gpu-list, gpu-memory, gpu-processes, gpu-health")
    assert "? more time may show more: --budget 30" in done.stdout


def test_verify_says_what_to_type_where_it_cannot_tell() -> None:
    done = run("verify", "topology.p2p-broken", "--python", sys.executable)
    assert done.exit_code == 1
    assert "p2p-copy, nccl-allreduce: --active" in done.stdout
    assert "$ nvidia-smi topo -p2p r   #" in done.stdout
    assert "<python>" not in run("verify", "install.cuda-runtime-mismatch", "--python", sys.executable).stdout


@pytest.mark.parametrize(("has_nccl", "word", "code"), [(True, "fixed", 0), (False, "not fixed", 1)])
def test_verify_judges_a_fact_file(has_nccl: bool, word: str, code: int, tmp_path: Path) -> None:
    fact = Fact(id="torch.has_nccl", value=has_nccl, origin="torch-build@node-4")
    sheet = FactSheet(host="node-4", facts=(fact,), errors=(), python="python", source="live")
    path = tmp_path / "facts.json"
    path.write_text(sheet_json(sheet))
    done = run("verify", "install.torch-cpu-build", "--facts", str(path))
    assert (done.stdout.splitlines()[0], done.exit_code) == (f"install.torch-cpu-build: {word}", code)


def test_doctor_judges_every_host_of_a_file(tmp_path: Path) -> None:
    facts = [Fact(id="shm.free", value=size, origin="shm@n", unit="bytes") for size in (1 << 20, 1 << 35)]
    sheets = [FactSheet(host=f"n{n}", facts=(fact,), errors=(), python="", source="x") for n, fact in enumerate(facts)]
    path = tmp_path / "facts.jsonl"
    path.write_text("\n".join(map(sheet_json, sheets)))
    done = run("doctor", "--facts", str(path), "--format", "json")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["host"], [found["id"] for found in one["findings"]]) for one in documents] == [
        ("n0", ["shm-small"]),
        ("n1", []),
    ]
    assert done.exit_code == 1
    assert "✓ nothing found that keeps NCCL from working" in run("doctor", "--facts", str(path)).stdout


def test_doctor_judges_a_fact_file(tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(CliRunner().invoke(main, ["probe", "torch-build", "limits", "shm"]).stdout)
    result = CliRunner().invoke(main, ["doctor", "--facts", str(facts), "--format", "json"])
    document = json.loads(result.stdout)
    assert document["schema"] == "logdoc.doctor/v1"
    assert result.exit_code == int(any(one["severity"] in ("fatal", "error") for one in document["findings"]))
