"""Which literals make a part of a large log worth reading: those of evidence, and of what else is asked for."""

from __future__ import annotations

from collections.abc import Collection

from logdoc.rulebase.index import LiteralIndex
from logdoc.scanner.triggers import Trigger, with_escapes


def triggers_of(index: LiteralIndex, also: Collection[str]) -> list[Trigger]:
    """The literals of all evidence signatures, and of the rules named in `also`."""
    found = []
    tables = ((index.exact, index.exact_entries, False), (index.caseless, index.caseless_entries, True))
    for literals, rows, caseless in tables:
        for literal, row in zip(literals, rows, strict=True):
            label = next((f"{one.rule_id}/{one.name}" for one in row if one.is_evidence or one.rule_id in also), None)
            if label is not None:
                found.append(Trigger(literal, caseless, label))
    return with_escapes(found)
