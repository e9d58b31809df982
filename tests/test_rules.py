"""The rules themselves: lint, every embedded example through the whole engine, and texts fit for both languages."""

from __future__ import annotations

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from logdoc.rulebase.check import lint, run_examples
from logdoc.types.rule import Rule

RULES = list(load_rules(rule_roots()[:1]).active())


def test_no_rule_has_a_fault(rule_set: RuleSet) -> None:
    assert [str(problem) for problem in lint(rule_set)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_examples_hold(rule: Rule, engine: Engine) -> None:
    assert [str(problem) for problem in run_examples([rule], engine.explain_text)] == []


def test_the_rules_cover_their_field(rule_set: RuleSet) -> None:
    areas = {rule.area for rule in rule_set.active()}
    assert len(rule_set.rules) >= 30
    assert len(areas) >= 8
    for rule_id in (
        "install.torch-cpu-build",
        "collective.unhandled-error-bare",
        "collective.timeout-unexplained",
        "memory.gpu-oom-disguised",
    ):
        assert rule_id in rule_set.rules
