"""Puts the Report together from what the stages found. Decides nothing about causes; that is ranking's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from logdoc.cascade import Survey
from logdoc.facts import FactSet
from logdoc.ranking import LIKELY
from logdoc.reporting.fixes import fix_lines
from logdoc.reporting.headline import headline
from logdoc.reporting.known import own_values, script_values
from logdoc.reporting.notes import collect_next, setup_note, surroundings
from logdoc.reporting.ranks import rank_table
from logdoc.reporting.restart import restart_advice
from logdoc.reporting.wording import in_language, phrase, stated, title
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.record import OWN_DIALECTS
from logdoc.types.report import (
    Abnormal,
    Diagnosis,
    EnvironmentProblem,
    Evidence,
    Facts,
    FlightRecorder,
    InputInfo,
    Origin,
    ProbeLine,
    Ranks,
    Report,
    Similar,
    TimelineEntry,
    Tool,
)
from logdoc.types.rule import FactValue, Rule
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Outcome

MOST_EVIDENCE = 5  # lines shown of one diagnosis
MOST_TIMELINE = 200
LEAST_CONFIDENCE = 0.05  # hypotheses below are not worth a reader's time
LONGEST_TEXT = 500  # characters of a log line that a report quotes
LONGEST_VERDICT = 4_000  # characters of a sentence of logdoc's own
BETWEEN_GPUS = ", "  # as the collector, which imports nothing of ours, joins the fact `gpu.names`


@dataclass(slots=True)
class Findings:
    """All that the stages before reporting know of a job. `watchdogs`: what they said of collectives; `milestones`: of
    the start and the work, in order of the log."""

    ranked: list[Hypothesis]
    noise: list[Hypothesis]
    facts: FactSet
    survey: Survey
    abnormal: Match | None
    environment: tuple[EnvironmentProblem, ...]
    settings: dict[str, str]
    rules: Iterable[Rule]
    watchdogs: Sequence[Match] = ()
    milestones: Sequence[Match] = ()
    recorded: tuple[FlightRecorder, ...] = ()
    novel: tuple[Abnormal, ...] = ()
    warnings: list[str] = field(default_factory=list)


def build_report(findings: Findings, tool: Tool, info: InputInfo, language: str) -> Report:
    """The Report of these findings, worded in `language` (`en` or `zh`)."""
    shown = [one for one in findings.ranked if one.confidence >= LEAST_CONFIDENCE]
    outcome = _outcome(shown, findings)
    kept = _worth_showing(shown, outcome)
    best = kept[0] if kept else None
    ranks = rank_table(findings.survey, findings.ranked, best, findings.facts, findings.watchdogs, language)
    job = _Job(
        ranks=ranks,
        values={**findings.facts.values(), **script_values(findings.ranked)},
        surroundings=surroundings(findings.ranked, findings.facts.values(), findings.settings),
    )
    diagnoses = tuple(_diagnosis(one, findings, job, language) for one in kept)
    abnormal = _abnormal(findings.abnormal) if outcome == "unrecognised" else None
    culprits = [rank for recorded in findings.recorded for rank in recorded.culprits]
    return Report(
        schema="logdoc.report/v1",
        logdoc=tool,
        outcome=outcome,
        headline=headline(outcome, diagnoses, ranks, abnormal, culprits, language),
        diagnoses=diagnoses,
        ranks=ranks,
        timeline=_timeline(findings.ranked),
        facts=_facts(findings),
        environment=findings.environment,
        restart=restart_advice(outcome, kept, diagnoses, language),
        similar=_similar(findings) if outcome == "unrecognised" else (),
        first_abnormal=abnormal,
        collect_next=_collect(outcome, findings, ranks, language),
        warnings=(*findings.warnings, *_notes(outcome, findings, info, language)),
        input=info,
        noise=tuple(one.rule.id for one in findings.noise),
        flight_recorder=findings.recorded,
        novel=findings.novel if outcome in ("unrecognised", "symptoms-only") else (),
        language="zh" if language == "zh" else "en",
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What all diagnoses of a job share."""

    ranks: Ranks
    values: dict[str, FactValue]
    surroundings: frozenset[str]


