"""`logdoc probe`, `logdoc doctor`, `logdoc verify`: look at this machine, read-only and within a time limit."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from logdoc.cli.common import (
    EXIT_FAILURE_FOUND,
    EXIT_HEALTHY,
    language_option,
    rules_option,
    said_plainly,
)
from logdoc.conditions import compare
from logdoc.probes.base import PROBES, FactSheet, passive_ids, run_collector, script_text, sheet_json
from logdoc.types.errors import InputError
from logdoc.types.rule import Condition, Rule

BUDGET_SECONDS = 5.0
ALL_SECONDS = 30.0
python_option = click.option("--python", metavar="EXE", help="The job's Python [default: the active environment's].")


@click.command(
    epilog="""\b
Examples:
  logdoc probe torch-build gpu-list
  logdoc probe --all > facts.json          then: logdoc explain crash.log --facts facts.json
  logdoc probe --script > p.py && srun -N4 --ntasks-per-node=1 python p.py""",
)
@click.argument("probes", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Every passive probe.")
@click.option("--list", "listed", is_flag=True, help="Say what each probe does, and run none.")
@click.option("--script", is_flag=True, help="Print the collector, to be run by hand where logdoc is not installed.")
@click.option("--active", is_flag=True, help="Allow probes that do something (named ones only); each says what first.")
@click.option("--expect", metavar="FACT=VALUE", help="Exit 1 unless this holds; also >, >=, <, <=, !=.")
@click.option("--budget", type=click.FloatRange(0.5, 600), help="Seconds to spend [default: 5; 30 with --all].")
@click.option("--json", "as_json", is_flag=True, help="JSON is the default; kept for scripts that say so.")
@python_option
@language_option
@said_plainly
def probe(
    probes: tuple[str, ...],
    every: bool,
    listed: bool,
    script: bool,
    active: bool,
    expect: str | None,
    budget: float | None,
    as_json: bool,
    python: str | None,
    language: str,
) -> None:
    """Collect facts of this machine and its Python as JSON: read-only, no root, nothing is sent anywhere."""
    if script:
        click.echo(script_text(), nl=False)
        return
    if listed or not (probes or every):
        for spec in PROBES:
            mark = " (--active)" if spec.active else ""
            click.echo(f"{spec.id:<18} {spec.does.in_language(language)}{mark}")
        return
    passive = tuple(name for name in probes if name in passive_ids())
    acting = tuple(name for name in probes if name not in passive)
    sheets = [_active(name, python, language) for name in acting if _allowed(name, active)]
    if passive or every:
        seconds = budget or (ALL_SECONDS if every else BUDGET_SECONDS)
        sheets.insert(0, run_collector(() if every else passive, python, seconds))
    for sheet in sheets:
        click.echo(sheet_json(sheet))
        for error in sheet.errors:
            click.echo(f"logdoc: {error.probe}: {error.error}", err=True)
    sys.exit(_exit(sheets, expect))


def _allowed(name: str, active: bool) -> bool:
    spec = next((spec for spec in PROBES if spec.id == name), None)
    if spec is None:
        raise InputError(f"{name} is not a probe; there are: {', '.join(spec.id for spec in PROBES)}")
    if not active:
        raise InputError(f"{name} does something on this machine; allow it with --active")
    return True


def _active(name: str, python: str | None, language: str) -> FactSheet:
    from logdoc.probes.active import run_active

    spec = next(spec for spec in PROBES if spec.id == name)
    click.echo(f"logdoc: {spec.does.in_language(language)}", err=True)
    return run_active(name, python)


_EXPECTED = re.compile(r"([A-Za-z][\w.+-]*)(!=|>=|<=|==|=|>|<)(.+)")
_COMPARISONS = {"=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def _exit(sheets: Sequence[FactSheet], expect: str | None) -> int:
    """0 if one of the sheets shows what was expected, or nothing was; 1 if not, or if nobody knows the fact."""
    if expect is None:
        return EXIT_HEALTHY
    found = _EXPECTED.fullmatch(expect.strip())
    if found is None:
        raise InputError(f"--expect {expect}: say FACT=VALUE, FACT>VALUE or FACT<VALUE")
    name, sign, text = found.groups()
    comparison: dict[str, Any] = {_COMPARISONS[sign]: {"true": True, "false": False}.get(text.lower(), text)}
    condition = Condition(fact=name, **comparison)
    met = any(compare(condition, sheet.value) is True for sheet in sheets)
    return EXIT_HEALTHY if met else EXIT_FAILURE_FOUND


@click.command(
    epilog="""\b
