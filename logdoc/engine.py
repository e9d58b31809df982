"""Joins the stages: sources in, Report out. The only module that calls them all; decides nothing itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from os import fspath

import logdoc
from logdoc.cascade import relate, settle
from logdoc.conditions import hypotheses
from logdoc.facts import FactSet, observed_facts, version_facts
from logdoc.intake import Intake, Reading
from logdoc.matcher import LiteralScanner, Matcher, Prefilter, best_scanner
from logdoc.ranking import rank
from logdoc.reader import ReadState, read
from logdoc.reporting import Findings, build_report
from logdoc.reporting.wording import phrase
from logdoc.rulebase import RuleSet, build_index, ready_rules, rule_roots
from logdoc.rulebase.observations import ABNORMAL, COLLECTIVES, FACTS, MILESTONES, observations
from logdoc.scanner.ranges import Crew, alone
from logdoc.sources import Discovered, Source, source_from_bytes
from logdoc.types.finding import Fact, Hypothesis, Match
from logdoc.types.report import EnvironmentProblem, InputInfo, Report, Tool
from logdoc.types.value import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from logdoc.probes.sheets import FactSheet

QUIET_LEVELS = ("INFO", "DEBUG", "TRACE")
LAST_LINES = 20
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Options:
    """How to explain. `language`: en or zh. `sheets`: facts collected on hosts of the job, from files.

    `prober` is asked for the probes that the live hypotheses want, where no sheet was given; None looks at nothing.
    `crew` scans large inputs: this process alone, `processes(count)`, or a Ray cluster; the report does not depend on
    it. `baseline`: logs of a good
    run, against which new kinds of lines stand out where no rule knows the failure. `failed`: the job is known to have
    ended badly.
    """

    language: str = "en"
    sheets: tuple[FactSheet, ...] = ()
    prober: Callable[[Sequence[str]], FactSheet] | None = None
    crew: Crew = alone
    warnings: tuple[str, ...] = ()
    baseline: tuple[Source, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """All that the logs of one job say, in no language yet and before any machine was asked: reports are made of it.

    `abnormal`: the first line that looks wrong and that no rule knows.
    `lost`: of each signature that matched too often, how many matches were not looked at, by `rule/signature`;
    `too_slow`: the patterns that were given up. `seconds`: the wall time it took.
    """

    reading: Reading
    facts: FactSet
    failures: tuple[Hypothesis, ...]
    harmless: tuple[Hypothesis, ...]
    abnormal: Match | None
    lost: dict[str, int]
    too_slow: tuple[str, ...]
    seconds: float


def load_engine(rules: Iterable[str | PathLike[str]] = ()) -> Engine:
    """An engine over the built-in rules, installed packs, the user's own rules, and `rules`; use it for many logs.

    Raises RulesError with every fault of every rule file, InputError for a path that is not there.
    """
    return Engine(ready_rules(rule_roots([fspath(path) for path in rules])))


def fact_sheets(files: Iterable[str | PathLike[str]]) -> tuple[FactSheet, ...]:
    """What `logdoc probe` wrote into these files, a sheet a host. Raises InputError."""
    names = [fspath(file) for file in files]
    if not names:
        return ()
    from logdoc.probes.sheets import load_fact_sheets

    return tuple(sheet for name in names for sheet in load_fact_sheets(name))


def source_from_text(text: str, name: str = "<text>") -> Source:
    """A log given as text; what is no Unicode in it is kept."""
    return source_from_bytes(name, text.encode("utf-8", "surrogatepass"))


class Engine:
    """A rule set made ready to explain logs; use one for many logs."""

    def __init__(self, rules: RuleSet, scanner: Callable[[Sequence[bytes]], LiteralScanner] = best_scanner) -> None:
        self.rules = rules
        self._index = rules.index or build_index([*rules.active(), *observations().rules])
        self._prefilter = Prefilter(self._index, scanner)

    def explain_text(self, text: str, options: Options = Options()) -> Report:
        """Explain a log given as text."""
        return self.explain([source_from_text(text)], options)

    def explain_found(self, found: Discovered, options: Options = Options()) -> Report:
        """Explain what was discovered, and tell what of it was left out."""
        return self.explain(found.sources, replace(options, warnings=(*options.warnings, *found.warnings)))

    def explain(self, sources: Iterable[Source], options: Options = Options()) -> Report:
        """Read the sources to their end and say what broke first and why. Never raises for what a log contains."""
        return self.report(self.study(sources, options), options)

    def study(self, sources: Iterable[Source], options: Options = Options()) -> Study:
        """Read the sources to their end, once for as many reports as are wanted. Of the options, `crew`,
        `baseline` and `failed` count. Raises InputError if nothing could be read."""
        started = time.monotonic()
        matcher = Matcher(self._prefilter)
        intake = Intake(matcher, self._index, options.crew)
        intake.compare_with(options.baseline)
        reading = intake.take(sources)
        facts = _facts(reading)
        _order(reading, matcher, facts)
        found = self._hypotheses(reading, facts)
        abnormal = _first_abnormal(reading, found)
        failures = _failures(found, options.failed or abnormal is not None)
        relate(failures, reading.survey.heard())
        return Study(
            reading=reading,
            facts=facts,
            failures=tuple(failures),
            harmless=tuple(one for one in found if one not in failures),
            abnormal=abnormal,
            lost={
                f"{rule_id}/{name}": count
                for (rule_id, name), count in sorted(matcher.dropped.items())
                if not rule_id.startswith("~")
            },
            too_slow=tuple(sorted(matcher.timeouts)),
            seconds=time.monotonic() - started,
        )

    def report(self, study: Study, options: Options = Options()) -> Report:
        """Word what a study found, after the sheets or the prober have spoken. `crew` and `baseline` count no more.

        Reports of one study are made one after the other: each judges the hypotheses anew.
        """
        started = time.monotonic()
        reading, facts = study.reading, study.facts.copy()
        ranked = _ranked(list(study.failures), facts, reading.survey.hosts, options)
        findings = Findings(
            ranked=ranked,
            noise=list(study.harmless),
            facts=facts,
            survey=reading.survey,
            abnormal=study.abnormal,
            environment=_lint(reading, facts, options),
            settings=reading.settings,
            recorded=tuple(reading.recorded),
            novel=tuple(reading.novelty.found) if reading.novelty is not None else (),
            rules=self.rules.lazily(),
            watchdogs=reading.observed[COLLECTIVES],
            milestones=reading.observed[MILESTONES],
            warnings=[*options.warnings, *reading.warnings, *_unread(reading, options), *_lost(study, options)],
        )
        seconds = round(study.seconds + time.monotonic() - started, 3)
        info = InputInfo(sources=tuple(reading.sources), seconds=seconds)
        return build_report(findings, self.tool(), info, options.language)

    def recognise(self, text: str) -> tuple[set[str], set[str]]:
        """The ids of the rules of which some record of `text` matches an evidence, or a context signature."""
        matcher, source = Matcher(self._prefilter), source_from_text(text)
        found = [
            match for batch in read(source.name, source.open_blocks(), ReadState()) for match in matcher.find(batch)
        ]
        own = [match for match in found if match.rule.id in self.rules.rules]
        evidence = {match.rule.id for match in own if match.signature.role == "evidence"}
        return evidence, {match.rule.id for match in own} - evidence

    def tool(self) -> Tool:
        return Tool(version=logdoc.__version__, rules=self.rules.digest)

    def _hypotheses(self, reading: Reading, facts: FactSet) -> list[Hypothesis]:
        survey = reading.survey
        found = hypotheses(
            self.rules.some({match.rule.id for match in reading.matches}),
            reading.matches,
            facts,
            ranks_seen=len(survey.tracks),
            was_last=survey.was_last,
        )
        survey.progress.end(match for one in found for match in one.matches)
        survived = survey.progress.survived
        for one in found:  # what the job survived is the lesser evidence
            one.matches.sort(key=survived)
            one.went_on = survived(one.matches[0])
        return found


def _facts(reading: Reading) -> FactSet:
    """What the log states, then the settings seen; probes are asked later."""
    facts = FactSet()
    facts.add(observed_facts(reading.observed[FACTS]), override=True)
    facts.add(Fact(id=f"env.{name}", value=value, origin="log") for name, value in sorted(reading.settings.items()))
    if reading.survey.hosts:
        facts.add([Fact(id="job.hosts", value=len(reading.survey.hosts), origin="log")])
    facts.add(version_facts(facts))
    return facts


def _order(reading: Reading, matcher: Matcher, facts: FactSet) -> None:
    """Put who and when right, then let the ranks' joint verdicts speak as further records."""
    known = facts.value("job.world_size")
    size = known if isinstance(known, int) else None
    reading.matches = settle(reading.survey, reading.matches, reading.observed, size, matcher.find)


