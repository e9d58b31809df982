"""Signals as a queue that a loop can wait for beside other things; decides nothing about them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

# Not passed on: what cannot be caught, what says that this process itself is at fault, what Python ignores, timers of
# our own, and the terminal's "you are in the background".
_OURS = frozenset(
    (
        *("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGEMT"),
        *("SIGPIPE", "SIGXFSZ", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGTTIN", "SIGTTOU", "SIGSTKFLT"),
    )
)
Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


def caught_signals() -> list[int]:
    """Every signal that is ours to notice. One that is ignored stays so, here and in the command (nohup, `&`)."""
    return [
        number
        for number in map(int, signal.valid_signals())
        if _name(number) not in _OURS and (number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN)
    ]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of the real-time signals have none
        return ""


class SignalQueue:
    """`with SignalQueue() as signals`: signals do nothing but appear in `take`, read or not. Main thread only."""

    def __enter__(self) -> SignalQueue:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._old_descriptor = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._old: dict[int, Handler] = {}
        for number in caught_signals():
            self._old[number] = signal.signal(number, lambda number, frame: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._old_descriptor)
        os.close(self._read)
        os.close(self._write)

    def let_interrupt(self) -> None:
        """From now on Ctrl-C raises KeyboardInterrupt; the other signals stay without effect."""
        if signal.SIGINT in self._old:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def fileno(self) -> int:
        return self._read

    def take(self) -> list[int]:
        """The signals that came since the last call, in order."""
        try:
            return list(os.read(self._read, 4096))
        except BlockingIOError:
            return []
