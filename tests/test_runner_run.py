"""`logdoc run` round real commands: what passes through, what comes back, and what it does not touch."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runnerkit import LOGDOC, RUN, Job, environment, python, read_until, run, state_of, wait_for_state

MIB = 1 << 20


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_both_streams_pass_through_byte_for_byte() -> None:
    code = "import os; data = bytes(range(256)) * 300; os.write(1, data); os.write(2, data[::-1])"
    done = run(python(code))
    data = bytes(range(256)) * 300
    assert (done.returncode, done.stdout, done.stderr) == (0, data, data[::-1])


def test_one_place_for_both_streams_keeps_their_order() -> None:
    code = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)"
    done = run(python(code), stderr=subprocess.STDOUT)
    assert done.stdout == b"".join(b"%d\n" % number for number in range(2000))


def test_a_flood_passes_whole_and_takes_no_memory() -> None:
    code = "import os\nfor n in range(2560): os.write(1, (b'%07d\\n' % n) * 8192)"
    watched = python(
        "import hashlib, resource, subprocess, sys\n"
        "job = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "digest = hashlib.sha256()\n"
        "while block := job.stdout.read(1 << 20): digest.update(block)\n"
        "code = job.wait()\n"
        "print(digest.hexdigest(), code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([*watched, *RUN, "--", *python(code)], env=environment(), capture_output=True, timeout=120)
    digest, exit_code, most_memory = done.stdout.split()
    expected = hashlib.sha256()
    for number in range(2560):
        expected.update((b"%07d\n" % number) * 8192)
    assert digest.decode() == expected.hexdigest()
    assert exit_code == b"0"
    assert int(most_memory) < 100 << 10  # KiB


def test_output_comes_at_once_and_stdin_goes_in() -> None:
    with Job(python("while line := input(): print('got', line, flush=True)")) as job:
        for word in (b"one", b"two"):
            job.stdin.write(word + b"\n")
            assert job.line() == b"got " + word + b"\n"


def test_a_pipe_stays_a_pipe_and_further_files_are_handed_on(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"from three")
    with open(tmp_path / "x", "rb") as further:
        code = f"import os; print([os.isatty(n) for n in range(3)], os.read({further.fileno()}, 99))"
        done = run(python(code), pass_fds=(further.fileno(),))
    assert done.stdout == b"[False, False, False] b'from three'\n"


def test_closed_streams_are_no_trouble(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"{' '.join(RUN)} --log {tmp_path}/log -- bash -c 'echo out; echo err >&2; exit 3' <&- >&- 2>&-",
        ],
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 3
    assert (tmp_path / "log").read_bytes() == b"out\nerr\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (python("raise SystemExit(7)"), 7),
        (python("import os; os.kill(os.getpid(), 9)"), 137),
        (python("import os; os.abort()"), 134),
        (("no-such-command-anywhere",), 127),
        (("./no/such/file",), 127),
        (("/",), 126),
        (("",), 127),
    ],
)
def test_the_exit_code_is_a_shells(command: tuple[str, ...], code: int) -> None:
    done = run(command)
    assert done.returncode == code
    if code in (126, 127):
        assert done.stdout == b""
        assert done.stderr.startswith(b"logdoc: ")
        assert done.stderr.count(b"\n") == 1


def test_scripts_start_as_from_a_shell(tmp_path: Path) -> None:
    assert run((script(tmp_path / "bare", "echo bare $1\n"), "x")).stdout == b"bare x\n"
    assert run((script(tmp_path / "plain", "echo\n", 0o644),)).returncode == 126
    orphan = run((script(tmp_path / "orphan", "#!/no/such/interpreter\n"),))
    assert (orphan.returncode, b"first line" in orphan.stderr) == (127, True)
    assert run(("bare",), env=environment(PATH=str(tmp_path))).stdout == b"bare\n"


@pytest.mark.parametrize(
    "number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGRTMIN", "SIGWINCH"]
)
def test_signals_reach_the_command_once(number: str) -> None:
    code = f"""
import os, signal
seen = []
signal.signal(signal.{number}, lambda *_: seen.append(1))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
print('up', flush=True)
while not seen: signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0.2)
signal.sigwait([signal.SIGALRM])
print(len(seen), os.getpgid(0) == os.getpid(), flush=True)
"""
    with Job(python(code)) as job:
        job.line()
        job.send(getattr(signal, number))
        assert job.end() == (b"1 True\n", b"", 0)


def test_a_signal_goes_to_the_whole_group_of_the_command() -> None:
    with Job(("bash", "-c", "sleep 100 & echo $!; wait")) as job:
        sleeper = int(job.line())
        job.send(signal.SIGTERM)
        assert job.end()[2] == 143
        wait_for_state(sleeper, "XZ")


def test_stop_and_continue_reach_the_command() -> None:
    with Job(python("import os, sys; print(os.getpid(), flush=True); sys.stdin.read(); print('end')")) as job:
        pid = int(job.line())
        job.send(signal.SIGTSTP)
        wait_for_state(pid, "T")
        job.send(signal.SIGCONT)
        wait_for_state(pid, "SR")
        assert job.end() == (b"end\n", b"", 0)


def test_what_nohup_ignores_stays_ignored() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, flush=True); input(); print('end')"
    with Job(python(code), prefix=("nohup", *RUN)) as job:
        assert job.line() == b"True\n"
        job.send(signal.SIGHUP)
        job.stdin.write(b"\n")
        assert job.end()[::2] == (b"end\n", 0)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(PR_SET_PDEATHSIG)")
def test_killed_hard_it_takes_the_command_along_and_leaves_the_output(tmp_path: Path) -> None:
    code = "import os, sys; print('x' * 100000); print(os.getpid(), flush=True); sys.stdin.read()"
    with Job(python(code), env=environment(TMPDIR=str(tmp_path))) as job:
        assert job.line() == b"x" * 100000 + b"\n"
        pid = int(job.line())
        job.process.kill()
        wait_for_state(pid, "XZ")
    (folder,) = tmp_path.iterdir()
    assert (folder / "head").read_bytes().endswith(b"x\n%d\n" % pid)


def test_a_reader_that_leaves_is_felt_by_the_command_as_without_us() -> None:
    code = (
        "import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: os.write(1, b'x' * 999 + b'\\n')"
    )
    with Job(python(code)) as job:
        job.line()
        job.stdout.close()
        told = job.stderr.read()
        assert job.process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert told.count(b"\n") == 1
    assert b"SIGPIPE" in told


def test_a_command_that_bears_a_lost_reader_lives_on() -> None:
    code = """
