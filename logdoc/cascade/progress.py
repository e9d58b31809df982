"""Did the job go on? Training steps, served requests and the announced end, against what looks like a failure.

Every long job prints things that would be fatal in another: a retried download, an optional library, a skipped batch.
What it trained on after, it survived.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from logdoc.reader.childfailed import DIALECT
from logdoc.types.finding import Match
from logdoc.types.record import OWN_DIALECTS, Record
from logdoc.types.value import dataclass, field

GOING_ON = frozenset({"first-step", "serving"})  # milestones (observations.yaml) of work being done
FINISHED = "finished"
STEPS_AFTER_WARNING = 3
# After an error: a process that dies of it still gives out what its stdout held back, 8 KiB where that is a file or a
# pipe, and in the log that stands below the traceback, which stderr held back by nothing.
STEPS_AFTER_ERROR = 150
# A process that wrote a line and worked on before it ended did not die of that line.
STEPS_BEFORE_END = 3
# The kernel speaks of any process of the host: the job outlived it if it was done later, or worked on for so many steps
# before an exception of its own, or for so many seconds.
STEPS_AFTER_KERNEL = 50
LONG_AFTER = 600.0
MILD = ("WARNING", "INFO", "DEBUG", "TRACE")
# The kernel and the launcher speak of others; logdoc's own verdicts stand where their witness spoke.
OF_OTHERS = frozenset({"kernel", DIALECT, *OWN_DIALECTS})


@dataclass(slots=True)
class Progress:
    """What was done in each source, and by which rank. Feed it the milestones and the marks of restarts in order.

    All steps are kept, for a later attempt's say nothing of an earlier one: a log is read in full up to a few MiB only.
    """

    _steps: dict[tuple[str, int | None], list[int]] = field(default_factory=dict)
    _finished: dict[str, list[int]] = field(default_factory=dict)
    _restarts: dict[str, list[int]] = field(default_factory=dict)
    _ends: dict[tuple[str, int | None], list[int]] = field(default_factory=dict)
    _last_step: dict[str, Record] = field(default_factory=dict)

    def see(self, milestone: Match) -> None:
        """Note a milestone."""
        source, seq = milestone.record.source, milestone.record.seq
        if milestone.name == FINISHED:
            self._finished.setdefault(source, []).append(seq)
        elif milestone.name in GOING_ON:
            for rank in {milestone.rank, None}:
                self._steps.setdefault((source, rank), []).append(seq)
            self._last_step[source] = milestone.record

    def restart(self, marks: Iterable[Match]) -> None:
        """Note where attempts end: what was done from there on says nothing of the one before."""
        for mark in marks:
            self._restarts.setdefault(mark.record.source, []).append(mark.record.seq)

    def end(self, matches: Iterable[Match]) -> None:
        """Note the exceptions that ended a process and that no special rule knows: the program's own."""
        for match in matches:
            record = match.record
            if match.rule.fallback and not record.is_caught:
                for rank in {match.rank, None}:
                    self._ends.setdefault((record.source, rank), []).append(record.seq)
        for seqs in self._ends.values():
            seqs.sort()

    def survived(self, match: Match) -> bool:
        """Whether the job went on after this, or printed it, as no error, when it had finished; of a mere symptom also
        whether a later attempt finished. Only within a source do numbers tell the order, so only there it is known."""
        record = match.record
        if "kernel" in record.dialects:
            return self._outlived_the_kernels(record)
        if OF_OTHERS.intersection(record.dialects):
            return False
        finished = self._finished.get(record.source, [record.seq])
        if _is_mild(record) and finished[0] < record.seq:
            return True
        ends = (seq for seq in self._restarts.get(record.source, ()) if seq > record.seq)
        end = min(ends, default=None)
        if match.rule.kind == "symptom" and end is not None and end < finished[-1]:
            return True
        later = self._steps_between(record, match.rank, end)
        return later >= self._steps_asked(match, end)

    def _steps_asked(self, match: Match, restart: int | None) -> int:
        """How many steps tell that the job went on after this: few if it was done later, or died of an exception of its
        own. Not so with an exception that a rule knows: it may be what this line announced."""
        record, mild = match.record, _is_mild(match.record)
        usual = STEPS_AFTER_WARNING if mild else STEPS_AFTER_ERROR
        if record.has_traceback:
            return usual
        ends = self._ends.get((record.source, match.rank), []), self._finished.get(record.source, [])
        end = max(_last(seqs, restart) for seqs in ends)
        few = 1 if mild else STEPS_BEFORE_END
        return few if self._steps_between(record, match.rank, end) >= few else usual

    def _outlived_the_kernels(self, record: Record) -> bool:
        """Whether the job plainly outlived what the kernel said of some process of the host."""
        if self._finished.get(record.source, [record.seq])[-1] > record.seq:
            return True
        end = _last(self._ends.get((record.source, None), []), None)
        if end > record.seq and self._steps_between(record, None, end) >= STEPS_AFTER_KERNEL:
            return True
        last, at = self._last_step.get(record.source, record).near_time, record.near_time  # their clocks are set by now
        return last is not None and at is not None and last - at >= LONG_AFTER

    def _steps_between(self, record: Record, rank: int | None, end: int | None) -> int:
        """How many steps the rank, or where it told of none its whole source, made after a record and before `end`."""
        of_all = self._steps.get((record.source, None), [])
        steps = self._steps.get((record.source, rank), of_all)
        last = len(steps) if end is None else bisect_left(steps, end)
        return last - bisect_right(steps, record.seq)


def _last(seqs: list[int], before: int | None) -> int:
    """The last of these in order before a restart; -1: none."""
    place = len(seqs) if before is None else bisect_left(seqs, before)
    return seqs[place - 1] if place else -1


def _is_mild(record: Record) -> bool:
    """Whether its printer called it no error; NCCL has no higher level than WARN."""
    return record.level in MILD and not (record.level == "WARNING" and "nccl" in record.dialects)
