"""What the tabs say of a report and of one of its diagnoses: texts and rows, every word a report's or a phrase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from textual.content import Content

from logdoc.tui.marks import (
    COMMAND,
    MUTED,
    PLACE,
    PROBE_SIGNS,
    data,
    joined,
    lines,
    one_line,
    printable,
    short_place,
    sign_of,
)
from logdoc.tui.phrases import Voice
from logdoc.types.report import Diagnosis, FixLine, ProbeLine, Report

MOST_RANKS = 16  # listed one by one
MOST_PLACES = 64  # of a flight recorder


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a list. `copy` is what copying takes, `where` a line to jump to, `path` the row's place in the JSON."""

    text: Content
    path: str
    copy: str = ""
    where: tuple[str, int] | None = None


def why(report: Report, number: int | None, voice: Voice) -> Content:
    """Why this is thought to be so: the summary, where, how sure and from what."""
    return lines(_nothing_found(report, voice) if number is None else _reasons(report.diagnoses[number], voice))


def _reasons(diagnosis: Diagnosis, voice: Voice) -> Iterator[Content]:
    sign, style = sign_of(diagnosis)
    origin = diagnosis.origin
    yield data(f"{sign} {diagnosis.title}", style)
    yield data(f"{diagnosis.rule} · {voice.say(f'status.{diagnosis.status}')} {diagnosis.confidence:.2f}", PLACE)
    yield from (data(""), data(diagnosis.summary), data(""))
    yield _pair(voice.say("why.where"), f"{origin.source}:{origin.line}{_who(diagnosis)}")
    if origin.time:
        yield _pair(voice.say("why.time"), origin.time)
    if diagnosis.occurrences > 1:
        yield _pair(voice.say("why.seen"), _seen(diagnosis, voice))
    if diagnosis.explains:
        yield _pair(voice.say("why.explains"), ", ".join(diagnosis.explains))
    yield from (_pair(name, str(value)) for name, value in diagnosis.values.items())
    if diagnosis.score:
        yield from (data(""), data(voice.say("why.score"), "bold"))
        yield from (data(f"  {term.value:+6.2f}  {term.name}") for term in diagnosis.score)
    yield from (_pair(voice.say("why.reference"), reference) for reference in diagnosis.references)


def fixes(report: Report, number: int | None, voice: Voice) -> list[Row]:
    """Each remedy's title, reason, commands by environment and check; what to collect where nothing is diagnosed."""
    if number is None:
        return [Row(data(one), f".collect_next[{place}]", one) for place, one in enumerate(report.collect_next)]
    rows: list[Row] = []
    previous: FixLine | None = None
    for place, fix in enumerate(report.diagnoses[number].fixes):
        anew = previous is None or (fix.title, fix.risk) != (previous.title, previous.risk)
        rows += _fix(fix, f".diagnoses[{number}].fixes[{place}]", anew, voice)
        previous = fix
    return rows


def _fix(fix: FixLine, path: str, anew: bool, voice: Voice) -> Iterator[Row]:
    """The rows of a fix; `anew`: not the remedy above for another environment. A command's row copies only itself."""
    every = "\n".join(fix.commands)
    if anew:
        risk = f" [{voice.say('risk.' + fix.risk)}]" if fix.risk != "safe" else ""
        yield Row(data(f"▸ {fix.title}{risk}", "bold"), path, every)
    if anew and fix.why:
        yield Row(data(f"  {fix.why}"), f"{path}.why", every)
    if fix.applies != "any":
        yield Row(data(f"  {fix.applies}:", MUTED), path, every)
    for place, command in enumerate(fix.commands):
        yield Row(data(f"  › {command}", COMMAND), f"{path}.commands[{place}]", command)
    if anew and fix.verify:
        yield Row(data(f"  {voice.say('fix.verify')}: {fix.verify}", "italic"), f"{path}.verify", fix.verify)


def evidence(report: Report, number: int | None, voice: Voice) -> list[Row]:
    """The lines that speak for a diagnosis, in the report's order; else the first abnormal one."""
    if number is None:
        odd = report.first_abnormal
        if odd is None:
            return []
        text = joined(data(short_place(odd.source, odd.line), PLACE), data(f"\n  {odd.text}"))
        return [Row(text, ".first_abnormal", odd.text, (odd.source, odd.line))]
    rows = []
    for place, line in enumerate(report.diagnoses[number].evidence):
        who = f" · rank {line.rank}" if line.rank is not None else ""
        when = f" · {line.time}" if line.time else ""
        head = data(f"{short_place(line.source, line.line)}{who}{when} · {line.signature}\n", PLACE)
        text = joined(head, _captured(f"  {line.text}", line.captures.values()))
        rows.append(Row(text, f".diagnoses[{number}].evidence[{place}]", line.text, (line.source, line.line)))
    return rows


