"""All rules' literals in one table: which signatures does a literal that occurs make worth trying?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from logdoc.rulebase.literals import Literals, literals_of
from logdoc.types.errors import RuleProblem, RulesError
from logdoc.types.rule import Rule, Signature


@dataclass(frozen=True, slots=True)
class Entry:
    """A signature of a rule, as the matcher tries it."""

    rule: Rule
    name: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class LiteralIndex:
    """`exact[i]` and `caseless[i]` (lower case) are literals; `*_entries[i]` is what each makes worth trying."""

    exact: tuple[bytes, ...]
    exact_entries: tuple[tuple[Entry, ...], ...]
    caseless: tuple[bytes, ...]
    caseless_entries: tuple[tuple[Entry, ...], ...]


def build_index(rules: Iterable[Rule]) -> LiteralIndex:
    """Derive and gather the literals of all signatures. Raises RulesError where a pattern guarantees none."""
    tables: dict[bool, dict[bytes, list[Entry]]] = {False: {}, True: {}}
    problems: list[RuleProblem] = []
    for rule in rules:
        for name, signature in rule.match.items():
            try:
                literals = signature_literals(signature)
            except (re.error, RecursionError, OverflowError) as error:
                problems.append(RuleProblem(rule.path, 1, 1, f"match.{name}.regex: {error}"))
                continue
            if literals is None:
                hint = "give the pattern at least three fixed characters in a row, or write `needs`"
                problems.append(RuleProblem(rule.path, 1, 1, f"match.{name}.regex guarantees no literal", hint))
                continue
            for text in sorted(literals.strings):
                tables[literals.caseless].setdefault(text.encode(), []).append(Entry(rule, name, signature))
    if problems:
        raise RulesError(problems)
    exact, caseless = tables[False], tables[True]
    return LiteralIndex(
        tuple(exact), tuple(map(tuple, exact.values())), tuple(caseless), tuple(map(tuple, caseless.values()))
    )


def signature_literals(signature: Signature) -> Literals | None:
    """A signature's literals: the author's `needs` where given, else derived from its regex."""
    caseless = "(?i" in signature.regex
    if signature.needs:
        strings = frozenset(text.lower() if caseless else text for text in signature.needs)
        return Literals(strings, caseless)
    return literals_of(signature.regex)
