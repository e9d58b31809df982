"""Gloo between given hosts: two processes of this machine play two hosts, with the real torch and real sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from logdoc.cli.commands import commands as main
from logdoc.probes.collect.commands import Answer
from logdoc.probes.gloo_hosts import Meeting, gloo_here, hosts_script, launch, told_in_words
from logdoc.probes.sheets import FactSheet, load_fact_sheets
from logdoc.probes.specs import spec
from logdoc.types.errors import InputError

TWO = ("a=127.0.0.1", "b=127.0.0.2")
# Starts a part where it stands; a real user writes ssh.
HERE = "env PLAYED={host}"
needs_torch = pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")


def free_ports() -> int:
    """The first of three ports that were free a moment ago, outside the range the kernel hands out."""
    for first in range(20_000, 30_000, 7):
        try:
            for port in range(first, first + 3):
                with socket.socket() as trial:
                    trial.bind(("", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


def known(sheet: FactSheet) -> dict[str, Any]:
    declared = spec("gloo-hosts")
    assert declared is not None
    assert {fact.id for fact in sheet.facts} <= set(declared.facts)
    assert all(fact.origin == f"gloo-hosts@{sheet.host}" and sheet.commands[fact.id] for fact in sheet.facts)
    return {fact.id.removeprefix("gloo."): fact.value for fact in sheet.facts}


@pytest.mark.torch
@needs_torch
def test_two_hosts_reach_each_other_and_reduce(tmp_path: Path) -> None:
    first = free_ports()
    arguments = ["--hosts", ",".join(TWO), "--port", str(first), "--launch", HERE, "--python", sys.executable]
    wanted = ["--expect", "gloo.hosts_ok=true", "--json"]
    done = CliRunner().invoke(main, ["probe", "--active", "gloo-hosts", *arguments, *wanted])
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("logdoc: On every host of --hosts: listens on a TCP port")
    (tmp_path / "facts.jsonl").write_text(done.stdout)
    sheets = load_fact_sheets(tmp_path / "facts.jsonl")
    for sheet, own, other in zip(sheets, "ab", "ba", strict=True):
        facts = known(sheet)
        assert (facts["host"], facts["rank"]) == (own, "ab".index(own))
        assert facts["reached"].startswith(f"{other} 127.0.0.")
        assert (facts["unreached_count"], facts["hosts_ok"], facts["hosts_step"]) == (0, True, "all-reduce done")
        assert 0 < facts["hosts_seconds"] < 60
        assert facts["interface"]
        assert facts["loopback"] is False  # both hosts are this one: a loopback is right
        assert sheet.errors == ()
        assert f"{own}: all-reduce right after" in told_in_words(sheet)


def test_a_host_that_was_not_started_is_no_verdict() -> None:
    sheet = gloo_here(Meeting(hosts=TWO, port=free_ports(), seconds=4), fake_torch(), rank=0, run=with_fake_torch)
    facts = known(sheet)
    assert "hosts_ok" not in facts
    assert (facts["unreached"], facts["not_heard"]) == ("b: Connection refused", "b")
    assert sheet.errors[0].error.startswith("nobody answers on b: start the probe there too")
    assert told_in_words(sheet) == "a: no verdict"


def test_a_name_that_does_not_resolve_and_a_group_that_fails_are_told() -> None:
    meeting = Meeting(hosts=("a=127.0.0.1", "b=fe80::1%nowhere"), port=free_ports(), seconds=4)
    facts = known(sheet := gloo_here(meeting, fake_torch(), rank=0, run=with_fake_torch))
    assert facts["unreached"].startswith("b: the name does not resolve")
    assert (facts["hosts_ok"], facts["hosts_step"]) == (False, "torch imported")
    assert facts["hosts_error"] == "RuntimeError: no group | here"
    assert told_in_words(sheet).startswith(
        "a: all-reduce failed: RuntimeError: no group | here; not reached from here: b"
    )


def test_a_process_that_dies_while_it_joins_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FAKE", FAKE.replace('raise RuntimeError("no group\\nhere")', "os.abort()"))
    meeting = Meeting(hosts=("a=127.0.0.1", "b=fe80::1%nowhere"), port=free_ports(), seconds=4)
    facts = known(gloo_here(meeting, fake_torch(), rank=0, run=with_fake_torch))
    assert (facts["hosts_ok"], facts["hosts_error"]) == (False, "its process died without a word (signal 6)")


def test_a_stranger_on_the_port_is_not_taken_for_the_other_host() -> None:
    first = free_ports()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first + 2))
        stranger.listen()
        stranger.settimeout(10)

        def chat() -> None:
            for _turn in range(100):
                try:
                    connection, _caller = stranger.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"220 mail ready\n")

        threading.Thread(target=chat, daemon=True).start()
        meeting = Meeting(hosts=("a=127.0.0.1", "b=127.0.0.1"), port=first, seconds=4)
        facts = known(gloo_here(meeting, fake_torch(), rank=0, run=with_fake_torch))
    assert facts["unreached"].startswith("b: something else answers on that port")
    assert facts["hosts_ok"] is False


def fake_torch() -> str:
    return sys.executable


FAKE = """
import types
class Fake(types.ModuleType):
    __version__ = "0"
    def init_process_group(self, *arguments, **options):
        raise RuntimeError("no group\\nhere")
