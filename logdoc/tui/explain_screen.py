"""The screen that explains: hypotheses left, their tabs right, the log below. Shows a Report, decides nothing."""

from __future__ import annotations

import time
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
from textual.events import DescendantFocus
from textual.message import Message
from textual.timer import Timer
from textual.widgets import OptionList
from textual.worker import get_current_worker

from logdoc.sources.limits import size_in_words
from logdoc.tui.case import Case, Stopped, Watch
from logdoc.tui.detail_tabs import TABS, DetailTabs
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.freshness import Change
from logdoc.tui.keys import Command, SpeakingScreen, bind
from logdoc.tui.log_panel import LogPanel, Step
from logdoc.tui.marks import OUTCOME_SIGNS, bar, data, joined, one_line, sign_of
from logdoc.tui.messages import Copy, OpenRule
from logdoc.tui.phrases import Voice
from logdoc.tui.room import KeyFooter, TooSmall
from logdoc.tui.timeline import TimelineView
from logdoc.types.errors import LogdocError, RulesError
from logdoc.types.report import Diagnosis, Report

RULES_INVALID = 3  # exit code
PROGRESS_BYTES = 4 << 20  # between two notes of progress

BRIEF_SECONDS = 2.0  # how long it is said that the logs have been read
LOOK_SECONDS = 2.0  # between two looks at whether the logs have changed
LOOK_SHARE = 20  # or this many times what a look took, on a slow file system

Busy = Literal["", "reading", "probing", "rereading"]


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
        bind("r", "reload", "reload", show=True),
        bind("c", "copy", "copy", show=True),
        bind("y", "copy_path", "path"),
        bind("R", "rule", "rule"),
        bind("z", "zoom", "zoom"),
        bind("escape", "back", "back"),
    ]

    @dataclass
    class Reported(Message):
        """A thread has made this report."""

        report: Report
        after: Busy

    @dataclass
    class Progress(Message):
        """A thread has read so many bytes."""

        count: int

    @dataclass
    class Looked(Message):
        """A thread has looked at the files, which took so many seconds."""

        change: Change
        seconds: float

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
        self._change: Change = ""
        self._next_look: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Prose("headline")
        with Horizontal(id="top"):
            yield Hypotheses("hypotheses")
            yield DetailTabs(self.voice)
        yield LogPanel(self._case.sources, self.voice)
        yield KeyFooter()
        yield TooSmall(self.voice)

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
        self.query_one(TooSmall).tell()
        self._say_change(self._change)
        if self.report is not None and self.report.language != self.voice.language and self.busy in ("", "reading"):
            self._judge("reading")  # whatever else goes on ends with a report, and then asks for one in the language
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
        self._make_report(self.voice.language, busy)
        self._say_busy(0)

    @work(thread=True, group="report", exclusive=True)
    def _make_report(self, language: str, busy: Busy) -> None:
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
            make = {"probing": self._case.probe, "rereading": self._case.reread}.get(busy, self._case.report)
            report = make(language, watch)
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
            self.post_message(self.Reported(report, busy))

    @work(thread=True, group="look", exclusive=True)
    def _look(self) -> None:
        """See whether the logs have changed; the file system may take its time."""
        worker, began = get_current_worker(), time.monotonic()
        change = self._case.change()
        if not worker.is_cancelled:
            self.post_message(self.Looked(change, time.monotonic() - began))

    def on_explain_screen_looked(self, message: Looked) -> None:
        if message.change != self._change:
            self._say_change(message.change)
        self._next_look = self.set_timer(max(LOOK_SECONDS, LOOK_SHARE * message.seconds), self._look)

    def _say_change(self, change: Change) -> None:
        self._change = change
        self.log_panel.hint(self.voice.say(f"change.{change}") if change else "")

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
        before, report = self.report, message.report
        turned = message.after == "probing" and before is not None and _best(before) != _best(report)
        chosen = None if turned else _same_diagnosis(before, self.chosen, report)
        self.report, self.busy = report, ""
        self._say_busy(0)
        sign, style = OUTCOME_SIGNS[report.outcome]
        self.query_one("#headline", Prose).say(data(one_line(f"{sign} {report.headline}"), style))
        self._settle(message.after)
        self._list(report, chosen)
        if before is None or (chosen is None and message.after == "rereading"):
            self.log_panel.show_evidence()
        if message.after == "probing":
            heard = any(diagnosis.probes for diagnosis in report.diagnoses)
            self._tell(self.voice.say("probe.done" if heard else "probe.none"))
        if report.language != self.voice.language:
            self._judge("reading")

    def _settle(self, after: Busy) -> None:
        """What must be known before a report is shown: have the probes run, which logs is it of."""
        self.tabs.probed = after == "probing" or (self.tabs.probed and after != "rereading")
        if after == "rereading":
            self.log_panel.renew(self._case.sources)
            self.notify(self.voice.say("reload.done"), markup=False, timeout=BRIEF_SECONDS)
            self._say_change("")
        if self._next_look is None:
            self._look()

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
            self.log_panel.show_evidence()

    @on(OptionList.OptionSelected, "#hypotheses")
    def _hypothesis_opened(self) -> None:
        self.action_tab("why")

    @on(OptionList.OptionSelected, "Rows")
    def _row_chosen(self) -> None:
        place = self.tabs.place()
        if place is not None:
            self._turn_to_log()
            self.log_panel.go_to(*place)

    def on_timeline_view_chosen(self, message: TimelineView.Chosen) -> None:
        self._turn_to_log()
        self.log_panel.go_to(message.entry.source, message.entry.line)

    def action_ask(self, what: Literal["search", "line"]) -> None:
        self.log_panel.ask(what)

    def action_step(self, step: Step) -> None:
        self._turn_to_log()
        self.log_panel.step(step)

    def action_evidence(self) -> None:
        self._turn_to_log()
        self.log_panel.step_evidence()

    def action_source(self, step: Step) -> None:
        self._turn_to_log()
        self.log_panel.turn(step)

    def action_tab(self, tab: str) -> None:
        self.tabs.open(tab)

    def action_log(self) -> None:
        self.log_panel.take_keys()

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

    def action_reload(self) -> None:
        """Read the logs again as they are now, and explain them anew."""
        if not self._case.rereadable:
            self._tell(self.voice.say("reload.once"))
        elif not self.busy:
            self._judge("rereading")

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

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """The zoom goes where the keys go."""
        if self.maximized is not None and self.maximized not in event.widget.ancestors_with_self:
            self.maximize(event.widget)

    def _turn_to_log(self) -> None:
        """Something is about to happen in the log: it must not be behind another part."""
        if self.maximized is not None:
            self.log_panel.take_keys()

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


