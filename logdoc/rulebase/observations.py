"""What logdoc watches for beside failures (facts, milestones, abnormal shapes), as signatures of pseudo rules.

They travel through the same literal pass as the rules; their ids (`~facts` …) never reach a report.
"""

from __future__ import annotations

from functools import cache

from logdoc.kept.data import document
from logdoc.types.rule import Examples, Rule, Signature, Text
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from logdoc.types.words import FactType, Kind

FACTS, MILESTONES, ABNORMAL = "~facts", "~milestones", "~abnormal"
COLLECTIVES, ATTEMPTS, STACKS = "~collectives", "~attempts", "~stacks"


@dataclass(frozen=True, slots=True)
class Milestone:
    """A point every job passes; `order` grows along its life."""

    id: str
    order: int
    title: Text


@dataclass(frozen=True, slots=True)
class AbnormalShape:
    """How a failure looks that no rule knows. `sure`: hardly ever printed by a job that goes on; `not_in`: dialects
    whose healthy lines look so too."""

    order: int
    sure: bool
    only_at_end: bool
    not_in: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Observations:
    """The pseudo rules, and what their signature names mean."""

    rules: tuple[Rule, ...]
    fact_types: dict[str, FactType]
    milestones: dict[str, Milestone]
    abnormal: dict[str, AbnormalShape]


@cache
def observations() -> Observations:
    """Read logdoc/data/observations.yaml, once."""
    data = document("observations.yaml")
    facts = _plain(data["facts"])
    milestones = {stone["id"]: Signature(regex=stone["regex"], role="context") for stone in data["milestones"]}
    abnormal = {
        f"abnormal{order}": Signature(
            regex=shape["regex"],
            role="context",
            from_=tuple(shape.get("from", ())),
            needs=tuple(shape.get("needs", ())),
        )
        for order, shape in enumerate(data["abnormal"])
    }
    return Observations(
        rules=(
            _pseudo(FACTS, facts),
            _pseudo(MILESTONES, milestones),
            _pseudo(ABNORMAL, abnormal),
            _pseudo(COLLECTIVES, _plain(data["collectives"])),
            _pseudo(ATTEMPTS, _plain(data["attempts"])),
            _pseudo(STACKS, _of_records(data["stacks"])),
        ),
        fact_types={fact_id: fact["as"] for fact_id, fact in data["facts"].items()},
        milestones={
            stone["id"]: Milestone(stone["id"], order, Text(**stone["title"]))
            for order, stone in enumerate(data["milestones"])
        },
        abnormal={
            name: AbnormalShape(
                order, shape.get("sure", False), shape.get("only_at_end", False), frozenset(shape.get("not_in", ()))
            )
            for order, (name, shape) in enumerate(zip(abnormal, data["abnormal"], strict=True))
        },
    )


def _plain(entries: Any) -> dict[str, Signature]:
    return {name: Signature(regex=entry["regex"], role="context") for name, entry in entries.items()}


def _of_records(entries: Any) -> dict[str, Signature]:
    """Signatures of which one match a record is enough."""
    return {
        name: Signature(regex=entry["regex"], needs=tuple(entry["needs"]), role="context", scope="record")
        for name, entry in entries.items()
    }


def _pseudo(rule_id: str, signatures: dict[str, Signature], kind: Kind = "noise") -> Rule:
    nothing = Text(en=rule_id, zh=rule_id)
    return Rule(
        schema="logdoc.rule/v1",
        id=rule_id,
        kind=kind,
        title=nothing,
        summary=nothing,
        match=signatures,
        examples=Examples(must_match=(), must_not_match=()),
    )