def _outcome(shown: Sequence[Hypothesis], findings: Findings) -> Outcome:
    if any(one.rule.kind == "cause" and one.confidence >= LIKELY for one in shown):
        return "cause-found"
    if any(one.rule.kind == "symptom" for one in shown):
        return "symptoms-only"
    if shown or findings.abnormal is not None:
        return "unrecognised" if not shown else "symptoms-only"
    return "healthy"


def _worth_showing(shown: Sequence[Hypothesis], outcome: Outcome) -> list[Hypothesis]:
    """Causes first; symptoms only where no cause was found, or where none of the shown causes explains them."""
    if outcome == "cause-found":
        causes = [one for one in shown if one.rule.kind == "cause"]
        return causes + [one for one in shown if one.rule.kind == "symptom" and not one.explained_by]
    symptoms = [one for one in shown if one.rule.kind == "symptom" and not one.explained_by]
    possible = [one for one in shown if one.rule.kind == "cause"]
    explained = [one for one in shown if one.rule.kind == "symptom" and one.explained_by]
    return sorted(symptoms + possible, key=lambda one: -one.confidence) + explained


def _diagnosis(one: Hypothesis, findings: Findings, job: _Job, language: str) -> Diagnosis:
    rule, first = one.rule, one.origin
    own = own_values(one, job.ranks, findings.survey)
    values = _values(one, {**job.values, **own})
    return Diagnosis(
        rule=rule.id,
        kind=rule.kind,
        title=title(rule.title, language, values),
        summary=_summary(rule, values, language),
        confidence=one.confidence,
        status=one.status,
        origin=Origin(
            rank=one.rank,
            local_rank=first.local_rank,
            host=one.host,
            source=first.record.source,
            line=first.line,
            time=first.record.time_text,
        ),
        evidence=tuple(_evidence(match) for match in _best_evidence(one)),
        probes=tuple(
            ProbeLine(
                id=result.id,
                outcome=result.outcome,
                summary=result.error or ", ".join(map(stated, result.facts)),
                host=result.host,
                same_host=result.same_host,
                ran=result.command,
            )
            for result in one.probe_results
        ),
        explains=tuple(sorted(set(one.explains))),
        fixes=fix_lines(rule, values, findings.facts, language, job.surroundings),
        references=tuple(reference.url for reference in rule.references),
        ranks=tuple(sorted({match.rank for match in one.matches if match.rank is not None})),
        occurrences=len(one.matches),
        attempts=tuple(sorted({match.record.attempt for match in one.matches})),
        values=dict(sorted({**one.values, **own}.items())),
        score=tuple(one.terms),
    )


def _summary(rule: Rule, values: Mapping[str, FactValue], language: str) -> str:
    """The rule's words, and of a cause where in the user's own files it comes from: there it can be mended."""
    said = in_language(rule.summary, language, values) or title(rule.title, language, values)
    frame, code = values.get("traceback.frame"), values.get("traceback.code")
    if frame is None or rule.kind != "cause" or "{traceback.frame" in rule.summary.en:
        return said
    where = phrase("text.own_frame", language, frame=frame)
    if code is not None:
        where = phrase("text.own_line", language, frame=frame, code=code)
    return f"{said}{'' if language == 'zh' else ' '}{where}"


