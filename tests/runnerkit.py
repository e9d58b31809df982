"""Real child processes under `logdoc run`, plain and on a terminal; every wait has a limit and none is a sleep."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

# What a logdoc that is killed leaves behind goes with the tests.
TEMPORARY = tempfile.TemporaryDirectory(prefix="runnerkit-", ignore_cleanup_errors=True)
LOGDOC = (sys.executable, "-m", "logdoc")
RUN = (*LOGDOC, "run", "--no-probes", "--no-env")
SECONDS = 60.0
ROOT = Path(__file__).resolve().parents[1]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a shell, without what a launcher or the test runner put there."""
    dropped = ("RANK", "LOCAL_RANK", "NO_COLOR", "FORCE_COLOR", "NCCL_DEBUG", "TORCH_NCCL_DUMP_ON_TIMEOUT")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT), "TMPDIR": TEMPORARY.name, **changes}


def python(code: str) -> tuple[str, ...]:
    """A command that runs this Python code."""
    return (sys.executable, "-c", code)


def executable(path: Path, text: str) -> Path:
    """A program of this text."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(
    command: Sequence[str],
    *options: str,
    prefix: Sequence[str] = RUN,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> subprocess.CompletedProcess[bytes]:
    """`logdoc run OPTIONS -- COMMAND` to its end, its streams captured."""
    more.setdefault("stdin", subprocess.DEVNULL)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*prefix, *options, "--", *command], env=env or environment(), timeout=SECONDS, **streams)


class Job:
    """`logdoc run` in the background; `with` ends it for sure."""

    def __init__(self, command: Sequence[str], *options: str, prefix: Sequence[str] = RUN, **more: Any) -> None:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        streams.setdefault("env", environment())
        self.process = subprocess.Popen([*prefix, *options, "--", *command], bufsize=0, **streams)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def stderr(self) -> IO[bytes]:
        assert self.process.stderr is not None
        return self.process.stderr

    def line(self) -> bytes:
        """The next line of stdout."""
        return read_until(self.stdout.fileno(), b"\n")

    def told(self, wanted: bytes) -> bytes:
        """What comes on stderr up to and with `wanted`."""
        return read_until(self.stderr.fileno(), wanted)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[bytes, bytes, int]:
        """What is left of stdout and stderr, and the exit code."""
        out, err = self.process.communicate(timeout=SECONDS)
        return out, err, self.process.returncode


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """Bytes up to and with `wanted`, one at a time, so that nothing after it is taken."""
    held = bytearray()
    end = time.monotonic() + SECONDS
    while not held.endswith(wanted):
        if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
            raise AssertionError(f"waited for {wanted!r}, got {bytes(held)!r}")
        byte = os.read(descriptor, 1)
        assert byte, f"it ended before {wanted!r} came: {bytes(held)!r}"
        held += byte
    return bytes(held)


def state_of(pid: int) -> str:
    """The state letter of a process (R, S, T, Z, …); `X` for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def wait_for_state(pid: int, letters: str) -> None:
    """Until a process is in one of these states."""
    end = time.monotonic() + SECONDS
    while state_of(pid) not in letters:
        assert time.monotonic() < end, f"process {pid} is in state {state_of(pid)}, not {letters}"
        select.select([], [], [], 0.01)


class Shell:
    """An interactive bash on a terminal of its own, typed into and read from."""

    def __init__(self, rows: int = 30, columns: int = 101) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(environment(PS1="$ ", TERM="xterm", BASH_SILENCE_DEPRECATION_WARNING="1"))
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.resize(rows, columns)
        self.run = " ".join((*RUN, "-q", "--"))
        self.expect("$ ")

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self.terminal, (rows, columns))

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def expect(self, text: str) -> str:
        """What the terminal shows up to and with `text`."""
        return read_until(self.terminal, text.encode()).decode("utf-8", "replace")

    def start(self, command: str, first: str) -> None:
        """Type a command and wait until its own output (not the echo of what was typed) shows `first`."""
        self.type(command + "\n")
        self.expect("\r\n")
        self.expect(first)

    def code(self) -> int:
        """The exit code of the last command, once the prompt is back."""
        self.expect("$ ")
        self.type("echo code=$?=\n")
        self.expect("\r\n")
        self.expect("code=")
        return int(self.expect("=")[:-1])

    def is_cooked(self) -> bool:
        """Whether the terminal is as a shell leaves it for commands: lines, echo, signal keys, line ends."""
        _, output, _, local, *_ = termios.tcgetattr(self.terminal)
        wanted = termios.ICANON | termios.ISIG | termios.ECHO
        return local & wanted == wanted and bool(output & termios.OPOST)
