"""The generated rule pages are those of today's rules: `logdoc rules docs docs/rules` makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.render.rule_index import page_path, rule_index
from logdoc.render.rule_page import rule_page
from logdoc.rulebase import RuleSet

DOCS = Path(__file__).resolve().parents[1] / "docs" / "rules"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_and_index_are_current(rule_set: RuleSet, language: str) -> None:
    rules = list(rule_set.rules.values())
    wanted = {DOCS / language / page_path(rule): rule_page(rule, language) for rule in rules}
    wanted[DOCS / language / "index.md"] = rule_index(rules, language)
    written = {path: path.read_text(encoding="utf-8") for path in (DOCS / language).rglob("*.md")}
    assert sorted(map(str, written)) == sorted(map(str, wanted))
    stale = [str(path.relative_to(DOCS)) for path, text in wanted.items() if written[path] != text]
    assert not stale, "run: logdoc rules docs docs/rules"


def test_a_page_says_which_probe_sees_the_fix(rule_set: RuleSet) -> None:
    page = rule_page(rule_set.rules["gpu.fabric-manager-down"], "en")
    assert "Verify: logdoc probe fabric --expect 'fabric.manager_active=true' — `<python>` -c " in page
