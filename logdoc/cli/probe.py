"""`logdoc probe`: facts of this machine, or of several hosts together, as JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, EXIT_USAGE, echo, language_option, note, said_plainly
from logdoc.cli.looking import acted, allowed, budget_option, looked, meeting_of, python_option, told_errors
from logdoc.conditions import compare
from logdoc.probes.base import PROBES, FactSheet, passive_ids, script_text, sheet_lines
from logdoc.types.errors import InputError
from logdoc.types.rule import Condition


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
            echo(f"{spec.id:<18} {spec.does.in_language(language)}{mark}")
        return
    passive = tuple(name for name in probes if name in passive_ids())
    acting = tuple(name for name in probes if name not in passive and allowed(name, active))
    sheets = [sheet for name in acting for sheet in acted(name, python, language, hosts)]
    if passive or every:
        sheets.insert(0, looked(() if every else passive, python, budget))
    for sheet in sheets:
        click.echo(sheet_lines(sheet, os.environ), nl=False)
        for line in told_errors(sheet):
            note(f"logdoc: {line}")
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

    return hosts_script(meeting_of(hosts))


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
