"""The log pane with its prompt: opens a job's logs, searches in a thread, and goes from evidence to evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from logdoc.sources import Source
from logdoc.tui.log_pane import LogPane, Mark
from logdoc.tui.log_prompt import LogPrompt
from logdoc.tui.logfile import LogFile
from logdoc.tui.marks import WARNING, data, joined, sign_of
from logdoc.tui.phrases import Voice
from logdoc.types.errors import LogdocError
from logdoc.types.report import Report

Step = Literal[1, -1]
MOST_DIGITS = 18  # of a line number


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a log that evidence stands on."""

    source: str
    line: int


class LogPanel(Vertical):
    """One log at a time, with everything that moves about in it."""

    ALLOW_MAXIMIZE = True

    @dataclass
    class Grown(Message):
        """A thread knows more lines of this log."""

        log: LogFile

    @dataclass
    class Found(Message):
        """A thread has searched: the line, None if the text is nowhere; `query` says for what."""

        query: str
        line: int | None

    @dataclass
    class Unreadable(Message):
        """A thread could not read a log."""

        reason: str

    def __init__(self, sources: Sequence[Source], voice: Voice) -> None:
        super().__init__(id="log")
        self._sources = _texts(sources)
        self._voice = voice
        self._files: dict[int, LogFile] = {}
        self._awaited: LogFile | None = None
        self._hint = ""
        self._current: int | None = None
        self._marks: dict[str, dict[int, list[Mark]]] = {}
        self._evidence: list[Place] = []
        self._at = -1
        self._query = ""
        self._start = 1
        self._asks: Literal["search", "line"] = "search"

    def compose(self) -> ComposeResult:
        yield LogPrompt(id="log-prompt", compact=True)
        yield LogPane(id="log-pane")

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)

    @property
    def names(self) -> list[str]:
        """The logs that can be opened, in the order of the sources."""
        return [source.name for source in self._sources]

    @property
    def query_text(self) -> str:
        """What is being searched for; empty if nothing is."""
        return self._query

    def on_mount(self) -> None:
        self.prompt.display = False
        if self._sources:
            self.open(0)
        self.retitle()

    @property
    def prompt(self) -> LogPrompt:
        return self.query_one(LogPrompt)

    def on_unmount(self) -> None:
        self.workers.cancel_node(self)
        self._close(self._files.values())

    def open(self, number: int) -> None:
        """Show a log by its place in `names`."""
        if number == self._current:
            return
        if number not in self._files:
            try:
                self._files[number] = LogFile(self._sources[number])
            except (OSError, LogdocError) as error:
                self._tell(str(error))
                return
            self._build(self._files[number])
        self._current = number
        log = self._files[number]
        self.pane.open(log)
        self.pane.mark(self._marks.get(log.name, {}))

    def renew(self, sources: Sequence[Source]) -> None:
        """The logs have been read anew: stay where the user is, in the log as it is now."""
        before, shown = self.names[self._current] if self._current is not None else None, self.pane.log_file
        self.workers.cancel_node(self)
        self._close(log for log in (*self._files.values(), self._awaited) if log and log is not shown)
        self._sources, self._files, self._current, self._awaited = _texts(sources), {}, None, None
        try:
            self._awaited = LogFile(self._sources[self.names.index(before)]) if before in self.names else None
        except (OSError, LogdocError) as error:
            self._tell(str(error))
        if self._awaited is not None and shown is not None:
            self._current = self.names.index(self._awaited.name)
            self._files = {self._current: shown}  # until all of the new one is known: nothing is to flicker
            self.pane.wait()
            self._build(self._awaited)
            return
        self._close([shown] if shown else [])
        self.pane.empty()
        if self._sources:
            self.open(0)

    def _exchange(self, log: LogFile) -> None:
        """All of the log that was awaited is known."""
        assert self._current is not None
        number = self.names.index(log.name)
        old = self._files[number]
        self._files[number], self._awaited = log, None
        if self.pane.log_file is old:
            self.pane.exchange(log)
        self._close([old])

    def hint(self, text: str) -> None:
        """Say this before the line's number."""
        self._hint = text
        self.retitle()

    def turn(self, step: Step) -> None:
        """Show the next or previous log."""
        if self._sources:
            self.open(((self._current or 0) + step) % len(self._sources))

    def show_report(self, report: Report, chosen: int) -> None:
        """Mark what a report names; `chosen` is the diagnosis whose evidence is stepped through."""
        self._marks = {}
        for number, diagnosis in enumerate(report.diagnoses):
            sign, style = sign_of(diagnosis)
            for line in diagnosis.evidence:
                mark = Mark(
                    sign, style, line.text.split("\n")[0].strip("…"), tuple(line.captures.values()), number == chosen
                )
                self._marks.setdefault(line.source, {}).setdefault(line.line, []).append(mark)
        abnormal = report.first_abnormal
        if abnormal is not None:
            mark = Mark("?", WARNING, _matched(abnormal.text), (), True)
            self._marks.setdefault(abnormal.source, {}).setdefault(abnormal.line, []).append(mark)
        for lines in self._marks.values():
            for marks in lines.values():
                marks.sort(key=lambda mark: mark.chosen)  # the chosen one is drawn over the others
        places = _places(report, chosen)
        self._evidence = [place for place in places if place.source in self.names] or places
        self._at = -1
        if self._current is not None:
            self.pane.mark(self._marks.get(self.names[self._current], {}))

    def go_to(self, source: str, line: int) -> None:
        """Show a line of a log by name."""
        if source not in self.names:
            self._tell(self._voice.say("log.elsewhere", place=f"{source}:{line}"))
            return
        self.open(self.names.index(source))
        self.pane.go_to(line)

    def show_evidence(self) -> None:
        """Go to the first line of the chosen evidence, if there is any in a log with lines."""
        if self._evidence and self._evidence[0].source in self.names:
            self.step_evidence()

    def step_evidence(self, step: Step = 1) -> None:
        """Go to the next or previous line of the chosen evidence, whichever log it is in."""
        if not self._evidence:
            self._tell(self._voice.say("log.no_evidence"))
            return
        self._at = (self._at + step) % len(self._evidence) if self._at >= 0 or step > 0 else len(self._evidence) - 1
        place = self._evidence[self._at]
        self.go_to(place.source, place.line)

    def step(self, step: Step) -> None:
        """The next or previous hit of the search; of the evidence where nothing is searched for."""
        if not self._query:
            self.step_evidence(step)
            return
        self._find(self.pane.cursor + step, backwards=step < 0)

    def take_keys(self) -> None:
        """Give the keys to the lines."""
        if self._has_lines():
            self.screen.set_focus(self.pane)

    def _has_lines(self) -> bool:
        """Is there a log to be looked at? Says so if not."""
        if self._current is None:
            self._tell(self._voice.say("log.none"))
        return self._current is not None

    def ask(self, what: Literal["search", "line"]) -> None:
        """Let the user type a search, or a line number."""
        if not self._has_lines():
            return
        self._asks = what
        self._start = self.pane.cursor
        self.prompt.placeholder = self._voice.say(f"prompt.{what}")
        with self.prompt.prevent(Input.Changed):
            self.prompt.value = ""
        self.prompt.display = True
        self.prompt.answered = False
        self.screen.set_focus(self.prompt)

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._asks == "search":
            self._query = event.value
            self.pane.look_for(event.value)
            self._find(self._start)

    def on_input_submitted(self) -> None:
        """Leave the prompt with what was typed: the search stays, the line is gone to, the last one if it is beyond."""
        if self._asks == "line":
            typed = self.prompt.value.replace(",", "").strip()
            if not typed.isdecimal():
                count = self.pane.log_file.line_count if self.pane.log_file else 0
                self._tell(self._voice.say("log.no_number", count=f"{count:,}"))
                self.prompt.answered = False
                return
            self.pane.go_to(int(typed[:MOST_DIGITS]))
        self._close_prompt()

    def on_log_prompt_left(self) -> None:
        """Leave the prompt as if nothing had been typed."""
        self.stop_search()
        self._close_prompt()
        self.pane.go_to(self._start)

    def stop_search(self) -> None:
        """Forget the search and its marks."""
        self.workers.cancel_group(self, "search")
        self._query = ""
        self.pane.look_for("")
        self.retitle()

    def _close_prompt(self) -> None:
        self.prompt.display = False
        self.screen.set_focus(self.pane)

    def on_log_panel_grown(self, message: Grown) -> None:
        if message.log is self._awaited:
            if message.log.complete:
                self._exchange(message.log)
        elif message.log is self.pane.log_file:
            self.pane.grow()

    def on_log_panel_unreadable(self, message: Unreadable) -> None:
        self._tell(message.reason)

    def on_log_panel_found(self, message: Found) -> None:
        if message.query != self._query:
            return
        if message.line is None:
            self.pane.go_to(self._start)
            self.border_subtitle = data(self._voice.say("log.nowhere", query=message.query))
        else:
            self.retitle()
            self.pane.go_to(message.line)

    def on_log_pane_moved(self) -> None:
        self.retitle()

    def retitle(self) -> None:
        """Say which log, which line, and what is searched for."""
        log = self.pane.log_file
        if log is None:
            nothing = "" if self._sources else self._voice.say("log.none")
            self.border_title, self.border_subtitle = data(nothing), data(self._hint, WARNING)
            self.set_class(not self._sources, "-bare")
            return
        self.remove_class("-bare")
        count = f"{log.line_count:,}" + ("" if log.complete else "+")
        many = f" ({(self._current or 0) + 1}/{len(self._sources)})" if len(self._sources) > 1 else ""
        self.border_title = data(f"{log.name}{many}")
        searching = self._voice.say("log.searching", query=self._query) + "  " if self._query else ""
        at = self._voice.say("log.at", line=f"{self.pane.cursor:,}", count=count)
        self.border_subtitle = joined(data(f"{self._hint} · " if self._hint else "", WARNING), data(f"{searching}{at}"))

    @work(thread=True, group="index")
    def _build(self, log: LogFile) -> None:
        """Find all lines of a log."""
        worker = get_current_worker()
        try:
            for _ in log.build():
                if worker.is_cancelled:
                    return
                self.post_message(self.Grown(log))
        except (OSError, ValueError, LogdocError) as error:
            if not worker.is_cancelled:
                self.post_message(self.Unreadable(str(error)))

    def _find(self, start: int, *, backwards: bool = False) -> None:
        log = self.pane.log_file
        if self._query and log is not None:
            self._search(log, self._query, start, backwards)

    @work(thread=True, group="search", exclusive=True)
    def _search(self, log: LogFile, query: str, start: int, backwards: bool) -> None:
        worker = get_current_worker()
        try:
            line = log.find(query, start, backwards=backwards, stopped=lambda: worker.is_cancelled)
        except (OSError, ValueError):  # the log was closed meanwhile
            return
        if not worker.is_cancelled:
            self.post_message(self.Found(query, line))

    @staticmethod
    def _close(logs: Iterable[LogFile]) -> None:
        for log in logs:
            log.close()

    def _tell(self, text: str) -> None:
        self.notify(str(data(text)), markup=False, severity="warning")


def _texts(sources: Sequence[Source]) -> list[Source]:
    """Those that have lines to show."""
    return [source for source in sources if source.kind != "flight-recorder"]


def _matched(quoted: str) -> str:
    """What a report quotes of the line itself: no further lines, no sign of a cut."""
    return quoted.split("\n")[0].strip("…")


def _places(report: Report, chosen: int) -> list[Place]:
    """Where the evidence of a diagnosis stands, without repeats; of the first abnormal line if nothing is known."""
    if report.diagnoses:
        lines = report.diagnoses[chosen].evidence
        return list(dict.fromkeys(Place(line.source, line.line) for line in lines))
    abnormal = report.first_abnormal
    return [Place(abnormal.source, abnormal.line)] if abnormal is not None else []
