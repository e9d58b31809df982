"""What `logdoc probe --expect` asks: read, held against the facts that the probes give, judged, and said in a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from logdoc.conditions import compare
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import PROBES
from logdoc.reporting.wording import phrase, stated
from logdoc.types.errors import InputError
from logdoc.types.finding import Fact
from logdoc.types.quantity import duration_in_seconds, number_and_unit, size_in_bytes
from logdoc.types.rule import Condition
from logdoc.types.value import dataclass

UNLIMITED = 2**63 - 1  # of a limit, as the kernel counts it
_EXPECTED = re.compile(r"([A-Za-z][\w.+-]*)\s*(!=|>=|<=|==|=|>|<)\s*(.+)")
_COMPARISONS = {"=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_EQUALITY = ("=", "==", "!=")
_TRUTHS = {"true": True, "false": False}
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB")
_TIMES = ("us", "ms", "seconds", "minutes", "hours")
_MIB = 2**20
UNIT_LIKENESS = 0.5  # units are short: one letter is a third of them


@dataclass(frozen=True, slots=True)
class Expectation:
    """`fact` and what it is to be, such as `>=` and `8GiB`, as it was typed."""

    fact: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.sign} {self.value}"


def expectation(text: str) -> Expectation:
    """Reads `shm.total>8GiB`. Raises InputError."""
    found = _EXPECTED.fullmatch(text.strip())
    if found is None:
        raise InputError(f"--expect {text}: say FACT=VALUE, or in quotes 'FACT>VALUE' or 'FACT<VALUE'")
    return Expectation(*found.groups())


def check(expected: Expectation, probes: Sequence[str]) -> None:
    """Raises InputError where none of these probes gives such a fact, or no fact has such a unit."""
    of_these = [fact for spec in PROBES if spec.id in probes for fact in spec.facts]
    givers = [spec.id for spec in PROBES if _gives(spec.facts, expected.fact)]
    if not givers:
        every = [fact for spec in PROBES for fact in spec.facts]
        near = get_close_matches(expected.fact, of_these, 1) or get_close_matches(expected.fact, every, 1)
        raise InputError(f"no probe gives {expected.fact}" + (f"; did you mean {near[0]}?" if near else ""))
    if not _gives(of_these, expected.fact):
        who = f"{', '.join(probes)} does not give" if probes else "name the probe that gives"
        raise InputError(f"{who} {expected.fact}: logdoc probe {givers[0]} --expect …")
    read = number_and_unit(expected.value)
    measured = size_in_bytes(expected.value), duration_in_seconds(expected.value)
    if expected.sign not in _EQUALITY and read is not None and measured == (None, None):
        raise InputError(_no_unit(expected, read[1], (*_SIZES, *_TIMES)))


def _gives(facts: Sequence[str], wanted: str) -> bool:
    return any(fnmatchcase(wanted, pattern) for pattern in facts)


def judgement(expected: Expectation, sheets: Sequence[FactSheet], language: str) -> tuple[bool | None, list[str]]:
    """Whether all that know the fact show what was expected, None where nobody knows it; and what to say of it, in a
    line for each that knows. Raises InputError where such a value cannot be compared so."""
    known = [(sheet.host, fact) for sheet in sheets for fact in sheet.facts if fact.id == expected.fact]
    if not known:
        return None, [phrase("probe.unknown", language, fact=expected.fact, expected=str(expected))]
    answers = [holds(expected, fact) for _, fact in known]
    lines = []
    for (host, fact), answer in zip(known, answers, strict=True):
        verdict = phrase("probe.holds" if answer else "probe.fails", language)
        line = phrase("probe.expected", language, fact=_shown(fact), expected=str(expected), verdict=verdict)
        lines.append(line if len(known) == 1 else phrase("text.labelled", language, label=host, text=line))
    return all(answers), lines


def holds(expected: Expectation, fact: Fact) -> bool:
    """Whether a fact is as expected. Raises InputError where the two cannot be compared so."""
    comparison: dict[str, Any] = {_COMPARISONS[expected.sign]: _operand(expected, fact)}
    answer = compare(Condition(fact=fact.id, **comparison), lambda _: fact.value)
    if answer is None:
        raise InputError(f"{_shown(fact)} is neither a number nor a version: expect it by = or !=")
    return answer


def _operand(expected: Expectation, fact: Fact) -> str | float | bool:
    """The expected value as the fact's is: true or false, a number in its unit, or text."""
    value = expected.value.strip()
    if isinstance(fact.value, bool):
        truth = _TRUTHS.get(value.lower())
        if truth is None or expected.sign not in _EQUALITY:
            raise InputError(f"{fact.id} is true or false: expect {fact.id}=true or {fact.id}=false")
        return truth
    if isinstance(fact.value, str):
        return value
    if value.lower() == "unlimited":
        return UNLIMITED
    number = duration_in_seconds(value) if fact.unit == "s" else size_in_bytes(value)
    if number is None:
        read = number_and_unit(value)
        if read is None:
            raise InputError(f"{fact.id} is a number, and {value!r} is none")
        raise InputError(_no_unit(expected, read[1], _TIMES if fact.unit == "s" else _SIZES))
    return number


def _no_unit(expected: Expectation, unit: str, units: Sequence[str]) -> str:
    by_name = {name.lower(): name for name in units}
    near = get_close_matches(unit, by_name, 1, UNIT_LIKENESS)
    hint = f"did you mean {by_name[near[0]]}?" if near else f"there are {', '.join(units)}"
    return f"--expect {expected.fact} {expected}: {unit!r} is no unit of it; {hint}"


def _shown(fact: Fact) -> str:
    """`limit.memlock = 8 MiB`: as it is typed where that is a word."""
    if isinstance(fact.value, bool):
        return f"{fact.id} = {str(fact.value).lower()}"
    if fact.value == UNLIMITED:
        return f"{fact.id} = unlimited"
    unit = " bytes" if fact.unit == "bytes" and isinstance(fact.value, int) and fact.value < _MIB else ""
    return f"{stated(fact)}{unit}"
