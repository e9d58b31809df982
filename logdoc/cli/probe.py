"""`logdoc probe`: facts of this machine, or of several hosts together, as JSON; or whether one is as expected."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, EXIT_USAGE, echo, language_option, note, said_plainly
from logdoc.cli.completing import probe_ids
from logdoc.cli.expecting import Expectation, check, expectation, judgement
from logdoc.cli.looking import acted, allowed, budget_option, looked, meeting_of, python_option, told_errors
from logdoc.probes.collector import script_text
from logdoc.probes.sheets import FactSheet, sheet_lines
from logdoc.probes.specs import PROBES, passive_ids
from logdoc.types.errors import InputError


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
  logdoc probe shm --expect 'shm.total>8GiB' && echo 'enough for the loaders'
  logdoc probe --all > facts.json          then: logdoc explain crash.log --facts facts.json
  logdoc probe --script > p.py && srun -N4 --ntasks-per-node=1 python p.py > facts.jsonl
\b
Can these hosts join over gloo? One file, the same for each of them:
  logdoc probe --active gloo-hosts --hosts n1,n2 --launch ssh
  logdoc probe --script gloo-hosts --hosts n1,n2 > g.py && srun -w n1,n2 -N2 --ntasks-per-node=1 python g.py
  logdoc probe --active gloo-hosts --hosts pod-0=10.0.3.7,pod-1=10.0.4.2 --launch 'kubectl exec -i {host} --'""",
)
@click.argument("probes", nargs=-1, metavar="[ID]...", shell_complete=probe_ids)
@click.option("--all", "every", is_flag=True, help="Every passive probe.")
@click.option("--list", "listed", is_flag=True, help="Say what each probe does, and run none.")
@click.option("--script", is_flag=True, help="Print the collector, to be run by hand where logdoc is not installed.")
@click.option("--active", is_flag=True, help="Allow probes that do something (named ones only); each says what first.")
@click.option(
    "--expect", metavar="FACT=VALUE", help="Say in a line whether this holds, exit 1 if not; also >, >=, <, <=, !=."
)
@budget_option
@click.option("--json", "as_json", is_flag=True, help="All facts as JSON: the default, unless --expect.")
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
    expected = None if expect is None else expectation(expect)
    if listed or not (probes or every or expected):
        for spec in PROBES:
            mark = " (--active)" if spec.active else ""
            echo(f"{spec.id:<18} {spec.does.in_language(language)}{mark}")
        return
    passive = tuple(name for name in probes if name in passive_ids())
    acting = tuple(name for name in probes if name not in passive and allowed(name, active))
    if expected is not None:
        check(expected, passive_ids() if every else probes)
    sheets = [sheet for name in acting for sheet in acted(name, python, language, hosts)]
    if passive or every:
        sheets.insert(0, looked(() if every else passive, python, budget, language))
    if expected is None or as_json:
        for sheet in sheets:
            click.echo(sheet_lines(sheet, os.environ), nl=False)
    code, silent = _answered(expected, sheets, language, note if as_json else echo)
    for sheet in silent:
        for line in told_errors(sheet, language):
            note(f"logdoc: {line}")
    sys.exit(code)


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


def _answered(
    expected: Expectation | None, sheets: Sequence[FactSheet], language: str, tell: Callable[[str], None]
) -> tuple[int, Sequence[FactSheet]]:
    """The exit code, and the sheets whose errors matter. 0 if every sheet that knows the fact shows what was expected,
    or nothing was; 1 if not, or if nobody knows it.

    2 where nothing could be looked at: the interpreter does not exist, hangs or is no Python.
    """
    has_facts = any(sheet.facts for sheet in sheets)
    if expected is None:
        return EXIT_HEALTHY if has_facts else EXIT_USAGE, sheets
    answer, lines = judgement(expected, sheets, language)
    for line in lines:
        tell(line)
    unseen = not has_facts and any(sheet.errors for sheet in sheets)
    code = EXIT_USAGE if unseen else EXIT_HEALTHY if answer else EXIT_FAILURE_FOUND
    return code, [sheet for sheet in sheets if sheet.value(expected.fact) is None]
