"""All rules' literals in one table: which signatures does a literal that occurs make worth trying?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from logdoc.scanner.plain import by_start
from logdoc.types.errors import RuleProblem, RulesError
from logdoc.types.rule import Rule, Signature
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.rulebase.literals import Literals


@dataclass(slots=True, eq=False)
class Entry:
    """A signature of a rule, as the matcher tries it; one object for each. Rule and signature may be read only when
    they are asked for, so what the scan of a large log must know stands here: whether the signature is evidence of a
    failure, so that it makes a part of the log worth reading. What is only noise never does."""

    rules: Mapping[str, Rule]
    signatures: Mapping[str, Mapping[str, Signature]]  # by rule, then by name
    rule_id: str
    name: str
    is_evidence: bool
    _signature: Signature | None = None

    @property
    def rule(self) -> Rule:
        return self.rules[self.rule_id]

    @property
    def signature(self) -> Signature:
        if self._signature is None:
            self._signature = self.signatures[self.rule_id][self.name]
        return self._signature


@dataclass(frozen=True, slots=True)
class LiteralIndex:
    """`exact[i]` and `caseless[i]` (lower case) are literals; `*_entries[i]` is what each makes worth trying, and
    `*_starts` their numbers by their first bytes, as PlainScanner wants them."""

    exact: tuple[bytes, ...]
    exact_entries: Sequence[tuple[Entry, ...]]
    caseless: tuple[bytes, ...]
    caseless_entries: Sequence[tuple[Entry, ...]]
    exact_starts: Mapping[int, Sequence[int]]
    caseless_starts: Mapping[int, Sequence[int]]


def build_index(rules: Iterable[Rule]) -> LiteralIndex:
    """Derive and gather the literals of all signatures. Raises RulesError where a pattern guarantees none."""
    tables: dict[bool, dict[bytes, list[Entry]]] = {False: {}, True: {}}
    problems: list[RuleProblem] = []
    by_id = {rule.id: rule for rule in rules}
    signatures = {rule.id: rule.match for rule in by_id.values()}
    for rule in by_id.values():
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
            entry = Entry(by_id, signatures, rule.id, name, is_evidence_of_failure(rule, signature))
            for text in sorted(literals.strings):
                tables[literals.caseless].setdefault(text.encode(), []).append(entry)
    if problems:
        raise RulesError(problems)
    exact, caseless = tables[False], tables[True]
    return LiteralIndex(
        exact=tuple(exact),
        exact_entries=tuple(map(tuple, exact.values())),
        caseless=tuple(caseless),
        caseless_entries=tuple(map(tuple, caseless.values())),
        exact_starts=by_start(tuple(exact)),
        caseless_starts=by_start(tuple(caseless)),
    )


def is_evidence_of_failure(rule: Rule, signature: Signature) -> bool:
    """Whether a large log is read round it."""
    return signature.role == "evidence" and rule.kind != "noise"


def signature_literals(signature: Signature) -> Literals | None:
    """A signature's literals: the author's `needs` where given, else derived from its regex."""
    from logdoc.rulebase.literals import Literals, literals_of  # the parser of patterns is for new rules only

    caseless = "(?i" in signature.regex
    if signature.needs:
        strings = frozenset(text.lower() if caseless else text for text in signature.needs)
        return Literals(strings, caseless)
    return literals_of(signature.regex)
