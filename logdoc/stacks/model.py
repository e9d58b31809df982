"""What a stack dump holds, and what one process's main thread was doing: values only, no reading, no wording."""

from __future__ import annotations

from collections.abc import Mapping

from logdoc.types.record import Record
from logdoc.types.value import dataclass, field


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `function` has neither arguments nor the names it is nested in; `symbol` is the full native name.

    `file` is the Python file, the native source file or the shared library, as the dump names it.
    """

    function: str
    file: str | None = None
    line: int | None = None
    symbol: str = ""

    @property
    def is_native(self) -> bool:
        return bool(self.symbol)


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread, its innermost frame first. `number` is the system's thread id or address, `state` py-spy's word.

    `numbers` are the integers that the dump shows among the arguments and locals of its frames, by name.
    """

    number: str
    name: str | None = None
    state: str | None = None
    is_main: bool = False
    is_current: bool = False
    frames: tuple[Frame, ...] = ()
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessStacks:
    """The stacks of one process at one time. `command`: its command line or title, where py-spy gives it. `reason`: why
    faulthandler wrote them (`Timeout (0:05:00)`, a signal's name); None: somebody asked for them. `is_end`: no dump but
    the traceback of what ended it."""

    record: Record
    threads: tuple[Thread, ...]
    pid: int | None = None
    command: str = ""
    reason: str | None = None
    is_end: bool = False

    @property
    def main(self) -> Thread | None:
        return next((thread for thread in self.threads if thread.is_main), None)

    @property
    def current(self) -> Thread | None:
        return next((thread for thread in self.threads if thread.is_current), None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a main thread is. `kind` is an id of stack_frames.yaml, None for ordinary code; `call` the function that
    tells the kind (`all_reduce`); `user` the innermost frame of the user's own code."""

    kind: str | None = None
    call: str | None = None
    user: Frame | None = None

    @property
    def site(self) -> str:
        """`train (train.py:88)`; empty if no frame of the user's code is known."""
        if self.user is None:
            return ""
        file = (self.user.file or "").replace("\\", "/").rsplit("/", 1)[-1]
        return f"{self.user.function} ({file}:{self.user.line})" if self.user.line else f"{self.user.function} ({file})"
