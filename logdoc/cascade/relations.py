"""Which hypothesis explains which: the order of events, symptoms attached to causes, vaguer causes stepped back."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.cascade.order import comes_before
from logdoc.conditions import same_printer
from logdoc.kept.patterns import lazily
from logdoc.reader.childfailed import DIALECT
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.rule import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Where

_EXIT = lazily(r"exitcode: [1-9]")  # of an exception; a signal's number is negative
MINOR = ("warning", "info")  # such a cause may be true and still break nothing


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
            if cause is not symptom and cause.rule.severity not in MINOR and _explains(cause, symptom):
                symptom.explained_by.append(cause.rule.id)
                cause.explains.append(symptom.rule.id)
    _name_by_report(found)


def _name_by_report(found: Sequence[Hypothesis]) -> None:
    """An exception whose printer the log does not name is of the only rank that torchrun's report says raised one.

    Last, because whom a cause explains is judged by what the log itself says of ranks.
    """
    reported = [match for one in found for match in one.matches if DIALECT in match.record.dialects]
    raised = {match.rank: match for match in reported if _EXIT.match(match.record.body)}
    unmasked = [one for one in found if one.rule.kind == "cause" and _is_anonymous(one) and not one.masked_by]
    if len(raised) != 1 or len(unmasked) != 1 or unmasked[0].rule.severity in MINOR:
        return
    (failure,) = raised.values()
    for match in unmasked[0].matches:
        record = match.record
        if record.attempt == failure.record.attempt and record.who.local_rank in (None, failure.local_rank):
            match.rank, match.local_rank, match.host = failure.rank, failure.local_rank, match.host or failure.host


def _is_anonymous(one: Hypothesis) -> bool:
    """Tracebacks of which at most the local rank is known."""
    return all(
        match.rank is None
        and "Traceback (most recent call last)" in match.record.body
        and match.record.who.task is None
        for match in one.matches
    )


def _only_repeats(cause: Hypothesis, symptom: Hypothesis) -> bool:
    """Whether a mere hint of a cause is all read from the lines that make the symptom: such a hint explains nothing."""
    if cause.rule.kind != "cause" or any(match.signature.strength != "weak" for match in cause.matches):
        return False
    # by record, not by number: a verdict stands at its witness's place, yet says more than the witness
    return {id(match.record) for match in cause.matches} <= {id(match.record) for match in symptom.matches}


def _masks(one: Hypothesis, other: Hypothesis) -> bool:
    if not _named(other.rule.id, one.rule.masks):
        return False
    return any(_near(match, masked) for match in one.matches for masked in other.matches[:20])


def _near(match: Match, masked: Match) -> bool:
    """A cause masks a vaguer one on the same process; where the log names no process, anywhere."""
    return match.rank is None or masked.rank is None or same_printer(match, masked)


def _explains(cause: Hypothesis, symptom: Hypothesis) -> bool:
    """Whether the symptom's rule names the cause and they are seen where it says.

    A cause may be written down after its consequences, so order decides only between symptoms that name each other.
    """
    fitting = [one for one in symptom.rule.explanations if fits(cause.rule.id, one.rule)]
    if not any(_seen_there(cause, symptom, one.where) for one in fitting) or _only_repeats(cause, symptom):
        return False
    mutual = any(fits(symptom.rule.id, one.rule) for one in cause.rule.explanations)
    if cause.rule.kind == "symptom" and mutual and not any(one.where != "anywhere" for one in fitting):
        return symptom.first.record.seq > cause.first.record.seq
    return True


def _seen_there(cause: Hypothesis, symptom: Hypothesis, where: Where) -> bool:
    if where == "anywhere":
        return True
    for match in cause.matches:
        for shown in symptom.matches:
            unknown = match.rank is None or shown.rank is None
            if where == "same-rank" and (same_printer(match, shown) or unknown):
                return True
            if where == "other-rank" and (unknown or match.rank != shown.rank):
                return True
            if where == "same-host" and (match.host is None or shown.host is None or match.host == shown.host):
                return True
    return False


def _named(rule_id: str, patterns: Sequence[str]) -> bool:
    return any(fits(rule_id, pattern) for pattern in patterns)


def earliest(found: Sequence[Hypothesis]) -> Hypothesis | None:
    """The hypothesis whose first match nothing else precedes, or None where the log cannot tell."""
    for one in found:
        if all(one is other or comes_before(one.first, other.first) for other in found):
            return one
    return None
