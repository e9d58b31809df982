"""Is this machine ready for NCCL? Holds a fact sheet against logdoc/data/doctor.yaml; runs nothing, prints nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from logdoc.conditions import Scene, holds
from logdoc.kept.data import document
from logdoc.probes.sheets import FactSheet
from logdoc.types.finding import Fact
from logdoc.types.rule import Condition, FactValue, Text
from logdoc.types.words import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A line of the table: when it holds, what to say (placeholders are fact ids), what to type, which probe tells."""

    id: str
    severity: Severity
    when: Condition
    say: Text
    run: tuple[str, ...]
    probe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check that holds here. `say` and `run` are templates to be filled from `values` (all facts of the sheet);
    `facts` are those it rests on."""

    id: str
    severity: Severity
    say: Text
    run: tuple[str, ...]
    probe: str
    facts: tuple[Fact, ...]
    values: dict[str, FactValue]


@cache
def checks() -> tuple[Check, ...]:
    """The table, in order of what would break first. Raises RulesError when the file is broken."""
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[Check, ...]).validate_python(document("doctor.yaml")["checks"])


def check(sheet: FactSheet) -> tuple[Finding, ...]:
    """What is wrong or doubtful here, in order of what would break first. An unknown fact never makes a finding."""
    by_id = {fact.id: fact for fact in sheet.facts}
    values = {id: fact.value for id, fact in by_id.items()}
    scene = Scene(matches={}, fact=values.get)
    return tuple(
        Finding(
            id=entry.id,
            severity=entry.severity,
            say=entry.say,
            run=entry.run,
            probe=entry.probe,
            facts=tuple(by_id[id] for id in dict.fromkeys(entry.when.fact_ids()) if id in by_id),
            values=values,
        )
        for entry in checks()
        if holds(entry.when, scene) is True
    )
