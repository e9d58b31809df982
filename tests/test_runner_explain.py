"""What `logdoc run` says of a command that failed, was killed, was asked to end, or fell silent."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from logdoc.runner.settings import fresh_dumps, helpful_settings
from logdoc.runner.verdict import rank_hints
from tests.runnerkit import LOGDOC, Job, environment, executable, python, run

FAILS = python("raise ValueError('bad lr')")
WITH_SETTINGS = (*LOGDOC, "run", "--no-probes")


def test_a_failure_is_explained_on_stderr_and_stdout_stays_the_commands() -> None:
    done = run(python("print('out'); raise ValueError('bad lr')"))
    assert (done.returncode, done.stdout) == (1, b"out\n")
    assert b"ValueError: bad lr\n\xe2\x9c\x97 " in done.stderr
    assert b"<output>:" in done.stderr


def test_success_is_silent_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('Traceback (most recent call last):\n  File "t.py", line 3\nValueError: bad lr\n')
    swallows = ("cat", str(tmp_path / "log"))
    assert run(swallows).stderr == b""
    found = run(swallows, "--always")
    assert (found.returncode, found.stderr[:3]) == (0, "✗".encode())
    assert run(("echo", "fine"), "--always").stderr == b""


def test_a_signal_is_told_as_a_shell_tells_it() -> None:
    done = run(python("import os; os.kill(os.getpid(), 11)"), "--format", "json")
    report = json.loads(done.stderr)
    evidence = report["diagnoses"][0]["evidence"][0]
    assert done.returncode == 139
    assert evidence["source"] == "<ending>"
    assert "Segmentation fault" in evidence["text"]


def test_a_failure_that_says_nothing_is_no_healthy_report() -> None:
    done = run(python("raise SystemExit(3)"), "--format", "json", "--lang", "zh")
    report = json.loads(done.stderr)
    assert report["outcome"] == "unrecognised"
    assert "退出码 3" in report["headline"]


def test_being_asked_to_end_is_no_failure() -> None:
    # a command that waits for a signal, not for the end of its input: which of the two came first would be a race
    with Job(python("import signal; print('up', flush=True); signal.pause()")) as job:
        job.line()
        job.send(signal.SIGTERM)
        assert job.end() == (b"", b"", 143)


def test_what_was_wrong_before_it_was_asked_to_end_is_told() -> None:
    code = """
import signal, sys, traceback
try:
    raise ValueError('bad lr')
except ValueError:
    traceback.print_exc()
