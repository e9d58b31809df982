"""`logdoc probe`, `logdoc doctor`, `logdoc verify`: look at this machine, read-only and within a time limit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from logdoc.cli.common import (
    EXIT_FAILURE_FOUND,
    EXIT_HEALTHY,
    EXIT_USAGE,
    language_option,
    rules_option,
    said_plainly,
)
from logdoc.conditions import compare
from logdoc.probes.base import (
    PROBES,
    FactSheet,
    ProbeError,
    job_python,
    passive_ids,
    run_collector,
    script_text,
    sheet_lines,
)
from logdoc.types.errors import InputError
from logdoc.types.rule import Condition, Rule

if TYPE_CHECKING:
    from logdoc.probes.doctor import Finding
    from logdoc.probes.gloo_hosts import Meeting

BUDGET_SECONDS = 5.0
MOST_NAMED = 6
_ARGUMENTS = re.compile(r"(`\S+)[^`]*|\d+\.\d")
python_option = click.option("--python", metavar="EXE", help="The job's Python [default: the active environment's].")
budget_option = click.option(
    "--budget", type=click.FloatRange(0.5, 600), default=BUDGET_SECONDS, show_default=True, help="Seconds to spend."
)


def hosts_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What probes that reach other hosts ask for."""
    for option in reversed(
        (
            click.option(
                "--hosts",
                metavar="A,B=ADDR",
                help="gloo-hosts: who joins; the first holds the store. tcp-reach: whom to reach.",
            ),
            click.option(
                "--port", type=int, help="tcp-reach: to which port [29500]; gloo-hosts: first of those used [29610]."
            ),
            click.option(
                "--seconds", type=click.FloatRange(10, 600), help="gloo-hosts: each host's time [default: 60]."
            ),
            click.option("--rank", type=click.IntRange(0), help="gloo-hosts: which of the hosts this is, from 0."),
            click.option(
                "--launch", metavar="CMD", help="gloo-hosts: start every part by this: ssh, 'srun -w {host}'…"
            ),
        )
    ):
        command = option(command)
    return command


@click.command(
    epilog="""\b
Examples:
  logdoc probe torch-build gpu-list
  logdoc probe --all > facts.json          then: logdoc explain crash.log --facts facts.json
  logdoc probe --script > p.py && srun -N4 --ntasks-per-node=1 python p.py > facts.jsonl
\b
Can these hosts join over gloo? One file, the same for each of them:
  logdoc probe --active gloo-hosts --hosts n1,n2 --launch ssh
  logdoc probe --script gloo-hosts --hosts n1,n2 > g.py && srun -w n1,n2 -N2 --ntasks-per-node=1 python g.py
  logdoc probe --active gloo-hosts --hosts pod-0=10.0.3.7,pod-1=10.0.4.2 --launch 'kubectl exec -i {host} --'""",
)
@click.argument("probes", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="Every passive probe.")
@click.option("--list", "listed", is_flag=True, help="Say what each probe does, and run none.")
@click.option("--script", is_flag=True, help="Print the collector, to be run by hand where logdoc is not installed.")
@click.option("--active", is_flag=True, help="Allow probes that do something (named ones only); each says what first.")
@click.option("--expect", metavar="FACT=VALUE", help="Exit 1 unless this holds; also >, >=, <, <=, !=.")
@budget_option
@click.option("--json", "as_json", is_flag=True, help="JSON is the default; kept for scripts that say so.")
@hosts_options
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
    budget: float,
    as_json: bool,
    python: str | None,
    language: str,
    **hosts: Any,
) -> None:
    """Collect facts of this machine and its Python as JSON: read-only, no root, nothing is sent anywhere."""
    if script:
        click.echo(_script(probes, hosts), nl=False)
        return
    if listed or not (probes or every):
        for spec in PROBES:
            mark = " (--active)" if spec.active else ""
            click.echo(f"{spec.id:<18} {spec.does.in_language(language)}{mark}")
        return
    passive = tuple(name for name in probes if name in passive_ids())
    acting = tuple(name for name in probes if name not in passive and _allowed(name, active))
    sheets = [sheet for name in acting for sheet in _active(name, python, language, hosts)]
    if passive or every:
        sheets.insert(0, _looked(() if every else passive, python, budget))
    for sheet in sheets:
        click.echo(sheet_lines(sheet, os.environ), nl=False)
        for line in _told_errors(sheet):
            click.echo(f"logdoc: {line}", err=True)
    sys.exit(_exit(sheets, expect))


