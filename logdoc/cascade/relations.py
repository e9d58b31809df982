"""Which hypothesis explains which: the order of events, symptoms attached to causes, vaguer causes stepped back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from logdoc.cascade.order import comes_before
from logdoc.kept.patterns import lazily
from logdoc.reader.childfailed import DIALECT, ROOT_CAUSE
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.rule import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Where

_EXIT = lazily(r"exitcode: [1-9]")  # of an exception; a signal's number is negative
MINOR = ("warning", "info")  # such a cause may be true and still break nothing


def relate(found: Sequence[Hypothesis], heard: Collection[int] = ()) -> None:
    """Fill `masked_by`, `explained_by` and `explains` of all hypotheses. `heard`: the ranks that spoke themselves."""
    for one in found:
        one.masked_by, one.explained_by, one.explains = [], [], []
    for one in found:
        for other in found:
            if one is not other and _masks(one, other):
                other.masked_by.append(one.rule.id)
    leaver = _left_without_a_word(found, heard)
    for symptom in found:
        if symptom.rule.kind != "symptom":
            continue
        for cause in found:
            if cause is symptom or cause.rule.severity in MINOR:
                continue
            if leaver is None or cause.rule.kind == "cause" or leaver not in (cause, symptom):
                explains = _explains(cause, symptom)
            else:
                explains = cause is leaver
            if explains:
                symptom.explained_by.append(cause.rule.id)
                cause.explains.append(symptom.rule.id)
    _name_by_masked(found)
    _name_by_report(found)


def _left_without_a_word(found: Sequence[Hypothesis], heard: Collection[int]) -> Hypothesis | None:
    """The symptom that torchrun saw a rank leave first of which no more is known, though its output is there: nothing
    else shows on it, so what shows on its peers is the consequence of its leaving.

    Its output is there if it was heard, or if its peers are in the source that holds the report; or it does not matter
    because that report lists them all. Each node's agent reports the first of its own ranks, and those that were left
    behind show it, if the lines tell their ranks.
    """
    waiting = [match for one in found if one.rule.rank_state == "waiting" for match in one.matches]
    if any(match.rank is None and match.signature.role == "evidence" for match in waiting):
        return None
    for one in found:
        if one.rule.kind != "symptom" or one.rule.rank_state != "failed":
            continue
        others = [match for other in found if other is not one for match in other.matches if match.rank is not None]
        spoken = {(match.rank, match.record.source) for match in others if _is_own_voice(match)}
        ranks = {rank for rank, _ in spoken}
        reported = [match for match in one.matches if match.record.component == ROOT_CAUSE and match.rank is not None]
        silent = [match for match in reported if match.rank not in ranks]
        if len({match.rank for match in silent}) != 1:
            continue
        rank, source = silent[0].rank, silent[0].record.source
        listed = {match.rank for match in [*others, *reported] if DIALECT in match.record.dialects}
        is_only_report = len({match.rank for match in reported}) == 1 and ranks <= listed
        if rank in heard or is_only_report or any(where == source for _, where in spoken):
            one.matches.sort(key=lambda match: match.rank != rank)
            return one
    return None


def _is_own_voice(match: Match) -> bool:
    """Whether its rank said it, not a launcher that speaks of it."""
    who = match.record.who
    named = (who.rank, who.local_rank, who.task, who.pid)
    return DIALECT not in match.record.dialects and any(number is not None for number in named)


def _name_by_masked(found: Sequence[Hypothesis]) -> None:
    """What its host's kernel says of a failure, without a rank, is of the only rank that says the same less exactly."""
    for one in found:
        vaguer = [other for other in found if one.rule.id in other.masked_by]
        shown = {match.rank: match for other in vaguer for match in other.matches}
        if one.rule.kind != "cause" or len(shown) != 1 or any(match.rank is not None for match in one.matches):
            continue
        (shown_once,) = shown.values()
        for match in one.matches:
            hosts = {match.host, shown_once.host} - {None}
            if match.record.attempt == shown_once.record.attempt and len(hosts) < 2:
                match.rank, match.local_rank = shown_once.rank, shown_once.local_rank


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
        match.rank is None and match.record.has_traceback and match.record.who.task is None for match in one.matches
    )


def _only_repeats(cause: Hypothesis, symptom: Hypothesis) -> bool:
    """Whether a mere hint of a cause is all read from the lines that make the symptom: such a hint explains nothing."""
    if cause.rule.kind != "cause" or not _is_hint(cause):
        return False
    # by record, not by number: a verdict stands at its witness's place, yet says more than the witness
    return {id(match.record) for match in cause.matches} <= {id(match.record) for match in symptom.matches}


def _masks(one: Hypothesis, other: Hypothesis) -> bool:
    if not _named(other.rule.id, one.rule.masks) or (_is_hint(one) and not _is_hint(other)):
        return False
    return any(_near(match, masked) for match in one.matches for masked in other.matches[:20])


def _is_hint(one: Hypothesis) -> bool:
    """Whether nothing but weak signatures speak for it."""
    return all(match.signature.strength == "weak" for match in one.matches)


def _near(match: Match, masked: Match) -> bool:
    """A cause masks a vaguer one on the same process; where the log does not tell, anywhere."""
    return match.is_near(masked, "same-rank") is not False


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
    """Whether a symptom shows where the cause can explain it; what the log does not tell excludes nothing."""
    return where == "anywhere" or any(
        match.is_near(shown, where) is not False for match in cause.matches for shown in symptom.matches
    )


def _named(rule_id: str, patterns: Sequence[str]) -> bool:
    return any(fits(rule_id, pattern) for pattern in patterns)


def earliest(found: Sequence[Hypothesis]) -> Hypothesis | None:
    """The hypothesis whose first match nothing else precedes, or None where the log cannot tell."""
    for one in found:
        if all(one is other or comes_before(one.first, other.first) for other in found):
            return one
    return None
