"""Bytes of one source to Records, in order; streaming, so that memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logdoc.dialects.torchrun import default_group_rank
from logdoc.reader.childfailed import beside_failures, failures, is_report
from logdoc.reader.clock import seconds
from logdoc.reader.join import Joiner
from logdoc.reader.layout import restored
from logdoc.reader.lines import utf8_lines
from logdoc.reader.peel import Line, Peeler
from logdoc.scanner.text import as_utf8
from logdoc.types.record import Identity, Record
from logdoc.types.value import dataclass, field

__all__ = ["BATCH", "ReadState", "read", "read_windows"]

BATCH = 2048  # records handed on at a time
MOST_REPORT_FREE_LINES = 6  # a ChildFailedError report is longer


@dataclass(slots=True)
class ReadState:
    """What a reading leaves behind: how many lines there were, and the next free sequence number."""

    seq: int = 0
    lines: int = 0


def read(
    name: str, blocks: Iterable[bytes], state: ReadState, hints: Identity | None = None, attempt: int = 0
) -> Iterator[list[Record]]:
    """The Records of one source in batches, ordered by first line within a batch.

    `hints` is who the file name says is talking; a line's own prefix overrides it.
    """
    state.lines = 0
    return read_windows(name, [(1, as_utf8(blocks))], state, hints, attempt)


def read_windows(
    name: str,
    windows: Iterable[tuple[int, Iterable[bytes]]],
    state: ReadState,
    hints: Identity | None = None,
    attempt: int = 0,
) -> Iterator[list[Record]]:
    """The same of parts of a source: each is its first line's number and its UTF-8 bytes. No record spans two parts."""
    clocks = _Clocks()
    peeler = Peeler()
    batch: list[Record] = []
    for first, blocks in windows:
        joiner = Joiner()
        for number, raw in utf8_lines(blocks, first):
            state.lines = number
            line = peeler.peel(number, raw)
            clocks.note(line)
            for group in joiner.feed(line):
                batch.extend(_records(name, group, hints, attempt))
            if len(batch) >= BATCH:
                yield _ordered(batch, state)
                batch = []
        for group in joiner.flush():
            batch.extend(_records(name, group, hints, attempt))
    if batch:
        yield _ordered(batch, state)


@dataclass(slots=True)
class _Clocks:
    """The last time stamp of each printer of a source, and of the source as a whole."""

    last: dict[tuple[int | None, int | None, int | None], float] = field(default_factory=dict)
    latest: float | None = None

    def note(self, line: Line) -> None:
        who = line.who
        printer = (who.rank, who.local_rank, who.task)
        stamp = seconds(line.time_text) if line.time_text else None
        if stamp is not None:
            self.last[printer] = self.latest = stamp
        line.near_time = self.last.get(printer, self.latest)


def _ordered(batch: list[Record], state: ReadState) -> list[Record]:
    """Records are finished in another order than they began; the order of their first lines is what happened."""
    batch.sort(key=lambda record: record.line)
    for record in batch:
        state.seq += 1
        record.seq = state.seq
    return batch


def _records(source: str, lines: list[Line], hints: Identity | None, attempt: int) -> list[Record]:
    """A group of lines is one Record; torchrun's final report is one, and one more for each failure it lists."""
    record = _record(source, restored(lines), hints, attempt)
    if len(lines) < MOST_REPORT_FREE_LINES or not is_report(record.body):
        return [record]
    listed = list(failures(record, lines))
    beside = list(beside_failures(lines))
    record.body = "\n".join(line.text for line in beside)
    record.line_numbers = _line_numbers(beside)
    return [record, *listed]


def _record(source: str, lines: list[Line], hints: Identity | None, attempt: int) -> Record:
    first = lines[0]
    body = "\n".join(line.text for line in lines) if len(lines) > 1 else first.text
    return Record(
        seq=0,
        source=source,
        line=first.number,
        end_line=lines[-1].number,
        body=body,
        raw=first.raw,
        who=_who(first, body, hints),
        time=seconds(first.time_text) if first.time_text else None,
        time_text=first.time_text,
        near_time=first.near_time,
        dialects=first.dialects,
        level=first.level,
        component=first.component,
        attempt=attempt,
        line_numbers=_line_numbers(lines) if len(lines) > 1 else (),
    )


def _line_numbers(lines: list[Line]) -> tuple[int, ...]:
    """The source line of each line of the body; a JSON line may have unfolded to several."""
    return tuple(line.number for line in lines for _ in range(line.text.count("\n") + 1))


def _who(first: Line, body: str, hints: Identity | None) -> Identity:
    who = first.who
    if hints is not None:
        who.rank = hints.rank if who.rank is None else who.rank
        who.local_rank = hints.local_rank if who.local_rank is None else who.local_rank
        who.task = hints.task if who.task is None else who.task
        who.host = hints.host if who.host is None else who.host
        who.pid = hints.pid if who.pid is None else who.pid
    if who.rank is None and body.startswith("["):
        who.rank = default_group_rank(body)
    return who
