"""`logdoc explain --follow`: prints as the diagnosis of a growing log changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY
from logdoc.cli.explanation import refuse_nothing
from logdoc.engine import Engine, Options
from logdoc.render import render_json
from logdoc.render.jsonl import diagnosis_event, end_event
from logdoc.runner.follow import Change, Feed, ended_by_signals, follow, open_file
from logdoc.runner.keep import Ring
from logdoc.runner.phrases import say
from logdoc.sources import STDIN_NAME, PathHints, path_hints
from logdoc.sources.limits import MIB
from logdoc.types.report import Report

KEPT_BYTES = 8 * MIB  # of the end, what is explained each time


def follow_log(
    paths: Sequence[str],
    engine: Engine,
    options: Options,
    form: str,
    may_show: Callable[[Report], Report],
    as_text: Callable[[Report], str],
    quiet: bool,
) -> int:
    """Follow a file, or a pipe to its end; the exit code. `may_show` takes out of a report what is to be hidden.

    Raises InputError, UsageError.
    """
    if len(paths) != 1:
        raise click.UsageError("--follow takes one file, or - for a pipe")
    path = None if paths[0] == "-" else paths[0]
    name, hints = (STDIN_NAME, PathHints()) if path is None else (path, path_hints(os.path.abspath(path)))

    def said(key: str, what: str) -> None:
        if not quiet:
            click.echo(f"logdoc: {say(key, options.language, name=what)}", err=True)

    with closing(Ring(KEPT_BYTES)) as keep:
        feed = Feed(path, 0 if path is None else open_file(path), keep, said)

        def explain() -> Report:
            with closing(keep.snapshot()) as kept:
                return may_show(engine.explain([kept.source(name, hints)], options))

        printer = _Printer(form, as_text)
        with ended_by_signals(feed):
            feed.start()
            report = follow(feed, explain, printer.change)
        if feed.interrupted_by is None:
            refuse_nothing(report)
        printer.end(report)
    return _exit_code(report, feed)


class _Printer:
    """Events for jsonl; one object at the end for json; for text, the short report whenever another cause leads."""

    def __init__(self, form: str, as_text: Callable[[Report], str]) -> None:
        self._form = form
        self._as_text = as_text
        self._has_printed = False

    def change(self, change: Change) -> None:
        if self._form == "jsonl":
            click.echo(diagnosis_event(change.diagnosis, change.number), nl=False)
        elif self._form == "text" and change.number == 1:
            click.echo(self._as_text(change.report), nl=False, color=True)
            self._has_printed = True
        elif self._form == "text":
            told = say("also", change.report.language, title=change.diagnosis.title)
            click.echo(f"  {told} ({change.diagnosis.confidence:.2f})")

    def end(self, report: Report) -> None:
        if self._form == "jsonl":
            click.echo(end_event(report), nl=False)
        elif self._form == "json":
            click.echo(render_json(report))
        elif not self._has_printed:
            click.echo(self._as_text(report), nl=False, color=True)


def _exit_code(report: Report, feed: Feed) -> int:
    """1 where a failure was found, however it ended; else 128 + N for the signal that ended it, or 0."""
    if report.outcome != "healthy":
        return EXIT_FAILURE_FOUND
    return EXIT_HEALTHY if feed.interrupted_by is None else 128 + feed.interrupted_by
