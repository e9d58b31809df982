"""A log under examination: makes its reports in a thread that can be stopped, and asks the machine when told to."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Protocol

from logdoc.engine import Engine, Options, Study
from logdoc.probes.collect.commands import Answer, end_group, stop_group
from logdoc.probes.collecting import Runner, run_collector
from logdoc.probes.sheets import FactSheet
from logdoc.sources import Discovered, Source, discover
from logdoc.sources.names import is_url
from logdoc.sources.origins import BytesOrigin, FileOrigin
from logdoc.sources.spool import Spool
from logdoc.tui.freshness import Change, Freshness
from logdoc.types.report import Report

PROBE_SECONDS = 15.0  # the user asked for the probes and can stop them
_POLL_SECONDS = 0.1


class Stopped(Exception):  # noqa: N818 - no error: the user has changed their mind
    """The work was called off."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How a thread is told to stop, and how it says that it has read so many more bytes."""

    stopped: Callable[[], bool] = lambda: False
    read: Callable[[int], None] = lambda count: None

    def check(self) -> None:
        """Raises Stopped if the work was called off."""
        if self.stopped():
            raise Stopped


class Case(Protocol):
    """What the UI shows: logs, and a report of them in any language."""

    @property
    def sources(self) -> Sequence[Source]: ...

    def report(self, language: str, watch: Watch) -> Report:
        """The report in this language, with what the probes said if they have run. Raises Stopped, LogdocError."""

    def probe(self, language: str, watch: Watch) -> Report:
        """Run the probes that the hypotheses ask for, and judge again. Raises Stopped, LogdocError."""

    @property
    def rereadable(self) -> bool:
        """Can any of the logs be read again as they are now? Standard input cannot."""

    def change(self) -> Change:
        """What has become of the logs since they were read."""

    def reread(self, language: str, watch: Watch) -> Report:
        """Find the logs anew, read and explain them. Raises Stopped, LogdocError; all then stays as it was."""


@dataclass(slots=True)
class LogCase:
    """Logs that an engine explains. They are read once, until told to; a report that was made once is kept.

    `engine` is called when the first report is made: it takes a second, in which the log can be seen already.
    `arguments` is what the user typed, to find new files by; without it only the files of `sources` are found again.
    """

    engine: Callable[[], Engine]
    sources: Sequence[Source]
    sheets: tuple[FactSheet, ...] = ()
    python: str | None = None
    warnings: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    _live: tuple[FactSheet, ...] = ()
    _study: Study | None = None
    _reports: dict[str, Report] = field(default_factory=dict)
    _fresh: Freshness | None = None

    def report(self, language: str, watch: Watch) -> Report:
        """See Case."""
        if language not in self._reports:
            self._reports[language] = self._explain(language, watch, None)
        return self._reports[language]

    def probe(self, language: str, watch: Watch) -> Report:
        """See Case. What the machine says is used for every later report."""
        given: list[FactSheet] = []

        def ask(probes: Sequence[str]) -> FactSheet:
            given.append(run_collector(probes, self.python, PROBE_SECONDS, stoppable(watch)))
            return given[-1]

        report = self._explain(language, watch, ask)
        self._live = tuple(given)
        if self.sheets:  # facts from files speak too
            report = self._explain(language, watch, None)
        self._reports = {language: report}
        return report

    @property
    def rereadable(self) -> bool:
        """See Case."""
        return any(not isinstance(source.origin, Spool | BytesOrigin) for source in self.sources)

    def change(self) -> Change:
        """See Case."""
        return self._fresh.change() if self._fresh is not None else ""

    def reread(self, language: str, watch: Watch) -> Report:
        """See Case. What the machine said is forgotten: it was asked about what the logs said then."""
        kept = [source for source in self.sources if not isinstance(source.origin, FileOrigin)]
        paths = self._paths()
        found = discover(paths) if paths else Discovered((), ())
        warnings = tuple(one for one in self.warnings if one.startswith(tuple(f"{source.name}: " for source in kept)))
        place = {source.name: number for number, source in enumerate(self.sources)}
        sources = sorted([*kept, *found.sources], key=lambda source: place.get(source.name, len(place)))
        anew = LogCase(self.engine, sources, self.sheets, self.python, (*warnings, *found.warnings), self.arguments)
        report = anew.report(language, watch)
        for part in fields(LogCase):
            setattr(self, part.name, getattr(anew, part.name))
        return report

    def _paths(self) -> tuple[str, ...]:
        """The files, folders and patterns behind the sources that lie on disk."""
        copied = {source.location for source in self.sources if not isinstance(source.origin, FileOrigin)}
        if not self.arguments:
            return tuple(
                source.location for source in self.sources if source.location and source.location not in copied
            )
        return tuple(one for one in self.arguments if one != "-" and one not in copied and not _is_remote(one))

    def _explain(self, language: str, watch: Watch, prober: Callable[[Sequence[str]], FactSheet] | None) -> Report:
        sheets = () if prober else (*self.sheets, *self._live)
        options = Options(language=language, sheets=sheets, prober=prober, warnings=self.warnings)
        if self._study is None:
            self._fresh = Freshness(self.sources, self._paths())  # before reading: what is written meanwhile is news
            self._study = self.engine().study([_watched(source, watch) for source in self.sources])
        return self.engine().report(self._study, options)


@dataclass(slots=True)
class _WatchedSource(Source):
    """A source whose reading can be stopped."""

    watch: Watch = field(default_factory=Watch)

    def open_blocks(self) -> Iterator[bytes]:
        for block in Source.open_blocks(self):
            self.watch.check()
            self.watch.read(len(block))
            yield block


def _is_remote(argument: str) -> bool:
    return is_url(argument) and not argument.lower().startswith("file:")


def _watched(source: Source, watch: Watch) -> Source:
    return _WatchedSource(**{part.name: getattr(source, part.name) for part in fields(Source)}, watch=watch)


def stoppable(watch: Watch) -> Runner:
    """Runs a command as machine.run_command does, but ends it as soon as the work is called off."""
    return partial(_run, watch)


def _run(watch: Watch, argv: Sequence[str], limit: float, feed: str = "") -> Answer:
    with tempfile.TemporaryFile() as script:  # a pipe would have to be filled while the output is read
        script.write(feed.encode())
        script.seek(0)
        try:
            process = subprocess.Popen(
                list(argv), stdin=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except FileNotFoundError:
            return Answer("missing", 127, "", "")
        except OSError as error:
            return Answer("refused", 126, "", str(error))
    return _answer(process, watch, time.monotonic() + limit)


def _answer(process: subprocess.Popen[bytes], watch: Watch, deadline: float) -> Answer:
    while True:
        try:
            out, err = process.communicate(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if watch.stopped() or time.monotonic() > deadline:
                state = "timeout" if end_group(process, stop_group) else "abandoned"
                watch.check()
                return Answer(state, -1, "", "")
        else:
            return Answer("ok", process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
