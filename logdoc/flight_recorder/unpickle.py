"""Reads the plain values out of a pickle with a machine of its own: strings, numbers, lists, tuples and dicts.

It never imports, calls or builds what a pickle names, and never allocates more than the bytes at hand can justify.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import NoReturn

# A dump of 2,000 operations with stacks has about 200,000 opcodes and 20,000 containers. One byte of pickle can ask
# for a 64-byte dict, so the count of containers, not the size of the file, bounds the memory.
LARGEST_KEY = 1 << 16
MAX_OPCODES = 20_000_000
MAX_CONTAINERS = 4_000_000
MAX_STRING = 1 << 20
MAX_NESTING = 64


class RefusedError(Exception):
    """The pickle asks for something no flight recorder writes; the message says what."""


class TruncatedError(Exception):
    """The pickle ends before its STOP opcode."""


def load(data: bytes) -> object:
    """The value `data` holds. Raises `RefusedError` or `TruncatedError`; bytes after STOP are ignored."""
    return _Machine(data).run()


class _Machine:
    """The subset of the pickle machine that torch's own pickler and Python's protocols 2 to 5 use for plain values."""

    __slots__ = ("containers", "data", "marks", "memo", "position", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}  # a dict: an index of 2**31 must not grow an array
        self.containers = 0

    def run(self) -> object:
        data, stack, memo, handlers = self.data, self.stack, self.memo, _HANDLERS
        try:
            for _ in range(MAX_OPCODES):
                opcode = data[self.position]
                if opcode == _BINGET:  # more than half of a dump: worth a short cut
                    stack.append(memo[data[self.position + 1]])
                    self.position += 2
                    continue
                self.position += 1
                if opcode == _STOP:
                    return self.pop()
                handlers.get(opcode, _refuse)(self)
        except IndexError:
            raise TruncatedError from None
        except KeyError:
            raise RefusedError("the pickle recalls a value it never remembered") from None
        raise RefusedError(f"more than {MAX_OPCODES} opcodes")

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise TruncatedError
        chunk = self.data[self.position : end]
        self.position = end
        return chunk

    def byte(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise RefusedError("the pickle takes a value from an empty stack")
        return self.stack.pop()

    def pop_to_mark(self) -> list[object]:
        if not self.marks:
            raise RefusedError("the pickle closes what it never opened")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def mark(self) -> None:
        if len(self.marks) >= MAX_NESTING:
            raise RefusedError(f"values nested deeper than {MAX_NESTING}")
        self.marks.append(len(self.stack))

    def contain(self, container: object) -> None:
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise RefusedError(f"more than {MAX_CONTAINERS} lists and dicts")
        self.push(container)

    def text(self, length: int) -> None:
        if length > MAX_STRING:
            raise RefusedError(f"a string of {length} bytes")
        self.push(self.take(length).decode("utf-8", "replace"))

    def tuple_of(self, count: int) -> None:
        self.contain(tuple(reversed([self.pop() for _ in range(count)])))

    def remember(self, index: int) -> None:
        if not self.stack:
            raise RefusedError("the pickle remembers a value of an empty stack")
        self.memo[index] = self.stack[-1]

    def append(self, items: list[object]) -> None:
        target = self.top()
        if not isinstance(target, list):
            raise RefusedError("the pickle appends to what is no list")
        target.extend(items)

    def set_items(self, items: list[object]) -> None:
        target = self.top()
        if not isinstance(target, dict) or len(items) % 2:
            raise RefusedError("the pickle sets items of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Strings, and the small numbers of groups that torch 2.3 wrote: hashing a deeply nested tuple recurses in
            # C, and large integers can be chosen so that they collide.
            if type(key) is not str and not (type(key) is int and 0 <= key <= LARGEST_KEY):
                raise RefusedError("a dict key that is no string")
            target[key] = value

    def top(self) -> object:
        return self.stack[-1] if self.stack else None


def _refuse(machine: _Machine) -> NoReturn:
    """Say what the opcode just read asks for."""
    code = chr(machine.data[machine.position - 1])
    known = _OPCODES.get(code)
    if known is None:
        raise RefusedError(f"byte {machine.position - 1} is no pickle opcode")
    if known.name in ("GLOBAL", "INST"):
        raise RefusedError(f"pickle asks for {_named(machine)}")
    if known.name == "STACK_GLOBAL":
        raise RefusedError(f"pickle asks for {_printable('.'.join(str(name) for name in machine.stack[-2:]))}")
    raise RefusedError(f"pickle asks for {known.name}, which no flight recorder writes")


def _named(machine: _Machine) -> str:
    lines = machine.data[machine.position : machine.position + 512].split(b"\n", 2)[:2]
    return _printable(".".join(line.decode("utf-8", "replace") for line in lines))


def _printable(text: str, limit: int = 80) -> str:
    """`text` fit for one line of a terminal: a pickle chooses it freely."""
    return "".join(char if char.isprintable() else "?" for char in text[:limit])


def _opcodes(**handlers: Callable[[_Machine], None]) -> dict[int, Callable[[_Machine], None]]:
    return {getattr(pickle, name)[0]: handler for name, handler in handlers.items()}


def _proto(machine: _Machine) -> None:
    if machine.byte() > pickle.HIGHEST_PROTOCOL:
        raise RefusedError("a pickle protocol that does not exist")


def _frame(machine: _Machine) -> None:
    machine.take(8)  # a hint for buffered reading


_OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}
_BINGET = pickle.BINGET[0]
_STOP = pickle.STOP[0]
_HANDLERS = _opcodes(
    PROTO=_proto,
    FRAME=_frame,
    MARK=_Machine.mark,
    NONE=lambda machine: machine.push(None),
    NEWTRUE=lambda machine: machine.push(True),
    NEWFALSE=lambda machine: machine.push(False),
    BININT=lambda machine: machine.push(int.from_bytes(machine.take(4), "little", signed=True)),
    BININT1=lambda machine: machine.push(machine.byte()),
    BININT2=lambda machine: machine.push(machine.number(2)),
    LONG1=lambda machine: machine.push(int.from_bytes(machine.take(machine.byte()), "little", signed=True)),
    BINFLOAT=lambda machine: machine.push(struct.unpack(">d", machine.take(8))[0]),
    BINUNICODE=lambda machine: machine.text(machine.number(4)),
    SHORT_BINUNICODE=lambda machine: machine.text(machine.byte()),
    EMPTY_DICT=lambda machine: machine.contain({}),
    EMPTY_LIST=lambda machine: machine.contain([]),
    EMPTY_TUPLE=lambda machine: machine.push(()),
    TUPLE=lambda machine: machine.contain(tuple(machine.pop_to_mark())),
    TUPLE1=lambda machine: machine.tuple_of(1),
    TUPLE2=lambda machine: machine.tuple_of(2),
    TUPLE3=lambda machine: machine.tuple_of(3),
    APPEND=lambda machine: machine.append([machine.pop()]),
    APPENDS=lambda machine: machine.append(machine.pop_to_mark()),
    SETITEM=lambda machine: machine.set_items([machine.pop(), machine.pop()][::-1]),
    SETITEMS=lambda machine: machine.set_items(machine.pop_to_mark()),
    BINPUT=lambda machine: machine.remember(machine.byte()),
    LONG_BINPUT=lambda machine: machine.remember(machine.number(4)),
    MEMOIZE=lambda machine: machine.remember(len(machine.memo)),
    LONG_BINGET=lambda machine: machine.push(machine.memo[machine.number(4)]),
)
