"""Did the job go on? Training steps, served requests and the announced end, against what looks like a failure.

Every long job prints things that would be fatal in another: a retried download, an optional library, a skipped batch.
What it trained on after, it survived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from logdoc.types.finding import Match
from logdoc.types.record import Record
from logdoc.types.value import dataclass, field

GOING_ON = frozenset({"first-step", "serving"})  # milestones (observations.yaml) of work being done
FINISHED = "finished"
STEPS_AFTER_WARNING = 3
# After an error: a process that dies of it still gives out what its stdout held back, 8 KiB where that is a file or a
# pipe, and in the log that stands below the traceback, which stderr held back by nothing.
STEPS_AFTER_ERROR = 150
MILD = ("WARNING", "INFO", "DEBUG", "TRACE")
# The kernel and the launcher speak of others; logdoc's own verdicts stand where their witness spoke.
OF_OTHERS = frozenset({"kernel", "torchrun-report", "verdict", "flight-recorder", "stacks"})


@dataclass(slots=True)
class Progress:
    """What was done in each source, and by which rank. Feed it the milestones and the marks of restarts in order."""

    _steps: dict[tuple[str, int | None], deque[int]] = field(default_factory=dict)
    _finished: dict[str, list[int]] = field(default_factory=dict)
    _restarts: dict[str, list[int]] = field(default_factory=dict)

    def see(self, milestone: Match) -> None:
        """Note a milestone."""
        source, seq = milestone.record.source, milestone.record.seq
        if milestone.name == FINISHED:
            self._finished.setdefault(source, []).append(seq)
        elif milestone.name in GOING_ON:
            for rank in {milestone.rank, None}:
                self._steps.setdefault((source, rank), deque(maxlen=STEPS_AFTER_ERROR)).append(seq)

    def restart(self, marks: Iterable[Match]) -> None:
        """Note where attempts end: what was done from there on says nothing of the one before."""
        for mark in marks:
            self._restarts.setdefault(mark.record.source, []).append(mark.record.seq)

    def survived(self, match: Match) -> bool:
        """Whether the job went on after this, or printed it, as no error, when it had finished; of a mere symptom also
        whether a later attempt finished. Only within a source do numbers tell the order, so only there it is known."""
        record = match.record
        if OF_OTHERS.intersection(record.dialects):
            return False
        finished = self._finished.get(record.source, [record.seq])
        if _is_mild(record) and finished[0] < record.seq:
            return True
        own = self._steps.get((record.source, match.rank)) if match.rank is not None else None
        steps = self._steps.get((record.source, None)) if own is None else own
        ends = (seq for seq in self._restarts.get(record.source, ()) if seq > record.seq)
        end = min(ends, default=None)
        if match.rule.kind == "symptom" and end is not None and end < finished[-1]:
            return True
        later = [seq for seq in steps or () if seq > record.seq and (end is None or seq < end)]
        return len(later) >= (STEPS_AFTER_WARNING if _is_mild(record) else STEPS_AFTER_ERROR)


def _is_mild(record: Record) -> bool:
    """Whether its printer called it no error; NCCL has no higher level than WARN."""
    return record.level in MILD and not (record.level == "WARNING" and "nccl" in record.dialects)
