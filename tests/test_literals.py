"""The literals derived from a pattern occur in whatever it matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdoc.rulebase import RuleSet
from logdoc.rulebase.index import signature_literals
from logdoc.rulebase.literals import literals_of


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
