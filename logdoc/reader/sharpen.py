"""Which of a dialect's patterns can match a text that begins with a given character; decides nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from logdoc.dialects import Dialect
from logdoc.types.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start_of(text: str) -> str:
    """What `sharpened` judges by: the first character, and behind a bracket, the usual one, also the second."""
    return text[:2] if text[0] == "[" else text[0]


def sharpened(dialects: Iterable[Dialect], start: str) -> tuple[Dialect, ...]:
    """The dialects without the patterns that cannot match a text of this start, and without those that are left bare.

    A character beyond ASCII keeps everything: classes such as `\\w` hold many of them.
    """
    if not start.isascii():
        return tuple(dialects)
    found = []
    for dialect in dialects:
        if dialect.extract is not None:
            found.append(dialect)
            continue
        patterns = tuple(one for one in dialect.patterns if _may_match(one, start))
        if patterns:
            found.append(dialect if len(patterns) == len(dialect.patterns) else replace(dialect, patterns=patterns))
    return tuple(found)


def _may_match(pattern: re.Pattern[str], start: str) -> bool:
    text = pattern.pattern
    if start[0] not in _first_characters(text, pattern.flags):
        return False
    if len(start) < 2 or not text.startswith(r"\[") or text[2:3] in ("?", "*", "+", "{", "|") or "|" in _bare(text):
        return True
    return start[1] in _first_characters(text[2:], pattern.flags)


def _bare(text: str) -> str:
    """A pattern without its groups and classes: an alternative left here is one of the whole pattern."""
    before = ""
    while before != text:
        before, text = text, re.sub(r"\\.|\[[^\]]*\]|\([^()]*\)", "", text)
    return text


_ASCII = frozenset(map(chr, range(128)))


@cache
def _first_characters(pattern: str, flags: int) -> frozenset[str]:
    """The ASCII characters a match can begin with; all of them where the pattern does not tell."""
    import re._parser as parser  # type: ignore[import-not-found]

    if flags & (re.IGNORECASE | re.VERBOSE):
        return _ASCII
    first, may_be_empty = _of_sequence(parser.parse(pattern))
    return _ASCII if may_be_empty else first


def _of_sequence(items: Any) -> tuple[frozenset[str], bool]:
    """The first characters of a sequence, and whether it may match without any."""
    found: frozenset[str] = frozenset()
    for operation, argument in items:
        first, may_be_empty = _of_item(str(operation), argument)
        found |= first
        if not may_be_empty:
            return found, False
    return found, True


def _of_item(operation: str, argument: Any) -> tuple[frozenset[str], bool]:
    if operation in ("AT", "ASSERT", "ASSERT_NOT"):
        return frozenset(), True
    if operation == "LITERAL":
        return frozenset(chr(argument)), False
    if operation == "IN":
        return _of_class(argument), False
    if operation == "SUBPATTERN":
        return _of_sequence(argument[3])
    if operation == "BRANCH":
        branches = [_of_sequence(branch) for branch in argument[1]]
        return frozenset().union(*(first for first, _ in branches)), any(empty for _, empty in branches)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        first, may_be_empty = _of_sequence(argument[2])
        return first, may_be_empty or argument[0] == 0
    return _ASCII, False


def _of_class(items: Sequence[Any]) -> frozenset[str]:
    """A character class, asked of `re` itself, character by character."""
    import re._parser as parser

    state = parser.State()
    tree = parser.SubPattern(state, [(parser.IN, list(items))])
    import re._compiler as compiler  # type: ignore[import-not-found]

    one = compiler.compile(tree)
    return frozenset(character for character in _ASCII if one.match(character))
