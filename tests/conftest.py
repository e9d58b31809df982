"""What many tests share: the built-in rules and an engine over them, made once."""

from __future__ import annotations

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules, rule_roots


@pytest.fixture(scope="session")
def rule_set() -> RuleSet:
    return load_rules(rule_roots()[:1])


@pytest.fixture(scope="session")
def engine(rule_set: RuleSet) -> Engine:
    return Engine(rule_set)
