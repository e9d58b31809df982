"""`logdoc explain --follow`: a growing file, a pipe, rotation, what is told when, and what it costs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from logdoc.runner import follow as following
from logdoc.runner.follow import Change, Feed, follow, open_file
from logdoc.runner.keep import LEAST_BYTES, Ring
from logdoc.types.errors import InputError
from logdoc.types.report import Diagnosis, Report
from tests.runnerkit import LOGDOC, SECONDS, environment, read_until

CRASH = b'[rank1]: Traceback (most recent call last):\n[rank1]:   File "t.py", line 3\n[rank1]: ValueError: bad lr\n'
OTHER = b'[rank0]: Traceback (most recent call last):\n[rank0]:   File "t.py", line 9\n[rank0]: KeyError: 7\n'


@contextmanager
def followed(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`logdoc explain --follow`, ended for sure."""
    process = subprocess.Popen(
        [*LOGDOC, "explain", "--follow", "--no-probes", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        bufsize=0,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def event(process: subprocess.Popen[bytes]) -> dict[str, object]:
    assert process.stdout is not None
    told = json.loads(read_until(process.stdout.fileno(), b"\n"))
    assert isinstance(told, dict)
    return told


def type_of(told: dict[str, object]) -> object:
    diagnosis = told["diagnosis"]
    assert isinstance(diagnosis, dict)
    return diagnosis["values"]["type"]


def test_a_failure_is_told_while_the_pipe_is_open_and_the_end_when_it_closes() -> None:
    with followed("-", "--format", "jsonl") as process:
        assert process.stdin is not None
        process.stdin.write(b"step 1\n" + CRASH)
        told = event(process)
        assert (told["event"], told["number"], type_of(told)) == ("diagnosis", 1, "ValueError")
        assert process.poll() is None
        process.stdin.close()
        end = event(process)
        assert (end["event"], end["outcome"]) == ("end", "cause-found")
        assert process.wait(timeout=SECONDS) == 1


def test_a_growing_file_until_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "rank_1.log"
    log.write_bytes(b"step 1\n")
    with followed(str(log), "--format", "jsonl") as process, open(log, "ab", buffering=0) as writer:
        writer.write(CRASH)
        told = event(process)
        assert type_of(told) == "ValueError"
        process.send_signal(signal.SIGINT)
        assert event(process)["event"] == "end"
        assert process.wait(timeout=SECONDS) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_without_a_failure_it_says_so_by_its_exit_code(number: int, code: int, tmp_path: Path) -> None:
    with followed("-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"step 1\n")
        wait_until_handled(process.pid)
        process.send_signal(number)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == code
        assert "✓" in out.decode()


def wait_until_handled(pid: int) -> None:
    """Until the process catches SIGTERM, which no Python does by itself."""
    end = time.monotonic() + SECONDS
    wanted = 1 << (signal.SIGTERM - 1)
    while time.monotonic() < end:
        caught = next(
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")
        )
        if int(caught.split()[1], 16) & wanted:
            return
        threading.Event().wait(0.01)
    raise AssertionError("no handler")


def test_text_is_the_short_report_whenever_another_cause_leads() -> None:
    with followed("-", "--color", "never") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(CRASH)
        first = read_until(process.stdout.fileno(), b"ValueError").decode()
        assert "✗ Rank 1" in first
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 1
        assert "✗" not in out.decode()  # told once
        assert err == b""


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_what_is_to_be_hidden_is_hidden_from_first_to_last(form: str) -> None:
    secret = b"hf_abcdefghijklmnopqrstuvwxyz012345"
    with followed("-", "--format", form, "--redact", "--long") as process:
        told, _ = process.communicate(
            CRASH.replace(b"bad lr", secret) + OTHER.replace(b"KeyError: 7", b"KeyError: " + secret), timeout=SECONDS
        )
    assert b"ValueError" in told
    assert secret not in told


def test_json_is_one_object_at_the_end() -> None:
    with followed("-", "--format", "json", "--exit-zero") as process:
        out, _ = process.communicate(b"step 1\n" + CRASH, timeout=SECONDS)
        assert process.returncode == 0
        assert json.loads(out)["outcome"] == "cause-found"


def test_what_cannot_be_followed_is_one_line(tmp_path: Path) -> None:
    for arguments in ([str(tmp_path / "missing")], [str(tmp_path)], ["a", "b"]):
        with followed(*arguments) as process:
            out, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 2
            assert out == b""
            assert b"Traceback" not in err


class Watched:
    """A Feed of a file into a ring, with the notes it gives."""

    def __init__(self, path: Path) -> None:
        self.ring = Ring(LEAST_BYTES)
        self.notes: list[str] = []
        self.noted = threading.Event()
        self.feed = Feed(str(path), open_file(str(path)), self.ring, self._note)
        self.feed.start()

    def _note(self, what: str, name: str) -> None:
        self.notes.append(what)
        self.noted.set()

    def wait(self) -> None:
        assert self.feed.changed.wait(SECONDS)
        self.feed.changed.clear()

    def text(self) -> bytes:
        with closing(self.ring.snapshot()) as kept:
            return b"".join(kept.raw_blocks(1 << 20))

    def wait_for(self, text: bytes) -> None:
        while not self.text().endswith(text):
            self.wait()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_bytes(b"one\n")
    return path


@pytest.fixture
def watched(log: Path) -> Iterator[Watched]:
    watched = Watched(log)
    yield watched
    watched.feed.interrupt(2)
    watched.feed.join(SECONDS)
    watched.ring.close()


def test_growth_is_read(log: Path, watched: Watched) -> None:
    watched.wait_for(b"one\n")
    with open(log, "ab") as writer:
        writer.write(b"two\n")
    watched.wait_for(b"one\ntwo\n")
    assert watched.notes == []


def test_rotation_is_noticed_and_nothing_of_either_file_is_lost(log: Path, watched: Watched) -> None:
    watched.wait_for(b"one\n")
    with open(log, "ab") as writer:
        log.rename(log.with_suffix(".log.1"))
        writer.write(b"two\n")
        writer.flush()
        watched.wait_for(b"two\n")
        log.write_bytes(b"three\n")
        watched.wait_for(b"one\ntwo\nthree\n")
    assert watched.notes == ["rotated"]


def test_truncation_is_noticed(log: Path, watched: Watched) -> None:
    watched.wait_for(b"one\n")
    log.write_bytes(b"")
    assert watched.noted.wait(SECONDS)
    with open(log, "ab") as writer:
        writer.write(b"new\n")
    watched.wait_for(b"one\nnew\n")
    assert watched.notes == ["truncated"]


def test_only_regular_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError):
            open_file(str(path))


class FakeFeed(Feed):
    """Says that it has grown each time it has been explained, `times` times; its pauses are noted, not waited for."""

    def __init__(self, times: int) -> None:
        super().__init__(None, -1, None, lambda what, name: None)  # type: ignore[arg-type]
        self.pauses: list[float] = []
        self.left = times
        self.changed.set()
        feed = self

        class Ended(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                assert timeout is not None
                feed.pauses.append(timeout)
                feed.left -= 1
                feed.changed.set()
                if not feed.left:
                    self.set()
                return self.is_set()

        self.ended = Ended()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock shows next: each explanation takes as long as the test says."""
    times: list[float] = []
    monkeypatch.setattr(following, "time", SimpleNamespace(monotonic=lambda: times.pop(0)))
    monkeypatch.setattr(following, "sys", SimpleNamespace(setswitchinterval=lambda seconds: None))
    return times


def test_explaining_takes_at_most_a_tenth_of_the_time(clock: list[float], found: Report) -> None:
    clock += [0.0, 3.0, 100.0, 100.01, 200.0]
    feed = FakeFeed(times=2)
    follow(feed, lambda: found, lambda change: None)
    assert feed.pauses == [27.0, 1.0]


@pytest.fixture(scope="module")
def found() -> Report:
    """A report with one diagnosis."""
    from logdoc.engine import Engine
    from logdoc.rulebase import load_rules, rule_roots

    return Engine(load_rules(rule_roots()[:1])).explain_text(CRASH.decode())


def befallen(diagnosis: Diagnosis, rank: int) -> Diagnosis:
    return replace(diagnosis, origin=replace(diagnosis.origin, rank=rank))


def test_what_is_new_and_what_leads_is_told_once(clock: list[float], found: Report) -> None:
    clock += [0.0] * 20
    first = found.diagnoses[0]
    second, third = befallen(first, 2), befallen(first, 3)
    orders = [(first,), (first,), (first, second), (second, first), (second, third)]
    reports = iter([replace(found, diagnoses=order) for order in orders])
    told: list[tuple[int, int | None]] = []

    def note(change: Change) -> None:
        told.append((change.number, change.diagnosis.origin.rank))

    last = follow(FakeFeed(times=4), lambda: next(reports), note)
    assert told == [(1, 1), (2, 2), (1, 2), (2, 3)]
    assert last.diagnoses == orders[-1]


def test_a_failure_that_has_left_what_is_kept_is_still_the_result(clock: list[float], found: Report) -> None:
    clock += [0.0] * 10
    reports = iter([found, replace(found, outcome="healthy", diagnoses=())])
    assert follow(FakeFeed(times=1), lambda: next(reports), lambda change: None) is found


def test_a_flood_into_a_pipe_is_not_held_up_and_takes_no_memory() -> None:
    code = (
        "import os, resource, subprocess, sys\n"
        "job = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "block = b'step 7 loss 2.31 lr 3e-4\\n' * 40000\n"
        "for _ in range(200): job.stdin.write(block)\n"
        "job.stdin.close()\n"
        "print(job.wait(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [*LOGDOC, "explain", "--follow", "--no-probes", "-"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=environment(), capture_output=True, timeout=2 * SECONDS
    )
    exit_code, most_memory = map(int, done.stdout.split())
    assert exit_code == 0
    assert most_memory < 150 << 10  # KiB
