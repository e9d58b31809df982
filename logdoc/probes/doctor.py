"""Is this machine ready for NCCL? Holds a fact sheet against logdoc/data/doctor.yaml; runs nothing, prints nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from logdoc.conditions import Scene, holds
from logdoc.probes.base import FactSheet
from logdoc.rulebase.yaml_source import parse_yaml
from logdoc.types.finding import Fact
from logdoc.types.rule import COMPARISONS, Condition, FactReference, FactValue, Text
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

    name = "doctor.yaml"
    data = parse_yaml((resources.files("logdoc") / "data" / name).read_text(encoding="utf-8"), name)
    return TypeAdapter(tuple[Check, ...]).validate_python(data["checks"])


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
            facts=tuple(by_id[id] for id in dict.fromkeys(fact_ids(entry.when)) if id in by_id),
            values=values,
        )
        for entry in checks()
        if holds(entry.when, scene) is True
    )


def fact_ids(condition: Condition) -> Iterator[str]:
    """Every fact a condition looks at."""
    if condition.fact is not None:
        yield condition.fact
        for name in COMPARISONS:
            operand = getattr(condition, name)
            if isinstance(operand, FactReference):
                yield operand.fact
    for branch in (condition.any, condition.all, condition.none):
        for node in branch or ():
            yield from fact_ids(node)