def _script(probes: Sequence[str], hosts: Mapping[str, Any]) -> str:
    """The collector, or the one file that every host of `gloo-hosts` runs."""
    if "gloo-hosts" not in probes:
        if probes:
            raise InputError(
                "--script prints the collector as a whole; name its sections when you run it: --only ID,ID"
            )
        return script_text()
    from logdoc.probes.gloo_hosts import hosts_script

    return hosts_script(_meeting(hosts))


def _looked(probes: Sequence[str], python: str | None, budget: float) -> FactSheet:
    """Facts of this machine; a terminal is told what is going on."""
    if sys.stderr.isatty():
        click.echo(f"logdoc: looking at this machine, at most {budget:g} s", err=True)
    return run_collector(probes, python, budget)


def _told_errors(sheet: FactSheet) -> Iterator[str]:
    """What could not be seen, once for all probes that say the same."""
    saying: dict[str, list[ProbeError]] = {}
    for error in sheet.errors:
        # One hung tool silences several probes, each with arguments and a time of its own.
        saying.setdefault(_ARGUMENTS.sub(lambda found: found[1] or "", error.error), []).append(error)
    for errors in saying.values():
        names = list(dict.fromkeys(error.probe for error in errors))
        who = ", ".join(names) if len(names) <= MOST_NAMED else f"{names[0]} and {len(names) - 1} more"
        yield f"{who}: {errors[0].error}"
    if sheet.timed_out and sheet.facts:
        yield "more time may show more: --budget 30"


def _allowed(name: str, active: bool) -> bool:
    spec = next((spec for spec in PROBES if spec.id == name), None)
    if spec is None:
        raise InputError(f"{name} is not a probe; there are: {', '.join(spec.id for spec in PROBES)}")
    if not active:
        raise InputError(f"{name} does something on this machine; allow it with --active")
    return True


def _active(name: str, python: str | None, language: str, hosts: Mapping[str, Any]) -> Sequence[FactSheet]:
    from logdoc.probes.active import run_active

    meeting = _meeting(hosts) if name == "gloo-hosts" else None
    spec = next(spec for spec in PROBES if spec.id == name)
    click.echo(f"logdoc: {spec.does.in_language(language)}", err=True)
    if name == "tcp-reach" and hosts["hosts"]:
        from logdoc.probes.active import MASTER_PORT, tcp_reach

        return [tcp_reach(host.strip(), hosts["port"] or MASTER_PORT) for host in hosts["hosts"].split(",")]
    if meeting is None:
        return [run_active(name, python)]
    from logdoc.probes.gloo_hosts import gloo_here, launch, told_in_words

    if hosts["launch"]:
        sheets = launch(meeting, hosts["launch"], python)
    else:
        sheets = (gloo_here(meeting, python, hosts["rank"]),)
    for sheet in sheets:
        click.echo(f"logdoc: {told_in_words(sheet)}", err=True)
    return sheets


def _meeting(hosts: Mapping[str, Any]) -> Meeting:
    from logdoc.probes.gloo_hosts import PORT, SECONDS, Meeting

    if not hosts["hosts"]:
        raise InputError("gloo-hosts wants --hosts A,B: the hosts that are to join")
    names = tuple(name.strip() for name in hosts["hosts"].split(","))
    return Meeting(hosts=names, port=hosts["port"] or PORT, seconds=hosts["seconds"] or SECONDS)


