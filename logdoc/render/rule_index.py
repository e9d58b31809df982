"""The index of the generated rule pages: by area, and by the words of the messages that lead to each rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logdoc.render.rule_page import plain
from logdoc.reporting.wording import phrase
from logdoc.types.rule import Rule

LONGEST_MESSAGE = 120


def page_path(rule: Rule) -> str:
    """Where a rule's page lies below a language's folder; ids never die, so links to it hold."""
    return f"{rule.area}/{rule.id.split('.', 1)[1]}.md"


def rule_index(rules: Sequence[Rule], language: str) -> str:
    """The index page, Markdown; links are relative to it."""
    return "\n".join(_lines(rules, language)) + "\n"


def _lines(rules: Sequence[Rule], language: str) -> Iterator[str]:
    yield from (f"# {phrase('page.rules', language)}", "", f"## {phrase('page.by_area', language)}", "")
    for area in sorted({rule.area for rule in rules}):
        yield from (f"### {area}", "")
        for rule in rules:
            if rule.area == area:
                title = plain(rule.title.in_language(language))
                yield f"- [`{rule.id}`]({page_path(rule)}) ({phrase(f'word.{rule.kind}', language)}): {title}"
        yield ""
    yield from (f"## {phrase('page.by_message', language)}", "")
    said = [(_message(example.log), rule) for rule in rules for example in rule.examples.must_match[:3]]
    messages = sorted(said, key=lambda pair: (pair[0], pair[1].id))
    for message, rule in messages:
        fence = "``" if "`" in message else "`"
        yield f"- {fence}{message}{fence} → [`{rule.id}`]({page_path(rule)})"


def _message(log: str) -> str:
    """The line of an example that is most like a message: the last that is not indented."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    return (lines[-1] if lines else log.strip())[:LONGEST_MESSAGE]
