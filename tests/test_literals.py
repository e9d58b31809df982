"""The literals derived from a pattern occur in whatever it matches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdoc.rulebase import RuleSet, load_rules
from logdoc.rulebase.check import lint
from logdoc.rulebase.index import signature_literals
from logdoc.rulebase.literals import literals_of
from tests.rulekit import rules_of

ROOT = Path(__file__).parent.parent
HEALTHY = ROOT / "tests" / "data" / "healthy"


@pytest.mark.parametrize(
    ("regex", "strings"),
    [
        ("Failed to CUDA [cm]alloc of", {"Failed to CUDA malloc of", "Failed to CUDA calloc of"}),
        (r"\d+(?:abc|defg)?\s*hijk", {"hijk"}),
        (r"(?:abc|defg)\d", {"abc", "defg"}),
        (r"x(?:ab|cd)y?z\d", None),
        (r"\d+", None),
        (r"ab\d", None),
        (r"(?i)Out Of Memory", {"out of memory"}),
        (r"number of nan iterations: +[1-9] \| lost", {" | lost"}),  # the longer one is in every line of Megatron's
    ],
)
def test_derivation(regex: str, strings: set[str] | None) -> None:
    found = literals_of(regex)
    if strings is None:
        assert found is None or all(len(text) >= 3 for text in found.strings)
    else:
        assert found is not None
        assert found.strings == strings


PIECES = st.sampled_from(
    ["abc", "de", r"\d+", "[xy]", "(?:foo|ba)", "z?", r"\w*", "(?:qux)+", ".", r"\s*", "^", "(?:a|bcd)?"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=6), st.data())
def test_no_match_without_a_literal(pieces: list[str], data: st.DataObject) -> None:
    regex = "".join(pieces)
    literals = literals_of(regex)
    sample = data.draw(st.from_regex(re.compile(regex), fullmatch=False))
    found = re.search(regex, sample)
    if literals is not None and found is not None:
        assert any(text in found.group() for text in literals.strings)


def test_every_example_line_that_matches_holds_a_literal(rule_set: RuleSet) -> None:
    for rule in rule_set.active():
        text = "\n".join(example.log for example in rule.examples.must_match)
        for name, signature in rule.match.items():
            literals = signature_literals(signature)
            assert literals is not None, (rule.id, name)
            for found in re.finditer(signature.regex, text, re.MULTILINE):
                held = found.group().lower() if literals.caseless else found.group()
                inside = any(literal in held for literal in literals.strings)
                assert inside or signature.needs, (rule.id, name, found.group())


def test_the_benign_sample_is_of_the_healthy_corpus() -> None:
    corpus = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(HEALTHY.glob("*.log")))
    sample = (ROOT / "logdoc" / "data" / "benign.txt").read_text(encoding="utf-8").splitlines()
    assert len(sample) > 50
    assert [line for line in sample if line not in corpus.replace("\r", "\n")] == []


def test_a_literal_that_healthy_jobs_print_all_the_time_fails_the_lint(tmp_path: Path) -> None:
    rules = rules_of(
        tmp_path,
        a__often="match: {seen: {regex: 'grad_norm'}}",
        a__rare="match: {seen: {regex: 'Fire in the rack'}}",
        a__noise="noise:match: {seen: {regex: 'grad_norm'}}",
    )
    found = [(Path(problem.path).name, problem.message) for problem in lint(rules) if "all the time" in problem.message]
    assert [name for name, _ in found] == ["often.yaml"]
    assert "'grad_norm'" in found[0][1]


def test_needs_that_hide_an_example_fail_the_lint(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {seen: {regex: 'Fire in the \\w+', needs: [rack]}}")
    path = tmp_path / "a" / "b.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "must_match: []", "must_match: [{name: shed, log: Fire in the shed}]"
    )
    path.write_text(text, encoding="utf-8")
    assert any("no literal of it is in this example" in problem.message for problem in lint(load_rules([tmp_path])))
    assert rules.rules
