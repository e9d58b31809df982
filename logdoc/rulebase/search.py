"""Which rules speak of these words? Looks in ids, texts, signatures and examples; ranks nothing."""

from __future__ import annotations

from collections.abc import Iterable

from logdoc.types.rule import Rule


def searchable(rule: Rule) -> str:
    """Everything of a rule that a user may remember of it, in lower case."""
    texts = [rule.id, rule.title.en, rule.title.zh, rule.summary.en, rule.summary.zh]
    texts += [signature.regex for signature in rule.match.values()]
    texts += [example.log for example in rule.examples.must_match]
    return "\n".join(texts).lower()


def rules_with(words: str, rules: Iterable[Rule]) -> list[Rule]:
    """The rules in which every word occurs, in the order given; all for no words."""
    wanted = words.lower().split()
    return [rule for rule in rules if all(word in searchable(rule) for word in wanted)]
