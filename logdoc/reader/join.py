"""Lines to Records: tracebacks, C++ frames and reports are joined, each printer's lines apart from the others'."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from logdoc.kept.patterns import lazily
from logdoc.reader.peel import Line
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Mode = Literal["plain", "frames", "message", "report", "stacks"]

MOST_LINES = 400  # of one record; what follows becomes the next one
MOST_STACK_LINES = 4000  # of the stacks of one process: a native dump has hundreds of threads
MOST_BEFORE = 4  # plain lines of a printer that are remembered
MOST_MESSAGE_LINES = 40  # an exception's text below its first line


_TRACEBACK = lazily(r"\s*(?:\+ (?:Exception Group )?)?Traceback \(most recent call last\):")
_FRAME = lazily(r'\s+File "[^"]+", line \d+')
_CXX_FRAMES = lazily(r"Exception raised from |frame #\d+: |C\+\+ CapturedTraceback:|#\d+ 0x| *\d+ 0x[0-9a-f]{8}")
_EXCEPTION = lazily(
    r"(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failed|Failure|Timeout|Warning)?(?::|$)"
)
_NAMED_EXCEPTION = lazily(
    r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Failed|Failure|Timeout)|KeyboardInterrupt|SystemExit)(?:\[[^\]]*\])?(?::|$)"
)
_CHAIN = lazily(
    r"(?:During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:)"
)
# The first line of a process's stacks: py-spy, faulthandler, gdb, systemd-coredump, UCX, glog and absl, Open MPI.
_STACKS = lazily(
    r"(?P<process>Fatal Python error: |Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$"
    r"|\*\*\* (?:SIG[A-Z]+ received|Aborted at \d+ \(unix time\)|Process received signal \*\*\*)"
    r"|==== backtrace \(tid: *\d+\) ====)"
    r"|(?P<thread>Thread (?:0x)?[0-9A-Fa-f]+ \((?:idle|active(?:\+gil)?|Thread 0x[0-9a-f]+|LWP \d+)\b"
    r"|(?:Thread|Current thread) 0x[0-9a-f]+ (?:\[[^\]]*\] )?\(most recent call first\):"
    r"|Stack \(most recent call first\):|Stack trace of thread \d+:)|(?P<innermost>#0  \S)"
)
_STACKS_START = frozenset("TCSF*=#")
# What else such a dump holds at the start of a line; its frames are indented or numbered.
_STACKS_GO_ON = lazily(
    r"\s{2}|\t|#\d+ |Python runtime state: |Extension modules: |PC: @ |\*\*\* (?:SIG|End of)| *\d+ {1,2}0x[0-9a-f]"
    r"|={20,}$|\]$|\[ ?\d+\] |Signal(?: code)?: |Failing at address: |Associated errno: |\[Inferior \d"
)
# A process's name, which many programs print, begins py-spy's dump only if this follows; a bracket its JSON form.
_PYSPY_NAME, _PYSPY_VERSION = lazily(r"Process \d+: \S"), "Python v"
_PYSPY_JSON = lazily(r' {4}"pid": \d+,$')
_NUMBER = lazily(r"\d+(?:\.\d+)?")
_REPORT = "ChildFailedError:"
_WARNED = lazily(r"(?:/|[A-Za-z]:\\)?[\w./\\ -]{1,300}\.py:\d+: \w*Warning: |\w*Warning: ")
_RULER = lazily(r"={10,}\s*$")


@dataclass(slots=True)
class Draft:
    """A record being built for one printer. `before`: how the last plain lines of that printer began."""

    lines: list[Line]
    mode: Mode = "plain"
    message_lines: int = 0
    rulers: int = 0
    before: Iterable[str] = ()

    @property
    def first(self) -> Line:
        return self.lines[0]


@dataclass(slots=True)
class Joiner:
    """Joins the lines of one source. Feed it lines in order; it gives back finished groups of lines in order of their
    first line as soon as they are complete, and the rest at `flush`."""

    drafts: dict[tuple[object, ...], Draft] = field(default_factory=dict)
    _plain: dict[tuple[object, ...], deque[str]] = field(default_factory=dict)

    def feed(self, line: Line) -> Iterator[list[Line]]:
        key = _printer(line)
        draft = self.drafts.get(key)
        if draft is not None and _continues(draft, line):
            draft.lines.append(line)
            return
        if draft is not None:
            yield _without_trailing_blanks(draft)
            del self.drafts[key]
        if line.text.strip():
            self.drafts[key] = self._opened(key, line)

    def _opened(self, key: tuple[object, ...], line: Line) -> Draft:
        draft = _open(line)
        plain = self._plain.get(key)
        if draft.mode != "plain":
            draft.before = tuple(plain or ())
        elif plain is None:
            self._plain[key] = deque([line.text], MOST_BEFORE)
        else:
            plain.append(line.text)
        return draft

    def flush(self) -> Iterator[list[Line]]:
        drafts, self.drafts = self.drafts, {}
        yield from (_without_trailing_blanks(draft) for draft in drafts.values())


def _printer(line: Line) -> tuple[object, ...]:
    """Who printed the line, as far as its prefix tells: lines of one printer may continue each other."""
    who = line.who
    return (who.rank, who.local_rank, who.task, who.pid, who.thread)


def _without_trailing_blanks(draft: Draft) -> list[Line]:
    """Between the threads of a dump there are blank lines; behind its last one they are no part of it."""
    while draft.mode == "stacks" and not draft.lines[-1].text.strip():
        draft.lines.pop()
    return draft.lines


def _open(line: Line) -> Draft:
    text = line.text
    if text[0] in _STACKS_START and _STACKS.match(text):
        return Draft([line], "stacks")
    if _TRACEBACK.match(text) or _FRAME.match(text) or _CXX_FRAMES.match(text):
        return Draft([line], "frames")
    if _REPORT in text:
        return Draft([line], "report")
    if _NAMED_EXCEPTION.match(text):
        return Draft([line], "message")
    return Draft([line])


def _continues(draft: Draft, line: Line) -> bool:
    most = MOST_STACK_LINES if draft.mode == "stacks" else MOST_LINES
    if len(draft.lines) >= most or (line.headed and not _same_header(draft, line)):
        return False
    if draft.mode == "stacks":
        return _continues_stacks(draft, line)
    if draft.mode == "report":
        return _continues_report(draft, line)
    if _TRACEBACK.match(line.text) and _logs_it(draft, line):
        draft.mode = "frames"
        return True
    if _TRACEBACK.match(line.text) or _CHAIN.match(line.text.strip()):
        return False
    if draft.mode == "frames":
        return _continues_frames(draft, line)
    if draft.mode == "message":
        return _continues_message(draft, line)
    return _continues_plain(draft, line)


def _continues_stacks(draft: Draft, line: Line) -> bool:
    """The stacks of one process. Within a faulthandler dump a blank line stands between two threads: a thread straight
    below another's frames is of the next dump. So is an innermost frame that no thread's head announces."""
    head = _STACKS.match(line.text)
    if head is None:
        return not line.text.strip() or _STACKS_GO_ON.match(line.text) is not None
    if head["process"]:
        return False
    last = draft.lines[-1].text
    if head["innermost"]:
        above = _STACKS.match(last)
        return above is not None and above["thread"] is not None
    return "most recent call first" not in line.text or not last.startswith("  File ")


# What a logger says before the traceback of an exception that was caught.
_CAUGHT = lazily(r"(?i)fail|error|exception|retr|again|unable|could not|cannot|skip|ignor|caught|fall(?:ing)? ?back")
_QUIET = frozenset({"DEBUG", "INFO", "WARNING"})


def _logs_it(draft: Draft, line: Line) -> bool:
    """exc_info of a caught exception: the traceback follows its message without a prefix of its own.

    An uncaught one also follows whatever its process said last, so the message must speak of a failure.
    """
    first = draft.first
    alone = len(draft.lines) == 1 and not line.headed
    return alone and "python" in first.dialects and first.level in _QUIET and _CAUGHT.search(first.text) is not None


def _same_header(draft: Draft, line: Line) -> bool:
    """A logger that repeats its prefix on each line of one message: a line without it was no such logger's."""
    first = draft.first
    if not (first.headed and draft.lines[-1].headed):
        return False
    return (first.time_text, first.level, first.component, first.dialects) == (
        line.time_text,
        line.level,
        line.component,
        line.dialects,
    )


