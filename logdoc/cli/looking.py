"""What `probe`, `doctor` and `verify` share: looking at this machine, and acting on it where that was allowed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from logdoc.cli.common import note
from logdoc.cli.completing import files
from logdoc.probes.collecting import run_collector
from logdoc.probes.sheets import FactSheet, ProbeError
from logdoc.probes.specs import PROBES
from logdoc.reporting.wording import phrase
from logdoc.types.errors import InputError

if TYPE_CHECKING:
    from logdoc.probes.gloo_hosts import Meeting

BUDGET_SECONDS = 5.0
MOST_NAMED = 6
_ARGUMENTS = re.compile(r"(`\S+)[^`]*|\d+\.\d")
python_option = click.option(
    "--python", metavar="EXE", shell_complete=files, help="The job's Python [default: the active environment's]."
)
budget_option = click.option(
    "--budget", type=click.FloatRange(0.5, 600), default=BUDGET_SECONDS, show_default=True, help="Seconds to spend."
)


def looked(probes: Sequence[str], python: str | None, budget: float, language: str) -> FactSheet:
    """Facts of this machine; a terminal is told what is going on."""
    if sys.stderr.isatty():
        note(f"logdoc: {phrase('look.looking', language, seconds=f'{budget:g}')}")
    return run_collector(probes, python, budget)


def told_errors(sheet: FactSheet, language: str) -> Iterator[str]:
    """What could not be seen, once for all probes that say the same."""
    saying: dict[str, list[ProbeError]] = {}
    for error in sheet.errors:
        # One hung tool silences several probes, each with arguments and a time of its own.
        saying.setdefault(_ARGUMENTS.sub(lambda found: found[1] or "", error.error), []).append(error)
    for errors in saying.values():
        names = list(dict.fromkeys(error.probe for error in errors))
        many = len(names) > MOST_NAMED
        who = phrase("look.others", language, probe=names[0], n=len(names) - 1) if many else ", ".join(names)
        yield f"{who}: {errors[0].error}"
    if sheet.timed_out and sheet.facts:
        yield phrase("look.budget", language)


def allowed(name: str, active: bool) -> bool:
    spec = next((spec for spec in PROBES if spec.id == name), None)
    if spec is None:
        known = [spec.id for spec in PROBES]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
        raise InputError(f"{name} is not a probe; {hint}")
    if not active:
        raise InputError(f"{name} does something on this machine; allow it with --active")
    return True


def acted(name: str, python: str | None, language: str, hosts: Mapping[str, Any]) -> Sequence[FactSheet]:
    from logdoc.probes.active import run_active

    meeting = meeting_of(hosts) if name == "gloo-hosts" else None
    spec = next(spec for spec in PROBES if spec.id == name)
    note(f"logdoc: {spec.does.in_language(language)}")
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
        note(f"logdoc: {told_in_words(sheet)}")
    return sheets


def meeting_of(hosts: Mapping[str, Any]) -> Meeting:
    from logdoc.probes.gloo_hosts import PORT, SECONDS, Meeting

    if not hosts["hosts"]:
        raise InputError("gloo-hosts wants --hosts A,B: the hosts that are to join")
    names = tuple(name.strip() for name in hosts["hosts"].split(","))
    return Meeting(hosts=names, port=hosts["port"] or PORT, seconds=hosts["seconds"] or SECONDS)
