"""`logdoc triage`: many failed jobs at once: what broke how many, on which hosts it began, and which job had what."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from logdoc.cli.common import (
    EXIT_FAILURE_FOUND,
    EXIT_HEALTHY,
    counted,
    echo,
    language_option,
    note,
    rules_option,
    said_plainly,
    terminal_columns,
)
from logdoc.cli.completing import files
from logdoc.render.cells import cell_len
from logdoc.render.json import spelt_out
from logdoc.render.plain import cut, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.errors import InputError
from logdoc.types.report import Report
from logdoc.types.value import dataclass, field

MOST_HOSTS, MOST_JOBS = 20, 40  # lines of the text; JSON has all
NAME_CELLS, RULE_CELLS, WIDTH = 40, 36, 120


@dataclass(slots=True)
class Tally:
    """How often a cause broke a job, and on which hosts it began."""

    rule: str
    title: str
    jobs: list[str] = field(default_factory=list)
    hosts: dict[str, int] = field(default_factory=dict)


@click.command(
    epilog="""\b
Examples:
  logdoc triage runs/                 every file and folder below runs/ is a job
  logdoc triage job-17/ job-18.log --format json
  logdoc triage /scratch/*/logs""",
)
@click.argument("paths", nargs=-1, required=True, metavar="DIR|PATH...", shell_complete=files)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@language_option
@rules_option
@said_plainly
def triage(paths: tuple[str, ...], form: str, language: str, rule_dirs: tuple[str, ...]) -> None:
    """What breaks our jobs, and which node should be drained? A single folder means: each entry in it is a job.

    Judges by the logs alone. Exit code 1 if any job failed.
    """
    from logdoc.engine import Options, load_engine
    from logdoc.sources import discover

    engine = load_engine(rule_dirs)
    reports: dict[str, Report] = {}
    for job in _jobs(paths):
        try:
            found = discover([job])
            reports[job] = engine.explain_found(found, Options(language=language))
            for warning in found.warnings:
                note(f"logdoc: {warning}")
        except InputError as error:
            note(f"logdoc: {error}")
        except Exception as error:  # one job that is too much for us is no reason to judge none
            reason = f"{type(error).__name__}: {error}"
            note(f"logdoc: {phrase('triage.given_up', language, job=job, error=reason)}")
    if not reports:
        raise InputError("none of these jobs has a readable log")
    tallies, failed = tally(reports), sum(report.outcome != "healthy" for report in reports.values())
    if form == "json":
        click.echo(spelt_out(json.dumps(_document(reports, tallies), ensure_ascii=False, indent=2)))
    else:
        echo(phrase("triage.counted", language, jobs=counted("job", len(reports), language), failed=failed))
        _print(tallies, reports, language)
    sys.exit(EXIT_FAILURE_FOUND if failed else EXIT_HEALTHY)


def _jobs(paths: Sequence[str]) -> Iterator[str]:
    """The jobs named: each path is one, but a single folder stands for the entries in it."""
    if len(paths) == 1 and Path(paths[0]).is_dir():
        entries = sorted(entry for entry in Path(paths[0]).iterdir() if not entry.name.startswith("."))
        yield from map(str, entries)
    else:
        yield from paths


def tally(reports: dict[str, Report]) -> list[Tally]:
    """Top answers of all failed jobs counted by rule, the most frequent first."""
    found: dict[str, Tally] = {}
    for job, report in reports.items():
        if report.outcome == "healthy":
            continue
        top = report.diagnoses[0] if report.diagnoses else None
        rule, title = (top.rule, top.title) if top else (report.outcome, report.headline)
        one = found.setdefault(rule, Tally(rule, title))
        one.jobs.append(job)
        if top is not None and top.origin.host is not None:
            one.hosts[top.origin.host] = one.hosts.get(top.origin.host, 0) + 1
    return sorted(found.values(), key=lambda one: (-len(one.jobs), one.rule))


def worst_hosts(tallies: Sequence[Tally]) -> list[tuple[str, int, list[str]]]:
    """Hosts on which failures began: how many, and by which causes, the worst first."""
    counts: dict[str, int] = {}
    causes: dict[str, list[str]] = {}
    for one in tallies:
        for host, count in one.hosts.items():
            counts[host] = counts.get(host, 0) + count
            causes.setdefault(host, []).append(one.rule)
    return [(host, counts[host], causes[host]) for host in sorted(counts, key=lambda host: (-counts[host], host))]


def _document(reports: dict[str, Report], tallies: Sequence[Tally]) -> dict[str, object]:
    return {
        "schema": "logdoc.triage/v1",
        "jobs": [{"job": job, "outcome": report.outcome, "headline": report.headline,
                  "rule": report.diagnoses[0].rule if report.diagnoses else None} for job, report in reports.items()],
        "causes": [{"rule": one.rule, "jobs": len(one.jobs), "hosts": one.hosts} for one in tallies],
        "hosts": [{"host": host, "failures": count, "rules": rules} for host, count, rules in worst_hosts(tallies)],
    }  # fmt: skip


def _print(tallies: Sequence[Tally], reports: Mapping[str, Report], language: str) -> None:
    causes = [f"{len(one.jobs):>5}  {one.rule:<{RULE_CELLS}} {one_line(one.title)}" for one in tallies]
    hosts = [
        f"{count:>5}  {_padded(one_line(host), RULE_CELLS)} {', '.join(rules)}"
        for host, count, rules in worst_hosts(tallies)
    ]
    for heading, lines, most in (
        ("triage.causes", causes, len(causes)),
        ("triage.hosts", hosts, MOST_HOSTS),
        ("triage.jobs", _job_lines(reports), MOST_JOBS),
    ):
        if not lines:
            continue
        click.echo(f"\n{phrase(heading, language)}")
        for line in lines[:most]:
            click.echo(line)
        if len(lines) > most:
            click.echo(f"       {phrase('triage.more', language, n=len(lines) - most)}")


def _job_lines(reports: Mapping[str, Report]) -> list[str]:
    """A line a job: its name, its cause, and the headline; what failed last comes first, what is healthy last."""
    order = sorted(reports, key=lambda job: (reports[job].outcome == "healthy", -_changed(job)))
    folder = os.path.commonpath([os.path.dirname(job) for job in order]) if _are_paths(order) else ""
    names = {job: one_line(job.removeprefix(folder + os.sep) if folder else job) for job in order}
    width = min(max(map(cell_len, names.values())), NAME_CELLS)
    columns = terminal_columns(WIDTH)
    return [
        cut(f"  {_padded(cut(names[job], width), width)}  {_cause(reports[job]):<{RULE_CELLS}} "
            f"{one_line(reports[job].headline)}", columns)
        for job in order
    ]  # fmt: skip


def _cause(report: Report) -> str:
    if report.outcome == "healthy":
        return "-"
    return report.diagnoses[0].rule if report.diagnoses else report.outcome


def _are_paths(jobs: Sequence[str]) -> bool:
    """Whether all are files and folders, named alike, rather than URLs or patterns."""
    return all(map(os.path.exists, jobs)) and len({os.path.isabs(job) for job in jobs}) == 1


def _changed(job: str) -> float:
    """When a job's log, or the newest entry of its folder, was last written to; 0 for what is no file."""
    try:
        entries = [entry.stat().st_mtime for entry in os.scandir(job)] if os.path.isdir(job) else []
        return max([os.stat(job).st_mtime, *entries])
    except OSError:
        return 0.0


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))
