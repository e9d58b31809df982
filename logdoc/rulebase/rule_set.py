"""All rules together, as the loader or an earlier run's kept copy gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from logdoc.rulebase.index import LiteralIndex
from logdoc.types.rule import Rule
from logdoc.types.value import dataclass, field


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules by id, in order of id; `digest` names this very set; `overridden` ids were replaced by a pack.

    `index` holds the literals of the active rules and of the observations where they are known already.
    """

    rules: Mapping[str, Rule]
    digest: str
    overridden: tuple[str, ...] = field(default=())
    index: LiteralIndex | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, rule_id: str) -> Rule:
        return self.rules[rule_id]

    def active(self) -> list[Rule]:
        return [rule for rule in self.rules.values() if rule.status != "retired"]

    def lazily(self) -> Iterable[Rule]:
        """The active rules for somebody who may never look at them: none is read before that."""
        return _Lazily(self)

    def some(self, ids: Iterable[str]) -> list[Rule]:
        """The rules of these ids that are in the set, in its order."""
        return [self.rules[rule_id] for rule_id in sorted(ids) if rule_id in self.rules]


class _Lazily:
    """`active()`, called when the first of them is wanted."""

    def __init__(self, rule_set: RuleSet) -> None:
        self._rule_set = rule_set

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rule_set.active())
