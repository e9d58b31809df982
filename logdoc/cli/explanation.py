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
    EXIT_USAGE,
    default_language,
    note,
    terminal_columns,
    wants_color,
    write_out,
)
from logdoc.engine import Options, fact_sheets, load_engine
from logdoc.kept.patterns import keep_patterns
from logdoc.render import rendered, shown
from logdoc.reporting.wording import phrase
from logdoc.scanner.ranges import Crew, processes
from logdoc.sources import discover
from logdoc.sources.names import shown as as_named
from logdoc.types.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from logdoc.cli.arguments import Request
    from logdoc.probes.sheets import FactSheet
    from logdoc.sources import Discovered
    from logdoc.types.report import Report

MOST_WIDTH = 120
MOST_TOLD = 3
GC_THRESHOLD = 100_000  # records are many and hold no cycles: looking for some costs a fifth of the reading
MOST_WORKERS = 4  # the reading of what they find is one process's work


def explained(request: Request) -> int:
    """Say what broke first in the logs asked about; the exit code."""
    arguments = request.paths or ("-",)
    show = partial(_rendered, request)
    language = request.language or default_language()
    if request.follow:
        code = _follow(arguments, request, Options(language=language, sheets=fact_sheets(request.fact_files)), show)
        return EXIT_HEALTHY if request.exit_zero else code
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()
    found = discover(arguments, sys.stdin.buffer)
    engine = load_engine(request.rule_dirs)
    sheets = fact_sheets(request.fact_files)
    prober = None if request.no_probes or sheets else partial(_probe, request, language)
    good = discover(request.baselines).sources if request.baselines else ()
    options = Options(language, sheets, prober, _crew(request.where), baseline=good)
    report = engine.explain_found(found, options)
    refuse_nothing(report)
    write_out(show(report))
    keep_patterns()
    if not request.quiet and request.form != "text":
        for warning in report.warnings:
            note(f"logdoc: {warning}")
    if report.outcome == "healthy" and _unread(arguments, found):
        return EXIT_USAGE
    return exit_code(report, request.exit_zero)


def refuse_nothing(report: Report) -> None:
    """Raises InputError where no input held a single byte: `kubectl logs` of a pod that is not there must not pass."""
    sources = report.input.sources
    if any(source.bytes for source in sources):
        return
    told = report.warnings or [f"{source.name}: empty" for source in sources]
    more = f" (and {len(told) - MOST_TOLD} more)" if len(told) > MOST_TOLD else ""
    raise InputError(f"nothing to read: {'; '.join(told[:MOST_TOLD])}{more}")


def _unread(arguments: Sequence[str], found: Discovered) -> bool:
    """Whether something that was named could not be read: a warning is about it, and no source has its name."""
    read = {source.name for source in found.sources}
    names = {as_named(argument) for argument in arguments} - read
    return any(warning.startswith(f"{name}: ") for warning in found.warnings for name in names)


def _follow(arguments: Sequence[str], request: Request, options: Options, show: Callable[[Report], str]) -> int:
    from logdoc.cli.follow import follow_log

    engine = load_engine(request.rule_dirs)
    may_show = partial(shown, name=request.form, redacted=request.redacted)
    return follow_log(arguments, engine, options, request.form, may_show, show, request.quiet)


def _rendered(request: Request, report: Report) -> str:
    """Text depends on the terminal; every other format is the same everywhere."""
    if request.form != "text":
        return rendered(report, request.form, request.redacted)
    from logdoc.render.text import TextOptions, render_text

    shape = TextOptions(
        width=min(terminal_columns(100), MOST_WIDTH),
        long=request.long,
        why=request.why,
        color=wants_color(request.color),
        ascii=request.ascii_only,
    )
    return render_text(shown(report, "text", request.redacted), shape)


def _workers() -> int:
    """Processes for large inputs: LOGDOC_WORKERS, else as many as there are processors, within reason."""
    wanted = os.environ.get("LOGDOC_WORKERS", "")
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) < 1000 else min(MOST_WORKERS, os.cpu_count() or 1)


def _crew(where: str) -> Crew:
    if where != "ray":
        return processes(_workers())
    from logdoc.scanner.ray_crew import ray_crew

    return ray_crew()


def _probe(request: Request, language: str, probes: Sequence[str]) -> FactSheet:
    """Ask this machine, within the budget; a terminal is told what is going on."""
    from logdoc.probes.collecting import run_collector

    if not request.quiet and sys.stderr.isatty():
        note(f"logdoc: {phrase('look.probing', language, probes=', '.join(probes))}")
    return run_collector(probes, request.python)


def exit_code(report: Report, exit_zero: bool = False) -> int:
    """0 for a healthy log, 1 where a failure was found, whatever the confidence."""
    return EXIT_HEALTHY if exit_zero or report.outcome == "healthy" else EXIT_FAILURE_FOUND
