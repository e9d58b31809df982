"""Facts of probes held against hypotheses: confirms, refutes, or cannot tell; another host's facts never decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from logdoc.conditions import Scene, holds
from logdoc.facts import FactSet
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import PROBES, passive_ids
from logdoc.types.finding import Fact, Hypothesis, ProbeResult
from logdoc.types.rule import ProbeUse
from logdoc.types.words import ProbeOutcome

LEAST_CONFIDENCE = 0.1  # hypotheses below are not worth a probe
# What rules capture of the scheduler's words as `node`; a list of nodes is no place.
ONE_NODE = re.compile(r"[A-Za-z0-9][\w.-]*")
NO_PLACE = frozenset({"localhost", "localhost.localdomain", "127.0.0.1", "::1"})


def wanted_probes(ranked: Iterable[Hypothesis]) -> tuple[str, ...]:
    """The passive probes that live hypotheses ask for, most likely hypothesis first."""
    passive = set(passive_ids())
    live = [one for one in ranked if one.confidence >= LEAST_CONFIDENCE]
    asked = dict.fromkeys(probe for one in live for probe in (*(use.use for use in one.rule.probes), *_choosing(one)))
    return tuple(probe for probe in asked if probe in passive)


def _choosing(one: Hypothesis) -> list[str]:
    """The probes that tell which fix is meant for this machine; none where no probe can judge the rule itself."""
    if not one.rule.probes:
        return []
    needed = {name for fix in one.rule.fixes if fix.only_if is not None for name in fix.only_if.fact_ids()}
    return [entry.id for entry in PROBES if any(fnmatchcase(name, fact) for name in needed for fact in entry.facts)]


def judge(found: Iterable[Hypothesis], sheets: Sequence[FactSheet], facts: FactSet, job: Collection[str] = ()) -> None:
    """Write into each hypothesis what each host says of it. `job`: the hosts that the log names anywhere: a machine
    that is none of them is not the failing one, even where the failing line names no host."""
    hosts = by_host(sheets)
    for one in found:
        told = [[_result(one, use, sheet, facts, job) for sheet in hosts] for use in one.rule.probes]
        one.probe_results = [result for results in told for result in _one_voice([one for one in results if one])]


def by_host(sheets: Iterable[FactSheet]) -> tuple[FactSheet, ...]:
    """One sheet a host: of a fact that was collected several times, the latest counts."""
    hosts: dict[str, list[FactSheet]] = {}
    for sheet in sheets:
        hosts.setdefault(_short(sheet.host), []).append(sheet)
    return tuple(_merged(sorted(of_one, key=lambda sheet: sheet.time)) for of_one in hosts.values())


def _merged(sheets: Sequence[FactSheet]) -> FactSheet:
    if len(sheets) == 1:
        return sheets[0]
    facts = {(fact.origin.partition("@")[0], fact.id): fact for sheet in sheets for fact in sheet.facts}
    commands = {id: command for sheet in sheets for id, command in sheet.commands.items()}
    errors = tuple(dict.fromkeys(error for sheet in sheets for error in sheet.errors))
    return replace(sheets[-1], facts=tuple(facts.values()), errors=errors, commands=commands)


def _one_voice(results: Sequence[ProbeResult]) -> list[ProbeResult]:
    """Where the log does not name the failing host, many hosts must not count many times.

    One that confirms is taken for it, and the others are other hosts; a refutation counts, once, where all refute.
    """
    unplaced = [one for one in results if one.same_host is None]
    if len(unplaced) < 2:
        return list(results)
    confirming = next((one for one in unplaced if one.outcome == "confirms"), None)
    all_refute = all(one.outcome == "refutes" for one in unplaced)
    speaking = confirming or (unplaced[0] if all_refute else None)
    return [one if one.same_host is not None or one is speaking else replace(one, same_host=False) for one in results]


def same_host(failed_on: str | None, probed: str) -> bool | None:
    """Whether the probe looked at the host of the failure; None where the log names no host."""
    if failed_on is None or failed_on.lower() in NO_PLACE:
        return None
    return _short(failed_on) == _short(probed)


def _looked_at(failed_on: str | None, sheet: FactSheet, job: Collection[str] = ()) -> bool | None:
    """Whether a sheet is of the failing host, which the log may name by an address of it."""
    own = _addresses(sheet)
    if failed_on is not None and failed_on in own:
        return True
    if failed_on is None and job and all(one not in own and same_host(one, sheet.host) is False for one in job):
        return False
    return same_host(failed_on, sheet.host)


def _place(one: Hypothesis) -> str | None:
    """The host of the failing line, else the one node that the scheduler blames in another line."""
    node = one.values.get("node")
    return one.host or (node if isinstance(node, str) and ONE_NODE.fullmatch(node) else None)


def _addresses(sheet: FactSheet) -> set[str]:
    told = [str(sheet.value(name) or "") for name in ("net.interfaces", "net.hostname_address")]
    return {word for word in re.split(r"[\s,;]+", " ".join(told)) if "." in word or ":" in word} - NO_PLACE


def _short(host: str) -> str:
    return host.lower() if host.replace(".", "").isdecimal() else host.lower().split(".")[0]


def _result(
    one: Hypothesis, use: ProbeUse, sheet: FactSheet, facts: FactSet, job: Collection[str] = ()
) -> ProbeResult | None:
    given = sheet.of_probe(use.use)
    failed = next((error for error in sheet.errors if error.probe == use.use), None)
    if not given and failed is None:
        return None
    known = _knowing(one, sheet, facts)
    named, own = _named(use), {fact.id for fact in given}
    told = tuple(fact for fact in given if fact.id in named)
    compared = tuple(fact for name in named if name not in own and (fact := known(name)))
    return ProbeResult(
        id=use.use,
        outcome=_outcome(use, known) if given else "unknown",
        facts=told and told + compared,
        command=next((sheet.commands[fact.id] for fact in told if fact.id in sheet.commands), ""),
        host=sheet.host,
        same_host=_looked_at(_place(one), sheet, job),
        strength=use.strength,
        error=failed.error if failed is not None and not told else None,
    )


def _knowing(one: Hypothesis, sheet: FactSheet, facts: FactSet) -> Callable[[str], Fact | None]:
    """A fact from the probed host first, then what the rule captured, then the rest of the job's facts."""
    probed = {fact.id: fact for fact in sheet.facts}
    captured = {name: Fact(id=name, value=value, origin="log") for name, value in one.values.items()}
    return lambda name: probed.get(name) or captured.get(name) or facts.get(name)