def _continues_frames(draft: Draft, line: Line) -> bool:
    text = line.text
    if not text.strip():
        return draft.first.headed and line.headed
    if text[0].isspace() or _CXX_FRAMES.match(text) or text.startswith(("<omitting", "^")):
        return True
    if _REPORT in text:
        draft.mode = "report"
        return True
    if _EXCEPTION.match(text) and not _RULER.match(text):
        draft.mode = "message"
        return True
    return False


def _continues_message(draft: Draft, line: Line) -> bool:
    text = line.text
    draft.message_lines += 1
    if not text.strip() or draft.message_lines > MOST_MESSAGE_LINES or _goes_on_as_before(draft, text):
        return False
    if _CXX_FRAMES.match(text):
        return True
    if _NAMED_EXCEPTION.match(text) and not line.headed and not draft.first.headed:
        # two ranks without prefixes, or the text "ncclSystemError: …" below its own exception
        return text[0].islower() and "." not in text.split(":", 1)[0]
    return not (_RULER.match(text) or _WARNED.match(text) or text.startswith(("***", "---", "###")) or "%|" in text)


def _goes_on_as_before(draft: Draft, text: str) -> bool:
    """Whether the program, having caught the exception, says what it said before but for the numbers: `step 3 …`."""
    if _NUMBER.search(text) is None:
        return False
    shape = _NUMBER.sub("0", text)
    return any(_NUMBER.sub("0", said) == shape for said in draft.before)


def _continues_plain(draft: Draft, line: Line) -> bool:
    text = line.text
    if _begins_pyspy_dump(draft, text):
        draft.mode = "stacks"
        return True
    if not text.strip() or (line.headed and not draft.first.headed):
        return False
    if _CXX_FRAMES.match(text):
        draft.mode = "frames"
        return True
    if _FRAME.match(text):
        return False
    if line.headed:
        return text[0].isspace() and text.strip() != ""
    return text.startswith(("  ", "\t")) and not draft.first.text.startswith(("  ", "\t"))


def _begins_pyspy_dump(draft: Draft, text: str) -> bool:
    if len(draft.lines) == 1:
        return text.startswith(_PYSPY_VERSION) and _PYSPY_NAME.match(draft.first.text) is not None
    return len(draft.lines) == 2 and draft.first.text == "[" and _PYSPY_JSON.match(text) is not None


def _continues_report(draft: Draft, line: Line) -> bool:
    """torchrun's ChildFailedError block runs to its third ruler of equals signs."""
    if _RULER.match(line.text):
        draft.rulers += 1
        if draft.rulers >= 2:
            draft.mode = "plain"
            draft.message_lines = MOST_MESSAGE_LINES
        return True
    return True
