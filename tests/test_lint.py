"""The lint of `logdoc rules test`: each fault of a rule is told where it stands; a good rule has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import load_rules
from logdoc.rulebase.check import lint, run_examples

GOOD = """\
schema: logdoc.rule/v1
id: site.fire
kind: cause
title: {en: The rack burns, zh: 机柜着火}
summary: {en: "Smoke in {room}.", zh: "{room} 冒烟。"}
match:
  seen: {regex: 'Fire in (?P<room>[a-z]+)'}
  smelt: {regex: 'Smoke in (?P<room>[a-z]+)'}
when: {any: [{seen: seen}, {seen: smelt}]}
fixes: [{title: {en: Leave, zh: 离开}, run: {any: [exit]}, verify: {run: 'true'}}]
examples:
  must_match: [{log: Fire in hall}]
  must_not_match: [{log: Fires in hall, why: many}]
"""

FAULTS = {
    "still to be filled in: FILL IN": ("The rack burns", "FILL IN"),
    "still to be filled in: 待填写": ("机柜着火", "待填写"),
    "still to be filled in: FILL IN a command": ("[exit]", "[FILL IN a command]"),
    "the regex does not compile": ("'Fire in (?P<room>[a-z]+)'", "'Fire in (?P<room>[a-z]+'"),
    "is slow on hostile input": ("'Smoke in (?P<room>[a-z]+)'", "'(?:a+)+Smoke in (?P<room>[a-z]+)'"),
    "guarantees no literal": ("'Smoke in (?P<room>[a-z]+)'", "'(?P<room>[a-z]+)'"),
    "no signature is called 'smell'": ("{seen: smelt}", "{seen: smell}"),
    "can never make the rule hold": (", {seen: smelt}", ""),
    "name different placeholders": ("{room} 冒烟。", "冒烟。"),
    "zh is not Chinese": ("机柜着火", "Fire"),
    "en contains Chinese": ("The rack burns", "The 机柜 burns"),
    "{hall} is declared nowhere": ('"Smoke in {room}.", zh: "{room} 冒烟。"', '"In {hall}.", zh: "{hall} 冒烟。"'),
    "no filter is called 'gibb'": (
        '"Smoke in {room}.", zh: "{room} 冒烟。"',
        '"{room:gibb}.", zh: "{room:gibb} 冒烟。"',
    ),
    "no filter is called 'mb'": ("[exit]", "['exit {room:mb}']"),
    "a command is the same in both": ("[exit]", "[退出]"),
    "must_match is empty": ("must_match: [{log: Fire in hall}]", "must_match: []"),
    "must_not_match is empty": ("[{log: Fires in hall, why: many}]", "[]"),
    "needs at least one fix": (
        "fixes: [{title: {en: Leave, zh: 离开}, run: {any: [exit]}, verify: {run: 'true'}}]",
        "fixes: []",
    ),
    "names the causes that may explain it": ("kind: cause", "kind: symptom"),
    "only symptoms are explained": ("kind: cause", "kind: cause\nexplained_by: [site.fire]"),
    "say how to see that the fix worked": ("verify: {run: 'true'}", "verify: {}"),
    "no rule is called 'site.flood'": ("kind: cause", "kind: cause\nmasks: [site.flood]"),
    "no rule is called 'site.smoke'": ("kind: cause", "kind: cause\nstatus: retired\nreplaced_by: site.smoke"),
    "only a retired rule is replaced": ("kind: cause", "kind: cause\nreplaced_by: site.fire"),
}


def told(root: Path, text: str) -> list[str]:
    path = root / "site" / "fire.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    rules = load_rules([root])
    return [str(problem) for problem in lint(rules)]


def test_a_good_rule_has_no_fault(tmp_path: Path) -> None:
    assert told(tmp_path, GOOD) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_told(fault: str, tmp_path: Path) -> None:
    good, bad = FAULTS[fault]
    assert good in GOOD
    (line,) = [line for line in told(tmp_path, GOOD.replace(good, bad, 1)) if fault in line]
    assert line.startswith(str(tmp_path / "site" / "fire.yaml") + ":")


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ("log: Fire in hall", "log: Water in hall", "does not match"),
        (
            "log: Fire in hall",
            "log: 'no. [rank1]: Fire in 7 halls'",
            "seen gets as far as 'Fire in ' and finds '7 halls', not",
        ),
        (
            "{log: Fire in hall}",
            "{log: Smoke at hall, expect: {signature: smelt}}",
            "smelt gets as far as 'Smoke ' and",
        ),
        ("regex: 'Fire", "not: [all], regex: 'Fire", "; the regex of seen does: see its not, from and scope"),
        ("log: Fires in hall", "log: Fire in hall", "matches, but must not"),
        ("{log: Fire in hall}", "{log: Fire in hall, expect: {line: 2}}", "matches at line [1], not at 2"),
        ("{log: Fire in hall}", "{log: Fire in hall, expect: {rank: 3}}", "blames rank ['None'], not 3"),
        ("{log: Fire in hall}", "{log: Fire in hall, expect: {signature: smelt}}", "not by smelt"),
        ("{log: Fire in hall}", "{log: Fire in hall, expect: {facts: {room: cellar}}}", "room is 'hall', not 'cellar'"),
    ],
)
def test_examples_that_fail_are_told(good: str, bad: str, fault: str, tmp_path: Path) -> None:
    told(tmp_path, GOOD.replace(good, bad, 1))
    rules = load_rules([tmp_path])
    assert [fault in str(problem) for problem in run_examples(rules.active(), Engine(rules).explain_text)] == [True]
