"""Parts that ssh, srun or kubectl start: stand-ins print what the real ones printed; nobody is blamed for a start that
failed, nothing outlives logdoc, and what a launcher did to the lines is undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.pieces import LINE_LIMIT, printed
from logdoc.probes.gloo_hosts import Meeting, hosts_script, launch, told_in_words
from logdoc.probes.launchers import Launchers
from logdoc.probes.sheets import SCHEMA, FactSheet, load_fact_sheet, load_fact_sheets, sheet_lines
from logdoc.types.errors import InputError

TWO = Meeting(hosts=("n1", "n2"), port=29000, seconds=10)
SRUN = {"SLURM_STEP_ID": "0"}


def took_part(host: str, more: Mapping[str, Any]) -> dict[str, Any]:
    values = {"host": host, "hosts_error": "no result within 5 s (last step: torch imported)", "unreached_count": 1}
    facts = [
        {"id": f"gloo.{id}", "value": value, "probe": "gloo-hosts"} for id, value in {**values, **more}.items() if value
    ]
    facts += [{"id": "gloo.hosts_ok", "value": bool(more.get("hosts_ok")), "probe": "gloo-hosts"}]
    return {"schema": SCHEMA, "host": host, "facts": [*facts], "errors": []}


def launched(first: Answer, second: Answer) -> tuple[FactSheet, ...]:
    def run(argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
        return first if "n1" in argv else second

    return launch(TWO, "ssh", run=run)


FAILED = Answer("ok", 0, json.dumps(took_part("n1", {"unreached": "n2: no answer: packets are dropped"})), "")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        # What OpenSSH 9.2 and Slurm 22.05 print.
        (
            Answer("ok", 255, "", "Host key verification failed.\r\n"),
            "n2: `ssh n2 python3` gave no result: Host key verification failed. (exit code 255)",
        ),
        (
            Answer("ok", 255, "", "Permission denied, please try again.\r\na@n2: Permission denied (publickey).\r\n"),
            "n2: `ssh n2 python3` gave no result: Permission denied, please try again. | a@n2: Permission denied (publickey). "
            "(exit code 255)",
        ),
        (
            Answer("timeout", -15, "", "srun: job 49 queued and waiting for resources\nsrun: a\nsrun: Force Terminated"),
            "n2: `ssh n2 python3` gave no result within the time limit and was stopped (srun: job 49 queued and waiting for "
            "resources | srun: a)",
        ),
        (Answer("ok", 0, f'{{"schema": "{SCHEMA}", "cut', ""), "n2: `ssh n2 python3` gave no result: no word either (exit code 0)"),
        (
            Answer("ok", 1, "", '  File "<stdin>", line 6\nSyntaxError: future feature annotations is not defined\n'),
            'n2: `ssh n2 python3` gave no result: File "<stdin>", line 6 | SyntaxError: future feature annotations is not '
            "defined (exit code 1); the probe needs Python 3.8 or newer",
        ),
        (Answer("missing", 127, "", ""), "n2: ssh does not exist"),
        (Answer("refused", 126, "", "Exec format error"), "n2: `ssh n2 python3` could not be started: Exec format error"),
        (Answer("abandoned", -1, "", ""), "n2: `ssh n2 python3` hangs in the kernel and does not react to SIGKILL; left behind"),
    ],
)  # fmt: skip
def test_a_start_that_failed_is_said_and_no_network_blamed_for_it(answer: Answer, says: str) -> None:
    waited, absent = launched(FAILED, answer)
    assert [error.error for error in absent.errors] == [says]
    assert (waited.value("gloo.hosts_ok"), waited.value("gloo.unreached")) == (None, None)
    assert [error.error for error in waited.errors] == ["n1: no verdict: n2 never took part"]
    assert told_in_words(waited) == "n1: no verdict"


def test_where_all_took_part_a_failure_stands() -> None:
    both = launched(FAILED, Answer("ok", 0, json.dumps(took_part("n2", {"not_heard": "n1"})), ""))
    assert [sheet.value("gloo.hosts_ok") for sheet in both] == [False, False]
    assert told_in_words(both[0]).endswith("; not reached from here: n2: no answer: packets are dropped")
    assert told_in_words(both[1]).endswith("; not heard: n1")


def test_what_a_failure_may_come_from_is_said() -> None:
    (one, other) = launched(
        Answer("ok", 0, json.dumps(took_part("n1", {})), ""),
        Answer("ok", 0, json.dumps(took_part("n2", {"hosts_error": "SO_ERROR: refused, remote=[127.0.1.1]:14754$0"})), ""),
    )  # fmt: skip
    assert "does a firewall drop gloo's, any of ip_local_port_range?" in told_in_words(one)
    assert "a host told the others its loopback address" in told_in_words(other)


def test_nobody_is_asked_for_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "asks: $SSH_ASKPASS_REQUIRE" >&2\n[ -t 0 ] && echo terminal >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.delenv("SSH_ASKPASS_REQUIRE", raising=False)
    for sheet in launch(TWO, str(ssh)):
        assert "gave no result: asks: never (exit code 255)" in sheet.errors[0].error


def test_kubectl_that_knows_no_such_pod_blames_no_network(tmp_path: Path) -> None:
    """The stand-in checks what it is given, and runs what follows `--` here."""
    bare, kubectl = tmp_path / "python", tmp_path / "kubectl"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    kubectl.write_text(
        '#!/bin/sh\n[ "$1 $2 $4" = "exec -i --" ] || { echo "usage: $*" >&2; exit 1; }\n'
        '[ "$3" = pod-0 ] || { echo "Error from server (NotFound): pods \\"$3\\" not found" >&2; exit 1; }\n'
        'shift 4\nexec "$@"\n'
    )
    for made in (bare, kubectl):
        made.chmod(0o755)
    meeting = Meeting(hosts=("pod-0=127.0.0.1", "pod-9=127.0.0.2"), port=29000, seconds=4)
    here, missing = launch(meeting, f"{kubectl} exec -i {{host}} --", str(bare))
    assert here.errors[0].error.startswith("pod-0: torch cannot be imported here: ModuleNotFoundError")
    assert 'gave no result: Error from server (NotFound): pods "pod-9" not found' in missing.errors[0].error
    assert (here.value("gloo.hosts_ok"), missing.facts) == (None, ())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_started_ends_with_logdoc(number: signal.Signals, tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/$1.part && mv {tmp_path}/$1.part {tmp_path}/$1.pid\nexec sleep 120\n"
    )
    ssh.chmod(0o755)
    words = ["probe", "--active", "gloo-hosts", "--hosts", "n1,n2", "--seconds", "60", "--launch", str(ssh)]
    logdoc = subprocess.Popen(
        [sys.executable, "-m", "logdoc", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        pids = [int(waited_for(tmp_path / f"{host}.pid")) for host in ("n1", "n2")]
        logdoc.send_signal(number)
        assert logdoc.wait(timeout=20) == 128 + number
    finally:
        logdoc.kill()
    assert [pid for pid in pids if is_alive(pid)] == []


def waited_for(path: Path) -> str:
    limit = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < limit
        time.sleep(0.01)
    return path.read_text()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_launcher_that_starts_after_the_end_is_ended_too() -> None:
    launchers = Launchers()
    launchers.end()
    began = time.monotonic()
    answer = launchers.run(["sleep", "120"], 60.0, "", dict(os.environ))
    assert (answer.state, answer.code) == ("ok", -signal.SIGTERM)
    assert time.monotonic() - began < 20


def test_launchers_work_in_another_thread() -> None:
    done: list[Answer] = []
    asking = threading.Thread(
        target=lambda: done.extend(Launchers().all_at_once([["true"], ["false"]], 20.0, "", None)), daemon=True
    )
    asking.start()
    asking.join(30)
    assert [answer.code for answer in done] == [0, 1]


LONG = "GPU0 GPU1\n" * 350
WIDE = "内存不足 " * 100


def sheet(host: str) -> dict[str, Any]:
    entries = [("topo.matrix", LONG), ("python.path", "/usr/bin/python3"), ("wide.text", WIDE)]
    entries += [(f"limit.n{number}", "x" * number) for number in range(150)]
    facts = [{"id": id, "value": value, "unit": "", "source": "a", "probe": "limits"} for id, value in entries]
    errors = [
        {"probe": "shm", "error": "e" * 2500, "kind": "timeout"},
        {"probe": "env", "error": "f", "kind": "failed"},
    ]
    return {"schema": SCHEMA, "host": host, "time": "2026-01-02T03:04:05Z", "executable": "/p", "facts": facts,
            "errors": errors}  # fmt: skip


def same(read: FactSheet, told: dict[str, Any]) -> bool:
    facts = {fact.id: fact.value for fact in read.facts}
    errors = [(error.probe, error.error, error.kind) for error in read.errors]
    return (
        facts == {fact["id"]: fact["value"] for fact in told["facts"]}
        and errors == [tuple(error.values()) for error in told["errors"]]
        and (read.host, read.time, read.python) == (told["host"], told["time"], told["executable"])
    )


def test_outside_a_step_a_sheet_is_one_line() -> None:
    assert printed(sheet("a"), {}).count("\n") == 1
    assert json.loads(printed(sheet("a"), {})) == sheet("a")


def test_pieces_that_srun_mixed_are_one_sheet_a_task_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for task, host in enumerate(("node1", "node2", "node1")):
        monkeypatch.setattr(os, "getpid", lambda task=task: 100 + task)
        told.append(printed(sheet(host), SRUN).splitlines())
    assert all(len(line.encode()) <= LINE_LIMIT for lines in told for line in lines)
    mixed = [line for lines in zip(*told, strict=True) for line in reversed(lines)]
    path = tmp_path / "facts.jsonl"
    path.write_text("\n".join(mixed))
    sheets = load_fact_sheets(path)
    assert sorted(one.host for one in sheets) == ["node1", "node1", "node2"]
    assert all(same(one, sheet(one.host)) for one in sheets)
    assert printed_again(sheets[0], tmp_path) == sheets[0].facts
    path.write_text("\n".join(line for line in mixed if '"number": 3,' not in line))
    lost = [error.error for error in load_fact_sheets(path)[0].errors if error.probe == "collector"]
    assert lost == [f"1 of the {len(told[0])} lines that this host printed are missing"]


def printed_again(read: FactSheet, folder: Path) -> Any:
    (folder / "again.jsonl").write_text(sheet_lines(read, SRUN))
    return load_fact_sheet(folder / "again.jsonl").facts


def test_lines_that_srun_labelled_and_cut_are_read(tmp_path: Path) -> None:
    """`srun -l` cuts after 1024 bytes and labels the rest anew; pieces of the tasks alternate."""
    cut = {
        task: [line[start : start + 1024] for start in range(0, len(line), 1024)]
        for task, line in enumerate(json.dumps(sheet(host)) for host in ("node1", "node2"))
    }
    lines = [f"{task}: {part}" for parts in zip(*cut.values(), strict=True) for task, part in enumerate(parts)]
    path = tmp_path / "facts.jsonl"
    path.write_text("\n".join(["srun: job 7 queued and waiting for resources", "1: welcome", *lines]) + "\n")
    assert [same(one, sheet(host)) for one, host in zip(load_fact_sheets(path), ("node2", "node1"), strict=True)] == [
        True, True,
    ]  # fmt: skip
    path.write_text(f"cn7: {json.dumps(sheet('cn7'))}\ncn8: {json.dumps(sheet('cn8'))}\n")  # pdsh
    assert [one.host for one in load_fact_sheets(path)] == ["cn7", "cn8"]


def test_lines_that_ran_into_each_other_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    one, other = json.dumps(sheet("node1")), json.dumps(sheet("node2"))
    path.write_text(one[:4096] + other[:4096] + one[4096:] + "\n" + other[4096:] + "\n")
    with pytest.raises(InputError, match=r"ran into each other: .*srun --output=facts-%N\.json") as refused:
        load_fact_sheets(path)
    assert "\n" not in str(refused.value)


def test_the_script_for_hosts_prints_short_lines_within_a_step() -> None:
    script = hosts_script(Meeting(hosts=("x=192.0.2.8", f"{os.uname().nodename}=127.0.0.1"), port=29000, seconds=1))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", "--rank", "1"], input=script, capture_output=True, text=True, timeout=60,
        env={**os.environ, **SRUN},
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[0])["piece"]["number"] == 0
