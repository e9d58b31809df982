"""Nearest known signatures of an unrecognised line, and the shape of a line with its numbers masked."""

from __future__ import annotations

from collections.abc import Iterable

from logdoc.kept.patterns import lazily
from logdoc.types.report import Similar
from logdoc.types.rule import Rule

MOST = 3
LEAST_SCORE = 0.55

_VARIABLE = lazily(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|/[\w./-]+|\d+(?:\.\d+)*|'[^']*'|\"[^\"]*\"")
_SHORTEST = 12


def shape(line: str) -> str:
    """A message without what varies: numbers, addresses, paths and quoted names are one sign each."""
    return _VARIABLE.sub("#", line).strip()


def similar(text: str, rules: Iterable[Rule], line: int, source: str) -> tuple[Similar, ...]:
    """The rules whose example lines look most like `text`, best first; scores 0..1."""
    wanted = shape(text)
    if len(wanted) < _SHORTEST:
        return ()
    examples = [
        (rule.id, shape(example_line))
        for rule in rules
        if rule.kind != "noise"
        for example in rule.examples.must_match
        for example_line in example.log.splitlines()
        if "Traceback (most recent call last)" not in example_line
    ]
    scored = [(rule_id, _likeness(wanted, example)) for rule_id, example in examples if len(example) >= _SHORTEST]
    hits = sorted(scored, key=lambda hit: -hit[1])[:25]
    best: dict[str, float] = {}
    for rule_id, score in hits:
        best[rule_id] = max(best.get(rule_id, 0.0), score)
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Similar(rule=rule_id, score=round(score, 2), line=line, source=source)
        for rule_id, score in order[:MOST]
        if score >= LEAST_SCORE
    )


def rules_about(words: str, rules: Iterable[Rule]) -> list[tuple[Rule, float]]:
    """The rules in which all these words occur and those whose examples look like them, the best first; 0..1."""
    from logdoc.rulebase.search import fit, rules_with  # no report asks this

    by_id = {rule.id: rule for rule in rules}
    found = {rule.id: round(fit(words, rule), 2) for rule in rules_with(words, by_id.values())} if words.split() else {}
    for near in similar(words, by_id.values(), 0, ""):
        found[near.rule] = max(near.score, found.get(near.rule, 0.0))
    order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [(by_id[rule_id], score) for rule_id, score in order]


def _likeness(one: str, other: str) -> float:
    """0..1. token_set_ratio alone is 100 for any subset, so a short example would be like everything."""
    from rapidfuzz import fuzz

    return float(0.5 * fuzz.token_set_ratio(one, other) + 0.5 * fuzz.ratio(one, other)) / 100
