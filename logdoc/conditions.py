"""`when` trees over matches and facts. Three answers: true, false, and None for a fact that nobody knows."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from logdoc.facts import FactSet, rule_values
from logdoc.kept.patterns import lazily
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.quantity import size_in_bytes
from logdoc.types.rule import COMPARISONS, Condition, FactReference, FactValue, Operand, Rule
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from logdoc.types.words import Where

Lookup = Callable[[str], FactValue | None]
Answer = bool | None


@dataclass(slots=True)
class Answered:
    """What is found once for all printers of a rule, of which a job may have ten thousand."""

    answers: dict[tuple[int, str], Answer] = field(default_factory=dict)
    _processes: dict[str, dict[tuple[int | None, int | None], list[Match]]] = field(default_factory=dict)

    def of_process(self, name: str, matches: Sequence[Match], anchor: Match) -> list[Match]:
        """Those of a signature's matches that can be of the anchor's process, by rank or else by process id."""
        if name not in self._processes:
            processes = self._processes[name] = {}
            for match in matches:
                processes.setdefault(_process(match), []).append(match)
        own, processes = _process(anchor), self._processes[name]
        if own == (None, None):
            return [match for match in matches if match.rank is None]
        keys = [own] if anchor.rank is not None else [own, (None, None)]
        return [match for key in keys for match in processes.get(key, ())]


@dataclass(slots=True)
class Scene:
    """What a condition is judged on: a rule's matches by signature, the facts, and the match under judgement."""

    matches: Mapping[str, Sequence[Match]]
    fact: Lookup
    anchor: Match | None = None
    ranks_seen: int = 0
    was_last: Callable[[Match], bool] = lambda match: False
    answered: Answered = field(default_factory=Answered)


def hypotheses(
    rules: Iterable[Rule], matches: Sequence[Match], facts: FactSet, *, ranks_seen: int = 0,
    was_last: Callable[[Match], bool] = lambda match: False,
) -> list[Hypothesis]:  # fmt: skip
    """Every rule whose `when` holds for at least one printer, with the matches for which it does.

    `was_last` tells whether a match is the last thing its printer said (for `silent_after`). Noise that holds takes the
    weak evidence in its records back.
    """
    by_rule: dict[str, list[Match]] = {}
    for match in matches:
        by_rule.setdefault(match.rule.id, []).append(match)
    found: dict[str, Hypothesis] = {}
    harmless: set[int] = set()
    order = {rule.id: rule for rule in rules if rule.id in by_rule and applies(rule, facts)}
    for rule in sorted(order.values(), key=lambda rule: rule.kind != "noise"):
        own = [match for match in by_rule[rule.id] if not (match.is_weak_evidence and match.record.seq in harmless)]
        hypothesis = _judge(rule, own, facts, ranks_seen, was_last)
        if hypothesis is not None:
            found[rule.id] = hypothesis
            if rule.kind == "noise":
                harmless.update(match.record.seq for match in hypothesis.matches)
    return [found[rule_id] for rule_id in order if rule_id in found]


def _judge(
    rule: Rule, own: list[Match], facts: FactSet, ranks_seen: int, was_last: Callable[[Match], bool]
) -> Hypothesis | None:
    by_name: dict[str, list[Match]] = {}
    for match in own:
        by_name.setdefault(match.name, []).append(match)
    answered = Answered()
    evidence = [match for match in own if match.signature.role == "evidence"]
    anchors = evidence or ([] if _has_evidence(rule) else own)
    if rule.when is None:
        held = anchors
    else:
        held = []
        has_values = bool(rule.facts or rule.derive)
        telling = _telling(own) if has_values else []
        answers: dict[object, Answer] = {}  # anchors of one printer are judged alike, unless their captures count
        for match in anchors:
            key: object = id(match) if has_values else _seen_from(match)
            if key not in answers:
                values = rule_values(rule, [match, *telling], facts) if has_values else {}
                scene = Scene(by_name, _lookup(values, facts), match, ranks_seen, was_last, answered)
                answers[key] = holds(rule.when, scene)
            if answers[key] is not False:
                held.append(match)
    if not held:
        return None
    kept = {id(match) for match in held}
    context = [match for match in own if id(match) not in kept and match.signature.role == "context"]
    return Hypothesis(rule, held, context, rule_values(rule, [*held, *context], facts))


