"""`logdoc explain`: logs in, report out."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from functools import partial

import click

from logdoc.cli.common import (
    EXIT_FAILURE_FOUND,
    EXIT_HEALTHY,
    language_option,
    rules_option,
    said_plainly,
    wants_color,
)
from logdoc.engine import Engine, Options
from logdoc.probes.base import FactSheet, load_fact_sheets, run_collector
from logdoc.render import TextOptions, render_json, render_text
from logdoc.rulebase import load_rules, rule_roots
from logdoc.sources import discover
from logdoc.types.report import Report

MOST_WIDTH = 120
PROBE_SECONDS = 5.0


@click.command(
    epilog="""\b
Examples:
  logdoc explain crash.log
  logdoc explain logs/ 'slurm-*.out' --long
  kubectl logs job/train --all-containers | logdoc explain - --format json --no-probes""",
)
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@language_option
@rules_option
@click.option("--long", is_flag=True, help="Everything: all hypotheses, fixes, ranks, timeline.")
@click.option("--why", is_flag=True, help="Print every term of every score.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 also when a failure was found.")
@click.option("--no-probes", is_flag=True, help="Judge by the log alone; look at nothing on this machine.")
@click.option("--facts", "fact_files", multiple=True, metavar="FILE", help="Facts of `logdoc probe`, one file a host.")
@click.option("--python", metavar="EXE", help="The job's Python, for probes [default: the active environment's].")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours in text.")
@click.option("--ascii", "ascii_only", is_flag=True, help="No signs beyond ASCII round the texts.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
@said_plainly
def explain(
    paths: tuple[str, ...],
    form: str,
    language: str,
    rule_dirs: tuple[str, ...],
    long: bool,
    why: bool,
    exit_zero: bool,
    no_probes: bool,
    fact_files: tuple[str, ...],
    python: str | None,
    color: str,
    ascii_only: bool,
    quiet: bool,
) -> None:
    """Say what broke first in these logs: files, folders, patterns, URLs, or - for a pipe.

    Reads torchrun --log-dir trees, Slurm and Kubernetes logs, dmesg, and gz, bz2, xz and zst files.
    """
    arguments = paths or ("-",)
    if not paths and sys.stdin.isatty():
        raise click.UsageError("name a file or folder, or pipe a log in")
    found = discover(arguments, sys.stdin.buffer)
    engine = Engine(load_rules(rule_roots(rule_dirs)))
    sheets = tuple(sheet for name in fact_files for sheet in load_fact_sheets(name))
    prober = None if no_probes or sheets else partial(_probe, python=python, quiet=quiet)
    options = Options(language=language, sheets=sheets, prober=prober, warnings=found.warnings)
    report = engine.explain(found.sources, options)
    if form == "json":
        click.echo(render_json(report))
    else:
        width = min(shutil.get_terminal_size((100, 24)).columns, MOST_WIDTH)
        shape = TextOptions(width=width, long=long, why=why, color=wants_color(color), ascii=ascii_only)
        click.echo(render_text(report, shape), nl=False, color=True)
    if not quiet and form == "json":
        for warning in report.warnings:
            click.echo(f"logdoc: {warning}", err=True)
    sys.exit(exit_code(report, exit_zero))


def _probe(probes: Sequence[str], python: str | None, quiet: bool) -> FactSheet:
    """Ask this machine, within the budget; a terminal is told what is going on."""
    if not quiet and sys.stderr.isatty():
        click.echo(f"logdoc: probing this machine ({', '.join(probes)}); --no-probes skips this", err=True)
    return run_collector(probes, python, PROBE_SECONDS)


def exit_code(report: Report, exit_zero: bool = False) -> int:
    """0 for a healthy log, 1 where a failure was found, whatever the confidence."""
    return EXIT_HEALTHY if exit_zero or report.outcome == "healthy" else EXIT_FAILURE_FOUND
