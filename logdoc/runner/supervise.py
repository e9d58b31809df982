"""Runs the command to its end: output, keyboard, signals, job control, zombies. Explains nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from logdoc.runner.child import PIPE_BYTES, Plumbing, exit_code, lay_pipes, start
from logdoc.runner.keep import Keep
from logdoc.runner.pump import BLOCK_BYTES, Pump
from logdoc.runner.signals import SignalQueue
from logdoc.runner.terminal import Terminal, can_be_continued

TICK_SECONDS = 1.0
# After the command has ended, processes it left behind may still hold its streams: they are passed on while they
# speak, but do not keep us.
QUIET_SECONDS = 0.5
LONGEST_LINGERING_SECONDS = 10.0
CATCH_UP_SECONDS = 0.2  # that a request to end may wait for output written before it
_JOB_CONTROL = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the command ended; `began` in seconds since 1970.

    `asked`: the last signal passed on that asks a program to end, None if there was none. `dropped`: bytes of output
    that could not be written. `abandoned`: a process it left behind still holds its output.
    """

    pid: int
    status: int
    began: float
    asked: int | None
    reader_gone: bool
    dropped: int
    abandoned: bool

    @property
    def code(self) -> int:
        """What a shell would say: the exit code, or 128 plus the signal's number."""
        return exit_code(self.status)

    @property
    def signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None

    @property
    def is_unread(self) -> bool:
        """It ended because nobody reads its output any more, as in `… | head`: no failure of the command."""
        return self.reader_gone and self.code == 128 + signal.SIGPIPE


@dataclass(frozen=True, slots=True)
class Running:
    """What an observer may know of the command while it runs."""

    pid: int
    pumps: Sequence[Pump]
    terminal: Terminal

    @property
    def last_output(self) -> float:
        """When it last wrote something, by time.monotonic; its start if it never did."""
        return max(pump.last for pump in self.pumps)

    @property
    def line_is_open(self) -> bool:
        """Whether a message of ours would begin in the middle of a line on a terminal."""
        return any(not pump.ends_line and os.isatty(pump.target) for pump in self.pumps)


class Observer(Protocol):
    """What is told of the command while it runs, in the main thread but for faults."""

    def started(self, running: Running) -> None:
        """It runs."""

    def tick(self) -> None:
        """About a second has passed."""

    def asked(self) -> None:
        """It is about to be asked to end, for the first time."""

    def fault(self, what: str, reason: str) -> None:
        """Its output cannot be passed on as it should; called by the thread that does so."""


def run_to_its_end(
    command: Sequence[str],
    environment: Mapping[str, str],
    keep: Keep,
    signals: SignalQueue,
    observer: Observer,
) -> Ending:
    """Start the command, pass everything on until it ends. Raises StartError when it cannot be started."""
    plumbing = lay_pipes()
    began = time.time()
    with plumbing.terminal:
        process = start(command, environment, plumbing)
        pumps = _pumps(plumbing, keep, observer.fault)
        observer.started(Running(process.pid, pumps, plumbing.terminal))
        supervisor = _Supervisor(process.pid, pumps, plumbing.terminal, signals, observer)
        supervisor.watch()
        abandoned = supervisor.linger()
        plumbing.terminal.take_from(process.pid)
    _forget(process, supervisor.status)
    return Ending(
        pid=process.pid,
        status=supervisor.status or 0,
        began=began,
        asked=supervisor.asked,
        reader_gone=any(pump.reader_gone for pump in pumps),
        dropped=sum(pump.dropped for pump in pumps),
        abandoned=abandoned,
    )


def _pumps(plumbing: Plumbing, keep: Keep, said: Callable[[str, str], None]) -> list[Pump]:
    several = len(plumbing.channels) > 1
    pumps = [
        Pump(channel.source, channel.target, keep, whole_lines=several, said=said) for channel in plumbing.channels
    ]
    for pump in pumps:
        pump.start()
    return pumps


def _forget(process: subprocess.Popen[bytes], status: int | None) -> None:
    """Popen has not seen the end of its process, which was waited for here; it must not wait for that number again."""
    process.returncode = exit_code(status or 0)


