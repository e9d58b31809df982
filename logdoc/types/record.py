"""What the reader makes of a log: one Record for each thing that was said, whoever said it."""

from __future__ import annotations

from logdoc.types.value import dataclass, replace

# The dialects of what logdoc itself says: of the watchdogs and milestones of all ranks, of dumps, of stacks.
OWN_DIALECTS = VERDICT, FLIGHT_RECORDER, STACKS = ("verdict", "flight-recorder", "stacks")


@dataclass(slots=True)
class Identity:
    """Who printed a record, as far as its prefix, its file name or a later message tells.

    `rank` is the global rank, `local_rank` the rank on its node, `task` a launcher's label
    (Slurm task, MPI process) whose meaning depends on how the job was started.
    """

    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    host: str | None = None
    pid: int | None = None
    thread: int | None = None
    device: int | None = None

    @property
    def printer(self) -> tuple[int | None, int | None, int | None, int | None, str | None]:
        """All that tells one printing process from another; several ranks may share any part of it."""
        return (self.rank, self.local_rank, self.task, self.pid, self.host)

    def is_one_process_with(self, other: Identity) -> bool | None:
        """Whether what both are known by is the same; None where that is nothing, or a host, which runs many."""
        told = [(own, its) for own, its in zip(self.printer, other.printer, strict=True) if None not in (own, its)]
        if any(own != its for own, its in told):
            return False
        numbers = len(told) - (self.host is not None and other.host is not None)
        return True if numbers else None


@dataclass(slots=True)
class Record:
    """One message, its prefixes taken off and its continuation lines joined by newlines.

    `seq` is the order of reading over all sources; `line` and `end_line` count from 1 in `source`.
    `time` is in seconds of the printing clock (None: no clock; a clock without a year is placed in 1970 by
    the reader unless another stamp of the job names the year), `time_text` what the log said; `near_time` is the last
    stamp its printer gave up to here, later corrected for the printer's clock.
    `dialects` names every format whose prefix was taken off, outermost first; `raw` is the first line as read.
    `line_numbers[i]` is the source line of the i-th line of `body`.
    """

    seq: int
    source: str
    line: int
    end_line: int
    body: str
    raw: str
    who: Identity
    time: float | None = None
    time_text: str | None = None
    near_time: float | None = None
    dialects: tuple[str, ...] = ()
    level: str | None = None
    component: str | None = None
    attempt: int = 0
    line_numbers: tuple[int, ...] = ()

    @property
    def is_caught(self) -> bool:
        """A traceback that the program caught and logged as a warning or less: by itself no failure."""
        return self.level in ("DEBUG", "INFO", "WARNING") and self.has_traceback

    @property
    def has_traceback(self) -> bool:
        """Whether it is, or holds, a Python exception with the way to it."""
        return "Traceback (most recent call last)" in self.body

    def verdict(self, text: str, dialect: str, who: Identity) -> Record:
        """What logdoc itself says of `who`, at the place and time of this record, its witness."""
        return replace(
            self, body=text, raw=text, who=who, dialects=(dialect,),
            end_line=self.line, line_numbers=(), level=None, component=None,
        )  # fmt: skip

    def line_of(self, offset: int) -> int:
        """The source line that holds character `offset` of `body`."""
        index = self.body.count("\n", 0, offset)
        if index < len(self.line_numbers):
            return self.line_numbers[index]
        return self.line
