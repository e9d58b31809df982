"""Joins the stages: sources in, Report out. The only module that calls them all; decides nothing itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import logdoc
from logdoc.cascade import (
    Survey,
    in_order,
    number_attempts,
    relate,
    set_clocks,
    stall_verdict,
    verdicts,
    waiting_ranks,
)
from logdoc.conditions import hypotheses
from logdoc.facts import FactSet, observed_facts, version_facts
from logdoc.matcher import LiteralScanner, Matcher, Prefilter, best_scanner
from logdoc.matcher.triggers import triggers_of
from logdoc.ranking import rank
from logdoc.reader import ReadState, read, read_windows
from logdoc.reader.errorjson import as_text
from logdoc.reader.skim import Skim
from logdoc.reporting import Findings, build_report
from logdoc.reporting.novelty import Novelty
from logdoc.reporting.wording import phrase
from logdoc.rulebase import RuleSet, build_index
from logdoc.rulebase.observations import ABNORMAL, ATTEMPTS, COLLECTIVES, FACTS, MILESTONES, observations
from logdoc.sources import Source, source_from_bytes
from logdoc.types.errors import InputError
from logdoc.types.finding import Fact, Hypothesis, Match
from logdoc.types.record import Identity, Record
from logdoc.types.report import EnvironmentProblem, FlightRecorder, InputInfo, Report, SourceInfo, Tool

if TYPE_CHECKING:
    from logdoc.flight_recorder import Dump
    from logdoc.probes.base import FactSheet

# The rooms that only some logs need (dumps, settings, probes) are imported where they are used: a small log must feel
# instant, and half of its time would be spent on them.

_RANK_PREFIX = re.compile(rb"^\[rank(\d{1,6})\]:", re.MULTILINE)
_VARIABLE = re.compile(r"_[A-Z]|RANK")  # in every variable's name; few healthy lines hold it
QUIET_LEVELS = ("INFO", "DEBUG", "TRACE")
LAST_LINES = 20
MOST_NAMED = 8
LARGEST_DUMP = 256 << 20
MOST_DIALOGUE = 100_000  # matches kept in all; a storm beyond is counted by the matcher


@dataclass(frozen=True, slots=True)
class Options:
    """How to explain. `language`: en or zh. `sheets`: facts collected on hosts of the job, from files.

    `prober` is asked for the probes that the live hypotheses want, where no sheet was given; None looks at nothing.
    `workers`: processes that scan large inputs; the report does not depend on their number. `baseline`: logs of a good
    run, against which new kinds of lines stand out where no rule knows the failure.
    """

    language: str = "en"
    sheets: tuple[FactSheet, ...] = ()
    prober: Callable[[Sequence[str]], FactSheet] | None = None
    workers: int = 1
    warnings: tuple[str, ...] = ()
    baseline: tuple[Source, ...] = ()


@dataclass(slots=True)
class _Reading:
    """What the streaming half of the work leaves behind."""

    survey: Survey = field(default_factory=Survey)
    matches: list[Match] = field(default_factory=list)
    observed: dict[str, list[Match]] = field(default_factory=lambda: {rule.id: [] for rule in observations().rules})
    settings: dict[str, str] = field(default_factory=dict)
    sources: list[SourceInfo] = field(default_factory=list)
    recorded: list[FlightRecorder] = field(default_factory=list)
    refused: int = 0
    novelty: Novelty | None = None
    warnings: list[str] = field(default_factory=list)


class Engine:
    """A rule set made ready to explain logs; use one for many logs."""

    def __init__(self, rules: RuleSet, scanner: Callable[[Sequence[bytes]], LiteralScanner] = best_scanner) -> None:
        self.rules = rules
        self._index = rules.index or build_index([*rules.active(), *observations().rules])
        self._prefilter = Prefilter(self._index, scanner)

    def explain_text(self, text: str, options: Options = Options()) -> Report:
        """Explain a log given as text."""
        return self.explain([source_from_bytes("<text>", text.encode("utf-8", "surrogatepass"))], options)

    def explain(self, sources: Iterable[Source], options: Options = Options()) -> Report:
        """Read the sources to their end and say what broke first and why. Never raises for what a log contains."""
        started = time.monotonic()
        matcher = Matcher(self._prefilter)
        reading = self._read_all(sources, matcher, options)
        facts = _facts(reading)
        self._order(reading, matcher, facts)
        found = self._diagnose(reading, facts)
        ranked = _probed(rank([one for one in found if one.rule.kind != "noise"]), facts, options)
        problems = self._lint(reading, facts, options)
        findings = Findings(
            ranked=ranked,
            noise=[one for one in found if one.rule.kind == "noise"],
            facts=facts,
            survey=reading.survey,
            abnormal=_first_abnormal(reading, found),
            environment=problems,
            settings=reading.settings,
            recorded=tuple(reading.recorded),
            novel=tuple(reading.novelty.found) if reading.novelty is not None else (),
            rules=self.rules.lazily(),
            warnings=[*options.warnings, *reading.warnings, *_losses(matcher, options.language)],
        )
        info = InputInfo(sources=tuple(reading.sources), seconds=round(time.monotonic() - started, 3))
        return build_report(findings, self.tool(), info, options.language)

    def recognise(self, text: str) -> tuple[set[str], set[str]]:
        """The ids of the rules of which some record of `text` matches an evidence, or a context signature."""
        matcher = Matcher(self._prefilter)
        source = source_from_bytes("<text>", text.encode("utf-8", "surrogatepass"))
        found = [
            match for batch in read(source.name, source.open_blocks(), ReadState()) for match in matcher.find(batch)
        ]
        own = [match for match in found if match.rule.id in self.rules.rules]
        evidence = {match.rule.id for match in own if match.signature.role == "evidence"}
        return evidence, {match.rule.id for match in own} - evidence

    def tool(self) -> Tool:
        return Tool(version=logdoc.__version__, rules=self.rules.digest)

    def _read_all(self, sources: Iterable[Source], matcher: Matcher, options: Options) -> _Reading:
        reading = _Reading()
        reading.novelty = _learned(options.baseline)
        state = ReadState()
        dumps: dict[str, list[Dump]] = {}
        listed = list(sources)
        logs = [source for source in listed if source.kind != "flight-recorder"]
        skim = Skim(logs, partial(triggers_of, self._index, (COLLECTIVES, ATTEMPTS, ABNORMAL)), options.workers)
        unread = 0
        for source in listed:
            if source.kind == "flight-recorder":
                _keep_dump(source, dumps, reading)
                continue
            size = _Counter()
            part = skim.part(source, size.count(_blocks(source)))
            state.lines = 0
            for batch in read_windows(source.name, part.windows, state, _speaker(source), source.hints.attempt or 0):
                self._take(batch, matcher.find(batch), reading)
            count = size.total if part.bytes is None else part.bytes
            lines = state.lines if part.lines is None else part.lines
            reading.sources.append(SourceInfo(name=source.name, bytes=count, lines=lines, truncated=source.truncated))
            reading.warnings.extend(source.warnings)
            unread += part.unread
        reading.warnings.extend(_skimmed(unread, sum(source.bytes for source in reading.sources), skim, options))
        if reading.refused and reading.refused == len(listed):
            raise InputError("; ".join(reading.warnings))
        self._take_dumps(dumps, matcher, reading, state)
        return reading

    def _take_dumps(self, dumps: dict[str, list[Dump]], matcher: Matcher, reading: _Reading, state: ReadState) -> None:
        """The joint verdict of each folder's flight-recorder dumps, as further records."""
        if not dumps:
            return
        from logdoc.flight_recorder import analyse, analysis_records, reported

        for members in dumps.values():
            analysis = analyse(members)
            reading.recorded.append(reported(analysis, members[0].name))
            said = analysis_records(analysis, members, state.seq)
            state.seq += len(said)
            self._take(said, matcher.find(said), reading)

    def _take(self, batch: Sequence[Record], matches: Iterable[Match], reading: _Reading) -> None:
        """Sort a batch's matches into observations and evidence."""
        if not batch:
            return
        reading.survey.see(batch)
        if reading.novelty is not None:
            reading.novelty.see(batch)
        passed = len(reading.observed[MILESTONES])
        for match in matches:
            kept = reading.observed.get(match.rule.id, reading.matches)
            if len(kept) < MOST_DIALOGUE:
                kept.append(match)
        reading.survey.reach(reading.observed[MILESTONES][passed:])
        for name, value in _settings_in(batch):
            reading.settings.setdefault(name, value)

    def _order(self, reading: _Reading, matcher: Matcher, facts: FactSet) -> None:
        """Put who and when right, then let the watchdogs' joint verdict speak as further records."""
        reading.survey.settle(_several_nodes(reading))
        watchdogs = reading.observed[COLLECTIVES]
        reading.survey.name_ranks([*reading.matches, *watchdogs])
        number_attempts([*reading.matches, *watchdogs], reading.observed[ATTEMPTS])
        known = facts.value("job.world_size")
        size = known if isinstance(known, int) else None
        said = verdicts(waiting_ranks(watchdogs), reading.survey.tracks, size)
        said += stall_verdict(reading.survey.tracks, size)
        if said:
            reading.matches += [match for match in matcher.find(said) if match.rule.id not in reading.observed]
        set_clocks(reading.matches, reading.observed[MILESTONES])
        reading.matches = in_order(reading.matches)

    def _diagnose(self, reading: _Reading, facts: FactSet) -> list[Hypothesis]:
        survey = reading.survey
        found = hypotheses(
            self.rules.some({match.rule.id for match in reading.matches}),
            reading.matches,
            facts,
            ranks_seen=len(survey.tracks),
            was_last=survey.was_last,
        )
        relate([one for one in found if one.rule.kind != "noise"])
        return found

    def _lint(self, reading: _Reading, facts: FactSet, options: Options) -> tuple[EnvironmentProblem, ...]:
        seen = {**facts.settings(), **reading.settings}
        if not seen:
            return ()
        versions = {
            name: str(value)
            for name, fact in (("nccl", "nccl.version"), ("torch", "torch.version"))
            if (value := facts.value(fact)) is not None
        }
        nodes = facts.value("job.nodes") or len(reading.survey.hosts)
        context: dict[str, object] = {"infiniband": facts.value("nccl.network") == "IB"}
        context |= {"nodes": nodes} if nodes else {}
        from logdoc import envlint

        return envlint.lint(seen, versions=versions, language=options.language, context=context)


