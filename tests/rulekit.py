"""Small rules for tests of the stages, made through the real loader."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules

_TEMPLATE = """\
schema: logdoc.rule/v1
id: {id}
kind: {kind}
title: {{en: Title of {id}, zh: 标题 {id}}}
summary: {{en: Summary of {id}., zh: 摘要 {id}。}}
{body}
fixes: [{{title: {{en: Fix it, zh: 修复}}, run: {{any: [fix]}}, verify: {{run: check}}}}]
examples: {{must_match: [], must_not_match: []}}
"""


def write_rule(root: Path, rule_id: str, body: str, kind: str = "cause") -> Path:
    """A rule file with everything that is not under test filled in."""
    path = root / (rule_id.replace(".", "/") + ".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _TEMPLATE.format(id=rule_id, kind=kind, body=indent(dedent(body).strip("\n"), ""))
    path.write_text(text, encoding="utf-8")
    return path


def rules_of(root: Path, **bodies: str) -> RuleSet:
    """Rules by id (`a__b` stands for `a.b`; a leading `symptom:`/`noise:` line sets the kind)."""
    for name, body in bodies.items():
        kind = "cause"
        for word in ("symptom", "noise"):
            if body.lstrip().startswith(f"{word}:"):
                kind, body = word, body.lstrip().removeprefix(f"{word}:")
        write_rule(root, name.replace("__", "."), body, kind)
    return load_rules([root])


def engine_of(root: Path, **bodies: str) -> Engine:
    return Engine(rules_of(root, **bodies))
