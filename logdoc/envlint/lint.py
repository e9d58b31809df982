"""Brings the judges together: settings in, problems in one language out, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from logdoc.catalog.environment import env_variable
from logdoc.envlint.allocator import judge_allocator_options
from logdoc.envlint.checks import run_checks
from logdoc.envlint.finding import Finding, is_literal, quoted
from logdoc.envlint.grammar import judge_value
from logdoc.envlint.names import judge_name
from logdoc.types.report import EnvironmentProblem

_NOTHING: Mapping[str, str] = MappingProxyType({})
_MOST_SETTINGS = 1000  # no job has more; a log that names more is not worth the time
_GRAVEST_FIRST = ("breaks", "risky", "ineffective", "deprecated", "note")


def lint(
    seen: Mapping[str, str | None],
    *,
    versions: Mapping[str, str] = _NOTHING,
    language: str = "en",
    context: Mapping[str, object] = _NOTHING,
) -> tuple[EnvironmentProblem, ...]:
    """Judge settings. A value of None means: set, but nobody saw to what.

    `versions`: the job's own, by `nccl` and `torch`; what is not known there is judged in general terms.
    `context`: what is known of the job: `nodes` (how many), `infiniband` (whether the machine has it).
    The gravest problems come first; names logdoc knows nothing of are left alone.
    """
    seen = dict(islice(seen.items(), _MOST_SETTINGS))
    findings = [*_each(seen, dict(versions)), *_checked(seen, versions, context)]
    problems = {_problem(finding, seen, language) for finding in findings}
    return tuple(sorted(problems, key=_order))


def _each(seen: Mapping[str, str | None], versions: dict[str, str]) -> Iterator[Finding]:
    for name in seen:
        finding = judge_name(name, versions)
        if finding is not None:
            yield finding


def _checked(
    seen: Mapping[str, str | None], versions: Mapping[str, str], context: Mapping[str, object]
) -> Iterator[Finding]:
    findings, invalid = run_checks(seen, versions, context)
    yield from findings
    for name, value in seen.items():
        entry = env_variable(name)
        if entry is None or value is None or not is_literal(value) or name in invalid:
            continue
        if entry.type == "allocator-options":
            yield from judge_allocator_options(name, value, versions.get("torch"))
        elif (finding := judge_value(entry, name, value)) is not None:
            yield finding


def _problem(finding: Finding, seen: Mapping[str, str | None], language: str) -> EnvironmentProblem:
    value = seen.get(finding.variable)
    return EnvironmentProblem(
        variable=finding.variable,
        value=None if value is None else quoted(value),
        problem=finding.problem.in_language(language),
        fix=finding.fix.in_language(language),
        severity=finding.severity,
    )


def _order(problem: EnvironmentProblem) -> tuple[int, str, str]:
    return _GRAVEST_FIRST.index(problem.severity), problem.variable, problem.problem