import os
try:
    while True:
        os.write(1, b'more' * 99 + bytes([10]))
except BrokenPipeError:
    os.write(2, b'still here')
os._exit(0)
"""
    with Job(python(code)) as job:
        job.line()
        job.stdout.close()
        err = job.stderr.read()
        assert job.process.wait(timeout=60) == 0
    assert b"still here" in err
    assert b"SIGPIPE" in err


def test_a_full_disk_does_not_end_the_command() -> None:
    with open("/dev/full", "wb") as full:
        done = run(
            python("import os\nfor _ in range(99): os.write(1, b'x' * 1000)\nos.write(2, b'alive')"), stdout=full
        )
    assert done.returncode == 0
    assert done.stderr.count(b"alive") == 1
    assert os.strerror(errno.ENOSPC).encode() in done.stderr
    assert b"96.7 KiB" in done.stderr


def test_output_that_does_not_wait_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with Job(python("import os; os.write(1, b'x' * 500_000 + b'\\n')"), stdout=writing) as job:
        os.close(writing)
        assert len(read_until(reading, b"\n")) == 500_001
        assert job.process.wait(timeout=60) == 0
    os.close(reading)


def test_a_slow_reader_gets_everything_after_the_command_has_ended() -> None:
    code = "import os; os.write(2, b'%d\\n' % os.getpid()); os.write(1, b'x' * 300_000 + b'\\n')"
    with Job(python(code)) as job:
        pid = int(job.told(b"\n"))
        wait_for_state(pid, "XZ")  # all it wrote is in pipes and in our hands
        assert len(job.line()) == 300_001
        assert job.end()[2] == 0


def test_processes_left_behind_do_not_hold_us_up() -> None:
    with Job(("bash", "-c", "sleep 1000 & echo $!; exit 4")) as job:
        left = int(job.line())
        assert job.process.wait(timeout=30) == 4
        assert state_of(left) == "S"
        os.kill(left, signal.SIGKILL)
        assert b"left behind" in job.end()[1]


def _can_unshare() -> bool:
    tried = subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, timeout=60)
    return tried.returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or not _can_unshare(), reason="needs the right to make a PID namespace")
def test_as_first_process_it_buries_orphans_and_forwards_sigterm() -> None:
    code = """
import os, signal, subprocess, sys, time
for _ in range(20):  # each leaves an orphan that ends at once
    subprocess.run(['sh', '-c', '(sleep 0.01 &)'])
deadline = time.monotonic() + 30
def zombies():
    return [pid for pid in os.listdir('/proc') if pid.isdigit() and pid not in ('1', str(os.getpid()))]
while zombies() and time.monotonic() < deadline:
    time.sleep(0.02)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print(os.getppid(), zombies(), flush=True)
signal.pause()
"""
    with Job(python(code), prefix=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *RUN)) as job:
        assert job.line() == b"1 []\n"
        (child,) = Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert job.process.wait(timeout=60) == 9


def test_usage_errors_are_exit_code_2() -> None:
    for arguments in (
        [],
        ["--keep", "much", "--", "true"],
        ["--stall", "soon", "--", "true"],
        ["--no-such", "--", "true"],
    ):
        done = subprocess.run([*LOGDOC, "run", *arguments], env=environment(), capture_output=True, timeout=60)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
    missing = run(("true",), "--log", "/no/such/folder/x.log")
    assert (missing.returncode, missing.stderr.count(b"\n")) == (2, 1)


def test_the_command_does_not_wait_for_the_engine() -> None:
    code = "import sys, logdoc.cli.run; print([name for name in sys.modules if name in set(sys.argv[1:])])"
    heavy = ("logdoc.engine", "logdoc.rulebase", "logdoc.matcher", "logdoc.render", "rich", "regex", "psutil", "torch")
    done = subprocess.run([*python(code), *heavy], env=environment(), capture_output=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_any_real_time_signal_is_passed_on() -> None:
    code = (
        "import signal; signal.signal(44, lambda *_: (print('got'), exit(0))); print('up', flush=True); signal.pause()"
    )
    with Job(python(code)) as job:
        job.line()
        job.send(44)
        assert job.end() == (b"got\n", b"", 0)