sys.modules["torch"] = sys.modules["torch.distributed"] = Fake("torch")
"""


def with_fake_torch(argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
    """The script with a torch that cannot build a group: what is tested is everything round it."""
    before, sign, after = script.partition("main(sys.argv[1:])\n")
    done = subprocess.run(
        list(argv), input=before + FAKE + sign + after, capture_output=True, text=True, timeout=limit, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Answer("ok", done.returncode, done.stdout, done.stderr)


def test_without_torch_the_network_is_not_blamed(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    sheet = gloo_here(Meeting(hosts=TWO, port=free_ports(), seconds=4), str(bare), rank=1)
    assert set(known(sheet)) == {"hosts", "host", "rank"}
    assert "torch cannot be imported here: ModuleNotFoundError" in sheet.errors[0].error


def test_a_port_that_is_taken_is_said() -> None:
    first = free_ports()
    with socket.socket() as holder:
        holder.bind(("", first + 1))
        holder.listen()
        sheet = gloo_here(Meeting(hosts=TWO, port=first, seconds=4), fake_torch(), rank=0, run=with_fake_torch)
    assert sheet.errors[0].error.startswith(f"port {first + 1} cannot be listened on")


def test_a_host_finds_itself_by_its_name_or_is_told_how() -> None:
    name, first = socket.gethostname(), free_ports()
    script = hosts_script(Meeting(hosts=("elsewhere=192.0.2.9", f"{name}=127.0.0.1"), port=first, seconds=4))
    # As on a machine without logdoc: the file alone, no arguments.
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=script, capture_output=True, text=True, timeout=30)
    assert f"gloo-hosts: {name} (rank 1 of 2) listens on TCP {first + 2}" in done.stderr
    with pytest.raises(InputError, match=r"is none of x=192\.0\.2\.8,y=192\.0\.2\.9.*--launch ssh"):
        gloo_here(Meeting(hosts=("x=192.0.2.8", "y=192.0.2.9")), sys.executable)


@pytest.mark.parametrize(
    ("hosts", "port"),
    [
        ("a", 29610), ("a,a", 29610), ("-oProxyCommand=x,b", 29610), ("a;rm,b", 29610), ("a,", 29610), ("a,b", 65534),
        ("a=,b", 29610), ("a,$(id)", 29610), (",".join(f"h{n}" for n in range(65)), 29610),
    ],
)  # fmt: skip
def test_hosts_that_cannot_be(hosts: str, port: int) -> None:
    done = CliRunner().invoke(main, ["probe", "--active", "gloo-hosts", "--hosts", hosts, "--port", str(port)])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1


def test_every_part_is_started_at_once_by_the_command_given() -> None:
    started: list[list[str]] = []
    together = threading.Barrier(2, timeout=10)

    def run(argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
        together.wait()
        started.append(list(argv))
        assert "own_rank" in script
        if argv[0] == "n2":
            return Answer("timeout", -9, "", "")
        facts = [{"id": "gloo.hosts_ok", "value": True, "probe": "gloo-hosts"}]
        return Answer("ok", 0, json.dumps({"schema": "logdoc.facts/v1", "host": "node1", "facts": facts}), "")

    sheets = launch(Meeting(hosts=("n1", "n2=10.0.0.2"), port=29000, seconds=10), "{host} --", run=run)
    tail = ["--", "python3", "-", "--hosts", "n1,n2=10.0.0.2", "--port", "29000", "--seconds", "10", "--rank"]
    assert sorted(started) == [["n1", *tail, "0"], ["n2", *tail, "1"]]
    assert (sheets[0].host, sheets[0].value("gloo.hosts_ok")) == ("node1", True)
    assert (sheets[1].host, sheets[1].timed_out) == ("n2", ("gloo-hosts",))
    with pytest.raises(InputError, match="--launch"):
        launch(Meeting(hosts=("n1", "n2")), "'")


def test_a_part_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung = tmp_path / "python"
    hung.write_text("#!/bin/sh\nsleep 300\n")
    hung.chmod(0o755)
    monkeypatch.setattr("logdoc.probes.gloo_hosts.GRACE_SECONDS", 0.5)
    began = time.monotonic()
    sheet = gloo_here(Meeting(hosts=TWO, port=free_ports(), seconds=0.5), str(hung))
    assert time.monotonic() - began < 3.0
    assert sheet.errors[0].error.endswith("gave no result within the time limit and was stopped")
