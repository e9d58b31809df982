"""What the rules say: variables that exist, probes that exist, and the price of every fast path that is turned off."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from logdoc.catalog.environment import env_variable
from logdoc.probes.specs import PROBES, spec
from logdoc.reporting.fixes import verification
from logdoc.rulebase import load_rules, rule_roots
from logdoc.types.rule import Condition, FactReference, Fix, Rule, Text, Verify

RULES = list(load_rules(rule_roots()[:1]).active())
VARIABLE = re.compile(r"(?<![\w{])(?:NCCL|TORCH|PYTORCH|GLOO|CUDA)_[A-Z0-9][A-Z0-9_]*(?![\w*])")
DENIAL = re.compile(r"does not exist|do not exist|不存在")
FAST_PATH_OFF = re.compile(
    r"\bNCCL_(?:P2P_DISABLE|IB_DISABLE|SHM_DISABLE)=1\b|\bNCCL_(?:NVLS_ENABLE|CUMEM_ENABLE|MNNVL_ENABLE|GIN_ENABLE)=0\b"
    r"|\bNCCL_NET_GDR_LEVEL=LOC\b|\bNCCL_NET_PLUGIN=none\b|init_process_group\(['\"]gloo"
)
UNDONE = re.compile(
    r"\bundo\b|\bunset|afterwards|take the variable out|test run|while set|for tests? only", re.IGNORECASE
)
# Reading as root changes nothing; a system that has no sudo runs these as they are.
ONLY_READS = re.compile(
    r"^sudo (?:dmesg|journalctl|fuser|lspci|lsof|cat|ss|nvidia-bug-report\.sh|iptables -L|ipmitool sel)\b"
)


def said(rule: Rule) -> Iterator[str]:
    """Every text of a rule that a user reads or types, examples and patterns left out."""
    yield from (rule.title.en, rule.title.zh, rule.summary.en, rule.summary.zh, rule.no_probe or "")
    for fix in rule.fixes:
        yield from fix_texts(fix)


def fix_texts(fix: Fix) -> Iterator[str]:
    for text in (fix.title, fix.why, fix.verify.see):
        if text is not None:
            yield from (text.en, text.zh)
    yield from commands(fix)
    yield fix.verify.run or ""


def commands(fix: Fix) -> Iterator[str]:
    for lines in fix.run.values():
        yield from lines


def conditions(node: Condition | None) -> Iterator[Condition]:
    if node is None:
        return
    yield node
    for child in (*(node.any or ()), *(node.all or ()), *(node.none or ())):
        yield from conditions(child)


def known_fact(name: str) -> bool:
    return any(fits(fact, name) for entry in PROBES for fact in entry.facts)


def fits(declared: str, name: str) -> bool:
    return re.fullmatch(re.escape(declared).replace(r"\*", r"[\w-]+"), name) is not None


def own_names(rule: Rule) -> set[str]:
    """Captures and facts of the rule itself: what a probe's fact may be compared with."""
    captures = {name for one in rule.match.values() for name in re.findall(r"\(\?P<(\w+)>", one.regex)}
    return captures | set(rule.facts) | set(rule.derive)