signal.signal(signal.SIGTERM, lambda *_: (print('KeyError: later', file=sys.stderr), sys.exit(1)))
print('up', flush=True)
signal.pause()
"""
    with Job(python(code), "--format", "json") as job:
        job.line()
        job.send(signal.SIGTERM)
        _, err, exit_code = job.end()
    assert exit_code == 1
    report = json.loads(err[err.index(b"{") :])
    assert [diagnosis["values"]["type"] for diagnosis in report["diagnoses"]] == ["ValueError"]


def test_a_request_to_end_during_the_explanation_does_not_silence_it(tmp_path: Path) -> None:
    """torchrun ends the other ranks as soon as the first wrapper has exited."""
    os.mkfifo(tmp_path / "more")
    with Job(FAILS, "--also", str(tmp_path / "more")) as job:
        job.told(b"bad lr\n")
        with open(tmp_path / "more", "wb") as more:  # opens when the explanation reads it
            job.send(signal.SIGTERM)
            more.write(b"nothing\n")
        _, err, exit_code = job.end()
    assert exit_code == 1
    assert "✗".encode() in err


def test_report_log_and_termination_files(tmp_path: Path) -> None:
    (tmp_path / "also.log").write_text("[rank5]: nothing of note\n")
    done = run(
        FAILS,
        *("--format", "json", "--report", str(tmp_path / "%r-report.json"), "--log", str(tmp_path / "%r%%.log")),
        *("--termination", str(tmp_path / "message"), "--also", str(tmp_path / "also.log")),
        *("--also", str(tmp_path / "missing.log")),
        env=environment(RANK="3", LOCAL_RANK="1"),
    )
    report = json.loads((tmp_path / "3-report.json").read_text())
    names = [source["name"] for source in report["input"]["sources"]]
    log = tmp_path / "3%.log"
    assert names == [str(log), str(tmp_path / "also.log"), "<ending>"]
    assert report["diagnoses"][0]["origin"]["rank"] == 3
    assert any("missing.log" in warning for warning in report["warnings"])
    assert log.read_bytes() in done.stderr
    assert done.stderr.endswith(f"({tmp_path}/3-report.json)\n".encode())
    message = (tmp_path / "message").read_bytes()
    assert b"ValueError" in message
    assert len(message) <= 4096


def test_a_report_that_cannot_be_written_comes_on_stderr() -> None:
    done = run(FAILS, "--report", "/no/such/folder/report.txt")
    assert b"/no/such/folder/report.txt: No such file" in done.stderr
    assert "✗".encode() in done.stderr


def test_the_termination_message_tells_that_nothing_could_be_started(tmp_path: Path) -> None:
    assert run(("no-such-command",), "--termination", str(tmp_path / "message")).returncode == 127
    assert (tmp_path / "message").read_text() == "logdoc: no-such-command: command not found\n"


def test_broken_rules_do_not_change_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "rule.yaml").write_text("id: [")
    done = run(FAILS, "--rules", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count(b"logdoc: ") == 1
    assert b"logdoc: the failure could not be explained" in done.stderr


def test_what_was_lost_between_beginning_and_end_is_said() -> None:
    code = "import os\nfor n in range(40): os.write(1, (b'step %06d\\n' % n) * 8000)\nraise ValueError('bad lr')"
    done = run(python(code), "--keep", "1MiB", "--format", "json")
    report = json.loads(done.stderr[done.stderr.index(b"\n{") :])
    assert "ValueError" in report["headline"]
    assert any("MiB" in warning for warning in report["warnings"])


def test_helpful_variables_are_set_only_where_unset_and_that_is_said() -> None:
    shows = python("import os; print(os.environ['NCCL_DEBUG'], os.environ['TORCH_NCCL_DUMP_ON_TIMEOUT'])")
    done = run(shows, prefix=WITH_SETTINGS, env=environment(NCCL_DEBUG="INFO"))
    assert done.stdout == b"INFO 1\n"
    assert done.stderr.count(b"\n") == 1
    assert b"TORCH_NCCL_DUMP_ON_TIMEOUT=1" in done.stderr
    assert b"NCCL_DEBUG" not in done.stderr
    assert run(("true",), "-q", prefix=WITH_SETTINGS).stderr == b""
    unset = run(python("import os; print('NCCL_DEBUG' in os.environ)"))
    assert (unset.stdout, unset.stderr) == (b"False\n", b"")


def test_which_variables_are_helpful(tmp_path: Path) -> None:
    assert helpful_settings({}) == {
        "NCCL_DEBUG": "WARN",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
    }
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in helpful_settings({"TORCH_FR_BUFFER_SIZE": "0"})
    (tmp_path / ".nccl.conf").write_text("# NCCL_IB_HCA=x\nNCCL_DEBUG = INFO\n")
    assert "NCCL_DEBUG" not in helpful_settings({"HOME": str(tmp_path)})
    assert "NCCL_DEBUG" not in helpful_settings({"NCCL_CONF_FILE": str(tmp_path / ".nccl.conf")})


def test_flight_recorder_dumps_of_this_run_are_found(tmp_path: Path) -> None:
    prefix = tmp_path / "trace_rank_"
    for name, written in (("trace_rank_0", 100), ("trace_rank_1", 300), ("trace_rank_x", 300), ("other_1", 300)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (written, written))
    settings = {"TORCH_FR_DUMP_TEMP_FILE": str(prefix), "HOME": str(tmp_path)}
    assert fresh_dumps(settings, since=200) == [str(tmp_path / "trace_rank_1")]


def test_a_rank_is_known_by_what_torchrun_sets() -> None:
    assert rank_hints({"RANK": "9", "LOCAL_RANK": "1"}).rank == 9
    assert rank_hints({"RANK": "2"}).rank is None  # a pod's number
    assert rank_hints({"RANK": "x", "LOCAL_RANK": "1"}).rank is None


NVIDIA_SMI = "#!/bin/sh\necho '0, 79000, 81920'\necho '1, 100, 81920'\n"


def test_memory_peaks_are_facts_of_the_report(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "nvidia-smi", NVIDIA_SMI)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # The command waits until it has been looked at: nvidia-smi leaves a mark.
    executable(tmp_path / "bin" / "nvidia-smi", NVIDIA_SMI + f"touch {tmp_path}/looked\n")
    waits = (
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'looked')!r}): time.sleep(0.01)\nraise ValueError"
    )
    done = run(python(waits), *("--sample-memory", "--format", "json"), env=environment(PATH=path))
    report = json.loads(done.stderr[done.stderr.index(b"{") :])
    assert report["facts"]["other"]["gpu.peak_used"] == 79000 << 20
