"""How far a pattern gets in a text that it does not match: a hint for whoever writes a rule. Judges nothing."""

from __future__ import annotations

import regex

from logdoc.reader.peel import Peeler
from logdoc.types.rule import Rule

LEAST = 4  # characters; fewer are found anywhere
MOST_SHOWN = 40
SECONDS = 0.1  # for one search


def how_far(rule: Rule, log: str, wanted: str | None) -> str:
    """What to add to "does not match", of the signature `wanted` or of the one that gets furthest; may be empty."""
    peeler = Peeler()
    text = "\n".join(peeler.peel(number, line).text for number, line in enumerate(log.split("\n"), start=1))
    patterns = {
        name: signature.regex
        for name, signature in rule.match.items()
        if wanted in (None, name) and signature.role == "evidence"
    }
    reached = {name: _beginning(pattern, text) for name, pattern in patterns.items()}
    name = max(reached, key=lambda name: reached[name][0] / len(patterns[name]), default=None)
    if name is None or reached[name][0] == 0:
        return ""
    (length, end), pattern = reached[name], patterns[name]
    if length == len(pattern):
        return f"; the regex of {name} does: see its not, from and scope, and the rule's when"
    found, missing = text[end:].split("\n")[0][:MOST_SHOWN], pattern[length:][:MOST_SHOWN]
    return f"; {name} gets as far as {pattern[:length]!r} and finds {found!r}, not {missing!r}"


def _beginning(pattern: str, text: str) -> tuple[int, int]:
    """The length of the longest beginning of the pattern that occurs in the text, and where it ends there; 0, 0 where
    none of note does."""
    for length in range(len(pattern), 0, -1):
        try:
            found = regex.compile(pattern[:length], regex.MULTILINE).search(text, timeout=SECONDS)
        except (regex.error, TimeoutError):
            continue
        if found is not None and found.end() - found.start() >= LEAST:
            return length, found.end()
    return 0, 0
