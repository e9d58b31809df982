"""Tries the catalogue's checks (single values, combinations) on the settings seen. The checks themselves are data."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from logdoc.catalog.environment import EnvCheck, EnvCondition, VariableReference, env_checks
from logdoc.catalog.versions import within
from logdoc.envlint.finding import Finding, filled, is_literal, leading_integer, quoted
from logdoc.envlint.grammar import list_elements

_LONGEST_VALUE = 4096  # longer ones are no settings; regular expressions stay quick
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def run_checks(
    seen: Mapping[str, str | None], versions: Mapping[str, str], context: Mapping[str, object]
) -> tuple[list[Finding], set[str]]:
    """What holds of the settings, and the variables whose value is already known to be invalid."""
    facts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in context.items()}
    findings, invalid, taken = [], set(), set()
    for check in env_checks():
        if check.topic in taken or not _holds(check, seen, versions, facts):
            continue
        taken.add(check.topic)
        if check.invalid:
            invalid.add(check.variable)
        if not check.silent:
            findings.append(_finding(check, seen))
    return findings, invalid


def _holds(
    check: EnvCheck, seen: Mapping[str, str | None], versions: Mapping[str, str], facts: Mapping[str, str]
) -> bool:
    return (
        all(_fits_version(versions.get(name), wanted) for name, wanted in check.versions.items())
        and all(_true(condition, name, facts) for name, condition in check.context.items())
        and all(_true(condition, name, seen) for name, condition in check.when.items())
    )


def _fits_version(known: str | None, wanted: str) -> bool:
    if wanted == "unknown":
        return known is None or within(known, ">=0") is None
    return known is not None and bool(within(known, wanted))


def _true(condition: EnvCondition, name: str, values: Mapping[str, str | None]) -> bool:
    if condition.present is not None:
        return condition.present == (name in values)
    value = values.get(name)
    if value is None or not is_literal(value) or len(value) > _LONGEST_VALUE:
        return False
    return _true_of(condition, value, values)


def _true_of(condition: EnvCondition, value: str, values: Mapping[str, str | None]) -> bool:
    plain = value.strip()
    if condition.exact is not None:
        return plain in condition.exact
    if condition.any_case is not None:
        return plain.casefold() in {choice.casefold() for choice in condition.any_case}
    if condition.word is not None or condition.other_word is not None:
        return _matching_word(condition, value) is not None
    if condition.matches is not None:
        return re.fullmatch(condition.matches, value) is not None
    if condition.not_matches is not None:
        return bool(plain) and re.fullmatch(condition.not_matches, value) is None
    return _bounded(condition, value, values)


def _bounded(condition: EnvCondition, value: str, values: Mapping[str, str | None]) -> bool:
    number = leading_integer(value)
    if number is None or condition.number is None:
        return False
    for name, bound in condition.number.items():
        limit = _bound(bound, values)
        if limit is None or not _COMPARE[name](number[0], limit):
            return False
    return True


def _bound(bound: float | VariableReference, values: Mapping[str, str | None]) -> float | None:
    if not isinstance(bound, VariableReference):
        return bound
    other = values.get(bound.name)
    number = leading_integer(other) if other is not None and is_literal(other) else None
    return None if number is None else number[0]


def _matching_word(condition: EnvCondition, value: str) -> str | None:
    """The listed word (in the catalogue's spelling), or the first that is not listed."""
    elements = list_elements(value)
    if condition.word is not None:
        folded = {element.casefold() for element in elements}
        return next((word for word in condition.word if word.casefold() in folded), None)
    known = {word.casefold() for word in condition.other_word or ()}
    return next((element for element in elements if element.casefold() not in known), None)


def _finding(check: EnvCheck, seen: Mapping[str, str | None]) -> Finding:
    value = seen.get(check.variable) or ""
    condition = check.when.get(check.variable)
    word = _matching_word(condition, value) if condition and (condition.word or condition.other_word) else None
    slots = {"variable": check.variable, "value": quoted(value), "word": quoted(word or "")}
    return Finding(check.variable, check.severity, filled(check.problem, **slots), filled(check.fix, **slots))
