"""Facts of probes held against hypotheses: confirms, refutes, or cannot tell; another host's facts never decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logdoc.conditions import Lookup, Scene, holds
from logdoc.facts import FactSet
from logdoc.probes.base import FactSheet
from logdoc.probes.specs import passive_ids
from logdoc.types.finding import Fact, Hypothesis, ProbeResult
from logdoc.types.report import ProbeOutcome
from logdoc.types.rule import Condition, ProbeUse

LEAST_CONFIDENCE = 0.1  # hypotheses below are not worth a probe
NO_PLACE = frozenset({"localhost", "localhost.localdomain", "127.0.0.1", "::1"})


def wanted_probes(ranked: Iterable[Hypothesis]) -> tuple[str, ...]:
    """The passive probes that live hypotheses ask for, most likely hypothesis first."""
    passive = set(passive_ids())
    live = [one for one in ranked if one.confidence >= LEAST_CONFIDENCE]
    asked = dict.fromkeys(use.use for one in live for use in one.rule.probes)
    return tuple(probe for probe in asked if probe in passive)


def judge(found: Iterable[Hypothesis], sheets: Sequence[FactSheet], facts: FactSet) -> None:
    """Write into each hypothesis what each sheet says of it."""
    for one in found:
        one.probe_results = [
            result
            for use in one.rule.probes
            for sheet in sheets
            if (result := _result(one, use, sheet, facts)) is not None
        ]


def same_host(failed_on: str | None, probed: str) -> bool | None:
    """Whether the probe looked at the host of the failure; None where the log names no host."""
    if failed_on is None or failed_on.lower() in NO_PLACE:
        return None
    return _short(failed_on) == _short(probed)


def _short(host: str) -> str:
    return host.lower() if host.replace(".", "").isdecimal() else host.lower().split(".")[0]


def _result(one: Hypothesis, use: ProbeUse, sheet: FactSheet, facts: FactSet) -> ProbeResult | None:
    given = sheet.of_probe(use.use)
    failed = next((error for error in sheet.errors if error.probe == use.use), None)
    if not given and failed is None:
        return None
    lookup = _lookup(one, sheet, facts)
    outcome = _outcome(use, lookup) if given else "unknown"
    told = tuple(fact for fact in given if fact.id in _named(use))
    return ProbeResult(
        id=use.use,
        outcome=outcome,
        facts=told,
        command=next((sheet.commands[fact.id] for fact in told if fact.id in sheet.commands), ""),
        host=sheet.host,
        same_host=same_host(one.host, sheet.host),
        strength=use.strength,
        error=failed.error if failed is not None and not told else None,
    )


def _lookup(one: Hypothesis, sheet: FactSheet, facts: FactSet) -> Lookup:
    """A fact from the probed host first, then what the rule captured, then the rest of the job's facts."""
    probed = {fact.id: fact.value for fact in sheet.facts}
    return lambda name: probed[name] if name in probed else one.values.get(name, facts.value(name))


def _outcome(use: ProbeUse, lookup: Lookup) -> ProbeOutcome:
    scene = Scene({}, lookup)
    if use.refutes is not None and holds(use.refutes, scene) is True:
        return "refutes"
    if use.confirms is not None and holds(use.confirms, scene) is True:
        return "confirms"
    return "unknown"


def _named(use: ProbeUse) -> set[str]:
    return {name for condition in (use.confirms, use.refutes) if condition for name in _facts_of(condition)}


def _facts_of(condition: Condition) -> set[str]:
    own = {condition.fact} if condition.fact else set()
    children = [child for name in ("any", "all", "none") for child in getattr(condition, name) or ()]
    return own.union(*map(_facts_of, children)) if children else own


def facts_here(sheets: Iterable[FactSheet], failed_on: str | None) -> list[Fact]:
    """The facts that may be told as the job's: of the failing host, or of here where the log names none."""
    return [fact for sheet in sheets if same_host(failed_on, sheet.host) is not False for fact in sheet.facts]