def _telling(matches: Sequence[Match]) -> list[Match]:
    """The matches that say something first: of the others `rule_values` takes nothing, and there may be thousands."""
    seen: set[tuple[str, str]] = set()
    telling = []
    for match in matches:
        said = {(match.name, name) for name in match.captures}
        if not said <= seen:
            telling.append(match)
            seen |= said
    return telling


def _seen_from(match: Match) -> object:
    """All of an anchor that a condition looks at: where the rank is known, the printer is not asked."""
    return (match.rank, match.host) if match.rank is not None else (match.host, match.record.who.printer)


def _has_evidence(rule: Rule) -> bool:
    return any(signature.role == "evidence" for signature in rule.match.values())


def _lookup(values: Mapping[str, FactValue], facts: FactSet) -> Lookup:
    return lambda fact_id: values[fact_id] if fact_id in values else facts.value(fact_id)


def holds(condition: Condition, scene: Scene) -> Answer:
    """Whether the condition holds; None if only an unknown fact stands between. Several operators must all hold."""
    answers: list[Answer] = []
    if condition.any is not None:
        answers.append(_any([holds(node, scene) for node in condition.any]))
    if condition.all is not None:
        answers.append(_all([holds(node, scene) for node in condition.all]))
    if condition.none is not None:
        answers.append(_not(_any([holds(node, scene) for node in condition.none])))
    if condition.seen is not None:
        answers.append(_once(condition, scene, _is_seen))
    if condition.count is not None:
        answers.append(_once(condition, scene, _counted))
    if condition.sequence is not None:
        answers.append(_once(condition, scene, _in_sequence))
    if condition.ranks is not None:
        answers.append(_once(condition, scene, _shared))
    if condition.silent_after is not None:
        answers.append(_once(condition, scene, _fell_silent))
    if condition.fact is not None:
        answers.append(compare(condition, scene.fact))
    return _all(answers)


def _once(condition: Condition, scene: Scene, judge: Callable[[Condition, Scene], Answer]) -> Answer:
    """The judgement, made once for all printers where it looks at them all."""
    if condition.where != "anywhere":
        return judge(condition, scene)
    answers, key = scene.answered.answers, (id(condition), judge.__name__)
    if key not in answers:
        answers[key] = judge(condition, scene)
    return answers[key]


def _is_seen(condition: Condition, scene: Scene) -> bool:
    return bool(_related(condition.seen or "", condition.where, scene))


def _fell_silent(condition: Condition, scene: Scene) -> bool:
    return any(map(scene.was_last, _related(condition.silent_after or "", condition.where, scene)))


def _any(answers: Sequence[Answer]) -> Answer:
    if any(answer is True for answer in answers):
        return True
    return None if any(answer is None for answer in answers) else False


def _all(answers: Sequence[Answer]) -> Answer:
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _related(name: str, where: Where, scene: Scene) -> list[Match]:
    found, anchor = scene.matches.get(name, ()), scene.anchor
    if anchor is None or where == "anywhere":
        return list(found)
    if where == "same-rank":
        found = scene.answered.of_process(name, found, anchor)
    return [match for match in found if _is_there(match, anchor, where)]


def _is_there(match: Match, anchor: Match, where: Where) -> bool:
    """Whether a match is where a condition wants it. What the log does not tell: lines without a rank are taken for one
    process's, and for another's than lines with a rank; hosts for one."""
    near = anchor.is_near(match, where)
    if near is not None:
        return near
    alike = (match.rank is None) == (anchor.rank is None)
    return where == "same-host" or alike == (where == "same-rank")


def _process(match: Match) -> tuple[int | None, int | None]:
    return (match.rank, match.record.who.pid if match.rank is None else None)


def _counted(condition: Condition, scene: Scene) -> bool:
    found = _related(condition.count or "", condition.where, scene)
    if condition.after is not None:
        start = min((match.position for match in _related(condition.after, condition.where, scene)), default=None)
        found = [match for match in found if start is not None and match.position > start]
    if condition.within is not None:
        times = sorted(match.record.time for match in found if match.record.time is not None)
        if len(times) == len(found):
            return _densest(times, condition.within) >= _least(condition)
    return len(found) >= _least(condition)


