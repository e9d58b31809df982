"""What the reader makes of a log: one Record for each thing that was said, whoever said it."""

from __future__ import annotations

from logdoc.types.value import dataclass


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
        return self.level in ("DEBUG", "INFO", "WARNING") and "Traceback (most recent call last)" in self.body

    def line_of(self, offset: int) -> int:
        """The source line that holds character `offset` of `body`."""
        index = self.body.count("\n", 0, offset)
        if index < len(self.line_numbers):
            return self.line_numbers[index]
        return self.line
