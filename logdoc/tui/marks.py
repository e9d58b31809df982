"""Texts from reports and logs as Content: data, never markup; and the signs that go with every colour."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.style import Style as RichStyle
from textual.app import App
from textual.content import Content
from textual.style import Style

from logdoc.types.report import Diagnosis
from logdoc.types.words import Kind, Outcome, ProbeOutcome

# Controls that a terminal could obey, and marks that turn or hide text: shown, so that a log cannot disguise a line.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_TAB = "    "
BAR_CELLS = 8
LONGEST = 4000  # characters of one text

ERROR, WARNING, SUCCESS = "bold $text-error", "bold $text-warning", "bold $text-success"
PLACE, MUTED, COMMAND = "$text-accent", "$foreground-muted", "$text-success"

OUTCOME_SIGNS: dict[Outcome, tuple[str, str]] = {
    "cause-found": ("✗", ERROR),
    "symptoms-only": ("!", WARNING),
    "unrecognised": ("?", WARNING),
    "healthy": ("✓", SUCCESS),
}
KIND_SIGNS: dict[Kind, tuple[str, str]] = {
    "cause": ("✗", ERROR),
    "symptom": ("!", WARNING),
    "noise": ("·", MUTED),
}
PROBE_SIGNS: dict[ProbeOutcome, tuple[str, str]] = {
    "confirms": ("✓", SUCCESS),
    "refutes": ("✗", ERROR),
    "unknown": ("?", WARNING),
}


def printable(text: str) -> str:
    """`text` with a visible stand-in for whatever a terminal would obey, and tabs as blanks."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", _TAB))


def one_line(text: str) -> str:
    """`text` on one line."""
    return printable(text.replace("\n", " "))


def data(text: str, style: str = "") -> Content:
    """A text that came from a log, a report or a rule, cut where nobody reads on."""
    shown = printable(text[:LONGEST]) + ("…" if len(text) > LONGEST else "")
    return Content.styled(shown, style) if style else Content(shown)


def joined(*parts: Content) -> Content:
    """The parts one after the other, each in its own style."""
    return Content.assemble(*parts)


def lines(parts: Iterable[Content]) -> Content:
    """The parts below each other."""
    return Content("\n").join(parts)


def short_place(source: str, line: int) -> str:
    """A line of a log by the last two parts of the log's path."""
    parts = source.split("/")
    return f"{'/'.join(parts[-2:])}:{line}"


def rich_style(style: str, app: App[None]) -> RichStyle:
    """One of the styles above in the theme of the moment, for what is drawn line by line."""
    return Style.parse(style, app.theme_variables).rich_style


def sign_of(diagnosis: Diagnosis) -> tuple[str, str]:
    """Sign and style of a hypothesis: ✗ cause, ! symptom, ? only possible, - refuted."""
    if diagnosis.status == "refuted":
        return "-", MUTED
    if diagnosis.kind == "cause" and diagnosis.status == "possible":
        return "?", WARNING
    return KIND_SIGNS[diagnosis.kind]


def bar(confidence: float) -> str:
    """A confidence, 0 to 1, as a bar of BAR_CELLS cells."""
    full = min(BAR_CELLS, max(0, round(confidence * BAR_CELLS)))
    return "█" * full + "░" * (BAR_CELLS - full)