def _outcome(use: ProbeUse, known: Callable[[str], Fact | None]) -> ProbeOutcome:
    scene = Scene({}, lambda name: None if (fact := known(name)) is None else fact.value)
    if use.refutes is not None and holds(use.refutes, scene) is True:
        return "refutes"
    if use.confirms is not None and holds(use.confirms, scene) is True:
        return "confirms"
    return "unknown"


def _named(use: ProbeUse) -> tuple[str, ...]:
    """The facts that a use of a probe is judged by, in the rule's order."""
    conditions = [condition for condition in (use.confirms, use.refutes) if condition is not None]
    return tuple(dict.fromkeys(name for condition in conditions for name in condition.fact_ids()))


def facts_here(sheets: Iterable[FactSheet], failed_on: str | None, job: Collection[str] = ()) -> list[Fact]:
    """The facts that may be told as the job's: of the failing host, or where the log names none, those that all hosts
    which know them agree on."""
    near = [sheet for sheet in by_host(sheets) if _looked_at(failed_on, sheet, job) is not False]
    values: dict[str, set[object]] = {}
    for fact in (fact for sheet in near for fact in sheet.facts):
        values.setdefault(fact.id, set()).add(fact.value)
    return [fact for sheet in near for fact in sheet.facts if len(values[fact.id]) == 1]
