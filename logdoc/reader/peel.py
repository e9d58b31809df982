"""One line: take off its prefixes, layer by layer, and keep what each of them told."""

from __future__ import annotations

from logdoc.dialects import ALL, Dialect
from logdoc.dialects.base import level_name
from logdoc.dialects.mpi import MPI
from logdoc.dialects.ray import RAY
from logdoc.dialects.torchrun import TORCHRUN
from logdoc.reader.pasted import without_emphasis
from logdoc.reader.sharpen import sharpened, start_of
from logdoc.types.record import Identity
from logdoc.types.value import dataclass, field

MOST_LAYERS = 8
WORTH_SHARPENING = 2000  # lines from which on it pays to look into the patterns
MOST_STARTS = 512


@dataclass(slots=True)
class Line:
    """A physical line without its prefixes. `outer` holds the fields of collector and launcher prefixes only."""

    number: int
    raw: str
    text: str
    who: Identity = field(default_factory=Identity)
    time_text: str | None = None
    near_time: float | None = None
    level: str | None = None
    component: str | None = None
    dialects: tuple[str, ...] = ()
    headed: bool = False


@dataclass(slots=True)
class Peeler:
    """Takes prefixes off lines. After many lines it learns which patterns can begin with which character at all."""

    _lines: int = 0
    _by_start: dict[str, tuple[Dialect, ...]] = field(default_factory=dict)

    def peel(self, number: int, raw: str) -> Line:
        """Take every known prefix off a line. The first to name a field wins, the innermost time stamp is kept."""
        line = Line(number, raw, raw)
        self._lines += 1
        if raw[:1] == " ":
            _dedent(line)
        if self._lines == WORTH_SHARPENING:
            self._by_start.clear()
        for _ in range(MOST_LAYERS):
            text = line.text
            if not text:
                break
            start = start_of(text)
            dialects = self._by_start.get(start)
            for dialect in self._starting(start) if dialects is None else dialects:
                if dialect.name in line.dialects and not dialect.outer and dialect.name != "python":
                    continue
                peeled = dialect.peel(text)
                if peeled is not None and (len(peeled.rest) < len(text) or dialect.keeps_prefix):
                    _take(line, dialect, peeled.fields)
                    line.text = peeled.rest
                    break
            else:
                break
            if "nccl" in line.dialects:
                break
        line.text = without_emphasis(line.text)
        return line

    def _starting(self, start: str) -> tuple[Dialect, ...]:
        """The dialects, cut down to the patterns, whose prefixes can begin like this."""
        found = tuple(dialect for dialect in ALL if not dialect.starts or start[0] in dialect.starts)
        if self._lines >= WORTH_SHARPENING:
            found = sharpened(found, start)
        if len(self._by_start) < MOST_STARTS:
            self._by_start[start] = found
        return found


def _dedent(line: Line) -> None:
    """A log pasted into a list or a code block is indented; these launchers' prefixes no line of code begins with."""
    text = line.text.lstrip(" ")
    if any(text[:1] in dialect.starts and dialect.peel(text) is not None for dialect in (MPI, TORCHRUN, RAY)):
        line.text = text


def peel(number: int, raw: str) -> Line:
    """One line by itself."""
    return Peeler().peel(number, raw)


_NUMBERS = ("rank", "local_rank", "task", "pid", "thread", "device")


def _take(line: Line, dialect: Dialect, fields: dict[str, str]) -> None:
    who = line.who
    for name in _NUMBERS:
        value = fields.get(name)
        if value is not None and getattr(who, name) is None and _is_number(value):
            setattr(who, name, int(value))
    if who.host is None and "host" in fields:
        who.host = fields["host"]
    if "time" in fields:
        line.time_text = fields["time"]
    if "level" in fields:
        line.level = level_name(fields["level"])
    if "component" in fields:
        line.component = fields["component"]
    line.dialects = (*line.dialects, dialect.name)
    if not dialect.outer:
        line.headed = True


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 12
