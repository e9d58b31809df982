"""Which rules speak of these words, and how well they fit: a title or id counts more than a pattern, that more than
other texts. Knows nothing of likeness between messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from logdoc.kept.sentences import PLACEHOLDER
from logdoc.types.rule import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

IN_NAME, IN_PATTERN, IN_TEXT = 1.0, 0.7, 0.4
PART_OF_A_WORD = 0.5  # what is left of that where it stands within a longer word, as `of` in `profile`
TOGETHER = 0.5  # the share of words that stand together, as they were typed
TERSE = 0.1  # the share of a name that says little else


def searchable(rule: Rule) -> str:
    """Everything of a rule that a user may remember of it, in lower case."""
    return "\n".join(text for text, _ in _parts(rule))


def rules_with(words: str, rules: Iterable[Rule]) -> list[Rule]:
    """The rules in which every word occurs, in the order given; all for no words."""
    wanted = words.lower().split()
    return [rule for rule in rules if _holds(searchable(rule), wanted)]


def fit(words: str, rule: Rule) -> float:
    """How well the words fit a rule in which all of them occur: above 0 to 1, the whole of its id or title."""
    wanted = words.lower().split()
    parts = _parts(rule)
    each = sum(max(_found(word, text) * weight for text, weight in parts) for word in wanted) / len(wanted)
    together = max(_found(" ".join(wanted), text) * weight for text, weight in parts)
    names = [text.split() for text, weight in parts if weight == IN_NAME]
    terse = max(len(wanted) / len(name) if set(wanted) <= set(name) else 0.0 for name in names)
    return (1 - TOGETHER - TERSE) * each + TOGETHER * together + TERSE * min(terse, 1.0)


def _holds(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


def _parts(rule: Rule) -> list[tuple[str, float]]:
    """The rule's texts in lower case, each with its weight. A pattern's blanks and dots are as its message has them."""
    names = [rule.id, rule.id.replace(".", " ").replace("-", " "), *map(_without_holes, (rule.title.en, rule.title.zh))]
    patterns = [signature.regex.replace("\\", "") for signature in rule.match.values()]
    patterns += [signature.regex for signature in rule.match.values()]
    texts = [rule.summary.en, rule.summary.zh, *(example.log for example in rule.examples.must_match)]
    weighed = ((names, IN_NAME), (patterns, IN_PATTERN), (texts, IN_TEXT))
    return [(text.lower(), weight) for some, weight in weighed for text in some]


def _without_holes(title: str) -> str:
    return PLACEHOLDER.sub(lambda found: found["default"] or "", title)


def _found(words: str, text: str) -> float:
    """1 where the words stand in the text, less where they are only a part of longer ones, 0 where they do not."""
    if words not in text:
        return 0.0
    return 1.0 if not words.isascii() or _whole(words).search(text) else PART_OF_A_WORD


@cache
def _whole(words: str) -> re.Pattern[str]:
    import re

    return re.compile(rf"(?<![a-z0-9]){re.escape(words)}(?![a-z0-9])")