Examples:
  logdoc doctor
  logdoc doctor --python /opt/conda/envs/train/bin/python
  logdoc doctor --format json | jq '.findings[0]'""",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@click.option("--facts", metavar="FILE", help="Judge these facts instead of this machine.")
@python_option
@language_option
@said_plainly
def doctor(form: str, facts: str | None, python: str | None, language: str) -> None:
    """Is this machine and environment ready for NCCL? Ordered by what would break first. Exit 1 if something would."""
    import json

    from logdoc.probes.base import load_fact_sheet
    from logdoc.probes.doctor import check
    from logdoc.reporting.wording import fill, fill_command

    sheet = load_fact_sheet(facts) if facts else run_collector((), python, ALL_SECONDS)
    findings = check(sheet)
    told = [
        {
            "id": one.id,
            "severity": one.severity,
            "says": fill(one.say.in_language(language), one.values) or one.say.in_language(language),
            "run": [fill_command(command, one.values) for command in one.run],
            "probe": one.probe,
        }
        for one in findings
    ]
    if form == "json":
        errors = [{"probe": error.probe, "error": error.error} for error in sheet.errors]
        document = {"schema": "logdoc.doctor/v1", "host": sheet.host, "findings": told, "errors": errors}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        _print_findings(told, sheet)
    broken = any(one.severity in ("fatal", "error") for one in findings)
    sys.exit(EXIT_FAILURE_FOUND if broken else EXIT_HEALTHY)


_SIGNS = {"fatal": "✗", "error": "✗", "warning": "!", "info": "i"}


def _print_findings(told: Sequence[Mapping[str, object]], sheet: FactSheet) -> None:
    click.echo(f"{sheet.host} · {sheet.python}")
    for one in told:
        click.echo(f"{_SIGNS[str(one['severity'])]} {one['says']}")
        commands = one["run"]
        assert isinstance(commands, list)
        for command in commands:
            click.echo(f"    {command}")
    for error in sheet.errors:
        click.echo(f"? {error.probe}: {error.error}")
    if not told:
        click.echo("✓")


@click.command(
    epilog="""\b
Examples:
  logdoc verify install.torch-cpu-build
  logdoc verify memory.shm-exhausted --python ./venv/bin/python
  logdoc verify gpu.none-visible || echo 'not fixed yet'""",
)
@click.argument("rule_id")
@python_option
@language_option
@rules_option
@said_plainly
def verify(rule_id: str, python: str | None, language: str, rule_dirs: tuple[str, ...]) -> None:
    """Run again what would confirm a cause, and say fixed or not fixed. Exit 0 fixed, 1 not fixed or cannot tell."""
    from logdoc.rulebase import load_rules, rule_roots

    rules = load_rules(rule_roots(rule_dirs))
    if rule_id not in rules.rules:
        raise InputError(f"no rule is called {rule_id!r}")
    verdict, lines = _verdict(rules[rule_id], python)
    words = {
        True: {"en": "not fixed", "zh": "尚未修复"},
        False: {"en": "fixed", "zh": "已修复"},
        None: {"en": "cannot tell from here", "zh": "从本机无法判断"},
    }
    click.echo(f"{rule_id}: {words[verdict][language]}")
    for line in lines:
        click.echo(f"  {line}")
    sys.exit(EXIT_HEALTHY if verdict is False else EXIT_FAILURE_FOUND)


def _verdict(rule: Rule, python: str | None) -> tuple[bool | None, list[str]]:
    """Whether the fault is still there: its probes confirm it (True), refute it (False) or cannot tell."""
    from logdoc.conditions import Scene, holds

    wanted = [use for use in rule.probes if use.use in passive_ids()]
    if not wanted:
        return None, [rule.no_probe or "this rule has no probe"]
    sheet = run_collector(tuple(dict.fromkeys(use.use for use in wanted)), python, ALL_SECONDS)
    scene = Scene({}, sheet.value)
    lines = [
        f"{fact.id} = {fact.value}"
        for use in wanted
        for fact in sheet.of_probe(use.use)
        if _asks(use.confirms, fact.id) or _asks(use.refutes, fact.id)
    ]
    lines += [f"{error.probe}: {error.error}" for error in sheet.errors]
    if any(use.confirms is not None and holds(use.confirms, scene) is True for use in wanted):
        return True, lines
    confirming = [use.confirms for use in wanted if use.confirms is not None]
    refuted = any(use.refutes is not None and holds(use.refutes, scene) is True for use in wanted)
    if refuted or (confirming and all(holds(condition, scene) is False for condition in confirming)):
        return False, lines
    return None, lines


def _asks(condition: Condition | None, fact_id: str) -> bool:
    from logdoc.probes.doctor import fact_ids

    return condition is not None and fact_id in set(fact_ids(condition))
