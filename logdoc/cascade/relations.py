"""Which hypothesis explains which: the order of events, symptoms attached to causes, vaguer causes stepped back."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from logdoc.cascade.order import comes_before
from logdoc.conditions import same_printer
from logdoc.types.finding import Hypothesis, Match


def relate(found: Sequence[Hypothesis]) -> None:
    """Fill `masked_by`, `explained_by` and `explains` of all hypotheses."""
    for one in found:
        for other in found:
            if one is not other and _masks(one, other):
                other.masked_by.append(one.rule.id)
    for symptom in found:
        if symptom.rule.kind != "symptom":
            continue
        for cause in found:
            if cause is not symptom and _explains(cause, symptom):
                symptom.explained_by.append(cause.rule.id)
                cause.explains.append(symptom.rule.id)


def _masks(one: Hypothesis, other: Hypothesis) -> bool:
    if not _named(other.rule.id, one.rule.masks):
        return False
    return any(_near(match, masked) for match in one.matches for masked in other.matches[:20])


def _near(match: Match, masked: Match) -> bool:
    """A cause masks a vaguer one on the same process; where the log names no process, anywhere."""
    return match.rank is None or masked.rank is None or same_printer(match, masked)


def _explains(cause: Hypothesis, symptom: Hypothesis) -> bool:
    """A cause must not come clearly later on the very process that printed the symptom; elsewhere it may be
    written down after its consequences."""
    if not _named(cause.rule.id, symptom.rule.explained_by):
        return False
    if cause.rule.kind == "symptom" and _named(symptom.rule.id, cause.rule.explained_by):
        return symptom.first.record.seq > cause.first.record.seq
    return True


def _named(rule_id: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(rule_id, pattern) for pattern in patterns)


def earliest(found: Sequence[Hypothesis]) -> Hypothesis | None:
    """The hypothesis whose first match nothing else precedes, or None where the log cannot tell."""
    for one in found:
        if all(one is other or comes_before(one.first, other.first) for other in found):
            return one
    return None