def operands(node: Condition) -> Iterator[str]:
    for value in (node.eq, node.ne, node.gt, node.gte, node.lt, node.lte):
        if isinstance(value, FactReference):
            yield value.fact


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_names_a_variable_that_nobody_reads(rule: Rule) -> None:
    """Folklore (NCCL_TIMEOUT and its kin) must never be a fix; a text may name it to say that it does not exist."""
    unread = []
    for text in said(rule):
        for name in VARIABLE.findall(text):
            known = env_variable(name)
            if (known is None or known.status == "never-existed") and not DENIAL.search(text):
                unread.append(name)
    assert unread == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_probes_and_their_facts_exist(rule: Rule) -> None:
    for use in rule.probes:
        probe = spec(use.use)
        assert probe is not None, use.use
        nodes = [*conditions(use.confirms), *conditions(use.refutes)]
        asked = [node.fact for node in nodes if node.fact]
        assert asked, f"{use.use} judges nothing"
        assert [name for name in asked if not known_fact(name)] == []
        assert any(fits(fact, name) for fact in probe.facts for name in asked), f"{use.use} gives none of {asked}"
        compared = [name for node in nodes for name in operands(node)]
        assert [name for name in compared if not known_fact(name) and name not in own_names(rule)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_verification_asks_the_probe_for_a_fact_it_gives(rule: Rule) -> None:
    for fix in rule.fixes:
        if fix.verify.probe is not None:
            probe = spec(fix.verify.probe)
            assert probe is not None, fix.verify.probe
            for node in conditions(fix.verify.expect):
                assert node.fact is None or any(fits(fact, node.fact) for fact in probe.facts), node.fact


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_verification_by_a_probe_can_be_typed_as_one_line(rule: Rule) -> None:
    lines = [verification(fix.verify, {}, "en") for fix in rule.fixes if fix.verify.probe is not None]
    assert [line for line in lines if "\n" in line] == []
    shell = subprocess.run(["bash", "-n"], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert (shell.returncode, shell.stderr) == (0, "")


def test_a_probe_and_a_command_are_verified_one_after_the_other() -> None:
    seen = Text(en="prints 1", zh="输出 1")
    both = Verify(
        probe="fabric", expect=Condition(fact="fabric.manager_active", eq=True), run="nvidia-smi -L", see=seen
    )
    line = "logdoc probe fabric --expect 'fabric.manager_active=true' && nvidia-smi -L  # prints 1"
    assert verification(both, {}, "en") == line
    assert verification(Verify(see=seen), {}, "zh") == "输出 1"


@pytest.mark.parametrize("rule", [one for one in RULES if one.kind == "cause"], ids=lambda rule: rule.id)
def test_every_cause_can_be_probed_or_says_why_not(rule: Rule) -> None:
    assert bool(rule.probes) != bool(rule.no_probe)


@pytest.mark.parametrize("rule", [one for one in RULES if one.kind == "cause"], ids=lambda rule: rule.id)
def test_every_cause_says_what_a_restart_is_worth(rule: Rule) -> None:
    assert rule.restart != "unknown" or rule.id in {
        "gpu.cuda-error-other",
        "gpu.launch-failure",
        "gpu.xid-other",
        "host.os-call-failed",
        "host.windows-api-failure",
        "install.gdrcopy-missing",
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_fast_path_turned_off_states_its_price_and_its_end(rule: Rule) -> None:
    for fix in rule.fixes:
        if any(FAST_PATH_OFF.search(command) for command in commands(fix)):
            assert fix.risk in ("slower", "changes-results"), fix.title.en
            # gloo in place of NCCL is a choice of backend, which its own line can take back.
            if not any("gloo" in command for command in commands(fix)):
                assert UNDONE.search(" ".join(fix_texts(fix))), fix.title.en


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_root_commands_are_marked(rule: Rule) -> None:
    for fix in rule.fixes:
        acting = [command for command in commands(fix) if acts_as_root(command)]
        assert not acting or fix.risk == "needs-admin", acting


def acts_as_root(command: str) -> bool:
    parts = re.split(r"&&|\|\||[;|]", command.split("   #")[0])
    return any(part.strip().startswith("sudo ") and not ONLY_READS.match(part.strip()) for part in parts)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_chinese_uses_chinese_punctuation_and_keeps_terms(rule: Rule) -> None:
    """Full-width marks in the sentences; the terms of the trade that engineers do not translate stay as they are."""
    for text in chinese(rule):
        assert not re.search(r"[\u4e00-\u9fff][,;?!](?:\s|$|[\u4e00-\u9fff])", text), text
        assert "检查点" not in text, text
        assert not re.search(r"通信器|通信组", text), text


def chinese(rule: Rule) -> Iterator[str]:
    yield from (rule.title.zh, rule.summary.zh)
    for fix in rule.fixes:
        yield from (text.zh for text in (fix.title, fix.why, fix.verify.see) if text is not None)
