"""A rule as a Markdown page with fixed headings, in one language; made from the YAML, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.reporting.fixes import probe_command
from logdoc.reporting.wording import PLACEHOLDER
from logdoc.types.rule import Fix, Rule

_HEADINGS = {
    "what": {"en": "What it means", "zh": "含义"},
    "shows": {"en": "What shows it", "zh": "如何识别"},
    "fix": {"en": "What to do", "zh": "如何处理"},
    "probes": {"en": "What confirms it", "zh": "如何证实"},
    "relations": {"en": "Relations", "zh": "关联"},
    "example": {"en": "Example", "zh": "示例"},
    "not": {"en": "Not this", "zh": "不是这个问题"},
    "references": {"en": "References", "zh": "参考"},
    "verify": {"en": "Verify", "zh": "验证"},
}


def rule_page(rule: Rule, language: str) -> str:
    """The page of a rule, GitHub Markdown, ending with a newline."""
    return "\n".join(_lines(rule, language)).rstrip() + "\n"


def _lines(rule: Rule, language: str) -> Iterator[str]:
    yield from (f"# {plain(rule.title.in_language(language))}", "", f"`{rule.id}` · {rule.kind} · {rule.severity}", "")
    yield from (f"## {_HEADINGS['what'][language]}", "", plain(rule.summary.in_language(language)), "")
    yield from (f"## {_HEADINGS['shows'][language]}", "", "```")
    yield from (signature.regex for signature in rule.match.values())
    yield from ("```", "")
    if rule.fixes:
        yield from (f"## {_HEADINGS['fix'][language]}", "")
        for fix in rule.fixes:
            yield from _fix(fix, language)
    if rule.probes:
        yield from (f"## {_HEADINGS['probes'][language]}", "")
        yield from (f"- `logdoc probe {probe.use}` ({probe.strength})" for probe in rule.probes)
        yield ""
    relations = [("masks", rule.masks), ("explained_by", tuple(one.rule for one in rule.explanations))]
    if any(names for _, names in relations):
        yield from (f"## {_HEADINGS['relations'][language]}", "")
        yield from (f"- {word}: {', '.join(f'`{name}`' for name in names)}" for word, names in relations if names)
        yield ""
    for example in rule.examples.must_match[:2]:
        yield from (f"## {_HEADINGS['example'][language]}", "", "```", *example.log.strip("\n").split("\n"), "```", "")
    for near_miss in rule.examples.must_not_match[:2]:
        yield from (f"## {_HEADINGS['not'][language]}", "", near_miss.why, "", "```")
        yield from (*near_miss.log.strip("\n").split("\n"), "```", "")
    if rule.references:
        yield from (f"## {_HEADINGS['references'][language]}", "")
        yield from (f"- [{reference.title}]({reference.url})" for reference in rule.references)


def _fix(fix: Fix, language: str) -> Iterator[str]:
    yield from (f"### {plain(fix.title.in_language(language))} ({fix.risk})", "")
    if fix.why is not None:
        yield from (plain(fix.why.in_language(language)), "")
    for environment, commands in fix.run.items():
        yield from (f"{environment}:", "", "```", *commands, "```", "")
    steps = [probe_command(fix.verify), fix.verify.run, fix.verify.see.in_language(language) if fix.verify.see else None]
    told = " — ".join(step for step in steps if step)
    if told:
        yield from (f"{_HEADINGS['verify'][language]}: {plain(told)}", "")


def plain(text: str) -> str:
    """A text with its placeholders as code: outside a report there is nothing to fill them with, and bare `<name>`
    would be taken for HTML."""
    return PLACEHOLDER.sub(lambda found: f"`<{found['name']}>`", text)
