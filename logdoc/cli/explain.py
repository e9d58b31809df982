"""`logdoc explain`: logs in, report out."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

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
from logdoc.render import FORMATS, TextOptions, render_text, rendered, shown
from logdoc.rulebase import ready_rules, rule_roots
from logdoc.scanner.ranges import Crew, processes
from logdoc.sources import discover
from logdoc.types.report import Report

if TYPE_CHECKING:
    from logdoc.probes.base import FactSheet

MOST_WIDTH = 120
GC_THRESHOLD = 100_000  # records are many and hold no cycles: looking for some costs a fifth of the reading
MOST_WORKERS = 4  # the reading of what they find is one process's work
PROBE_SECONDS = 5.0


@click.command(
    epilog="""\b
Examples:
  logdoc explain crash.log
  logdoc explain logs/ 'slurm-*.out' --long
  kubectl logs job/train --all-containers | logdoc explain - --format slack --no-probes""",
)
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@click.option(
    "--format", "form", type=click.Choice([one.name for one in FORMATS]), default="text", help="What to print."
)
@click.option(
    "--redact/--no-redact",
    "redacted",
    default=None,
    help="Hide secrets, people, machines and addresses [default: where others read it: markdown, slack, teams, html].",
)
@click.option("--follow", is_flag=True, help="Read on as the log grows; tell when another cause leads.")
@language_option
@rules_option
@click.option("--long", is_flag=True, help="Everything: all hypotheses, fixes, ranks, timeline.")
@click.option("--why", is_flag=True, help="Print every term of every score.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 also when a failure was found.")
@click.option("--no-probes", is_flag=True, help="Judge by the log alone; look at nothing on this machine.")
@click.option("--facts", "fact_files", multiple=True, metavar="FILE", help="Facts of `logdoc probe`, one file a host.")
@click.option(
    "--baseline", "baselines", multiple=True, metavar="GOOD", help="Logs of a good run: what is new stands out."
)
@click.option(
    "--engine",
    "where",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Who scans large inputs: processes here, or Ray (RAY_ADDRESS, else a local cluster).",
)
@click.option("--python", metavar="EXE", help="The job's Python, for probes [default: the active environment's].")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours in text.")
@click.option("--ascii", "ascii_only", is_flag=True, help="No signs beyond ASCII round the texts.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
@said_plainly
def explain(
    paths: tuple[str, ...],
    form: str,
    redacted: bool | None,
    follow: bool,
    language: str,
    rule_dirs: tuple[str, ...],
    long: bool,
    why: bool,
    exit_zero: bool,
    no_probes: bool,
    fact_files: tuple[str, ...],
    baselines: tuple[str, ...],
    where: str,
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
    width = min(shutil.get_terminal_size((100, 24)).columns, MOST_WIDTH)
    shape = TextOptions(width=width, long=long, why=why, color=wants_color(color), ascii=ascii_only)
    show = partial(_rendered, form=form, redacted=redacted, shape=shape)
    if follow and redacted and form in ("json", "jsonl"):
        raise click.UsageError(f"--redact hides nothing in the events of --follow --format {form}; leave one out")
    if follow:
        options = Options(language=language, sheets=_sheets(fact_files))
        code = _follow(arguments, rule_dirs, options, form, show, quiet)
        sys.exit(EXIT_HEALTHY if exit_zero else code)
    gc.set_threshold(GC_THRESHOLD)
    found = discover(arguments, sys.stdin.buffer)
    engine = Engine(ready_rules(rule_roots(rule_dirs)))
    sheets = _sheets(fact_files)
    prober = None if no_probes or sheets else partial(_probe, python=python, quiet=quiet)
    good = discover(baselines).sources if baselines else ()
    options = Options(language, sheets, prober, _crew(where), warnings=found.warnings, baseline=good)
    report = engine.explain(found.sources, options)
    click.echo(show(report), nl=False, color=True)
    if not quiet and form != "text":
        for warning in report.warnings:
            click.echo(f"logdoc: {warning}", err=True)
    sys.exit(exit_code(report, exit_zero))


def _follow(
    arguments: Sequence[str],
    rule_dirs: Sequence[str],
    options: Options,
    form: str,
    show: Callable[[Report], str],
    quiet: bool,
) -> int:
    from logdoc.cli.follow import follow_log

    return follow_log(arguments, Engine(ready_rules(rule_roots(rule_dirs))), options, form, show, quiet)


def _rendered(report: Report, form: str, redacted: bool | None, shape: TextOptions) -> str:
    """Text depends on the terminal; every other format is the same everywhere."""
    return render_text(shown(report, form, redacted), shape) if form == "text" else rendered(report, form, redacted)


def _crew(where: str) -> Crew:
    if where != "ray":
        return processes(_workers())
    from logdoc.scanner.ray_crew import ray_crew

    return ray_crew()


def _workers() -> int:
    """Processes for large inputs: LOGDOC_WORKERS, else as many as there are processors, within reason."""
    wanted = os.environ.get("LOGDOC_WORKERS", "")
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) < 1000 else min(MOST_WORKERS, os.cpu_count() or 1)


def _sheets(fact_files: Sequence[str]) -> tuple[FactSheet, ...]:
    """Facts that were collected on hosts of the job."""
    if not fact_files:
        return ()
    from logdoc.probes.base import load_fact_sheets

    return tuple(sheet for name in fact_files for sheet in load_fact_sheets(name))


def _probe(probes: Sequence[str], python: str | None, quiet: bool) -> FactSheet:
    """Ask this machine, within the budget; a terminal is told what is going on."""
    from logdoc.probes.base import run_collector

    if not quiet and sys.stderr.isatty():
        click.echo(f"logdoc: probing this machine ({', '.join(probes)}); --no-probes skips this", err=True)
    return run_collector(probes, python, PROBE_SECONDS)


def exit_code(report: Report, exit_zero: bool = False) -> int:
    """0 for a healthy log, 1 where a failure was found, whatever the confidence."""
    return EXIT_HEALTHY if exit_zero or report.outcome == "healthy" else EXIT_FAILURE_FOUND