@dataclass(slots=True)
class _Counter:
    """Counts the bytes that pass."""

    total: int = 0

    def count(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.total += len(block)
            yield block


def _blocks(source: Source) -> Iterator[bytes]:
    if source.kind == "error-json":
        yield as_text(source.read_all())
    else:
        yield from source.open_blocks()


def _speaker(source: Source) -> Identity:
    """Who the file's name says is talking, unless its first lines show that other ranks talk in it too."""
    speaker = source.hints.identity()
    if speaker.rank is not None:
        head = next(source.open_blocks(), b"")
        others = {int(number) for number in _RANK_PREFIX.findall(head)} - {speaker.rank}
        if others:
            return Identity(host=speaker.host)
    return speaker


def _learned(baseline: Sequence[Source]) -> Novelty | None:
    """What the lines of a good run look like."""
    if not baseline:
        return None
    novelty, state = Novelty(), ReadState()
    for source in baseline:
        for batch in read(source.name, _blocks(source), state):
            novelty.learn(batch)
    return novelty


def _keep_dump(source: Source, dumps: dict[str, list[Dump]], reading: _Reading) -> None:
    """Read a dump without running anything in it; one that cannot be read is a warning."""
    from logdoc.flight_recorder import read_dump

    data = source.read_all(LARGEST_DUMP)
    try:
        dump = read_dump(data, source.name)
    except InputError as error:
        reading.refused += 1
        reading.warnings.append(str(error))
    else:
        folder = str(source.path.parent) if source.path is not None else ""
        dumps.setdefault(folder, []).append(dump)
    reading.sources.append(SourceInfo(name=source.name, bytes=len(data), lines=0, truncated=source.truncated))


def _probed(ranked: list[Hypothesis], facts: FactSet, options: Options) -> list[Hypothesis]:
    """Let the probes speak to the hypotheses, and rank them again."""
    sheets = options.sheets
    if not sheets and options.prober is None:
        return ranked
    from logdoc.probes.judge import facts_here, judge, wanted_probes

    wanted = wanted_probes(ranked)
    if not sheets and wanted and options.prober is not None:
        sheets = (options.prober(wanted),)
    if not sheets or not ranked:
        return ranked
    judge(ranked, sheets, facts)
    facts.add(facts_here(sheets, ranked[0].host))
    facts.add(version_facts(facts))
    return rank(ranked)


def _facts(reading: _Reading) -> FactSet:
    """What the log states, then the settings seen; probes are asked later."""
    facts = FactSet()
    facts.add(observed_facts(reading.observed[FACTS]), override=True)
    facts.add(_setting_facts(reading.settings))
    if reading.survey.hosts:
        facts.add([Fact(id="job.hosts", value=len(reading.survey.hosts), origin="log")])
    facts.add(version_facts(facts))
    return facts


def _setting_facts(settings: dict[str, str]) -> list[Fact]:
    return [Fact(id=f"env.{name}", value=value, origin="log") for name, value in sorted(settings.items())]


def _settings_in(batch: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """The settings that these records make. Only bodies that name some variable are parsed, and the one after each:
    a manifest has its `value:` on the line below."""
    bodies = [record.body for record in batch]
    named = [_VARIABLE.search(body) is not None for body in bodies]
    if not any(named):
        return
    from logdoc.envlint import variables_in

    near = [body for body, own, before in zip(bodies, named, [False, *named], strict=False) if own or before]
    for name, (value, _) in variables_in(near).items():
        if value is not None:
            yield name, value


def _several_nodes(reading: _Reading) -> bool:
    nodes = [match.captures["value"] for match in reading.observed[FACTS] if match.name == "job.nodes"]
    return len(reading.survey.hosts) > 1 or any(node not in ("0", "1") for node in nodes)


def _first_abnormal(reading: _Reading, found: Sequence[Hypothesis]) -> Match | None:
    """The first line that looks wrong and that no rule knows: of the surest shape there is, the earliest.

    Words such as `failed to` are common in healthy logs: they count only in a log's last lines, and never at INFO.
    """
    known = {match.record.seq for one in found for match in one.matches}
    shapes = observations().abnormal
    ends = {source.name: source.lines - LAST_LINES for source in reading.sources}
    unknown = [
        match
        for match in reading.observed[ABNORMAL]
        if match.record.seq not in known
        and not match.record.is_caught
        and (shapes[match.name].sure or match.record.level not in QUIET_LEVELS)
        and (not shapes[match.name].only_at_end or match.line > ends[match.record.source])
        and not shapes[match.name].not_in.intersection(match.record.dialects)
    ]
    return min(
        unknown,
        key=lambda match: (not shapes[match.name].sure, match.record.seq, shapes[match.name].order),
        default=None,
    )


def _skimmed(unread: int, total: int, skim: Skim, options: Options) -> list[str]:
    """What is said where not all lines were read."""
    if unread <= 0:
        return []
    said = [phrase("warning.skimmed", options.language, unread=_mib(unread), total=_mib(total))]
    names = sorted(label for label in skim.cut if not label.startswith("~"))
    if names:
        more = f" … (+{len(names) - MOST_NAMED})" if len(names) > MOST_NAMED else ""
        said.append(phrase("warning.frequent", options.language, names=", ".join(names[:MOST_NAMED]) + more))
    return said


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def _losses(matcher: Matcher, language: str) -> list[str]:
    said = [
        phrase("warning.dropped", language, n=count, rule=f"{rule_id}/{name}")
        for (rule_id, name), count in sorted(matcher.dropped.items())
        if not rule_id.startswith("~")
    ]
    return said + [phrase("warning.timeout", language, name=name) for name in sorted(matcher.timeouts)]
