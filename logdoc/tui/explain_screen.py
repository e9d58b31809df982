"""The screen that explains: hypotheses left, their tabs right, the log below. Shows a Report, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, OptionList
from textual.worker import get_current_worker

from logdoc.sources.limits import size_in_words
from logdoc.tui.case import Case, Stopped, Watch
from logdoc.tui.detail_tabs import TABS, DetailTabs
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.keys import Command, SpeakingScreen, bind
from logdoc.tui.log_panel import LogPanel, Step
from logdoc.tui.marks import OUTCOME_SIGNS, bar, data, joined, one_line, sign_of
from logdoc.tui.messages import Copy, OpenRule
from logdoc.tui.phrases import Voice
from logdoc.tui.timeline import TimelineView
from logdoc.types.errors import LogdocError, RulesError
from logdoc.types.report import Diagnosis, Report

RULES_INVALID = 3  # exit code
PROGRESS_BYTES = 4 << 20  # between two notes of progress

Busy = Literal["", "reading", "probing"]


class Hypotheses(PickList):
    """The diagnoses of a report, best first."""


class ExplainScreen(SpeakingScreen):
    """A report and the logs it was made of."""

    ESCAPE_TO_MINIMIZE = False  # escape goes back one step at a time, see action_back
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("slash", "ask('search')", "search", show=True, priority=True),
        bind("n", "step(1)", "next", show=True),
        bind("N", "step(-1)", "previous"),
        bind("g", "ask('line')", "goto", priority=True),
        bind("e", "evidence", "evidence", show=True),
        bind("left_square_bracket", "source(-1)", "source.previous"),
        bind("right_square_bracket", "source(1)", "source.next"),
        *(bind(str(number), f"tab('{tab}')", "tab") for number, tab in enumerate(TABS, start=1)),
        bind("0", "log", "log.focus", priority=True),
        bind("p", "probe", "probe", show=True),
        bind("c", "copy", "copy", show=True),
        bind("y", "copy_path", "path"),
        bind("r", "rule", "rule"),
        bind("z", "zoom", "zoom"),
        bind("escape", "back", "back"),
    ]

    @dataclass
    class Reported(Message):
        """A thread has made this report."""

        report: Report
        probed: bool

    @dataclass
    class Progress(Message):
        """A thread has read so many bytes."""

        count: int

    @dataclass
    class Failed(Message):
        """A thread could not make a report."""

        reason: str

    def __init__(self, case: Case, voice: Voice) -> None:
        super().__init__(voice)
        self._case = case
        self.report: Report | None = None
        self.chosen: int | None = None
        self.busy: Busy = ""

    def compose(self) -> ComposeResult:
        yield Prose("headline")
        with Horizontal(id="top"):
            yield Hypotheses("hypotheses")
            yield DetailTabs(self.voice)
        yield LogPanel(self._case.sources, self.voice)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Hypotheses))
        self._judge("reading")
        self.speak()

    @property
    def tabs(self) -> DetailTabs:
        return self.query_one(DetailTabs)

    @property
    def log_panel(self) -> LogPanel:
        return self.query_one(LogPanel)

    def speak(self) -> None:
        """Say everything again: labels at once, the report as soon as it is made in the language."""
        super().speak()
        self.tabs.relabel()
        self.query_one(Hypotheses).border_title = self.voice.say("hypotheses")
        self.log_panel.retitle()
        if self.report is not None and self.report.language != self.voice.language:
            self._judge("reading")
        self._say_busy(0)

    def commands(self) -> Iterator[Command]:
        """Tabs, diagnoses and logs, by name."""
        for tab in TABS:
            yield Command(
                self.voice.say(f"tab.{tab}"), self.voice.say("palette.open_tab"), partial(self.action_tab, tab)
            )
        for number, diagnosis in enumerate(self.report.diagnoses if self.report else ()):
            yield Command(one_line(diagnosis.title), diagnosis.rule, partial(self.pick, number))
        for number, name in enumerate(self.log_panel.names):
            yield Command(name, self.voice.say("palette.open_log"), partial(self.log_panel.open, number))

    def pick(self, number: int) -> None:
        """Choose a diagnosis by its place."""
        self.query_one(Hypotheses).highlighted = number

    def _judge(self, busy: Busy) -> None:
        self.busy = busy
        self._make_report(self.voice.language, busy == "probing")
        self._say_busy(0)

    @work(thread=True, group="report", exclusive=True)
    def _make_report(self, language: str, probing: bool) -> None:
        worker = get_current_worker()
        total = told = 0

        def read(count: int) -> None:
            nonlocal total, told
            total += count
            if total - told >= PROGRESS_BYTES:
                told = total
                self.post_message(self.Progress(total))

        watch = Watch(lambda: worker.is_cancelled, read)
        try:
            report = self._case.probe(language, watch) if probing else self._case.report(language, watch)
        except Stopped:
            return
        except RulesError as error:
            self.app.call_from_thread(self.app.exit, None, RULES_INVALID, Text(str(error)))
            return
        except LogdocError as error:
            self.post_message(self.Failed(str(error)))
            return
        except Exception as error:  # the log can still be read, and the UI left
            self.post_message(self.Failed(f"{type(error).__name__}: {error}"))
            return
        if not worker.is_cancelled:
            self.post_message(self.Reported(report, probing))

    def _say_busy(self, count: int) -> None:
        """What is going on, and how far it is; in place of the headline as long as there is none."""
        how_far = f" {size_in_words(count)}" if count else ""
        doing = self.voice.say(f"busy.{self.busy}") + how_far if self.busy else ""
        self.query_one(Hypotheses).border_subtitle = doing
        if self.report is None:
            self.query_one("#headline", Prose).say(data(doing, "bold"))

    def on_explain_screen_progress(self, message: Progress) -> None:
        if self.busy:
            self._say_busy(message.count)

    def on_explain_screen_failed(self, message: Failed) -> None:
        self.busy = ""
        self._say_busy(0)
        self._tell(message.reason, "error")

    def on_explain_screen_reported(self, message: Reported) -> None:
        first, report = self.report is None, message.report
        same = self.report is not None and [one.rule for one in self.report.diagnoses] == [
            one.rule for one in report.diagnoses
        ]
        self.report, self.busy = report, ""
        self.tabs.probed = self.tabs.probed or message.probed
        self._say_busy(0)
        sign, style = OUTCOME_SIGNS[report.outcome]
        self.query_one("#headline", Prose).say(data(one_line(f"{sign} {report.headline}"), style))
        self._list(report, self.chosen if same else None)
        if first:
            self.log_panel.step_evidence()
        if message.probed:
            heard = any(diagnosis.probes for diagnosis in report.diagnoses)
            self._tell(self.voice.say("probe.done" if heard else "probe.none"))
        if report.language != self.voice.language:
            self._judge("reading")

    def _list(self, report: Report, chosen: int | None) -> None:
        """List the diagnoses, and show one of them."""
        hypotheses = self.query_one(Hypotheses)
        texts = [_hypothesis(diagnosis, self.voice) for diagnosis in report.diagnoses]
        with hypotheses.prevent(OptionList.OptionHighlighted):
            hypotheses.fill(texts or [_no_hypothesis(report, self.voice)])
            hypotheses.highlighted = chosen or 0
        self._show(chosen or 0 if report.diagnoses else None)

    def _show(self, chosen: int | None) -> None:
        assert self.report is not None
        self.chosen = chosen
        self.tabs.show(self.report, chosen)
        self.log_panel.show_report(self.report, chosen or 0)

    @on(OptionList.OptionHighlighted, "#hypotheses")
    def _hypothesis_chosen(self, event: OptionList.OptionHighlighted) -> None:
        if self.report is not None and self.report.diagnoses and event.option_index != self.chosen:
            self._show(event.option_index)
            self.log_panel.step_evidence()

    @on(OptionList.OptionSelected, "#hypotheses")
    def _hypothesis_opened(self) -> None:
        self.action_tab("why")

    @on(OptionList.OptionSelected, "Rows")
    def _row_chosen(self) -> None:
        place = self.tabs.place()
        if place is not None:
            self.log_panel.go_to(*place)

    def on_timeline_view_chosen(self, message: TimelineView.Chosen) -> None:
        self.log_panel.go_to(message.entry.source, message.entry.line)

    def action_ask(self, what: Literal["search", "line"]) -> None:
        self.log_panel.ask(what)

    def action_step(self, step: Step) -> None:
        self.log_panel.step(step)

    def action_evidence(self) -> None:
        self.log_panel.step_evidence()

    def action_source(self, step: Step) -> None:
        self.log_panel.turn(step)

    def action_tab(self, tab: str) -> None:
        self.tabs.open(tab)

    def action_log(self) -> None:
        self.set_focus(self.log_panel.pane)

    def action_probe(self) -> None:
        """Run the probes, or stop them."""
        if self.busy == "probing":
            self.workers.cancel_group(self, "report")
            self.busy = ""
            self._say_busy(0)
            self._tell(self.voice.say("probe.stopped"))
            self.speak()  # the language may have changed while they ran
        elif self.report is not None:
            self._judge("probing")

    def action_copy(self) -> None:
        copied = self.tabs.copied()
        if copied:
            self.post_message(Copy(copied))
        else:
            self._tell(self.voice.say("copy.nothing"))

    def action_copy_path(self) -> None:
        self.post_message(Copy(self.tabs.json_path()))

    def action_rule(self) -> None:
        if self.report is not None and self.chosen is not None:
            self.post_message(OpenRule(self.report.diagnoses[self.chosen].rule))

    def action_zoom(self) -> None:
        """Give the whole screen to the part that has the keys, or take it back."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.action_maximize()

    def action_back(self) -> None:
        """Undo one thing: the zoom, then the search; then the keys go back to the hypotheses."""
        if self.maximized is not None:
            self.minimize()
        elif self.log_panel.query_text:
            self.log_panel.stop_search()
        else:
            self.set_focus(self.query_one(Hypotheses))

    def _tell(self, text: str, severity: Literal["information", "error"] = "information") -> None:
        self.notify(data(text).plain, markup=False, severity=severity)


def _hypothesis(diagnosis: Diagnosis, voice: Voice) -> Content:
    """Two lines: sign and title; confidence as bar and number, status in words, whose it is."""
    sign, style = sign_of(diagnosis)
    rank = f" rank {diagnosis.origin.rank}" if diagnosis.origin.rank is not None else ""
    sure = f"{bar(diagnosis.confidence)} {diagnosis.confidence:.2f} {voice.say(f'word.{diagnosis.status}')}{rank}"
    return joined(data(f"{sign} ", style), data(one_line(diagnosis.title), "bold"), data(f"\n  {sure}"))


def _no_hypothesis(report: Report, voice: Voice) -> Content:
    sign, style = OUTCOME_SIGNS[report.outcome]
    return joined(data(f"{sign} ", style), data(voice.say(f"outcome.{report.outcome}")))
