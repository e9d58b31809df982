"""Starts the command with its streams, its process group and its terminal; neither waits for it nor reads it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from logdoc.runner.terminal import Terminal, open_pseudoterminal
from logdoc.sources.limits import KIB
from logdoc.sources.spool import reason
from logdoc.types.errors import LogdocError

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as every shell has it
PIPE_BYTES = 256 * KIB
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class StartError(LogdocError):
    """The command could not be started; `code` is what a shell would exit with."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Channel:
    """What the command writes comes out of `source` and belongs into `target`, our own stdout or stderr."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Plumbing:
    """The command's streams. `stdin` None: the command has ours."""

    channels: tuple[Channel, ...]
    stdin: int | None
    stdout: int
    stderr: int
    terminal: Terminal

    @property
    def has_own_terminal(self) -> bool:
        """Whether the command gets a session whose terminal is the pseudoterminal."""
        return self.stdin is not None

    def close_theirs(self) -> None:
        """Our copies of the command's ends; while one is open, the output has no end."""
        for descriptor in {self.stdout, self.stderr} | ({self.stdin} if self.stdin is not None else set()):
            os.close(descriptor)


def open_standard_streams() -> None:
    """A standard stream that was closed becomes /dev/null, so that no file of ours takes its number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def lay_pipes() -> Plumbing:
    """The streams that make the command behave as it would without us.

    A terminal is stood for by a pseudoterminal, anything else by a pipe. Where our stdout and stderr go to the same
    place, the command gets one stream for both, which keeps their order. At the keyboard (stdin and stdout are a
    terminal, and we are in its foreground), what is typed passes through the pseudoterminal; otherwise the command
    reads our stdin itself, so that logdoc takes no key from whoever shares the terminal (`logdoc run … | less`).
    """
    terminals = [descriptor for descriptor in (0, 1, 2) if os.isatty(descriptor)]
    at_terminal = Terminal(terminals[0] if terminals else None, (), None)
    at_keyboard = {0, 1} <= set(terminals) and at_terminal.is_foreground
    source, stdout = _stream(1, translates=at_keyboard)
    channels = [Channel(source, 1)]
    if _same_place(1, 2):
        stderr = stdout
    else:
        other, stderr = _stream(2, translates=at_keyboard)
        channels.append(Channel(other, 2))
    resized = [os.dup(channel.source) for channel in channels if os.isatty(channel.target)]
    typed_into = resized[0] if at_keyboard else None
    terminal = Terminal(at_terminal.descriptor, resized, typed_into)
    return Plumbing(tuple(channels), os.dup(stdout) if at_keyboard else None, stdout, stderr, terminal)


def _stream(target: int, *, translates: bool) -> tuple[int, int]:
    """Our end and the command's end of what stands for `target`."""
    if os.isatty(target):
        return open_pseudoterminal(target, translates=translates)
    ours, theirs = os.pipe()
    with contextlib.suppress(OSError, AttributeError):  # a limit of the user's, or another system
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return ours, theirs


def _same_place(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev)


def start(command: Sequence[str], environment: Mapping[str, str], plumbing: Plumbing) -> subprocess.Popen[bytes]:
    """Start the command in a process group of its own. Raises StartError."""
    before_exec = _before_exec(plumbing.has_own_terminal)
    try:
        with _shell_like_errors(command[0]):
            try:
                return _popen(command, environment, plumbing, before_exec)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                # A script without a first line that says what runs it: as execvp does, try the shell.
                return _popen(["/bin/sh", _found(command[0]), *command[1:]], environment, plumbing, before_exec)
    finally:
        plumbing.close_theirs()


def _popen(
    command: Sequence[str], environment: Mapping[str, str], plumbing: Plumbing, before_exec: Callable[[], None]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment,
        stdin=plumbing.stdin,
        stdout=plumbing.stdout,
        stderr=plumbing.stderr,
        start_new_session=plumbing.has_own_terminal,
        process_group=None if plumbing.has_own_terminal else 0,
        close_fds=False,  # what was handed to us beyond the standard streams is meant for the command
        preexec_fn=before_exec,
    )


def _before_exec(own_terminal: bool) -> Callable[[], None]:
    """What the new process does to itself: take its terminal, and ask to be killed when logdoc is.

    Decided: SIGKILL. Whoever kills logdoc hard (a launcher that gave up waiting, the kernel out of memory) means the
    job, and a rank that outlives its wrapper would hold its GPU. Linux only; elsewhere the command lives on until it
    next writes to the closed pipe. Of torchrun, only torchrun itself is killed, as it would be without us.
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if own_terminal:
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before the request was in place
                os._exit(128 + signal.SIGKILL)

    return prepare


@contextlib.contextmanager
def _shell_like_errors(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        found = _found(name)
        if os.path.exists(found):
            raise StartError(f"{name}: what its first line wants to run it with does not exist", NOT_FOUND) from None
        raise StartError(f"{name}: command not found", NOT_FOUND) from None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        if not name:
            raise StartError("'': command not found", NOT_FOUND) from None
        raise StartError(f"{name}: cannot be executed: {reason(error)}", NOT_EXECUTABLE) from None


def _found(name: str) -> str:
    import shutil

    return shutil.which(name) or name


def exit_code(status: int) -> int:
    """A wait status as a shell tells it: the exit code, or 128 plus the number of the signal."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
