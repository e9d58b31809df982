"""From how a command ended and what it said last to a Report; imports the engine only when there is something to ask.

How it ended becomes a line of a source of its own, worded as a shell words it, so that the rules can judge it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from logdoc.runner.keep import Kept
from logdoc.runner.phrases import say
from logdoc.runner.settings import fresh_dumps
from logdoc.runner.supervise import Ending
from logdoc.sources import PathHints, Source, discover, source_from_bytes
from logdoc.sources.limits import MIB, size_in_words
from logdoc.types.errors import InputError
from logdoc.types.report import Report

if TYPE_CHECKING:
    from logdoc.probes.sheets import FactSheet

ENDING_NAME = "<ending>"
# A command that was asked to end is about to be killed with us: what can be read in that time must do.
HURRIED_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How to explain. `also`: further logs, files or folders. `name`: what reports call the kept output.

    `environment`: the command's, which tells where flight-recorder dumps go. `sheet`: facts gathered while it ran.
    `dumps`: the stacks of its processes when it hung.
    `probes`: whether this machine may be looked at; `python`: the job's.
    """

    language: str
    name: str
    hints: PathHints
    rule_dirs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    sheet: FactSheet | None = None
    dumps: tuple[Source, ...] = ()
    probes: bool = True
    python: str | None = None


def explain_ending(
    command: Sequence[str], ending: Ending, kept: Kept, question: Question, warnings: Sequence[str] = ()
) -> Report:
    """What broke first, by the kept output, `also`, and how the command ended. Raises LogdocError.

    Of a command that was asked to end, `kept` is what it had said until then, and its end says nothing.
    """
    more, faults = _further([*question.also, *fresh_dumps(question.environment, ending.began)])
    sources = [kept.source(question.name, question.hints), *more, *question.dumps]
    if ending.asked is None:
        sources.append(_ending_source(command, ending))
    if kept.lost:
        faults.append(say("lost", question.language, size=size_in_words(kept.lost)))
    asked = ending.asked is not None
    failed = bool(ending.code) and not asked
    report = _explain(sources, question, [*warnings, *faults], probes=question.probes and not asked, failed=failed)
    return _with_measured(_as_failed(report, ending), question.sheet)


def headline_so_far(kept: Kept, question: Question) -> str | None:
    """What the engine makes of a command that still runs; None where it sees no failure."""
    report = _explain([kept.source(question.name, question.hints), *question.dumps], question, (), probes=False)
    return report.headline if report.outcome in ("cause-found", "symptoms-only") else None


def rank_hints(environment: Mapping[str, str]) -> PathHints:
    """Who the command is, when a launcher started logdoc as one rank: torchrun and its kin set RANK and LOCAL_RANK.

    RANK alone does not do: Kubernetes operators set it to the number of the pod.
    """
    rank, local_rank = (environment.get(name, "") for name in ("RANK", "LOCAL_RANK"))
    if rank.isdecimal() and local_rank.isdecimal():
        return PathHints(rank=int(rank), local_rank=int(local_rank))
    return PathHints()


def _further(paths: Sequence[str]) -> tuple[list[Source], list[str]]:
    """The logs at these paths, and what could not be read."""
    sources: list[Source] = []
    faults: list[str] = []
    for path in paths:
        try:
            found = discover([path])
        except InputError as error:
            faults.append(str(error))
        else:
            sources += found.sources
            faults += found.warnings
    return sources, faults


def _explain(
    sources: Sequence[Source], question: Question, warnings: Sequence[str], *, probes: bool, failed: bool = False
) -> Report:
    from logdoc.engine import Options, load_engine

    sheets = (question.sheet,) if question.sheet is not None and not probes else ()
    options = Options(
        language=question.language,
        sheets=sheets,
        prober=_prober(question) if probes else None,
        warnings=tuple(warnings),
        failed=failed,
    )
    return load_engine(question.rule_dirs).explain(sources, options)


def _prober(question: Question) -> Callable[[Sequence[str]], FactSheet]:
    """Looks at this machine, and adds what was measured while the command ran."""
    from logdoc.probes.collecting import run_collector

    def look(probes: Sequence[str]) -> FactSheet:
        sheet = run_collector(probes, question.python)
        measured = question.sheet
        if measured is None:
            return sheet
        return replace(
            sheet,
            facts=(*sheet.facts, *measured.facts),
            errors=(*sheet.errors, *measured.errors),
            commands={**sheet.commands, **measured.commands},
        )

    return look


def _ending_source(command: Sequence[str], ending: Ending) -> Source:
    """`4242 Segmentation fault (core dumped)  python train.py`, or the exit code."""
    if ending.signal is None:
        text = f"exited with exit code {ending.code}"
    else:
        core = " (core dumped)" if os.WCOREDUMP(ending.status) else ""
        text = f"{ending.pid} {signal.strsignal(ending.signal)}{core}  {' '.join(command)}"
    return source_from_bytes(ENDING_NAME, " ".join(text.split("\n")).encode("utf-8", "surrogateescape") + b"\n")


def _as_failed(report: Report, ending: Ending) -> Report:
    """A command that ended badly is not healthy, whatever its output looks like, unless it was asked to end."""
    if report.outcome != "healthy" or not ending.code or ending.asked is not None:
        return report
    language = report.language
    if ending.signal is None:
        told = say("ending.code", language, code=ending.code)
    else:
        name = signal.strsignal(ending.signal) or "?"
        told = say("ending.signal", language, code=ending.signal, name=name)
    return replace(report, outcome="unrecognised", headline=say("no_cause", language, ending=told))


def _with_measured(report: Report, sheet: FactSheet | None) -> Report:
    """The report with what was measured among its facts, whether or not a rule asked for it."""
    if sheet is None or not sheet.facts:
        return report
    measured = {fact.id: fact.value for fact in sheet.facts}
    return replace(report, facts=replace(report.facts, other={**measured, **report.facts.other}))
