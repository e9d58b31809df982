"""`logdoc doctor`: is this machine ready for NCCL?"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, EXIT_USAGE, echo, language_option, said_plainly
from logdoc.cli.completing import files
from logdoc.cli.looking import budget_option, looked, python_option, told_errors
from logdoc.probes.sheets import FactSheet
from logdoc.render.json import spelt_out
from logdoc.reporting.wording import phrase

if TYPE_CHECKING:
    from logdoc.probes.doctor import Finding


@click.command(
    epilog="""\b
Examples:
  logdoc doctor
  logdoc doctor --python /opt/conda/envs/train/bin/python --budget 30
  logdoc doctor --format json | jq '.findings[0]'""",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@click.option(
    "--facts",
    metavar="FILE",
    shell_complete=files,
    help="Judge these facts instead of this machine; one line a host.",
)
@budget_option
@python_option
@language_option
@said_plainly
def doctor(form: str, facts: str | None, budget: float, python: str | None, language: str) -> None:
    """Is this machine and environment ready for NCCL? Ordered by what would break first. Exit 1 if something would."""
    from logdoc.probes.doctor import check
    from logdoc.probes.sheets import load_fact_sheets

    sheets = load_fact_sheets(facts) if facts else (looked((), python, budget, language),)
    codes = []
    for sheet in sheets:
        findings = check(sheet)
        told = [_told(one, language) for one in findings]
        if form == "json":
            click.echo(spelt_out(_document(told, sheet, indent=2 if len(sheets) == 1 else None)))
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


def _print_findings(told: Sequence[Mapping[str, object]], sheet: FactSheet, language: str) -> None:
    echo(f"{sheet.host} · {sheet.python}")
    for one in told:
        echo(f"{_SIGNS[str(one['severity'])]} {one['says']}")
        commands = one["run"]
        assert isinstance(commands, list)
        for command in commands:
            echo(f"    {command}")
    for line in told_errors(sheet, language):
        echo(f"? {line}")
    if sheet.facts and not told:
        echo(f"✓ {phrase('doctor.well', language)}")
