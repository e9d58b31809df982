"""Literal pass and regexes: both engines find the same, and what a signature says about itself is kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from logdoc.matcher import LiteralScanner, Matcher, Prefilter
from logdoc.reader import ReadState, read
from logdoc.rulebase import RuleSet, build_index
from logdoc.scanner.engines import AhoCorasickScanner, HyperscanScanner
from logdoc.types.finding import Match
from tests.rulekit import rules_of

Scanner = Callable[[Sequence[bytes]], LiteralScanner]
ENGINES = [HyperscanScanner, AhoCorasickScanner]


def find(rules: RuleSet, text: str, scanner: Scanner = AhoCorasickScanner) -> list[Match]:
    matcher = Matcher(Prefilter(build_index(rules.active()), scanner))
    batches = read("log", [text.encode("utf-8", "surrogatepass")], ReadState())
    return [match for batch in batches for match in matcher.find(batch)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.binary(min_size=3, max_size=6).filter(lambda text: not {0, 10} & set(text)),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.binary(max_size=300),
)
def test_the_engines_agree_on_any_bytes(literals: list[bytes], noise: bytes) -> None:
    buffer = noise + b"".join(literals) + noise[::-1]
    assert HyperscanScanner(literals).ends(buffer) == AhoCorasickScanner(literals).ends(buffer)


def test_the_engines_agree_on_all_rules_and_their_examples(rule_set: RuleSet) -> None:
    text = "\n".join(example.log for rule in rule_set.active() for example in rule.examples.must_match)
    hits = [
        [(match.rule.id, match.name, match.line, match.start) for match in find(rule_set, text, scanner)]
        for scanner in ENGINES
    ]
    assert hits[0] == hits[1]
    assert hits[0]


def test_captures_line_and_rank_of_a_match(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b=r"match: {seen: {regex: '^lost rank (?P<rank>\d+) at (?P<what>\w+)'}}")
    found = find(rules, "[rank1]: noise\n[rank1]: lost rank 7 at sea\n")
    assert [(match.rank, match.line, match.captures["what"]) for match in found] == [(7, 2, "sea")]


def test_the_line_within_a_joined_record(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: '^ValueError: drowned'}}")
    text = 'Traceback (most recent call last):\n  File "a.py"\n    raise ValueError: drowned\nValueError: drowned\n'
    assert [match.line for match in find(rules, text)] == [4]


def test_not_takes_a_match_back_anywhere_in_the_record(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned', not: ['^  harmless']}}")
    assert len(find(rules, "drowned\n")) == 1
    assert find(rules, "drowned\n  harmless\n") == []


def test_from_asks_for_a_dialect(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned', from: [nccl]}}")
    assert find(rules, "drowned\n") == []
    assert len(find(rules, "n1:1:2 [0] NCCL INFO drowned\n")) == 1


def test_a_fallback_judges_only_what_nobody_claims(tmp_path: Path) -> None:
    rules = rules_of(
        tmp_path,
        a__any="match: {seen: {regex: '^ValueError'}}\nfallback: true",
        a__own="match: {seen: {regex: 'ValueError: drowned'}}",
    )
    assert [match.rule.id for match in find(rules, "ValueError: drowned\n\nValueError: lost\n")] == ["a.own", "a.any"]


def test_noise_takes_weak_evidence_back_but_not_strong(tmp_path: Path) -> None:
    rules = rules_of(
        tmp_path,
        a__weak="match: {seen: {regex: 'drowned', strength: weak}}",
        a__strong="match: {seen: {regex: 'drowned'}}",
        a__noise="noise:match: {seen: {regex: 'drowned'}}",
    )
    assert sorted(match.rule.id for match in find(rules, "drowned\n")) == ["a.noise", "a.strong"]


def test_caseless_literals(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: '(?i)out of water'}}")
    for scanner in ENGINES:
        assert len(find(rules, "Out Of Water\n", scanner)) == 1


@pytest.mark.parametrize("scanner", ENGINES)
def test_wide_characters_before_a_hit_do_not_shift_it(tmp_path: Path, scanner: Scanner) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned (?P<x>.)$'}}")
    text = "  第一行😀\n" + "é" * 9000 + " drowned 水\n"
    assert [match.captures["x"] for match in find(rules, "head\n" + text, scanner)] == ["水"]


def test_a_storm_is_counted_not_kept(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned again'}}")
    matcher = Matcher(Prefilter(build_index(rules.active()), AhoCorasickScanner))
    kept = sum(len(matcher.find(batch)) for batch in read("log", [b"drowned again\n" * 5000], ReadState()))
    assert kept + matcher.dropped["a.b", "seen"] == 5000
    assert kept <= 200


@pytest.mark.parametrize(
    "prefix", ["[default{}]:", "(RayTrainWorker pid=70{}) ", "n1:70{}:9 [0] NCCL WARN ", "[rank{}]: "]
)
def test_the_storm_of_one_printer_leaves_room_for_the_next(tmp_path: Path, prefix: str) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned again'}}")
    found = find(rules, f"{prefix.format(0)}drowned again\n" * 139 + f"{prefix.format(1)}drowned again\n")
    assert (len(found), found[-1].line) == (101, 140)


def test_of_ten_thousand_printers_each_is_kept_and_no_more(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned again'}}")
    text = "".join(f"(RayTrainWorker pid={pid}) drowned again\n" * 4 for pid in range(10_000))
    found = find(rules, text)
    assert {match.record.who.pid for match in found} == set(range(10_000))
    assert len(found) < 20_000


@pytest.mark.parametrize(
    "line", ["    raise ValueError('drowned')", "  assert ok, 'drowned'", "logger.error('drowned')"]
)
def test_source_code_that_a_traceback_echoes_is_no_evidence(tmp_path: Path, line: str) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'drowned'}}")
    assert find(rules, f"{line}\n") == []
    assert len(find(rules, "it drowned\n")) == 1


def mutated(dice: random.Random, lines: list[str]) -> str:
    """A line of the examples, cut short, doubled, joined with another's end, or of other case here and there."""
    one, other = dice.choice(lines), dice.choice(lines)
    at, to = dice.randrange(len(one) + 1), dice.randrange(len(other) + 1)
    return dice.choice([one, one[:at], one[at:], one[:at] + other[to:], f"{other} {one}", one.swapcase(), "é\t" + one])


def test_no_match_of_any_rule_is_lost_on_lines_like_those_of_the_examples(rule_set: RuleSet) -> None:
    dice = random.Random(11)
    examples = [example.log for rule in rule_set.active() for example in rule.examples.must_match]
    lines = [line for log in examples for line in log.splitlines() if line.strip()]
    signatures = [
        (rule.id, name, signature.regex, regex.compile(signature.regex, regex.MULTILINE))
        for rule in rule_set.active()
        for name, signature in rule.match.items()
    ]
    prefilter = Prefilter(build_index(rule_set.active()))
    for line in (mutated(dice, lines) for _ in range(250)):
        tried = {(entry.rule_id, entry.name) for entry, _ in prefilter.hits(line.encode())}
        plain = {(rule_id, name) for rule_id, name, _, pattern in signatures if pattern.search(line)}
        needed = {(rule_id, name) for rule_id, name in plain if not rule_set.rules[rule_id].match[name].needs}
        assert needed <= tried, line
