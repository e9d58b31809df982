"""The streaming half of the work: every source read once, its records matched, what they say kept. No verdicts here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from logdoc.cascade import Survey
from logdoc.catalog.hint import may_name_variable
from logdoc.kept.patterns import lazily
from logdoc.matcher import Matcher
from logdoc.matcher.triggers import triggers_of
from logdoc.reader import ReadState, read, read_windows
from logdoc.reader.skim import Skim
from logdoc.reader.unpacking import Counter
from logdoc.rulebase import LiteralIndex
from logdoc.rulebase.observations import ABNORMAL, ATTEMPTS, COLLECTIVES, MILESTONES, STACKS, observations
from logdoc.scanner.ranges import Crew, alone
from logdoc.sources import Source
from logdoc.types.errors import InputError
from logdoc.types.finding import Match
from logdoc.types.record import Identity, Record
from logdoc.types.report import FlightRecorder, SourceInfo
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.flight_recorder import Dump
    from logdoc.reporting.novelty import Novelty

# Flight-recorder dumps and settings are in few logs: what reads them is imported where it is used, for a small log must
# feel instant.

_RANK_PREFIX = lazily(rb"^\[rank(\d{1,6})\]:", re.MULTILINE)
FIRST_BYTES = 32 << 10  # of a log, in which other ranks would have spoken
LARGEST_ERROR_FILE = 64 << 20  # bytes of an error.json, which is parsed in one piece; torch writes some KiB
MOST_MATCHES = 100_000  # kept of one kind; a storm beyond is counted by the matcher


@dataclass(slots=True)
class Reading:
    """What the sources said. `observed`: the matches of each observation, by its id. `unread`: bytes that were only
    scanned, and `cut` the labels of what came too often to be followed."""

    survey: Survey = field(default_factory=Survey)
    matches: list[Match] = field(default_factory=list)
    observed: dict[str, list[Match]] = field(default_factory=lambda: {rule.id: [] for rule in observations().rules})
    settings: dict[str, str] = field(default_factory=dict)
    sources: list[SourceInfo] = field(default_factory=list)
    recorded: list[FlightRecorder] = field(default_factory=list)
    novelty: Novelty | None = None
    warnings: list[str] = field(default_factory=list)
    unread: int = 0
    cut: frozenset[str] = frozenset()


class Intake:
    """One job's sources on their way in; `reading` holds what they have said so far."""

    def __init__(self, matcher: Matcher, index: LiteralIndex, crew: Crew = alone) -> None:
        self.reading = Reading()
        self._matcher = matcher
        self._index = index
        self._crew = crew
        self._state = ReadState()
        self._dumps: dict[str, list[Dump]] = {}
        self._refused = 0

    def compare_with(self, baseline: Iterable[Source]) -> None:
        """Learn what the lines of a good run look like, so that new kinds of lines stand out."""
        sources = list(baseline)
        if not sources:
            return
        from logdoc.reporting.novelty import Novelty

        novelty, state = Novelty(), ReadState()
        for source in sources:
            try:
                for batch in read(source.name, _blocks(source), state):
                    novelty.learn(batch)
            except InputError as error:
                self.reading.warnings.append(str(error))
            else:
                self.reading.novelty = novelty

    def take(self, sources: Iterable[Source]) -> Reading:
        """Read all sources to their end; one that has gone is a warning. Raises InputError if none could be read."""
        listed = list(sources)
        logs = [source for source in listed if source.kind != "flight-recorder"]
        skim = Skim(logs, partial(triggers_of, self._index, (COLLECTIVES, ATTEMPTS, ABNORMAL, STACKS)), self._crew)
        for source in listed:
            try:
                if source.kind == "flight-recorder":
                    self._keep_dump(source)
                else:
                    self._take_log(source, skim)
            except InputError as error:
                self._refused += 1
                self.reading.warnings.append(str(error))
        self.reading.cut = frozenset(label for label in skim.cut if not label.startswith("~"))
        if self._refused and self._refused == len(listed):
            raise InputError("; ".join(self.reading.warnings))
        self._take_dumps()
        return self.reading

    def _take_log(self, source: Source, skim: Skim) -> None:
        reading, state, size = self.reading, self._state, Counter()
        part = skim.part(source, size.count(_blocks(source)))
        state.lines = 0
        try:
            for batch in read_windows(source.name, part.windows, state, _speaker(source), source.hints.attempt or 0):
                self._take_records(batch)
        finally:
            count = size.total if part.bytes is None else part.bytes
            lines = state.lines if part.lines is None else part.lines
            reading.sources.append(SourceInfo(name=source.name, bytes=count, lines=lines, truncated=source.truncated))
            reading.unread += part.unread
        reading.warnings.extend(source.warnings)

    def _take_records(self, batch: Sequence[Record]) -> None:
        """Sort a batch's matches into observations and evidence."""
        if not batch:
            return
        reading = self.reading
        reading.survey.see(batch)
        if reading.novelty is not None:
            reading.novelty.see(batch)
        found = self._matcher.find(batch)
        reading.survey.reach(match for match in found if match.rule.id == MILESTONES)
        for match in found:
            kept = reading.observed.get(match.rule.id, reading.matches)
            if len(kept) < MOST_MATCHES:
                kept.append(match)
        for name, value in _settings_in(batch):
            reading.settings.setdefault(name, value)

    def _keep_dump(self, source: Source) -> None:
        """Read a dump without running anything in it."""
        from logdoc.flight_recorder.read import MAX_BYTES, read_dump

        data = b""
        try:
            data = source.read_all(MAX_BYTES + 1)
            dump = read_dump(data, source.name)
        finally:
            told = SourceInfo(name=source.name, bytes=len(data), lines=0, truncated=source.truncated)
            self.reading.sources.append(told)
        folder = os.path.dirname(source.location) if source.location is not None else ""
        self._dumps.setdefault(folder, []).append(dump)
        self.reading.warnings.extend(source.warnings)

    def _take_dumps(self) -> None:
        """The joint verdict of each folder's flight-recorder dumps, as further records."""
        if not self._dumps:
            return
        from logdoc.flight_recorder import analyse, analysis_records, reported

        for members in self._dumps.values():
            analysis = analyse(members)
            self.reading.recorded.append(reported(analysis, members[0].name))
            said = analysis_records(analysis, members, self._state.seq)
            self._state.seq += len(said)
            self._take_records(said)


def _blocks(source: Source) -> Iterator[bytes]:
    if source.kind == "error-json":
        from logdoc.reader.errorjson import as_text

        yield as_text(source.read_all(LARGEST_ERROR_FILE))
    else:
        yield from source.open_blocks()


def _speaker(source: Source) -> Identity:
    """Who the file's name says is talking, unless its first lines show that other ranks talk in it too."""
    speaker = source.hints.identity()
    if speaker.rank is None:
        return speaker
    others = (int(found.group(1)) != speaker.rank for found in _RANK_PREFIX.finditer(source.first(FIRST_BYTES)))
    return Identity(host=speaker.host) if any(others) else speaker


def _settings_in(batch: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """The settings that these records make. Only bodies that name some variable are parsed, and the one after each:
    a manifest has its `value:` on the line below."""
    bodies = [record.body for record in batch]
    named = [may_name_variable(body) for body in bodies]
    if not any(named):
        return
    from logdoc.envlint import variables_in

    near = [body for body, own, before in zip(bodies, named, [False, *named], strict=False) if own or before]
    for name, (value, _) in variables_in(near).items():
        if value is not None:
            yield name, value