_EXPECTED = re.compile(r"([A-Za-z][\w.+-]*)(!=|>=|<=|==|=|>|<)(.+)")
_COMPARISONS = {"=": "eq", "==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def _exit(sheets: Sequence[FactSheet], expect: str | None) -> int:
    """0 if every sheet that knows the fact shows what was expected, or nothing was; 1 if not, or if nobody knows it.

    2 where nothing could be looked at: the interpreter does not exist, hangs or is no Python.
    """
    condition = _expected(expect) if expect is not None else None
    if not any(sheet.facts for sheet in sheets):
        return EXIT_USAGE
    if condition is None:
        return EXIT_HEALTHY
    answers = {compare(condition, sheet.value) for sheet in sheets} - {None}
    return EXIT_HEALTHY if answers == {True} else EXIT_FAILURE_FOUND


def _expected(text: str) -> Condition:
    found = _EXPECTED.fullmatch(text.strip())
    if found is None:
        raise InputError(f"--expect {text}: say FACT=VALUE, FACT>VALUE or FACT<VALUE")
    name, sign, value = found.groups()
    comparison: dict[str, Any] = {_COMPARISONS[sign]: {"true": True, "false": False}.get(value.lower(), value)}
    return Condition(fact=name, **comparison)


@click.command(
    epilog="""\b
Examples:
  logdoc doctor
  logdoc doctor --python /opt/conda/envs/train/bin/python --budget 30
  logdoc doctor --format json | jq '.findings[0]'""",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@click.option("--facts", metavar="FILE", help="Judge these facts instead of this machine; one line a host.")
@budget_option
@python_option
@language_option
@said_plainly
def doctor(form: str, facts: str | None, budget: float, python: str | None, language: str) -> None:
    """Is this machine and environment ready for NCCL? Ordered by what would break first. Exit 1 if something would."""
    from logdoc.probes.base import load_fact_sheets
    from logdoc.probes.doctor import check

    sheets = load_fact_sheets(facts) if facts else (_looked((), python, budget),)
    codes = []
    for sheet in sheets:
        findings = check(sheet)
        told = [_told(one, language) for one in findings]
        if form == "json":
            click.echo(_document(told, sheet, indent=2 if len(sheets) == 1 else None))
        else:
            _print_findings(told, sheet, language)
        broken = any(one.severity in ("fatal", "error") for one in findings)
        codes.append(EXIT_USAGE if not sheet.facts else EXIT_FAILURE_FOUND if broken else EXIT_HEALTHY)
    sys.exit(max(codes))


def _told(one: Finding, language: str) -> dict[str, object]:
    from logdoc.reporting.wording import fill, fill_command

    say = one.say.in_language(language)
    return {
        "id": one.id,
        "severity": one.severity,
        "says": fill(say, one.values) or say,
        "run": [fill_command(command, one.values) for command in one.run],
        "probe": one.probe,
    }


def _document(told: Sequence[Mapping[str, object]], sheet: FactSheet, indent: int | None) -> str:
    import json

    errors = [{"probe": error.probe, "error": error.error} for error in sheet.errors]
    document = {"schema": "logdoc.doctor/v1", "host": sheet.host, "findings": told, "errors": errors}
    return json.dumps(document, ensure_ascii=False, indent=indent)


_SIGNS = {"fatal": "✗", "error": "✗", "warning": "!", "info": "i"}
_WELL = {"en": "nothing found that keeps NCCL from working", "zh": "没有发现妨碍 NCCL 工作的问题"}


def _print_findings(told: Sequence[Mapping[str, object]], sheet: FactSheet, language: str) -> None:
    click.echo(f"{sheet.host} · {sheet.python}")
    for one in told:
        click.echo(f"{_SIGNS[str(one['severity'])]} {one['says']}")
        commands = one["run"]
        assert isinstance(commands, list)
        for command in commands:
            click.echo(f"    {command}")
    for line in _told_errors(sheet):
        click.echo(f"? {line}")
    if sheet.facts and not told:
        click.echo(f"✓ {_WELL[language]}")


@click.command(
    epilog="""\b
Examples:
  logdoc verify install.torch-cpu-build
  logdoc verify memory.shm-exhausted --python ./venv/bin/python
  logdoc verify topology.p2p-broken --active
  logdoc verify gpu.none-visible || echo 'not fixed yet'""",
)
@click.argument("rule_id")
@click.option("--active", is_flag=True, help="Also run its probes that do something; each says what first.")
@click.option("--facts", metavar="FILE", help="Judge these facts instead of this machine.")
@budget_option
@python_option
@language_option
@rules_option
@said_plainly
def verify(
    rule_id: str,
    active: bool,
    facts: str | None,
    budget: float,
    python: str | None,
    language: str,
    rule_dirs: tuple[str, ...],
) -> None:
    """Run again what would confirm a cause, and say fixed or not fixed. Exit 0 fixed, 1 not fixed or cannot tell."""
    from logdoc.probes.base import load_fact_sheet
    from logdoc.rulebase import load_rules, rule_roots

    rules = load_rules(rule_roots(rule_dirs))
    if rule_id not in rules.rules:
        raise InputError(f"no rule is called {rule_id!r}")
    rule = rules.rules[rule_id]
    sheets = [load_fact_sheet(facts)] if facts else list(_asked(rule, active, python, budget, language))
    verdict, lines = _verdict(rule, sheets)
    words = {
        True: {"en": "not fixed", "zh": "尚未修复"},
        False: {"en": "fixed", "zh": "已修复"},
        None: {"en": "cannot tell from here", "zh": "从本机无法判断"},
    }
    click.echo(f"{rule_id}: {words[verdict][language]}")
    for line in lines if verdict is not None else [*lines, *_by_hand(rule, active, python, language)]:
        click.echo(f"  {line}")
    sys.exit(EXIT_HEALTHY if verdict is False else EXIT_FAILURE_FOUND)


def _asked(rule: Rule, active: bool, python: str | None, budget: float, language: str) -> Iterator[FactSheet]:
    """The rule's own probes, on this machine."""
    ids = dict.fromkeys(use.use for use in rule.probes)
    passive = [id for id in ids if id in passive_ids()]
    if passive:
        yield _looked(passive, python, budget)
    for id in ids:
        if active and id not in passive:
            try:
                yield from _active(id, python, language, {"hosts": None})
            except InputError as needs:
                click.echo(f"logdoc: {needs}", err=True)


def _verdict(rule: Rule, sheets: Sequence[FactSheet]) -> tuple[bool | None, list[str]]:
    """Whether the fault is still there: its probes confirm it (True), refute it (False) or cannot tell."""
    from logdoc.conditions import Scene, holds

    known = {fact.id: fact.value for sheet in sheets for fact in sheet.facts}
    scene = Scene({}, known.get)
    asked = [condition for use in rule.probes for condition in (use.confirms, use.refutes)]
    lines = [f"{id} = {value}" for id, value in known.items() if any(_asks(condition, id) for condition in asked)]
    lines += [line for sheet in sheets for line in _told_errors(sheet)]
    confirming = [holds(use.confirms, scene) for use in rule.probes if use.confirms is not None]
    refuted = any(use.refutes is not None and holds(use.refutes, scene) is True for use in rule.probes)
    if any(answer is True for answer in confirming):
        return True, lines
    # An active probe that was not run says nothing; the others speak for themselves.
    told = [answer for answer in confirming if answer is not None]
    return (False if refuted or (told and len(told) == len(confirming)) else None), lines


def _by_hand(rule: Rule, active: bool, python: str | None, language: str) -> Iterator[str]:
    """Why nobody can tell, and what to type instead."""
    from logdoc.reporting.wording import fill_command

    if rule.no_probe:
        yield rule.no_probe
    acting = [use.use for use in rule.probes if use.use not in passive_ids()]
    if acting and not active:
        yield f"{', '.join(acting)}: --active"
    for fix in rule.fixes:
        if fix.verify.run:
            see = f"   # {fix.verify.see.in_language(language)}" if fix.verify.see else ""
            yield f"$ {fill_command(fix.verify.run, {'python': job_python(python)})}{see}"


def _asks(condition: Condition | None, fact_id: str) -> bool:
    from logdoc.probes.doctor import fact_ids

    return condition is not None and fact_id in set(fact_ids(condition))
