"""A rule as a Markdown page with fixed headings, in one language; made from the YAML, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.kept.sentences import PLACEHOLDER
from logdoc.reporting.fixes import probe_command
from logdoc.reporting.wording import phrase
from logdoc.types.rule import Fix, Rule


def rule_page(rule: Rule, language: str) -> str:
    """The page of a rule, GitHub Markdown, ending with a newline."""
    return "\n".join(_lines(rule, language)).rstrip() + "\n"


def _lines(rule: Rule, language: str) -> Iterator[str]:
    what = f"{phrase(f'word.{rule.kind}', language)} · {phrase(f'severity.{rule.severity}', language)}"
    yield from (f"# {plain(rule.title.in_language(language))}", "", f"`{rule.id}` · {what}", "")
    yield from (f"## {phrase('page.what', language)}", "", plain(rule.summary.in_language(language)), "")
    yield from (f"## {phrase('page.shows', language)}", "", "```")
    yield from (signature.regex for signature in rule.match.values())
    yield from ("```", "")
    if rule.fixes:
        yield from (f"## {phrase('page.fix', language)}", "")
        for fix in rule.fixes:
            yield from _fix(fix, language)
    if rule.probes:
        yield from (f"## {phrase('page.probes', language)}", "")
        yield from (
            f"- `logdoc probe {probe.use}` ({phrase(f'page.{probe.strength}', language)})" for probe in rule.probes
        )
        yield ""
    relations = [("masks", rule.masks), ("explained_by", tuple(one.rule for one in rule.explanations))]
    if any(names for _, names in relations):
        yield from (f"## {phrase('page.relations', language)}", "")
        for word, names in relations:
            if names:
                listed = ", ".join(f"`{name}`" for name in names)
                yield f"- {_labelled(f'page.{word}', listed, language)}"
        yield ""
    for example in rule.examples.must_match[:2]:
        yield from (f"## {phrase('page.example', language)}", "", "```")
        yield from (*example.log.strip("\n").split("\n"), "```", "")
    for near_miss in rule.examples.must_not_match[:2]:
        yield from (f"## {phrase('page.not', language)}", "", near_miss.why, "", "```")
        yield from (*near_miss.log.strip("\n").split("\n"), "```", "")
    if rule.references:
        yield from (f"## {phrase('text.references', language)}", "")
        yield from (f"- [{reference.title}]({reference.url})" for reference in rule.references)


def _fix(fix: Fix, language: str) -> Iterator[str]:
    risk = phrase("page.safe" if fix.risk == "safe" else f"word.{fix.risk}", language)
    yield from (f"### {plain(fix.title.in_language(language))} ({risk})", "")
    if fix.why is not None:
        yield from (plain(fix.why.in_language(language)), "")
    for environment, commands in fix.run.items():
        name = phrase("page.any", language) if environment == "any" else environment
        heading = phrase("text.labelled", language, label=name, text="").strip()
        yield from (heading, "", "```", *commands, "```", "")
    seen = fix.verify.see.in_language(language) if fix.verify.see else None
    steps = [probe_command(fix.verify), fix.verify.run, seen]
    told = " — ".join(step for step in steps if step)
    if told:
        yield from (_labelled("text.verify", plain(told), language), "")


def _labelled(key: str, text: str, language: str) -> str:
    return phrase("text.labelled", language, label=phrase(key, language), text=text)


def plain(text: str) -> str:
    """A text with its placeholders as code: outside a report there is nothing to fill them with, and bare `<name>`
    would be taken for HTML."""
    return PLACEHOLDER.sub(lambda found: f"`<{found['name']}>`", text)
