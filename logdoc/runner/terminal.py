"""The terminal logdoc sits at: its size, its raw mode, who is in its foreground, and what is typed; no output."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import tty
from collections.abc import Iterator, Sequence
from typing import Any

CHUNK = 1024  # of what is typed at a time; a pseudoterminal takes this much when it says that it takes any
# Indices of what termios.tcgetattr gives.
IFLAG, OFLAG, CFLAG, LFLAG, ISPEED, OSPEED, CC = range(7)

_KEYS = {signal.SIGINT: termios.VINTR, signal.SIGQUIT: termios.VQUIT, signal.SIGTSTP: termios.VSUSP}


def open_pseudoterminal(like: int, *, translates: bool) -> tuple[int, int]:
    """A pseudoterminal (ours, the command's) with size and settings of the terminal `like`.

    `translates`: it turns line ends into CR LF itself, because the terminal it stands for is in raw mode; otherwise
    bytes come out as the command wrote them.
    """
    ours, theirs = os.openpty()
    settings = termios.tcgetattr(like)
    if not translates:
        settings[OFLAG] &= ~termios.OPOST
        settings[LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with contextlib.suppress(termios.error):
        termios.tcsetwinsize(ours, termios.tcgetwinsize(like))
    return ours, theirs


class Terminal:
    """The terminal on one of the standard streams, if there is one, and the pseudoterminals that stand for it.

    `typed_into`: the pseudoterminal that gets what is typed; None leaves the keyboard to the command itself.
    """

    def __init__(self, descriptor: int | None, pseudoterminals: Sequence[int], typed_into: int | None) -> None:
        self.descriptor = descriptor
        self.typed_into = typed_into
        self.is_raw = False
        self._pseudoterminals = pseudoterminals
        self._saved: list[Any] | None = None
        self._pending = b""

    def __enter__(self) -> Terminal:
        """Take the keyboard before the command starts: its first line already counts on raw mode."""
        self.take_keyboard()
        return self

    def __exit__(self, *error: object) -> None:
        self.leave_keyboard()

    @property
    def is_foreground(self) -> bool:
        """Whether we may read it and change it now. A terminal that controls no session has no background."""
        return self.descriptor is not None and self.foreground_group() in (None, os.getpgrp())

    def foreground_group(self) -> int | None:
        """The process group in the foreground; None where the terminal is not the one that controls us."""
        if self.descriptor is None:
            return None
        try:
            return os.tcgetpgrp(self.descriptor)
        except OSError:
            return None

    def give_to(self, group: int) -> None:
        """Put a process group into the foreground."""
        if self.descriptor is not None:
            with _not_stopped_for_it(), contextlib.suppress(OSError):
                os.tcsetpgrp(self.descriptor, group)

    def take_from(self, group: int) -> bool:
        """Put ourselves into the foreground where `group` has it; whether it had."""
        had_it = self.foreground_group() == group
        if had_it:
            self.give_to(os.getpgrp())
        return had_it

    def take_keyboard(self) -> None:
        """Raw mode, if what is typed is ours to pass on and we are in the foreground."""
        if self.typed_into is None or self.is_raw or not self.is_foreground:
            return
        assert self.descriptor is not None
        with _not_stopped_for_it(), contextlib.suppress(termios.error):
            self._saved = termios.tcgetattr(self.descriptor)
            tty.setraw(self.descriptor, termios.TCSADRAIN)
            self.is_raw = True

    def leave_keyboard(self) -> None:
        """Back to how the terminal was."""
        if self.is_raw and self._saved is not None and self.descriptor is not None:
            with _not_stopped_for_it(), contextlib.suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._saved)
        self.is_raw = False

    def fit(self) -> None:
        """Give the pseudoterminals the size that the terminal has now."""
        if self.descriptor is None:
            return
        with contextlib.suppress(termios.error):
            size = termios.tcgetwinsize(self.descriptor)
            for pseudoterminal in self._pseudoterminals:
                termios.tcsetwinsize(pseudoterminal, size)

    @property
    def wants_typing(self) -> bool:
        """Whether the next key is wanted: it is ours, and what was typed before has been taken."""
        return self.is_raw and not self._pending

    @property
    def has_typing(self) -> bool:
        """Whether something typed waits for the command to take it."""
        return bool(self._pending)

    def read_typing(self) -> None:
        """Take what was typed, without waiting."""
        assert self.descriptor is not None
        if not self.is_foreground:
            self.is_raw = False
            return
        try:
            self._pending = os.read(self.descriptor, CHUNK)
        except OSError:
            self.typed_into = None
        if not self._pending:
            self.typed_into, self.is_raw = None, False

    def typed_signals(self) -> list[signal.Signals]:
        """The signals that the pseudoterminal makes of the keys that wait to be handed on."""
        if not self._pending or self.typed_into is None:
            return []
        try:
            settings = termios.tcgetattr(self.typed_into)
        except termios.error:
            return []
        if not settings[LFLAG] & termios.ISIG:
            return []
        keys = {number: settings[CC][key] for number, key in _KEYS.items()}
        return [number for number, key in keys.items() if key != b"\0" and key in self._pending]

    def drop_suspend_key(self) -> None:
        """Keep it from the command."""
        if self.typed_into is not None:
            key = termios.tcgetattr(self.typed_into)[CC][termios.VSUSP]
            self._pending = self._pending.replace(key, b"")

    def is_led_by(self, leader: int) -> bool:
        """Whether this group is in the foreground of the pseudoterminal.

        It leads the session there, so the kernel counts it as orphaned: no key can suspend it.
        """
        try:
            return self.typed_into is not None and os.tcgetpgrp(self.typed_into) == leader
        except OSError:
            return False

    def type_on(self) -> None:
        """Hand to the command what was typed, as far as it takes it."""
        if self.typed_into is None:
            self._pending = b""
            return
        try:
            self._pending = self._pending[os.write(self.typed_into, self._pending) :]
        except OSError:
            self._pending = b""


def can_be_continued() -> bool:
    """Whether some process outside our group but in our session, a shell, could wake us after we have stopped."""
    import psutil  # for the rare key press

    group, session = os.getpgrp(), os.getsid(0)
    with contextlib.suppress(psutil.Error, OSError):
        for parent in psutil.Process().parents():
            if os.getpgid(parent.pid) != group:
                return os.getsid(parent.pid) == session
    return False


@contextlib.contextmanager
def _not_stopped_for_it() -> Iterator[None]:
    """The kernel stops a background process that changes the terminal, unless it blocks SIGTTOU."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
