"""Rule files: every fault is told with its place; packs override by id; hostile YAML is refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import build_index, load_rules, rule_roots
from logdoc.types.errors import RulesError
from tests.rulekit import write_rule

GOOD = "match: {seen: {regex: 'a distinctive line'}}"


def faults(root: Path) -> list[str]:
    with pytest.raises(RulesError) as caught:
        build_index(load_rules([root]).active())
    return [str(problem).replace(f"{root}/", "") for problem in caught.value.problems]


def test_a_misspelt_key_is_told_with_its_place_and_the_nearest_name(tmp_path: Path) -> None:
    write_rule(tmp_path, "a.b", "match:\n  seen:\n    regexp: x\n    regex: 'a distinctive line'")
    assert faults(tmp_path) == ["a/b.yaml:8:5: match.seen.regexp: no such key (did you mean 'regex'?)"]


def test_all_faults_of_all_files_are_told(tmp_path: Path) -> None:
    write_rule(tmp_path, "a.b", "match: {seen: {regex: 'a distinctive line', strength: huge}}\nseverity: dire")
    write_rule(tmp_path, "a.c", "restart: maybe")
    told = "\n".join(faults(tmp_path))
    for place in (
        "a/b.yaml:6:45: match.seen.strength",
        "a/b.yaml:7:1: severity",
        "a/c.yaml:1:1: match: this key is required",
    ):
        assert place in told


def test_a_pattern_that_does_not_compile_is_told_beside_other_faults(tmp_path: Path) -> None:
    write_rule(
        tmp_path, "a.b", "match: {seen: {regex: 'an open (group'}, other: {regex: [1]}, third: 4}\nseverity: dire"
    )
    told = faults(tmp_path)
    assert "a/b.yaml:6:16: match.seen.regex: missing ), unterminated subpattern at position 8" in told
    assert [line for line in told if "severity" in line]


def test_id_and_path_must_agree(tmp_path: Path) -> None:
    path = write_rule(tmp_path, "a.b", GOOD)
    path.rename(path.with_name("c.yaml"))
    assert "expected a.c" in faults(tmp_path)[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not YAML"),
        ("a: 1\na: 2", "stands here twice"),
        ("- just a list", "a rule file is a mapping"),
        ("a: !!python/object/apply:os.system ['true']", "not YAML"),
        ("\x00", "not YAML"),
        ("? {a: b}\n: c", "a key must be a word"),
    ],
)
def test_what_is_no_rule_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.yaml").write_text(text, encoding="utf-8")
    told = faults(tmp_path)
    assert said in told[0]
    assert "\n" not in told[0]


def test_a_regex_without_a_literal_is_refused(tmp_path: Path) -> None:
    write_rule(tmp_path, "a.b", r"match: {seen: {regex: '\d+'}}")
    assert "guarantees no literal" in faults(tmp_path)[0]


def test_on_and_yes_stay_words(tmp_path: Path) -> None:
    write_rule(tmp_path, "a.b", "match: {on: {regex: 'a distinctive line'}, yes: {regex: 'another one here'}}")
    assert set(load_rules([tmp_path])["a.b"].match) == {"on", "yes"}


def test_a_later_root_overrides_by_id(tmp_path: Path) -> None:
    write_rule(tmp_path / "one", "a.b", GOOD)
    write_rule(tmp_path / "two", "a.b", "match: {seen: {regex: 'an own line'}}")
    rules = load_rules([tmp_path / "one", tmp_path / "two"])
    assert rules.overridden == ("a.b",)
    assert rules["a.b"].match["seen"].regex == "an own line"
    assert rules.digest != load_rules([tmp_path / "one"]).digest


def test_a_cause_of_an_area_of_ones_own_explains_the_shipped_symptoms(tmp_path: Path) -> None:
    write_rule(tmp_path, "site.rack-power", "match: {seen: {regex: 'RACK 7 POWER LOST'}}")
    engine = Engine(load_rules([*rule_roots()[:1], tmp_path]))
    log = (
        "[rank3]: RACK 7 POWER LOST\n"
        "[rank0]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] "
        "Connection closed by peer [10.0.0.3]:47025\n"
    )
    (only,) = engine.explain_text(log).diagnoses
    assert (only.rule, only.explains) == ("site.rack-power", ("collective.remote-error",))


def test_an_area_that_is_shipped_is_explained_as_its_rules_say(tmp_path: Path) -> None:
    write_rule(tmp_path, "perf.rack-slow", "match: {seen: {regex: 'RACK 7 IS SLOW'}}")
    shipped = load_rules(rule_roots()[:1]).rules["collective.remote-error"]
    assert load_rules([*rule_roots()[:1], tmp_path]).rules["collective.remote-error"] == shipped
