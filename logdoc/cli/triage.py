"""`logdoc triage`: many failed jobs at once, as a table of cause, jobs and hosts, the worst host first."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, language_option, note, rules_option, said_plainly
from logdoc.render.json import spelt_out
from logdoc.render.plain import one_line
from logdoc.types.errors import InputError
from logdoc.types.report import Report
from logdoc.types.value import dataclass, field


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
@click.argument("paths", nargs=-1, required=True, metavar="DIR|PATH...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@language_option
@rules_option
@said_plainly
def triage(paths: tuple[str, ...], form: str, language: str, rule_dirs: tuple[str, ...]) -> None:
    """What breaks our jobs, and which node should be drained? A single folder means: each entry in it is a job.

    Judges by the logs alone. Exit code 1 if any job failed.
    """
    from logdoc.engine import Engine, Options
    from logdoc.rulebase.cache import ready_rules
    from logdoc.rulebase.packs import rule_roots
    from logdoc.sources import discover

    engine = Engine(ready_rules(rule_roots(rule_dirs)))
    reports: dict[str, Report] = {}
    for job in _jobs(paths):
        try:
            reports[job] = engine.explain(discover([job]).sources, Options(language=language))
        except InputError as error:
            note(f"logdoc: {error}")
        except Exception as error:  # one job that is too much for us is no reason to judge none
            note(f"logdoc: {job}: not explained: {type(error).__name__}: {error}")
    if not reports:
        raise InputError("none of these jobs has a readable log")
    tallies, failed = tally(reports), sum(report.outcome != "healthy" for report in reports.values())
    if form == "json":
        click.echo(spelt_out(json.dumps(_document(reports, tallies), ensure_ascii=False, indent=2)))
    else:
        _print(tallies, len(reports), failed)
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


def _print(tallies: Sequence[Tally], jobs: int, failed: int) -> None:
    click.echo(f"{jobs} jobs, {failed} failed")
    for one in tallies:
        click.echo(f"{len(one.jobs):>5}  {one.rule:<36} {one_line(one.title)}")
    for host, count, rules in worst_hosts(tallies)[:20]:
        click.echo(f"{count:>5}  {one_line(host):<36} {', '.join(rules)}")
