"""Try a pasted line: what the engine makes of a text typed or pasted here, as it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, TextArea
from textual.worker import get_current_worker

from logdoc.engine import Engine, Options
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.keys import bind
from logdoc.tui.marks import OUTCOME_SIGNS, bar, data, joined, one_line, sign_of
from logdoc.tui.phrases import Voice
from logdoc.types.report import Report

PAUSE_SECONDS = 0.3  # of typing, before the text is tried


class TryScreen(ModalScreen[str | None]):
    """Gives back the id of the rule that the user wants to read, None for none."""

    BINDINGS: ClassVar[list[BindingType]] = [bind("escape", "leave", "back", show=True)]

    @dataclass
    class Tried(Message):
        """A thread has explained the text."""

        text: str
        report: Report

    def __init__(self, engine: Engine, voice: Voice) -> None:
        super().__init__()
        self._engine = engine
        self._voice = voice
        self._rules: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="try-box"):
            yield TextArea(id="try-text", tab_behavior="focus", placeholder=self._voice.say("try.placeholder"))
            yield Prose("try-said")
            yield PickList("try-rules")

    def on_mount(self) -> None:
        self.query_one("#try-box").border_title = self._voice.say("try.title")
        self.query_one("#try-box").border_subtitle = self._voice.say("try.keys")
        self._later = self.set_timer(PAUSE_SECONDS, self._try, pause=True)

    def on_text_area_changed(self) -> None:
        self._later.stop()
        self._later = self.set_timer(PAUSE_SECONDS, self._try)

    def _try(self) -> None:
        text = self.query_one(TextArea).text
        if text.strip():
            self._explain(text)
        else:
            self._show("", (), [])

    @work(thread=True, group="try", exclusive=True)
    def _explain(self, text: str) -> None:
        worker = get_current_worker()
        report = self._engine.explain_text(text, Options(language=self._voice.language))
        if not worker.is_cancelled:
            self.post_message(self.Tried(text, report))

    def on_try_screen_tried(self, message: Tried) -> None:
        if message.text != self.query_one(TextArea).text:
            return
        report = message.report
        sign, style = OUTCOME_SIGNS[report.outcome]
        rows = [
            (
                one.rule,
                joined(
                    data(f"{sign_of(one)[0]} ", sign_of(one)[1]),
                    data(f"{bar(one.confidence)} {one.confidence:.2f} "),
                    data(one.rule, "bold"),
                    data(f"  {one_line(one.title)}"),
                ),
            )
            for one in report.diagnoses
        ]
        rows += [(rule, data(f"· {rule}  {self._voice.say('try.noise')}")) for rule in report.noise]
        rows += [
            (near.rule, data(f"? {near.score:.2f} {near.rule}  {self._voice.say('try.similar')}"))
            for near in report.similar
        ]
        self._show(f"{sign} {report.headline}", (style,), rows)

    def _show(self, said: str, style: tuple[str, ...], rows: list[tuple[str, Content]]) -> None:
        self.query_one("#try-said", Prose).say(data(one_line(said), *style))
        self.query_one(PickList).fill([text for _, text in rows])
        self._rules = [rule for rule, _ in rows]

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._rules[event.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)