def _least(condition: Condition) -> float:
    return float(condition.gte) if isinstance(condition.gte, int | float) else 1


def _densest(times: Sequence[float], within: float) -> int:
    best = start = 0
    for end, time in enumerate(times):
        while time - times[start] > within:
            start += 1
        best = max(best, end - start + 1)
    return best


def _in_sequence(condition: Condition, scene: Scene) -> bool:
    last = (-1, -1)
    for name in condition.sequence or ():
        later = [match.position for match in _related(name, condition.where, scene) if match.position > last]
        if not later:
            return False
        last = min(later)
    return True


def _shared(condition: Condition, scene: Scene) -> Answer:
    ranks = {match.rank for match in scene.matches.get(condition.ranks or "", ()) if match.rank is not None}
    if condition.share == "one":
        return len(ranks) == 1
    if condition.share == "all":
        return len(ranks) == scene.ranks_seen if scene.ranks_seen else None
    return 0 < len(ranks) < scene.ranks_seen if scene.ranks_seen else None


def compare(condition: Condition, fact: Lookup) -> Answer:
    """A `fact:` node: all its comparisons must hold; None while the fact is unknown."""
    value = fact(condition.fact or "")
    if condition.known is not None:
        return (value is not None) == condition.known
    if value is None:
        return None
    for name in COMPARISONS:
        operand = getattr(condition, name)
        if operand is not None and name != "known":
            answer = _compares(name, value, operand, fact)
            if answer is not True:
                return answer
    return True


def _compares(name: str, value: FactValue, operand: Operand | Sequence[FactValue], fact: Lookup) -> Answer:
    if name == "in_":
        return isinstance(operand, tuple) and (value in operand or str(value) in map(str, operand))
    if name == "matches":
        return re.search(str(operand), str(value)) is not None
    other = fact(operand.fact) if isinstance(operand, FactReference) else operand
    if not isinstance(other, str | int | float | bool):
        return None
    left, right = _alike(value, other)
    if name == "eq":
        return left == right
    if name == "ne":
        return left != right
    comparable = type(left) is type(right) and not isinstance(left, str)
    return _ordered(name, left, right) if comparable else None


def _ordered(name: str, left: Any, right: Any) -> bool:
    orders: dict[str, Callable[[Any, Any], object]] = {
        "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
    }  # fmt: skip
    return bool(orders[name](left, right))


def _alike(value: FactValue, other: FactValue) -> tuple[object, object]:
    """Both sides as versions, else as numbers (sizes in bytes), else as text.

    What is measured is a number (by a rule's `as:`, in a probe's facts), so dotted numbers that are texts on both sides
    are versions: 2.10 is more than 2.9.
    """
    if isinstance(value, bool) or isinstance(other, bool):
        return value, other
    texts, sizes = (str(value), str(other)), (size_in_bytes(value), size_in_bytes(other))
    measured = None not in sizes
    if measured and not ((value, other) == texts and any("." in text for text in texts)):
        return sizes
    if all(_VERSION.match(text) for text in texts):
        from logdoc.catalog.versions import release  # few logs need it

        return release(texts[0]), release(texts[1])
    return sizes if measured else texts


# 2.10  2.6.0a0+git29c30b1  2.7.0.dev20250101  570.86.15
_VERSION = lazily(r"\d+(?:\.\d+){0,3}(?:(?:a|b|rc|\.dev|\.post)\d+)?(?:\+\S*)?$")


_VERSIONED = {"torch": "torch.version", "nccl": "nccl.version", "cuda": "torch.cuda", "driver": "gpu.driver"}


def applies(rule: Rule, facts: FactSet) -> bool:
    """Whether the rule is about these versions; what nobody knows never excludes a rule."""
    for name, wanted in rule.applies.items():
        known = facts.value(_VERSIONED[name]) if name in _VERSIONED else None
        if known is not None and isinstance(wanted, str):
            from logdoc.catalog.versions import within

            if within(str(known), wanted) is False:
                return False
    return True
