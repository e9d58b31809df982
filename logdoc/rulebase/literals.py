"""From a regex, the literals of which one must occur wherever it matches: they carry the one fast pass over a log.

Works on the parse tree of the standard library's `re`, whose syntax rules keep to. Method: each part of a pattern has
either a small set of exact strings or none; neighbouring exact parts are multiplied out; the best set wins.
"""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from functools import cache
from typing import Any

from logdoc.rulebase.benign import is_frequent
from logdoc.types.value import dataclass

MOST_STRINGS = 64
SHORTEST = 3
LONGEST = 32

# Words so frequent in healthy logs that a longer or rarer companion is always better.
_COMMON = frozenset(
    ["error", "failed", "warning", "info", "nccl", "nccl warn", "nccl info", "cuda", "rank", "device", "torch", "time",
     "memory", "runtimeerror", "runtimeerror: ", "valueerror: ", "expected ", "error: ", "failed to ", " failed",
     "process"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Literals:
    """One of `strings` occurs in every match (caseless: in any letter case, the strings are lower case)."""

    strings: frozenset[str]
    caseless: bool


@dataclass(slots=True)
class _Part:
    """What a piece of a pattern guarantees: all strings it can be (`exact`), and the best sets found inside it."""

    exact: frozenset[str] | None
    sets: list[frozenset[str]]


_EMPTY = frozenset({""})


@cache
def literals_of(regex: str) -> Literals | None:
    """The literals a match of `regex` must contain, or None if the pattern guarantees none of three characters.

    Of several sets, one that healthy logs do not print all the time is preferred, then the longest strings.
    """
    tree = sre_parser.parse(regex)
    caseless = bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE) or "(?i" in regex
    part = _sequence(tree, caseless)
    sets = [*part.sets, *([part.exact] if part.exact else [])]
    usable = [_within_a_line(found) for found in sets]
    usable = [found for found in usable if found and min(map(len, found)) >= SHORTEST]
    if not usable:
        return None
    usable.sort(key=_worth, reverse=True)
    cut = [_cut(found, caseless) for found in usable]
    best = next((found for found in cut if _is_rare(found, caseless)), cut[0])
    return Literals(best, caseless)


def _cut(strings: frozenset[str], caseless: bool) -> frozenset[str]:
    """Long strings to their first LONGEST characters, or to the last where those are rarer."""
    return frozenset(
        text[-LONGEST:] if len(text) > LONGEST and is_frequent(text[:LONGEST], caseless) else text[:LONGEST]
        for text in strings
    )


def _is_rare(strings: frozenset[str], caseless: bool) -> bool:
    return not any(is_frequent(text, caseless) for text in strings)


def _worth(strings: frozenset[str]) -> tuple[int, int]:
    shortest = min(len(text) for text in strings)
    common = any(text.lower() in _COMMON for text in strings)
    return (min(shortest, LONGEST) - (20 if common else 0), -len(strings))


def _within_a_line(strings: frozenset[str]) -> frozenset[str]:
    return frozenset(max(text.split("\n"), key=len) for text in strings)


def _sequence(items: Any, caseless: bool) -> _Part:
    """Parts in a row: exact neighbours are joined, a part without exact strings ends the run."""
    sets: list[frozenset[str]] = []
    run = _EMPTY
    whole = True
    for operation, argument in items:
        part = _part(operation, argument, caseless)
        sets.extend(part.sets)
        if part.exact is None:
            sets.append(run)
            run, whole = _EMPTY, False
            continue
        if len(run) * len(part.exact) > MOST_STRINGS:
            sets.append(run)
            run, whole = _EMPTY, False
        run = frozenset(left + right for left in run for right in part.exact)
    sets.append(run)
    return _Part(run if whole else None, [found for found in sets if found != _EMPTY])


def _part(operation: Any, argument: Any, caseless: bool) -> _Part:
    if operation is sre.LITERAL:
        return _Part(frozenset({_folded(chr(argument), caseless)}), [])
    if operation is sre.IN:
        return _Part(_small_class(argument, caseless), [])
    if operation is sre.BRANCH:
        return _branch([_sequence(branch, caseless) for branch in argument[1]])
    if operation is sre.SUBPATTERN:
        return _sequence(argument[3], caseless)
    if operation is sre.ATOMIC_GROUP:
        return _sequence(argument, caseless)
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _repeat(argument[0], argument[1], _sequence(argument[2], caseless))
    if operation in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        return _Part(_EMPTY, [])
    return _Part(None, [])


def _folded(text: str, caseless: bool) -> str:
    return text.lower() if caseless else text


def _small_class(items: Any, caseless: bool) -> frozenset[str] | None:
    """`[cz]` is two strings; a range or a negated class is none."""
    characters: set[str] = set()
    for operation, argument in items:
        if operation is not sre.LITERAL:
            return None
        characters.add(_folded(chr(argument), caseless))
    return frozenset(characters) if len(characters) <= 6 else None


def _branch(parts: list[_Part]) -> _Part:
    exacts = [part.exact for part in parts]
    exact: frozenset[str] | None = None
    if all(found is not None for found in exacts):
        union = frozenset().union(*(found for found in exacts if found is not None))
        exact = union if len(union) <= MOST_STRINGS else None
    best = [_best(part) for part in parts]
    if all(found is not None for found in best):
        union = frozenset().union(*(found for found in best if found is not None))
        if len(union) <= 4 * MOST_STRINGS:
            return _Part(exact, [union])
    return _Part(exact, [])


def _best(part: _Part) -> frozenset[str] | None:
    sets = [found for found in [*part.sets, *([part.exact] if part.exact else [])] if min(map(len, found)) >= SHORTEST]
    return max(sets, key=_worth) if sets else None


def _repeat(least: int, most: Any, part: _Part) -> _Part:
    if least == 0:
        optional = part.exact | {""} if most == 1 and part.exact is not None else None
        return _Part(frozenset(optional) if optional is not None else None, [])
    if least == most == 1:
        return part
    best = _best(part)
    return _Part(None, [best] if best else [])
