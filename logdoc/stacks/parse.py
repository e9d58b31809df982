"""The text of a stack dump or a traceback to its threads and frames: py-spy, faulthandler, gdb and core dumps. Knows no
function's meaning; what it cannot read it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from logdoc.kept.patterns import lazily
from logdoc.stacks.model import Frame, ProcessStacks, Thread
from logdoc.types.record import Record
from logdoc.types.value import dataclass, field, replace

MOST_FRAMES = 500  # of one thread

_PROCESS = lazily(r"Process (?P<pid>\d{1,9}): ")  # then its command line or title
_INFERIOR = lazily(r"^\[Inferior \d+ \(process (\d{1,9})\) detached\]", re.MULTILINE)
_REASON = lazily(r"(?:Fatal Python error: (?P<fatal>[^\n]{1,80})|(?P<timeout>Timeout \([\d:.]+\))!)")
_THREAD = lazily(
    r'Thread (?:0x)?(?P<pyspy>[0-9A-Fa-f]+) \((?P<state>idle|active(?:\+gil)?)\)(?:: "(?P<named>.*)")?'
    r"|(?:(?P<current>Current thread)|Thread) (?P<fault>0x[0-9a-f]+) (?:\[(?P<comm>[^\]]*)\] )?"
    r"\(most recent call first\):|(?P<lone>Stack) \(most recent call first\):"
    r'|Thread (?P<gdb>\d+) \((?:Thread 0x[0-9a-f]+ \()?LWP (?P<lwp>\d+)\)?(?: "(?P<title>[^"]*)")?'
    r"|Stack trace of thread (?P<core>\d+):"
)
# py-spy: `    forward (model.py:12)`, native `    ncclGroupEnd (libnccl.so.2)`; deeper lines are arguments and locals
_PYSPY_FRAME = lazily(r" {4}(?! ).*\)$")
_PYSPY_LINE = lazily(r":(\d{1,9})$")
_PYSPY_NUMBER = lazily(r" {12}(?P<name>\w+): (?P<value>-?\d{1,7})$")
_FAULT_FRAME = lazily(r'  File "(?P<file>[^"]*)", line (?P<line>\d+|\?\?\?),? in (?P<function>.+)')
_GDB_FRAME = lazily(
    r"#\d+ +(?:0x[0-9a-f]+ (?:in )?)?"
    r"(?:Frame 0x[0-9a-f]+, for file (?P<file>[^,]+), line (?P<line>\d+), in )?(?P<rest>.*)"
)
_GDB_PLACE = lazily(r" (?:at (?P<file>\S+):(?P<line>\d+)|from (?P<library>\S+))$")
_CORE_PLACE = lazily(r" \((?P<library>\S+) \+ 0x[0-9a-f]+\)$")
_PYTHON_FILE = lazily(r"\.pyx?$|^<")


@dataclass(slots=True)
class _Draft:
    thread: Thread
    frames: list[Frame] = field(default_factory=list)
    numbers: dict[str, set[int]] = field(default_factory=dict)

    def done(self) -> Thread:
        numbers = {name: frozenset(values) for name, values in self.numbers.items()}
        return replace(self.thread, frames=tuple(self.frames), numbers=numbers)


def stacks_of(record: Record) -> ProcessStacks | None:
    """The stacks that a record holds; None if it is no dump, or one without any frame."""
    if record.body.startswith("["):
        return _of_json(record)
    if record.body.startswith("Traceback (most recent call last)"):
        return _of_traceback(record)
    threads = _with_main([draft.done() for draft in _drafts(record.body)])
    if not any(thread.frames for thread in threads):
        return None
    head = record.body.split("\n", 1)[0]
    process, reason = _PROCESS.match(head), _REASON.match(head)
    pid = int(process["pid"]) if process else _pid_of(threads)
    if pid is None and (inferior := _INFERIOR.search(record.body)):
        pid = int(inferior[1])
    return ProcessStacks(
        record,
        threads,
        pid=record.who.pid if pid is None else pid,
        command=head[process.end() :] if process else "",
        reason=(reason["fatal"] or reason["timeout"]).strip() if reason else None,
    )


def _drafts(body: str) -> Iterator[_Draft]:
    draft: _Draft | None = None
    for text in body.split("\n"):
        head = _THREAD.match(text)
        if head is not None:
            if draft is not None:
                yield draft
            draft = _Draft(_thread(head))
            continue
        if draft is None and text.startswith("#0  "):  # gdb's `bt` alone: of the thread that was stopped
            draft = _Draft(Thread("", is_main=True, is_current=True))
        if draft is not None and len(draft.frames) < MOST_FRAMES:
            _note(draft, text)
    if draft is not None:
        yield draft


def _thread(head: re.Match[str]) -> Thread:
    number = head["pyspy"] or head["fault"] or head["lwp"] or head["core"] or head["lone"]
    name = head["named"] if head["pyspy"] else head["title"] or head["comm"]
    return Thread(
        number,
        name,
        head["state"],
        is_main=name == "MainThread" or head["gdb"] == "1" or bool(head["lone"]),
        is_current=bool(head["current"] or head["core"] or head["lone"]),
    )


def _note(draft: _Draft, text: str) -> None:
    """What a line below a thread's head tells: a frame, or the value of a local."""
    if found := _PYSPY_NUMBER.match(text):
        draft.numbers.setdefault(found["name"], set()).add(int(found["value"]))
    elif found := _FAULT_FRAME.match(text):
        line = int(found["line"]) if found["line"].isdecimal() else None
        draft.frames.append(Frame(_bare(found["function"]), found["file"], line))
    elif _PYSPY_FRAME.match(text):
        function, _, place = text[4:-1].rpartition(" (")
        line_found = _PYSPY_LINE.search(place)
        file = place[: line_found.start()] if line_found else place
        draft.frames.append(_frame(function, file, int(line_found[1]) if line_found else None))
    elif found := _GDB_FRAME.match(text):
        draft.frames.append(_gdb_frame(found))


