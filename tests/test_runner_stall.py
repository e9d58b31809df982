"""What `logdoc run` sees of a command that falls silent: last words, stacks, who holds the others up, what is kept of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logdoc.runner import dumps as looking
from logdoc.runner import stall as stalling
from logdoc.runner.dumps import Dump, Member, look, processes
from logdoc.runner.keep import LEAST_BYTES, Ring
from logdoc.runner.phrases import stall_text
from logdoc.runner.stall import LAST_WORDS_SECONDS, Hang, Stack, Stall, last_words, stacks, verdict
from logdoc.sources import PathHints, source_from_bytes
from tests.runnerkit import Job, environment, executable, python, read_until
from tests.stackkit import MAIN, computes, loads, pyspy, waits

SILENT = "import sys; print('[rank0]: step 7', flush=True); print('[rank1]: step 9', flush=True); sys.stdin.read()"


def test_silence_is_told_with_everyones_last_words_and_the_command_lives() -> None:
    with Job(python(SILENT), "--stall", "0.2s") as job:
        told = job.told(b"rank 1, line 2: step 9\n")
        assert b"rank 0, line 1: step 7\n" in told
        job.stdin.close()
        assert job.process.wait(timeout=60) == 0


def test_silence_as_an_event(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events")
    with Job(python(SILENT), *("--stall", "0.2", "--format", "jsonl", "--report", str(tmp_path / "events"))) as job:
        events = os.open(tmp_path / "events", os.O_RDWR)  # not waiting for a writer that may never come
        told = json.loads(read_until(events, b"\n"))
        os.close(events)
        assert (told["event"], told["pid"] > 1) == ("stall", True)
        assert [words["ranks"] for words in told["words"]] == [[0], [1]]
        assert job.process.poll() is None


# Starts three ranks that say a step and wait for the end of stdin, rank 1 with two processes of its own.
LAUNCHER = r"""
import os, subprocess, sys
rank = r'''
import os, subprocess, sys
number = os.environ["RANK"]
if number == "1":
    for name in ("helper", "tracker"):
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", name])
os.write(1, b"[rank%s]: step 4 loss 3.0\n" % number.encode())
sys.stdin.read()
'''
told = {"WORLD_SIZE": "3"}
ranks = [
    subprocess.Popen([sys.executable, "-c", rank], env={**os.environ, **told, "RANK": one, "LOCAL_RANK": one})
    for one in "012"
]
AFTERWARDS
sys.exit(max(one.wait() for one in ranks))
"""
# Prints the file that is named by who the process is: its last argument or its rank.
PY_SPY = f"""#!{sys.executable}
import os, sys
pid = sys.argv[-1]
told = open(f"/proc/{{pid}}/environ").read().split("\\0")
rank = next((one[5:] for one in told if one.startswith("RANK=")), "launcher")
named, folder = open(f"/proc/{{pid}}/cmdline").read().split("\\0")[-2], os.path.dirname(sys.argv[0])
who = named if named in os.listdir(folder) else rank
print(open(os.path.join(folder, who)).read().replace("4242", pid))
"""
READS = [
    ("read_remote", "train.py", 25),
    ("fetch", "torch/utils/data/_utils/fetch.py", 54),
    ("_worker_loop", "torch/utils/data/_utils/worker.py", 374),
]
HOLDS_UP = b"rank 1 holds the others up: it waits for its data loader in step (train.py:85) (in all 2 of its dumps)"


@pytest.fixture
def spied(tmp_path: Path) -> dict[str, str]:
    """An environment in which py-spy sees rank 1 wait for its loader, whose worker reads, and the others for rank 1."""
    executable(tmp_path / "bin" / "py-spy", PY_SPY)
    ranks = {"0": waits(), "1": loads(), "2": waits()}
    for who, frames in {**ranks, "helper": READS, "tracker": computes(), "launcher": [MAIN]}.items():
        (tmp_path / "bin" / who).write_text(pyspy(4242, frames))
    return environment(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def launcher(afterwards: str = "") -> tuple[str, ...]:
    return python(LAUNCHER.replace("AFTERWARDS", afterwards))


def test_who_holds_the_others_up_is_told_and_told_again_in_the_report(spied: dict[str, str]) -> None:
    with Job(launcher("for one in ranks: one.wait()"), "--stall", "0.5", env=spied) as job:
        told = job.told(b"rank 1 waits for its data loader in step (train.py:85):\n")
        assert (
            HOLDS_UP + b" (a loader worker stands in read_remote (train.py:25)); ranks 0, 2 wait in all_reduce" in told
        )
        assert b"looks like: Rank 1: " in told
        assert b"rank 0, 2 waits in all_reduce called at step (train.py:88):\n" in told
        assert b"process " not in told.split(b"Last said:")[1]  # neither the launcher nor what rank 1 has started
        job.send(signal.SIGTERM)
        _, err, _ = job.end()
    assert "✗ Rank 1: ".encode() in err
    assert b"collective.rank-straggled" in err
    assert b"<stack of rank 1>:" in err


def test_what_is_seen_after_it_was_asked_to_end_is_told_and_explains_nothing(spied: dict[str, str]) -> None:
    outlives_its_ranks = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.stdin.read()"
    with Job(launcher(outlives_its_ranks), "--stall", "0.5", "--format", "json", env=spied) as job:
        job.told(b"rank 1 waits for its data loader in step (train.py:85):\n")
        job.send(signal.SIGTERM)
        job.told(b" runs <module> (train.py:120):\n")  # the launcher alone
        _, err, _ = job.end()
    report = json.loads(err[err.index(b"\n{\n") :])
    assert [one["rule"] for one in report["diagnoses"]] == ["collective.rank-straggled"]


def reported_after_its_stall(rest: str, spied: dict[str, str]) -> Any:
    """The report of a job that falls silent, is told of, and goes on with `rest` once its stdin is closed."""
    with Job(launcher(rest), "--stall", "0.5", "--format", "json", env=spied) as job:
        job.told(b"<module> (train.py:120)\n")
        _, err, _ = job.end()
    return json.loads(err[err.index(b"\n{\n") :])


def test_a_job_that_went_on_fails_of_something_else(spied: dict[str, str]) -> None:
    goes_on = "sys.stdin.readline(); print('[rank0]: step 5 loss 2.5', flush=True); raise ValueError('bad lr')"
    report = reported_after_its_stall(goes_on, spied)
    assert [one["rule"] for one in report["diagnoses"]] == ["process.user-exception"]


def test_a_job_that_dies_of_its_hang_is_explained_with_the_stacks(spied: dict[str, str]) -> None:
    gives_up = "sys.stdin.readline(); raise RuntimeError('Timed out waiting 18000ms for recv operation to complete')"
    report = reported_after_its_stall(gives_up, spied)
    assert report["diagnoses"][0]["rule"] == "collective.rank-straggled"
    assert report["diagnoses"][0]["origin"]["rank"] == 1


def test_stacks_of_the_command_itself(spied: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "4").write_text(pyspy(4242, computes()))
    with Job(python(SILENT), "--stall", "0.2", env={**spied, "RANK": "4", "LOCAL_RANK": "0"}) as job:
        told = job.told(b"<module> (train.py:120)\n")
    assert b"rank 4 runs forward (model.py:31):\n" in told


def test_a_number_of_a_pod_is_no_rank(spied: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "4").write_text(pyspy(4242, computes()))
    with Job(python(SILENT), "--stall", "0.2", env={**spied, "RANK": "4"}) as job:
        told = job.told(b"<module> (train.py:120)\n")
    assert b" runs forward (model.py:31):\n" in told
    assert b"rank 4" not in told


def test_without_py_spy_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(looking, "sys", SimpleNamespace(executable=str(tmp_path / "python")))
    assert look(os.getpid()) is None
    silent = Stall(pid=7, seconds=600.0, words=())
    assert "py-spy is not installed" in stall_text(silent, "en")
    assert "没有安装 py-spy" in stall_text(silent, "zh")


def test_a_py_spy_that_may_not_look_gives_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable(tmp_path / "py-spy", "#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(looking, "BETWEEN_LOOKS_SECONDS", 0.0)
    dumps = look(os.getpid())
    assert dumps is not None
    (stack,) = stacks(dumps[:1])
    assert (stack.pids, stack.frames, stack.error) == ((os.getpid(),), (), "Error: Permission Denied")
    told = stall_text(Stall(pid=7, seconds=600.0, words=(), stacks=(stack,)), "en")
    assert f"cannot look into process {os.getpid()}: Error: Permission Denied" in told


@pytest.mark.parametrize("state", looking.CANNOT_RUN)
def test_what_cannot_run_at_all_is_told(state: str) -> None:
    stack = Stack((11, 12), (0, 3), "runs main (train.py:9)", ("main (train.py:9)",), state)
    for language in ("en", "zh"):
        _, _, _, told, frame = stall_text(Stall(pid=7, seconds=9.0, words=(), stacks=(stack,)), language).splitlines()
        assert "11, 12" in told
        assert frame.endswith("main (train.py:9)")


def test_a_stopped_process_is_known_as_such(spied: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", spied["PATH"])
    monkeypatch.setattr(looking, "BETWEEN_LOOKS_SECONDS", 0.0)
    stopped = python("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    told = {**spied, "RANK": "1", "LOCAL_RANK": "1"}
    with subprocess.Popen(stopped, env=told) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        dumps = look(process.pid)
        process.kill()
    assert dumps is not None
    assert [(one.member.rank, one.state) for one in dumps] == [(1, "stopped")]
    assert [(one.ranks, one.state) for one in stacks(dumps)] == [((1,), "stopped")]


def real_py_spy() -> bool:
    """Whether a real py-spy is here and may look into this process."""
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=os.path.dirname(sys.executable))
    command = [str(spy), "dump", "--nonblocking", "--pid", str(os.getpid())]
    return spy is not None and subprocess.run(command, capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not real_py_spy(), reason="needs py-spy and the right to use it")
def test_the_real_py_spy_is_understood() -> None:
    code = "import sys\ndef stand():\n    print(flush=True)\n    sys.stdin.read()\nstand()"
    told = {**environment(), "RANK": "3", "LOCAL_RANK": "1"}
    with subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=told) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        dumps = look(process.pid)
        process.stdin.close()
    assert dumps is not None
    (one,) = processes(dumps)
    assert (one.rank, one.stacks.pid, len(one.dumps)) == (3, process.pid, 2)
    assert one.stacks.main is not None
    assert "stand" in [frame.function for frame in one.stacks.main.frames]


def test_ranks_that_no_launcher_names_are_named_by_their_variables(spied: dict[str, str], tmp_path: Path) -> None:
    says_locals = pyspy(4242, computes()) + "        Locals:\n            rank: 6\n"
    (tmp_path / "bin" / "launcher").write_text(says_locals)
    with Job(python(SILENT), "--stall", "0.2", env=spied) as job:
        told = job.told(b"<module> (train.py:120)\n")
    assert b"rank 6 runs forward (model.py:31):\n" in told
    spy = (tmp_path / "bin" / "py-spy").read_text()
    (tmp_path / "bin" / "py-spy").write_text(spy.replace("pid = ", "assert '--locals' not in sys.argv\npid = "))
    (tmp_path / "bin" / "4").write_text(pyspy(4242, computes()))
    with Job(python(SILENT), "--stall", "0.2", env={**spied, "RANK": "4", "LOCAL_RANK": "0"}) as job:
        assert b"rank 4 runs forward" in job.told(b"<module> (train.py:120)\n")


def dump(rank: int, text: str, world_size: int | None = None) -> Dump:
    return Dump(Member(100 + rank, 1, rank, rank, world_size), text)


def test_ranks_that_left_no_dump_are_known_by_the_world_size() -> None:
    dumps = [dump(rank, pyspy(100 + rank, waits()), world_size=3) for rank in (0, 2)]
    (sentence,) = verdict(dumps)
    assert sentence.endswith("none is elsewhere; no dump is of rank 1")
    assert verdict([replaced_world(one) for one in dumps])[0].endswith("none is elsewhere")


def replaced_world(one: Dump) -> Dump:
    return Dump(Member(one.member.pid, 1, one.member.rank), one.text)


@pytest.fixture
def ring() -> Iterator[Ring]:
    with closing(Ring(LEAST_BYTES)) as ring:
        yield ring


def seen(hang: Hang, ring: Ring, last_output: float = 1.0) -> None:
    with closing(ring.snapshot()) as kept:
        hang.seen([dump(1, "x")], last_words(kept.source("x", PathHints())), kept, last_output)


def held(hang: Hang, ring: Ring) -> int:
    with closing(ring.snapshot()) as kept:
        return len(hang.dumps(kept))


@pytest.mark.parametrize(
    ("later", "count"),
    [
        (b"", 1),
        (b"[rank1]: RuntimeError: Timed out after step 5\n", 1),
        (b"[rank0]: warned\n[rank1]: step 12, loss 2e-05\n", 1),  # another form
        (b"[rank0]: step 5 loss 1.25\n", 0),
    ],
)
def test_stacks_count_until_what_was_said_before_is_said_again(ring: Ring, later: bytes, count: int) -> None:
    hang = Hang()
    ring.write([b"[rank0]: step 3 loss 2.5\n[rank0]: step 4 loss 2.0\n[rank1]: step 4 loss 2.0\n"])
    seen(hang, ring)
    ring.write([later])
    assert held(hang, ring) == count


def test_stacks_count_no_more_when_the_job_talks_on(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    times = [100.0, 100.0 + LAST_WORDS_SECONDS, 101.0 + LAST_WORDS_SECONDS]
    monkeypatch.setattr(stalling, "time", SimpleNamespace(monotonic=lambda: times.pop(0)))
    hang = Hang()
    seen(hang, ring)
    for last_output, count in ((1.0, 1), (2.0, 1), (3.0, 1), (4.0, 0)):
        hang.tick(last_output)
        assert held(hang, ring) == count


def test_last_words_join_what_is_the_same_and_put_who_fell_silent_first_first() -> None:
    log = "".join(f"[rank{rank}]: step {3 if rank == 2 else 9}\n" for rank in (2, 0, 1, 3))
    words = last_words(source_from_bytes("x", log.encode()))
    assert [(one.ranks, one.line, one.text) for one in words] == [((2,), 1, "step 3"), ((0, 1, 3), 2, "step 9")]


def test_last_words_of_very_many_ranks_are_few() -> None:
    log = "".join(f"[rank{rank}]: step {rank}\n" for rank in range(4096))
    (words,) = last_words(source_from_bytes("x", log.encode()))
    assert len(words.ranks) == 4096


def test_last_words_without_ranks() -> None:
    (words,) = last_words(source_from_bytes("x", b"one\ntwo\n\n"))
    assert (words.ranks, words.line, words.text) == ((), 2, "two")
    assert last_words(source_from_bytes("x", b"")) == []
