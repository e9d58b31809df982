"""Starts a command for each of several hosts at once (ssh, srun, kubectl) and ends them all with logdoc itself."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType

from logdoc.probes.active import Run
from logdoc.probes.collect.commands import Answer, end_group, run_command, stop_group
from logdoc.types.errors import InputError


def started_on(host: str, command: str, words: Sequence[str]) -> list[str]:
    """What starts `words` on a host: `command`, in which {host} stands for its name, else the name follows it."""
    try:
        launcher = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--launch {command}: {error}") from error
    if not launcher:
        raise InputError("--launch names the command that starts Python on a host, such as ssh")
    asked = any("{host}" in word for word in launcher)
    return [word.replace("{host}", host) for word in launcher] + ([] if asked else [host]) + list(words)


def quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which ssh asks nobody anything: without a terminal it would open a window for the password."""
    return {"SSH_ASKPASS_REQUIRE": "never", **environ}


class Launchers:
    """The commands under way. Each has a session of its own, so no Ctrl-C reaches it: they are ended here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._over = False

    def run(self, argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
        return run_command(argv, limit, feed=script, env=dict(env), started=self._note)

    def all_at_once(self, argvs: Sequence[Sequence[str]], limit: float, script: str, run: Run | None) -> list[Answer]:
        """Every command's answer, in their order."""
        one, env = run or self.run, quiet(os.environ)
        with ended_by_signals(), ThreadPoolExecutor(max_workers=len(argvs)) as pool:
            try:
                return list(pool.map(lambda argv: one(argv, limit, script, env), argvs))
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        with self._lock:
            self._over = True
            running = [process for process in self._running if process.poll() is None]
        for process in running:
            stop_group(process.pid, signal.SIGTERM)
        for process in running:
            end_group(process, stop_group)

    def _note(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.append(process)
            over = self._over
        if over:
            end_group(process, stop_group)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP as exceptions, so that what was started is ended first; an ignored one stays ignored."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {getattr(signal, name): signal.getsignal(getattr(signal, name)) for name in names}
    taken = {number: handler for number, handler in before.items() if handler is signal.SIG_DFL}
    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