class _Supervisor:
    """The loop: it owns what happens to the command. `status` is None while the command runs."""

    def __init__(
        self, pid: int, pumps: Sequence[Pump], terminal: Terminal, signals: SignalQueue, observer: Observer
    ) -> None:
        self.status: int | None = None
        self.asked: int | None = None
        self._pid = pid
        self._pumps = pumps
        self._terminal = terminal
        self._signals = signals
        self._observer = observer
        # The first process of a container inherits every orphan, and nobody else buries them.
        self._waits_for = -1 if os.getpid() == 1 else pid
        self._suspending = False

    def watch(self) -> None:
        """Until the command has ended."""
        next_tick = time.monotonic()
        while self.status is None:
            self._wait(TICK_SECONDS)
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_SECONDS
                self._terminal.take_keyboard()  # `bg` and later `fg`: nothing tells of the second
                self._see_children()
                self._observer.tick()

    def linger(self) -> bool:
        """Until all output has been passed on; True if some process that is still alive holds on to the output."""
        ended = time.monotonic()
        passed = {pump: pump.passed for pump in self._pumps}
        while alive := [pump for pump in self._pumps if pump.is_alive()]:
            now = time.monotonic()
            if all(pump.is_idle() and now - max(pump.last, ended) > QUIET_SECONDS for pump in alive):
                return True
            # More than pipe and block hold has come since: all that the command itself wrote is out.
            others_speak = all(pump.passed - passed[pump] > PIPE_BYTES + BLOCK_BYTES for pump in alive)
            if others_speak and now - ended > LONGEST_LINGERING_SECONDS:
                return True
            if any(number in _ASKS_TO_END for number in self._signals.take()):
                return True
            if now - ended > QUIET_SECONDS:
                self._terminal.leave_keyboard()  # from here on Ctrl-C is a signal to us
            alive[0].join(0.05)
        return False

    def _wait(self, seconds: float) -> None:
        """Sleep until a signal, a key or the time is there, and see to it."""
        poller = select.poll()
        poller.register(self._signals.fileno(), select.POLLIN)
        terminal = self._terminal
        if terminal.wants_typing and terminal.descriptor is not None:
            poller.register(terminal.descriptor, select.POLLIN)
        if terminal.has_typing and terminal.typed_into is not None:
            poller.register(terminal.typed_into, select.POLLOUT)
        ready = [descriptor for descriptor, _ in poller.poll(seconds * 1000)]
        for number in self._signals.take():
            self._receive(number)
        if terminal.descriptor in ready and terminal.wants_typing:
            terminal.read_typing()
            self._see_keys()
        if terminal.has_typing:
            terminal.type_on()

    def _see_keys(self) -> None:
        """Keys that ask the command to end, or to stop where the key itself could not do it."""
        for number in self._terminal.typed_signals():
            if number in _ASKS_TO_END:
                self._ask(number)
            elif self._terminal.is_led_by(self._pid) and can_be_continued():
                self._terminal.drop_suspend_key()
                self._suspending = True
                self._send(signal.SIGSTOP)

    def _receive(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._see_children()
        elif number == signal.SIGWINCH:
            self._terminal.fit()
            self._send(number)
        elif number == signal.SIGTSTP and self._terminal.foreground_group() is not None and not can_be_continued():
            return  # as the kernel does it: nobody could wake what stops here
        else:
            if number in _ASKS_TO_END:
                self._ask(number)
            self._send(number)

    def _ask(self, number: int) -> None:
        if self.asked is None:
            self._catch_up()
            self._observer.asked()
        self.asked = number

    def _catch_up(self) -> None:
        """Let the pumps take in what the command has written so far: that was before it was asked to end."""
        latest = time.monotonic() + CATCH_UP_SECONDS
        for pump in self._pumps:
            while pump.is_alive() and not pump.is_idle() and time.monotonic() < latest:
                pump.join(0.001)

    def _send(self, number: int) -> None:
        """To the command and all that shares its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    def _see_children(self) -> None:
        while self.status is None:
            try:
                pid, status = os.waitpid(self._waits_for, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid != self._pid:
                continue
            if os.WIFSTOPPED(status):
                self._stopped(os.WSTOPSIG(status))
            else:
                self.status = status

    def _stopped(self, number: int) -> None:
        """The command has stopped: give it the terminal if that is all it wants, else stop with it."""
        terminal = self._terminal
        ours = terminal.foreground_group() == os.getpgrp()
        if number in (signal.SIGTTIN, signal.SIGTTOU) and ours and terminal.typed_into is None:
            terminal.give_to(self._pid)
            self._send(signal.SIGCONT)
        elif number in _JOB_CONTROL or self._suspending:
            self._suspend()

    def _suspend(self) -> None:
        """Stop as the command did, with all that shares our place in the shell's pipeline; go on when told to."""
        self._suspending = False
        terminal = self._terminal
        if terminal.foreground_group() is None or not can_be_continued():
            return
        terminal.leave_keyboard()
        had_terminal = terminal.take_from(self._pid)
        handler = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        os.killpg(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        os.kill(os.getpid(), signal.SIGSTOP)
        if had_terminal and terminal.foreground_group() == os.getpgrp():
            terminal.give_to(self._pid)
        terminal.fit()
        terminal.take_keyboard()
        for pump in self._pumps:
            pump.last = time.monotonic()
        self._send(signal.SIGCONT)
