"""The rule browser: areas, search as you type, pages with links, and a pasted line tried on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Markdown, TextArea, Tree

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet
from logdoc.rulebase.search import rules_with
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.rules_screen import RelatedList, RuleSearch, RulesScreen, linked, related
from logdoc.tui.try_screen import TryScreen
from tests.tuikit import app_of, press, settled, small_rules

SIZE = (80, 24)


def browser(pilot: Pilot[None]) -> RulesScreen:
    screen = pilot.app.screen
    assert isinstance(screen, RulesScreen)
    return screen


def listed(pilot: Pilot[None]) -> list[str]:
    """The ids of the rules in the tree, whether their area is open or not."""
    tree = browser(pilot).query_one(Tree)
    return [str(leaf.data) for area in tree.root.children for leaf in area.children]


def page(pilot: Pilot[None]) -> str:
    return browser(pilot).query_one(Markdown).source


async def test_arrows_go_from_rule_to_rule(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert listed(pilot) == ["memory.test-oom", "process.test-exit"]
        assert browser(pilot).shown == "memory.test-oom"
        await press(pilot, "down", "enter", "down")
        assert browser(pilot).shown == "process.test-exit"
        assert "# Title of process.test-exit" in page(pilot)


async def test_search_as_you_type(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"exitcode")
        assert listed(pilot) == ["process.test-exit"]
        await press(pilot, "enter")
        assert browser(pilot).shown == "process.test-exit"
        await press(pilot, "escape")
        assert len(listed(pilot)) == 2
        await press(pilot, "slash", *"z", "slash", *"l")
        assert browser(pilot).query_one(RuleSearch).value == "z/l"
        assert listed(pilot) == []


async def test_the_page_follows_the_search_and_the_cursor(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "slash", *"exitcode")
        assert "# Title of process.test-exit" in page(pilot)
        await press(pilot, *"zz")
        assert page(pilot) == "No rule speaks of these words."
        assert not browser(pilot).query_one(RelatedList).display
        await press(pilot, "enter", "c", "escape", "up")
        assert page(pilot).startswith("# memory\n\n- [`memory.test-oom`](rule:memory.test-oom)")
        assert not browser(pilot).query_one(RelatedList).display
        await press(pilot, "l")
        assert "标题 memory.test-oom" in page(pilot)
        assert page(pilot).startswith("# memory")
        await press(pilot, "down")
        assert browser(pilot).shown == "memory.test-oom"


async def test_only_the_last_of_many_pages_asked_for_stays(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        for rule in ("process.test-exit", "memory.test-oom") * 5 + ("process.test-exit",):
            browser(pilot).show(rule)
        await settled(pilot)
        assert "# Title of process.test-exit" in page(pilot)


async def test_relations_are_links_and_a_list_for_the_keyboard(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert "(rule:process.test-exit)" in page(pilot)
        rows = [str(option.prompt) for option in browser(pilot).query_one("#related", PickList).options]
        assert [row.partition(":")[0] for row in rows] == ["silences", "may cause"]
        await press(pilot, "tab", "tab", "down", "enter")
        assert browser(pilot).shown == "process.test-exit"
        await press(pilot, "b")
        assert browser(pilot).shown == "memory.test-oom"
        markdown = browser(pilot).query_one(Markdown)
        markdown.post_message(Markdown.LinkClicked(markdown, "rule:process.test-exit"))
        await settled(pilot)
        assert browser(pilot).shown == "process.test-exit"


async def test_placeholders_are_shown_not_taken_for_html(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        markdown = browser(pilot).query_one(Markdown)
        await markdown.update("It asked for <tried> on rank <rank>.")
        await settled(pilot)
        assert "<tried> on rank <rank>" in "".join(str(block._content) for block in markdown.children)


async def test_the_language_changes_the_page(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "l")
        assert "标题 memory.test-oom" in page(pilot)


async def test_a_pasted_line_is_tried_and_leads_to_its_rule(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "p")
        assert isinstance(pilot.app.screen, TryScreen)
        pilot.app.screen.query_one(TextArea).text = "[rank1]: exitcode: 7 [/red]"
        await pilot.pause(0.5)
        await settled(pilot)
        assert "Title of process.test-exit" in pilot.app.screen.query_one("#try-said", Prose).said.plain
        await press(pilot, "tab", "down", "enter")
        assert browser(pilot).shown == "process.test-exit"


async def test_escape_leaves_a_pasted_line(tmp_path: Path) -> None:
    async with app_of(None, tmp_path).run_test(size=SIZE) as pilot:
        await settled(pilot)
        await press(pilot, "p", "escape")
        assert browser(pilot).shown == "memory.test-oom"


def test_patterns_become_links_too() -> None:
    text = "## Relations\n\n- masks: `a.b`, `c.*`\n- explained_by: `d.e`\n\nA `code` elsewhere."
    assert linked(text) == (
        "## Relations\n\n- masks: [`a.b`](rule:a.b), [`c.*`](rule:c.*)\n- explained_by: [`d.e`](rule:d.e)\n\n"
        "A `code` elsewhere."
    )


def test_related_is_seen_from_both_sides(tmp_path: Path) -> None:
    rules = small_rules(tmp_path).active()
    seen = {rule.id: [(one.relation, one.rule.id) for one in related(rule, rules)] for rule in rules}
    assert seen == {
        "memory.test-oom": [("masks", "process.test-exit"), ("explains", "process.test-exit")],
        "process.test-exit": [("explained_by", "memory.test-oom"), ("masked_by", "memory.test-oom")],
    }


def test_words_are_looked_for_everywhere_in_a_rule(tmp_path: Path) -> None:
    rules = small_rules(tmp_path).active()
    assert [rule.id for rule in rules_with("OUT memory", rules)] == ["memory.test-oom"]
    assert [rule.id for rule in rules_with("摘要", rules)] == ["memory.test-oom", "process.test-exit"]
    assert rules_with("", rules) == rules
    assert rules_with("nothing of the kind", rules) == []


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_built_in_rule_has_a_page(rule_set: RuleSet, tmp_path: Path, language: str) -> None:
    app = app_of(None, tmp_path, language, Engine(rule_set))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        for rule in rule_set.active()[::12]:
            browser(pilot).show(rule.id)
            await settled(pilot)
            assert f"`{rule.id}`" in page(pilot)