def probes(report: Report, number: int | None, voice: Voice) -> list[Row]:
    """What the machine said to a diagnosis."""
    told = report.diagnoses[number].probes if number is not None else ()
    return [
        Row(_probe(probe, voice), f".diagnoses[{number}].probes[{place}]", probe.ran or probe.summary)
        for place, probe in enumerate(told)
    ]


def _probe(probe: ProbeLine, voice: Voice) -> Content:
    sign, style = PROBE_SIGNS[probe.outcome]
    host = {True: "probe.same_host", False: "probe.other_host", None: "probe.some_host"}[probe.same_host]
    return joined(
        data(f"{sign} ", style),
        data(f"{probe.id}: {voice.say('probe.' + probe.outcome)}", "bold"),
        data(f"\n  {one_line(probe.summary)}" if probe.summary else ""),
        data(f"\n  {voice.say(host, host=probe.host)}", MUTED),
        data(f"\n  › {probe.ran}" if probe.ran else "", COMMAND),
    )


def job(report: Report, voice: Voice) -> Content:
    """What the report says of the job as a whole: restart, settings, versions, what was left out, what was read."""
    return lines([*_advice(report, voice), *_recorded(report, voice), *_facts(report), *_read(report, voice)])


def _advice(report: Report, voice: Voice) -> Iterator[Content]:
    restart = voice.say("restart." + report.restart.advice)
    yield _pair(f"{voice.say('job.restart')} ({restart})", report.restart.reason)
    for problem in report.environment:
        setting = problem.variable if problem.value is None else f"{problem.variable}={problem.value}"
        advice = f" → {problem.fix}" if problem.fix else ""
        name = f"{voice.say('job.setting')} ({voice.say('severity.' + problem.severity)})"
        yield _pair(name, f"{setting}: {problem.problem}{advice}")
    yield from (_pair(voice.say("job.collect"), advice) for advice in report.collect_next)
    yield from (_pair(voice.say("job.warning"), warning) for warning in report.warnings)
    if report.noise:
        yield _pair(voice.say("job.noise"), ", ".join(report.noise))


def _recorded(report: Report, voice: Voice) -> Iterator[Content]:
    """Where the flight recorder shows the ranks."""
    for recorded in report.flight_recorder:
        yield _pair(voice.say("job.flight_recorder"), f"{recorded.kind} · {recorded.source}")
        for place in recorded.places[:MOST_PLACES]:
            told = " · ".join(part for part in (place.group, place.operation, place.frame) if part)
            yield data(one_line(f"  rank {place.rank} · {voice.say('role.' + place.role)} · {told}"))


def _facts(report: Report) -> Iterator[Content]:
    facts = report.facts
    named = {"torch": facts.torch, "nccl": facts.nccl, "cuda": facts.cuda, "driver": facts.driver}
    gpus = {"gpu": "; ".join(facts.gpus) or None}
    for name, value in {**named, **gpus, **facts.other, **facts.env}.items():
        if value is not None:
            yield _pair(name, str(value))


def _read(report: Report, voice: Voice) -> Iterator[Content]:
    for source in report.input.sources:
        cut = f" · {voice.say('job.truncated')}" if source.truncated else ""
        yield _pair(voice.say("job.source"), f"{source.name} · {voice.say('job.lines', n=f'{source.lines:,}')}{cut}")


def _nothing_found(report: Report, voice: Voice) -> Iterator[Content]:
    yield from (data(report.headline, "bold"), data(""))
    if report.first_abnormal is not None:
        yield _pair(voice.say("why.where"), f"{report.first_abnormal.source}:{report.first_abnormal.line}")
        yield data(f"  {report.first_abnormal.text}")
    yield from (_pair(voice.say("why.similar"), f"{near.rule} ({near.score:.2f})") for near in report.similar)
    yield from (_pair(voice.say("job.collect"), advice) for advice in report.collect_next)
    if report.noise:
        yield _pair(voice.say("job.noise"), ", ".join(report.noise))


def _who(diagnosis: Diagnosis) -> str:
    origin = diagnosis.origin
    rank = f" · rank {origin.rank}" if origin.rank is not None else ""
    return rank + (f" · {origin.host}" if origin.host else "")


def _seen(diagnosis: Diagnosis, voice: Voice) -> str:
    if not diagnosis.ranks:
        return voice.say("why.times", n=diagnosis.occurrences)
    ranks = ", ".join(map(str, diagnosis.ranks[:MOST_RANKS])) + (" …" if len(diagnosis.ranks) > MOST_RANKS else "")
    return voice.say("why.times_ranks", n=diagnosis.occurrences, ranks=ranks)


def _captured(line: str, values: Iterable[str]) -> Content:
    """A line with the values that a signature took from it underlined."""
    text = data(line)
    for value in map(printable, values):
        at = text.plain.find(value) if value else -1
        if at >= 0:
            text = text.stylize("bold underline", at, at + len(value))
    return text


def _pair(name: str, value: str) -> Content:
    return joined(data(f"{name}: ", "bold"), data(one_line(value)))
