"""What `logdoc explain` does once it knows what it is asked. Needs no command-line library: a small log must feel
instant."""

from __future__ import annotations

import gc
import os
import sys
from functools import partial

from logdoc.cli.common import (
    EXIT_FAILURE_FOUND,
    EXIT_HEALTHY,
    default_language,
    note,
    terminal_columns,
    wants_color,
    write_out,
)
from logdoc.engine import Engine, Options
from logdoc.kept.patterns import keep_patterns
from logdoc.render import TextOptions, render_text, rendered, shown
from logdoc.rulebase import ready_rules, rule_roots
from logdoc.scanner.ranges import Crew, processes
from logdoc.sources import discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from logdoc.cli.arguments import Request
    from logdoc.probes.base import FactSheet
    from logdoc.types.report import Report

MOST_WIDTH = 120
GC_THRESHOLD = 100_000  # records are many and hold no cycles: looking for some costs a fifth of the reading
MOST_WORKERS = 4  # the reading of what they find is one process's work
PROBE_SECONDS = 5.0


def explained(request: Request) -> int:
    """Say what broke first in the logs asked about; the exit code."""
    arguments = request.paths or ("-",)
    show = partial(_rendered, request, _shape(request))
    language = request.language or default_language()
    if request.follow:
        code = _follow(arguments, request, Options(language=language, sheets=_sheets(request.fact_files)), show)
        return EXIT_HEALTHY if request.exit_zero else code
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()
    found = discover(arguments, sys.stdin.buffer)
    engine = Engine(ready_rules(rule_roots(request.rule_dirs)))
    sheets = _sheets(request.fact_files)
    prober = None if request.no_probes or sheets else partial(_probe, python=request.python, quiet=request.quiet)
    good = discover(request.baselines).sources if request.baselines else ()
    options = Options(language, sheets, prober, _crew(request.where), warnings=found.warnings, baseline=good)
    report = engine.explain(found.sources, options)
    write_out(show(report))
    keep_patterns()
    if not request.quiet and request.form != "text":
        for warning in report.warnings:
            note(f"logdoc: {warning}")
    return exit_code(report, request.exit_zero)


def _shape(request: Request) -> TextOptions:
    return TextOptions(
        width=min(terminal_columns(100), MOST_WIDTH),
        long=request.long,
        why=request.why,
        color=wants_color(request.color),
        ascii=request.ascii_only,
    )


def _follow(arguments: Sequence[str], request: Request, options: Options, show: Callable[[Report], str]) -> int:
    from logdoc.cli.follow import follow_log

    engine = Engine(ready_rules(rule_roots(request.rule_dirs)))
    may_show = partial(shown, name=request.form, redacted=request.redacted)
    return follow_log(arguments, engine, options, request.form, may_show, show, request.quiet)


def _rendered(request: Request, shape: TextOptions, report: Report) -> str:
    """Text depends on the terminal; every other format is the same everywhere."""
    if request.form == "text":
        return render_text(shown(report, "text", request.redacted), shape)
    return rendered(report, request.form, request.redacted)


def _workers() -> int:
    """Processes for large inputs: LOGDOC_WORKERS, else as many as there are processors, within reason."""
    wanted = os.environ.get("LOGDOC_WORKERS", "")
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) < 1000 else min(MOST_WORKERS, os.cpu_count() or 1)


def _crew(where: str) -> Crew:
    if where != "ray":
        return processes(_workers())
    from logdoc.scanner.ray_crew import ray_crew

    return ray_crew()


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
        note(f"logdoc: probing this machine ({', '.join(probes)}); --no-probes skips this")
    return run_collector(probes, python, PROBE_SECONDS)


def exit_code(report: Report, exit_zero: bool = False) -> int:
    """0 for a healthy log, 1 where a failure was found, whatever the confidence."""
    return EXIT_HEALTHY if exit_zero or report.outcome == "healthy" else EXIT_FAILURE_FOUND
