"""Rules and probes fit: a rule only judges by facts that the probes it asks for give, or that its own log lines do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from logdoc.probes.specs import spec
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from logdoc.types.rule import Condition, FactReference, ProbeUse, Rule

RULES = list(load_rules(rule_roots()[:1]).active())
GROUP = re.compile(r"\(\?P<(\w+)>")


def given(probes: Iterable[str]) -> set[str]:
    """Patterns of the facts that these probes give."""
    found = [spec(probe) for probe in probes]
    return {pattern for one in found if one is not None for pattern in one.facts}


def own_facts(rule: Rule) -> set[str]:
    """What the rule's own lines in the log tell it."""
    captures = {name for signature in rule.match.values() for name in GROUP.findall(signature.regex)}
    return captures | set(rule.facts) | set(rule.derive)


def faults(rule: Rule) -> Iterator[str]:
    """What a rule asks of probes that they cannot answer."""
    yield from (f"{use.use} is no probe" for use in rule.probes if spec(use.use) is None)
    known = given(use.use for use in rule.probes) | own_facts(rule)
    for use in rule.probes:
        for condition in (use.confirms, use.refutes):
            for name in condition.fact_ids() if condition is not None else ():
                if not any(fnmatchcase(name, pattern) for pattern in known):
                    yield f"{use.use} is judged by {name}, which no probe of the rule gives"
    for verify in (fix.verify for fix in rule.fixes if fix.verify.probe is not None):
        assert verify.probe is not None
        for name in verify.expect.fact_ids() if verify.expect is not None else ():
            if not any(fnmatchcase(name, pattern) for pattern in given([verify.probe])):
                yield f"a fix is verified by {name}, which {verify.probe} does not give"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_probes_of_a_rule_give_what_it_judges_by(rule: Rule) -> None:
    assert list(faults(rule)) == []


def test_a_condition_names_every_fact_in_it() -> None:
    compared = Condition(fact="torch.version", lt=FactReference(fact="nccl.version"), ne="2.0")
    tree = Condition(all=(compared, Condition(none=(Condition(any=(Condition(fact="gpu.count", eq=0),)),))))
    assert [place for _, place in tree.nodes(("when",))] == [
        ("when",),
        ("when", "all", 0),
        ("when", "all", 1),
        ("when", "all", 1, "none", 0),
        ("when", "all", 1, "none", 0, "any", 0),
    ]
    assert list(tree.fact_ids()) == ["torch.version", "nccl.version", "gpu.count"]


def test_the_check_finds_a_fact_from_a_probe_that_is_not_asked(rule_set: RuleSet) -> None:
    rule = rule_set.rules["install.torch-cpu-build"]
    wrong = Condition(any=(Condition(fact="torch.has_nccl", eq=False), Condition(fact="gpu.count", eq=0)))
    uses = (ProbeUse(use="torch-build", confirms=wrong), ProbeUse(use="no-such"))
    assert list(faults(replace(rule, probes=uses, fixes=()))) == [
        "no-such is no probe",
        "torch-build is judged by gpu.count, which no probe of the rule gives",
    ]