def _best(report: Report) -> str | None:
    return report.diagnoses[0].rule if report.diagnoses else None


def _same_diagnosis(before: Report | None, chosen: int | None, report: Report) -> int | None:
    """Where the diagnosis that was chosen before stands now: that of the same rule, of the same rank if there is."""
    if before is None or chosen is None:
        return None
    was = before.diagnoses[chosen]
    places = [number for number, one in enumerate(report.diagnoses) if one.rule == was.rule]
    alike = [number for number in places if report.diagnoses[number].origin.rank == was.origin.rank]
    return next(iter([*alike, *places]), None)


def _hypothesis(diagnosis: Diagnosis, voice: Voice) -> Content:
    """Two lines: sign and title; confidence as bar and number, status in words, whose it is."""
    sign, style = sign_of(diagnosis)
    rank = f" rank {diagnosis.origin.rank}" if diagnosis.origin.rank is not None else ""
    sure = f"{bar(diagnosis.confidence)} {diagnosis.confidence:.2f} {voice.say(f'word.{diagnosis.status}')}{rank}"
    return joined(data(f"{sign} ", style), data(one_line(diagnosis.title), "bold"), data(f"\n  {sure}"))


def _no_hypothesis(report: Report, voice: Voice) -> Content:
    sign, style = OUTCOME_SIGNS[report.outcome]
    return joined(data(f"{sign} ", style), data(voice.say(f"outcome.{report.outcome}")))