def _ranked(found: list[Hypothesis], facts: FactSet, hosts: set[str], options: Options) -> list[Hypothesis]:
    """The hypotheses ranked by the logs, then once more after the probes that they ask for have spoken."""
    for one in found:
        one.probe_results = []
    ranked, sheets = rank(found), options.sheets
    if not ranked or (not sheets and options.prober is None):
        return ranked
    from logdoc.probes.judge import facts_here, judge, wanted_probes

    wanted = wanted_probes(ranked)
    if not sheets and wanted and options.prober is not None:
        sheets = (options.prober(wanted),)
    if not sheets:
        return ranked
    judge(ranked, sheets, facts, hosts)
    facts.add(facts_here(sheets, ranked[0].host, hosts))
    facts.add(version_facts(facts))
    return rank(ranked)


def _lint(reading: Reading, facts: FactSet, options: Options) -> tuple[EnvironmentProblem, ...]:
    """What is wrong with the settings that the logs and the fact sheets show."""
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


def _failures(found: Sequence[Hypothesis], has_failed: bool) -> list[Hypothesis]:
    """What may have broken the job: not what it survived, unless it did fail and nothing else says why."""
    failures = [one for one in found if one.rule.kind != "noise"]
    fresh = [one for one in failures if not one.went_on]
    is_explained = any(one.rule.kind == "cause" for one in fresh)
    return failures if (has_failed or fresh) and not is_explained else fresh


