"""The tabs beside the hypotheses: Why, Fix, Evidence, Probes, Timeline, Job; fills them with what details.py says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, TabbedContent, TabPane

from logdoc.tui import details
from logdoc.tui.details import Row
from logdoc.tui.folding import PickList, Prose
from logdoc.tui.keys import bind
from logdoc.tui.marks import MUTED, PLACE, data, joined, lines, short_place
from logdoc.tui.phrases import Voice
from logdoc.tui.timeline import TimelineView
from logdoc.types.report import Report, TimelineEntry

TABS = ("why", "fix", "evidence", "probes", "timeline", "job")
_ROWS: dict[str, Callable[[Report, int | None, Voice], list[Row]]] = {
    "fix": details.fixes,
    "evidence": details.evidence,
    "probes": details.probes,
}


class Rows(PickList):
    """The rows of a tab, one of them chosen."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._rows: Sequence[Row] = ()

    @property
    def row(self) -> Row | None:
        """The row the cursor stands on."""
        return self._rows[self.highlighted] if self.highlighted is not None and self._rows else None

    def show(self, rows: Sequence[Row], otherwise: str, keep: bool) -> None:
        """These rows; a sentence where there are none. `keep`: they say of the same what the old ones said."""
        place = min(self.highlighted or 0, len(rows) - 1) if keep and self._rows else 0
        self._rows = rows
        self.fill([row.text for row in rows] or [data(otherwise)], disabled=not rows)
        self.highlighted = place if rows else None


class Page(VerticalScroll, can_focus=True):
    """A text that may be longer than its tab."""

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "scroll_down", "list.down"),
        bind("up,k", "scroll_up", "list.up"),
        bind("pagedown,space", "page_down", "list.page_down"),
        bind("pageup", "page_up", "list.page_up"),
    ]


class DetailTabs(Vertical):
    """What a report says of one of its diagnoses."""

    ALLOW_MAXIMIZE = True

    def __init__(self, voice: Voice) -> None:
        super().__init__(id="details")
        self._voice = voice
        self._pointed: TimelineEntry | None = None
        self._report: Report | None = None
        self._chosen: int | None = None
        self.probed = False  # have the probes run?

    def compose(self) -> ComposeResult:
        with TabbedContent():
            for tab in TABS:
                with TabPane(self._voice.say(f"tab.{tab}"), id=tab):
                    if tab in _ROWS:
                        yield Rows(id=f"{tab}-rows")
                    elif tab == "timeline":
                        yield TimelineView(self._voice)
                        yield Static(id="pointed", markup=False)
                    else:
                        with Page():
                            yield Prose(f"{tab}-text")

    @property
    def active(self) -> str:
        """The tab that is shown."""
        return self.query_one(TabbedContent).active

    def open(self, tab: str) -> None:
        """Show a tab, and give it the keys."""
        self.query_one(TabbedContent).active = tab
        for widget in self.query_one(f"#{tab}").query("*"):
            if widget.can_focus:
                widget.focus()
                return

    def relabel(self) -> None:
        """Name the tabs in the language of the moment."""
        tabs = self.query_one(TabbedContent)
        for tab in TABS:
            tabs.get_tab(tab).label = self._voice.say(f"tab.{tab}")

    def show(self, report: Report, chosen: int | None) -> None:
        """Fill the tabs from a report and the place of a diagnosis in it."""
        if report is not self._report:
            self.query_one(TimelineView).show(report)
            self.query_one("#job-text", Prose).say(details.job(report, self._voice))
        keep = _subject(report, chosen) == _subject(self._report, self._chosen)
        self._report, self._chosen = report, chosen
        self.query_one("#why-text", Prose).say(details.why(report, chosen, self._voice))
        for tab, rows in _ROWS.items():
            nothing = "none.probes.after" if tab == "probes" and self.probed else f"none.{tab}"
            listed = rows(report, chosen, self._voice)
            self.query_one(f"#{tab}-rows", Rows).show(listed, self._voice.say(nothing), keep)

    def copied(self) -> str:
        """What copying takes: the row the cursor is on in a tab of rows, else the commands of the first fix."""
        if self._report is None:
            return ""
        row = self.query_one(f"#{self.active}-rows", Rows).row if self.active in _ROWS else None
        if row is not None:
            return row.copy
        return next((row.copy for row in details.fixes(self._report, self._chosen, self._voice)), "")

    def json_path(self) -> str:
        """Where in the JSON report stands what is shown here, as jq would find it."""
        if self.active in _ROWS:
            row = self.query_one(f"#{self.active}-rows", Rows).row
            if row is not None:
                return row.path
        if self.active == "timeline" and self._report is not None and self._pointed in self._report.timeline:
            return f".timeline[{self._report.timeline.index(self._pointed)}]"
        return "." if self._chosen is None or self.active == "job" else f".diagnoses[{self._chosen}]"

    def place(self) -> tuple[str, int] | None:
        """The line of a log that the cursor's row stands for."""
        row = self.query_one(f"#{self.active}-rows", Rows).row if self.active in _ROWS else None
        return row.where if row is not None else None

    def on_timeline_view_pointed(self, message: TimelineView.Pointed) -> None:
        self._pointed = message.entry
        self.query_one("#pointed", Static).update(self._told(message.entry))

    def _told(self, entry: TimelineEntry | None) -> Content:
        """The event under the cursor, and what the signs mean."""
        legend = data(self._voice.say("timeline.legend"), MUTED)
        if entry is None:
            return legend
        who = f"rank {entry.rank}" if entry.rank is not None else self._voice.say("timeline.no_rank")
        when = f" · {entry.time}" if entry.time else ""
        place = data(f" · {short_place(entry.source, entry.line)}{when}", PLACE)
        return lines([joined(data(f"{who} · "), data(entry.rule, "bold"), place), legend])


def _subject(report: Report | None, chosen: int | None) -> str | None:
    """Which rule the tabs speak of."""
    return report.diagnoses[chosen].rule if report is not None and chosen is not None else None
