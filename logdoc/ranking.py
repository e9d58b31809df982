"""Scores: how sure are we of each hypothesis, in additive terms that `--why` prints. The only room with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from logdoc.cascade import comes_before, earliest
from logdoc.kept.data import document
from logdoc.types.finding import Hypothesis
from logdoc.types.report import ScoreTerm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from logdoc.types.words import Status, Strength

LIKELY = 0.5  # from this confidence on a cause is named as found
_ORDER: tuple[Strength, ...] = ("weak", "strong", "conclusive")


@cache
def weights() -> Any:
    """The fitted parameters, logdoc/data/weights.json."""
    return document("weights.json")


def rank(found: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Score every hypothesis and order them: causes before the symptoms they explain, the surest first."""
    causes = [one for one in found if _is_rival(one)]
    last = _decisive_attempt(found, causes)
    rivals = [one for one in causes if one.first.record.attempt == last]
    first = earliest([one for one in rivals if not one.rule.fallback] or rivals)
    for hypothesis in found:
        hypothesis.terms = _terms(hypothesis, rivals, first, last)
        hypothesis.confidence = _confidence(hypothesis)
        hypothesis.status = _status(hypothesis)
    return sorted(found, key=_place)


def _decisive_attempt(found: Sequence[Hypothesis], causes: Sequence[Hypothesis]) -> int:
    """The attempt that is explained: the last one, unless all that went wrong there is that ranks waited for peers,
    which none did in an earlier attempt: then that one's failure is why they did not come back."""
    last = max((one.first.record.attempt for one in found), default=0)
    own = [one for one in causes if one.first.record.attempt == last]
    before = {match.record.attempt for one in found for match in one.matches} - {last}
    is_fallout = all(one.rule.rank_state == "waiting" and _is_only_in(last, one) for one in own)
    return max(before) if own and before and is_fallout else last


def _is_only_in(attempt: int, one: Hypothesis) -> bool:
    return all(match.record.attempt == attempt for match in one.matches)


def _place(hypothesis: Hypothesis) -> tuple[bool, float, int, str]:
    secondary = hypothesis.rule.kind == "symptom"
    return (secondary, -_odds(hypothesis), hypothesis.first.record.seq, hypothesis.rule.id)


def _is_rival(hypothesis: Hypothesis) -> bool:
    """A cause that could be the first failure; what is only hinted at takes no other cause's place."""
    rule = hypothesis.rule
    minor = rule.severity in ("warning", "info") or _strength(hypothesis) == "weak"
    return rule.kind == "cause" and not hypothesis.masked_by and not minor


def _strength(hypothesis: Hypothesis) -> Strength:
    """Of the surest signature that was found."""
    return max((match.signature.strength for match in hypothesis.matches), key=_ORDER.index)


def _terms(
    hypothesis: Hypothesis, rivals: Sequence[Hypothesis], first: Hypothesis | None, last_attempt: int
) -> list[ScoreTerm]:
    rule, table = hypothesis.rule, weights()
    strength = _strength(hypothesis)
    names = {match.name for match in hypothesis.matches}
    terms = [
        ScoreTerm(name=f"prior of a {rule.kind}", value=table["prior"][rule.kind]),
        ScoreTerm(name=f"{strength} signature", value=table["strength"][strength]),
        ScoreTerm(name=f"severity {rule.severity}", value=table["severity"][rule.severity]),
    ]
    if len(names) > 1:
        more = min((len(names) - 1) * table["corroboration"], table["most_corroboration"])
        terms.append(ScoreTerm(name=f"{len(names)} different signatures agree", value=more))
    if all(match.record.is_caught for match in hypothesis.matches):
        terms.append(ScoreTerm(name="caught by the program and logged as a warning", value=table["caught"]))
    if hypothesis.went_on:
        terms.append(ScoreTerm(name="training went on after it", value=table["went_on"]))
    if rule.fallback:
        terms.append(ScoreTerm(name="recognised only by its general shape", value=table["fallback"]))
    terms.extend(_relations(hypothesis, rivals, first, last_attempt))
    terms.extend(_probe_terms(hypothesis))
    return [term for term in terms if term.value]


def _relations(
    hypothesis: Hypothesis, rivals: Sequence[Hypothesis], first: Hypothesis | None, last_attempt: int
) -> list[ScoreTerm]:
    table, terms = weights(), []
    if hypothesis.masked_by:
        terms.append(ScoreTerm(name=f"{hypothesis.masked_by[0]} says it more exactly", value=table["masked"]))
    if hypothesis.first.record.attempt > last_attempt:
        terms.append(ScoreTerm(name="ranks waited for one that failed in the attempt before", value=table["explained"]))
    if hypothesis.first.record.attempt < last_attempt:
        terms.append(ScoreTerm(name="seen only in an earlier attempt", value=table["earlier_attempt"]))
    if hypothesis.rule.kind == "symptom":
        if hypothesis.explained_by:
            terms.append(ScoreTerm(name=f"explained by {hypothesis.explained_by[0]}", value=table["explained"]))
        return terms
    if hypothesis is first:
        terms.append(ScoreTerm(name="came first", value=table["first"]))
    elif any(rival is not hypothesis and comes_before(rival.first, hypothesis.first) for rival in rivals):
        terms.append(ScoreTerm(name="another cause came before", value=table["preceded"]))
    if hypothesis.rule.fallback and any(not rival.rule.fallback for rival in rivals if rival is not hypothesis):
        terms.append(ScoreTerm(name="a specific cause is in sight", value=table["beside_specific"]))
    if hypothesis.explains and _strength(hypothesis) != "weak":  # a hint accounts for nothing
        terms.append(ScoreTerm(name=f"accounts for {len(hypothesis.explains)} symptoms", value=table["explains"]))
    return terms


def _probe_terms(hypothesis: Hypothesis) -> list[ScoreTerm]:
    """Only a probe of the failing host speaks; of another host it is shown and counts nothing."""
    table, terms = weights(), []
    for result in hypothesis.probe_results:
        if result.outcome != "unknown" and result.same_host is not False:
            value = table["probe"][result.outcome][result.strength]
            terms.append(ScoreTerm(name=f"probe {result.id} {result.outcome}", value=value))
    return terms


def _confidence(hypothesis: Hypothesis) -> float:
    """A symptom is never the root cause, so however clear it is, we are not sure to have found that."""
    table, rule = weights(), hypothesis.rule
    log_odds = table["scale"]["slope"] * _odds(hypothesis) + table["scale"]["offset"]
    caps = [table["most"]]
    if rule.kind == "symptom":
        caps.append(table["most_symptom"])
    if rule.status == "experimental":
        caps.append(table["experimental_cap"])
    return float(round(min(1 / (1 + math.exp(-log_odds)), *caps), 3))


def _odds(hypothesis: Hypothesis) -> float:
    return sum(term.value for term in hypothesis.terms)


def _status(hypothesis: Hypothesis) -> Status:
    outcomes = {result.outcome for result in hypothesis.probe_results if result.same_host is not False}
    if "confirms" in outcomes and hypothesis.confidence >= LIKELY:
        return "confirmed"
    if "refutes" in outcomes and hypothesis.confidence < LIKELY:
        return "refuted"
    return "likely" if hypothesis.confidence >= LIKELY else "possible"