def _frame(function: str, file: str, line: int | None) -> Frame:
    if _PYTHON_FILE.search(file):
        return Frame(_bare(function), file, line)
    return Frame(_bare_symbol(function), file, line, symbol=function)


def _gdb_frame(found: re.Match[str]) -> Frame:
    if found["file"]:  # python-gdb shows the Python frame
        return Frame(_bare(found["rest"].split(" (", 1)[0]), found["file"], int(found["line"]))
    text = found["rest"]
    place = _GDB_PLACE.search(text) or _CORE_PLACE.search(text)
    symbol = text[: place.start()] if place else text
    values = place.groupdict() if place else {}
    line = values.get("line")
    return Frame(_bare_symbol(symbol), values.get("file") or values.get("library"), int(line) if line else None, symbol)


def _bare(function: str) -> str:
    """`_MultiProcessingDataLoaderIter._try_get_data` and `save.<locals>.F.write` by their last name."""
    return function.strip().rsplit(".", 1)[-1]


def _bare_symbol(symbol: str) -> str:
    """A native name without arguments and template parameters: `c10d::Work::wait`."""
    text = symbol.replace("(anonymous namespace)::", "")
    return re.split(r"[(<@]", text, maxsplit=1)[0].strip() or text[:80]


def _with_main(threads: list[Thread]) -> tuple[Thread, ...]:
    """Mark the main thread where the dump names none: of those that no threading module started, the last one listed
    (CPython lists the oldest thread last)."""
    if not any(thread.is_main for thread in threads):
        for index in reversed(range(len(threads))):
            frames = threads[index].frames
            if frames and not frames[-1].is_native and frames[-1].function != "_bootstrap":
                threads[index] = replace(threads[index], is_main=True)
                break
    return tuple(threads)


def _pid_of(threads: tuple[Thread, ...]) -> int | None:
    """On Linux the main thread has the process's id; a faulthandler's addresses and `Stack` tell none."""
    main = next((thread for thread in threads if thread.is_main), None)
    return int(main.number) if main is not None and main.number.isdecimal() and len(main.number) < 10 else None


def _of_traceback(record: Record) -> ProcessStacks | None:
    """Where a process stood when an exception ended it: the newest call stands last there."""
    frames: list[Frame] = []
    for found in map(_FAULT_FRAME.match, record.body.split("\n")):
        if found is not None and found["line"].isdecimal():
            frames.append(Frame(_bare(found["function"]), found["file"], int(found["line"])))
    main = Thread("", "MainThread", is_main=True, frames=tuple(reversed(frames[-MOST_FRAMES:])))
    return ProcessStacks(record, (main,), pid=record.who.pid, is_end=True) if frames else None


def _of_json(record: Record) -> ProcessStacks | None:
    """py-spy dump --json: a list of threads."""
    text = record.body.rstrip()
    try:
        value = json.loads(text if text.endswith("\n]") else f"{text}\n]")
    except (ValueError, RecursionError):
        return None
    listed = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    threads = [thread for item in listed if (thread := _json_thread(item)) is not None]
    pid = next((item["pid"] for item in listed if isinstance(item.get("pid"), int)), None)
    return ProcessStacks(record, _with_main(threads), pid) if any(thread.frames for thread in threads) else None


def _json_thread(item: dict[str, Any]) -> Thread | None:
    frames = item.get("frames")
    if not isinstance(frames, list):
        return None
    name, active = item.get("thread_name"), item.get("active")
    return Thread(
        str(item.get("os_thread_id") or item.get("thread_id") or ""),
        name if isinstance(name, str) else None,
        "active" if active is True else "idle",
        is_main=name == "MainThread",
        frames=tuple(_json_frame(frame) for frame in frames[:MOST_FRAMES] if isinstance(frame, dict)),
    )


def _json_frame(frame: dict[str, Any]) -> Frame:
    file, line = frame.get("short_filename") or frame.get("filename"), frame.get("line")
    known = file if isinstance(file, str) else str(frame.get("module") or "")
    return _frame(str(frame.get("name", "")), known, line if isinstance(line, int) and line > 0 else None)