def _first_abnormal(reading: Reading, found: Sequence[Hypothesis]) -> Match | None:
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
        and not reading.survey.progress.survived(match)
        and (shapes[match.name].sure or match.record.level not in QUIET_LEVELS)
        and (not shapes[match.name].only_at_end or match.line > ends[match.record.source])
        and not shapes[match.name].not_in.intersection(match.record.dialects)
    ]
    return min(
        unknown,
        key=lambda match: (not shapes[match.name].sure, match.record.seq, shapes[match.name].order),
        default=None,
    )


def _unread(reading: Reading, options: Options) -> list[str]:
    """What is said where not all lines were read."""
    if reading.unread <= 0:
        return []
    total = sum(source.bytes for source in reading.sources)
    said = [phrase("warning.skimmed", options.language, unread=_mib(reading.unread), total=_mib(total))]
    names = sorted(reading.cut)
    if names:
        more = f" … (+{len(names) - MOST_NAMED})" if len(names) > MOST_NAMED else ""
        said.append(phrase("warning.frequent", options.language, names=", ".join(names[:MOST_NAMED]) + more))
    return said


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def _lost(study: Study, options: Options) -> list[str]:
    """What is said where matches were only counted, or a pattern was given up."""
    said = [phrase("warning.dropped", options.language, n=count, rule=name) for name, count in study.lost.items()]
    return said + [phrase("warning.timeout", options.language, name=name) for name in study.too_slow]