def _values(one: Hypothesis, known: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """What a rule's texts may name: its captures and facts, then what is known of the job, then who and where."""
    values: dict[str, FactValue] = {**known, **one.values}
    first = one.origin
    for name, value in (("rank", one.rank), ("local_rank", first.local_rank), ("host", one.host)):
        if value is not None:
            values.setdefault(name, value)
    values.setdefault("python", "python")
    return values


def _best_evidence(one: Hypothesis) -> list[Match]:
    """The first match of every signature, then further ranks, in order of the log; what logdoc says itself first."""
    lines: dict[tuple[str, int], Match] = {}
    for match in [*one.matches, *one.context]:
        lines.setdefault((match.record.source, match.line), match)
    first_of_each: dict[str, Match] = {}
    others: dict[tuple[str, int | None], Match] = {}
    for match in lines.values():
        if first_of_each.setdefault(match.name, match) is not match:
            others.setdefault((match.name, match.rank), match)
    kept = sorted([*first_of_each.values(), *others.values()], key=lambda match: not _is_own(match))[:MOST_EVIDENCE]
    return sorted(kept, key=lambda match: (match is not one.origin, not _is_own(match), match.record.seq))


def _is_own(match: Match) -> bool:
    return any(dialect in OWN_DIALECTS for dialect in match.record.dialects)


def _evidence(match: Match) -> Evidence:
    body = match.record.body
    start = body.rfind("\n", 0, match.start) + 1
    end = body.find("\n", match.end)
    text = body[start : len(body) if end < 0 else end]
    own_words = _is_own(match)
    return Evidence(
        source=match.record.source,
        line=match.line,
        rank=match.rank,
        time=match.record.time_text,
        text=text[:LONGEST_VERDICT] if own_words else quoted(text, match.start - start),
        signature=match.name,
        captures=dict(sorted(match.captures.items())),
        own_words=own_words,
    )


def quoted(text: str, hit: int = 0) -> str:
    """A log text no longer than LONGEST_TEXT, cut round the hit."""
    if len(text) <= LONGEST_TEXT:
        return text
    start = max(0, hit - LONGEST_TEXT // 4)
    cut = text[start : start + LONGEST_TEXT]
    return f"{'…' if start else ''}{cut}{'…' if start + LONGEST_TEXT < len(text) else ''}"


def _abnormal(match: Match | None) -> Abnormal | None:
    if match is None:
        return None
    evidence = _evidence(match)
    return Abnormal(source=evidence.source, line=evidence.line, rank=match.rank, text=evidence.text)


def _similar(findings: Findings) -> tuple[Similar, ...]:
    if findings.abnormal is None:
        return ()
    line = _evidence(findings.abnormal)
    from logdoc.reporting.similar import similar  # of an unrecognised line only

    return similar(line.text, findings.rules, line.line, line.source)


def _timeline(ranked: Sequence[Hypothesis]) -> tuple[TimelineEntry, ...]:
    """Every rank's first match of every rule, in the order things happened as far as the log tells."""
    first: dict[tuple[str, int | None], Match] = {}
    for one in ranked:
        for match in one.matches:
            first.setdefault((one.rule.id, match.rank), match)
    ordered = sorted(first.values(), key=lambda match: (match.record.seq, match.rule.id))
    return tuple(
        TimelineEntry(
            time=match.record.time_text,
            rank=match.rank,
            rule=match.rule.id,
            kind=match.rule.kind,
            line=match.line,
            source=match.record.source,
        )
        for match in ordered[:MOST_TIMELINE]
    )


def _facts(findings: Findings) -> Facts:
    facts = findings.facts
    named = {"torch.version", "nccl.version", "torch.cuda", "nccl.cuda", "gpu.driver", "gpu.name", "gpu.names"}
    names = facts.value("gpu.names") or facts.value("gpu.name")
    return Facts(
        torch=_text(facts.value("torch.version")),
        nccl=_text(facts.value("nccl.version")),
        cuda=_text(facts.value("torch.cuda") or facts.value("nccl.cuda")),
        driver=_text(facts.value("gpu.driver")),
        gpus=tuple(str(names).split(BETWEEN_GPUS)) if names else (),
        env=dict(sorted(findings.settings.items())),
        other={name: value for name, value in facts.values().items() if name not in named},
    )


def _text(value: FactValue | None) -> str | None:
    return None if value is None else str(value)


def _collect(outcome: Outcome, findings: Findings, ranks: Ranks, language: str) -> tuple[str, ...]:
    told = [match for one in findings.ranked for match in one.matches] + [findings.abnormal]
    return collect_next(outcome, told, findings.survey, findings.recorded, ranks, language)


def _notes(outcome: Outcome, findings: Findings, info: InputInfo, language: str) -> list[str]:
    if outcome != "healthy":
        return []
    size = findings.facts.value("job.world_size")
    world_size = size if isinstance(size, int) else None
    return setup_note(findings.survey, findings.milestones, info.sources, world_size, language)
