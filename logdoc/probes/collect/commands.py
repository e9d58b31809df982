"""Runs commands that may hang, within a time limit, and says what became of them.

Standard library only, Python 3.8: these parts are joined into the one script that `logdoc probe --script` prints.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

OUTPUT_LIMIT = 8 << 20


class Answer(NamedTuple):
    """What a command said. `state`: ok (it ended), missing, refused, timeout (killed), abandoned (did not die), late
    (never started: the time was over)."""

    state: str
    code: int
    out: str
    err: str

    @property
    def kind(self) -> str:
        """The kind of the error that there is no result."""
        return self.state if self.state in ("timeout", "abandoned") else "failed"

    def last_words(self) -> str:
        """The end of what it said on stderr; of what was stopped the beginning, for its end is about being stopped."""
        lines = [line.strip() for line in self.err.strip().splitlines()]
        return " | ".join(lines[:2] if self.state == "timeout" else lines[-2:])[:400]

    def fate(self, what: str, program: str) -> str:
        """Why there is no result: what became of `what`, for which `program` was started."""
        words = self.last_words()
        told = {
            "missing": f"{program} does not exist",
            "refused": f"{what} could not be started: {words}",
            "timeout": f"{what} gave no result within the time limit and was stopped" + (words and f" ({words})"),
            "abandoned": f"{what} hangs in the kernel and does not react to SIGKILL; left behind",
            "late": f"{what} was not started: the time was over",
            "ok": f"{what} gave no result: {words or 'no word either'} (exit code {self.code})",
        }
        return told[self.state]


def drain(stream: Any, chunks: list[bytes]) -> None:
    """Read a pipe to its end, keeping at most OUTPUT_LIMIT bytes; runs in a thread that may be left behind."""
    size = 0
    try:
        while True:
            data = os.read(stream.fileno(), 1 << 16)
            if not data:
                return
            if size < OUTPUT_LIMIT:
                chunks.append(data)
                size += len(data)
    except (OSError, ValueError):
        return


def feed_in(stream: Any, text: str) -> None:
    """Write a command's input; a command that does not want it is no fault."""
    try:
        stream.write(text.encode("utf-8"))
        stream.close()
    except (OSError, ValueError):
        return


def stop_group(pid: int, sig: int) -> None:
    """Signal a process that leads its own group, and all it started (on Windows: the process alone)."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, sig)
        else:
            os.kill(pid, sig)
    except OSError:
        return


def wait_briefly(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """True when the process is gone. Never blocks longer than `seconds`: wait() with a timeout only polls."""
    try:
        process.wait(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return False
    return True


def run_command(
    argv: Sequence[str],
    limit: float,
    feed: str = "",
    env: dict[str, str] | None = None,
    stop: Callable[[int, int], None] = stop_group,
    started: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> Answer:
    """Run a command in a process group of its own for at most `limit` seconds; what it printed until then counts.

    A child that survives SIGKILL (blocked in the kernel by a wedged driver) is abandoned, never waited for. `started`
    is given the process at once, for a caller that may have to end it from another thread.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except FileNotFoundError:
        return Answer("missing", 127, "", "")
    except (OSError, ValueError) as error:
        return Answer("refused", 126, "", str(error))
    if started:
        started(process)
    out: list[bytes] = []
    err: list[bytes] = []
    readers = listeners(process, out, err)
    if feed:
        threading.Thread(target=feed_in, args=(process.stdin, feed), daemon=True).start()
    state = "ok"
    try:
        over = not wait_briefly(process, limit)
    except BaseException:
        # Ctrl-C reaches only this process's own group: what was started must not outlive it.
        end_group(process, stop)
        raise
    if over:
        state = "timeout" if end_group(process, stop) else "abandoned"
    for reader in readers:
        reader.join(0.2 if state == "ok" else 0.05)
    if state == "ok" and any(reader.is_alive() for reader in readers):
        # A grandchild holds the pipe open after its parent has gone: what came so far is the answer.
        stop(process.pid, int(signal.SIGTERM))
    return Answer(state, -1 if process.returncode is None else process.returncode, text_of(out), text_of(err))


def listeners(process: subprocess.Popen[bytes], out: list[bytes], err: list[bytes]) -> list[threading.Thread]:
    """Threads that read what a command prints, so that it never waits for a full pipe."""
    readers = [
        threading.Thread(target=drain, args=(process.stdout, out), daemon=True),
        threading.Thread(target=drain, args=(process.stderr, err), daemon=True),
    ]
    for reader in readers:
        reader.start()
    return readers


def end_group(process: subprocess.Popen[bytes], stop: Callable[[int, int], None]) -> bool:
    """Ask a command to end, then insist; False when it is still there (state D, blocked in the kernel)."""
    for sig in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        stop(process.pid, int(sig))
        if wait_briefly(process, 0.2):
            return True
    return False


def text_of(chunks: Sequence[bytes]) -> str:
    return b"".join(chunks).decode("utf-8", "replace")
