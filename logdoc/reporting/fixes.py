"""A rule's fixes as a report shows them: the ones that fit what is known, filled in, each with its verification."""

from __future__ import annotations

from collections.abc import Mapping

from logdoc.conditions import Scene, holds
from logdoc.facts import FactSet
from logdoc.reporting.wording import fill_command, in_language, title
from logdoc.types.report import FixLine
from logdoc.types.rule import Condition, FactValue, Fix, Rule, Verify


def fix_lines(
    rule: Rule,
    values: Mapping[str, FactValue],
    facts: FactSet,
    language: str,
    surroundings: frozenset[str] = frozenset(),
) -> tuple[FixLine, ...]:
    """All fixes in the rule's order, those whose `only_if` is known to hold first, those known not to hold left out.

    Of the commands of one fix those for the `surroundings` that the job is seen in (`slurm`, `k8s`) come first, but for
    those that are typed anywhere.
    """
    scene = Scene({}, lambda name: values[name] if name in values else facts.value(name))
    judged = [(fix, True if fix.only_if is None else holds(fix.only_if, scene)) for fix in rule.fixes]
    fitting = [fix for fix, fits in judged if fits is not False]
    surely = {id(fix) for fix, fits in judged if fits is True and fix.only_if is not None}
    fitting.sort(key=lambda fix: id(fix) not in surely)
    return tuple(line for fix in fitting for line in _lines(fix, values, language, surroundings))


def _lines(fix: Fix, values: Mapping[str, FactValue], language: str, surroundings: frozenset[str]) -> list[FixLine]:
    return [
        FixLine(
            title=title(fix.title, language, values),
            why=in_language(fix.why, language, values) or None if fix.why else None,
            commands=tuple(fill_command(command, values) for command in commands),
            applies=environment,
            risk=fix.risk,
            verify=verification(fix.verify, values, language),
        )
        for environment, commands in sorted(fix.run.items(), key=lambda run: run[0] not in {"any", *surroundings})
    ]


def verification(verify: Verify, values: Mapping[str, FactValue], language: str) -> str:
    """How to see that the fix worked: one line to type, with what it shows as its comment."""
    run = fill_command(verify.run, values) if verify.run is not None else None
    typed = " && ".join(command for command in (probe_command(verify), run) if command is not None)
    if verify.see is None:
        return typed
    seen = in_language(verify.see, language, values) or verify.see.in_language(language)
    return f"{typed}  # {seen}" if typed else seen


def probe_command(verify: Verify) -> str | None:
    """The probe that sees whether a fix worked, as it is typed: its exit code tells."""
    if verify.probe is None:
        return None
    expected = f" --expect '{_condition(verify.expect)}'" if verify.expect is not None else ""
    return f"logdoc probe {verify.probe}{expected}"


def _condition(condition: Condition) -> str:
    signs = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
    for name, sign in signs.items():
        operand = getattr(condition, name)
        if operand is not None:
            value = getattr(operand, "fact", operand)
            return f"{condition.fact}{sign}{str(value).lower() if isinstance(value, bool) else value}"
    return str(condition.fact)
