"""Texts from reports and logs as styled text: data, never markup; and the signs that go with every colour."""

from __future__ import annotations

import re

from rich.text import Text

from logdoc.types.report import Diagnosis, Outcome, ProbeOutcome
from logdoc.types.rule import Kind

# Controls that a terminal could obey, and marks that turn or hide text: shown, so that a log cannot disguise a line.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_TAB = "    "
BAR_CELLS = 8

OUTCOME_SIGNS: dict[Outcome, tuple[str, str]] = {
    "cause-found": ("✗", "bold red"),
    "symptoms-only": ("!", "bold yellow"),
    "unrecognised": ("?", "bold yellow"),
    "healthy": ("✓", "bold green"),
}
KIND_SIGNS: dict[Kind, tuple[str, str]] = {
    "cause": ("✗", "bold red"),
    "symptom": ("!", "bold yellow"),
    "noise": ("·", "dim"),
}
PROBE_SIGNS: dict[ProbeOutcome, tuple[str, str]] = {
    "confirms": ("✓", "bold green"),
    "refutes": ("✗", "bold red"),
    "unknown": ("?", "bold yellow"),
}


def printable(text: str) -> str:
    """`text` with a visible stand-in for whatever a terminal would obey, and tabs as blanks."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", _TAB))


def one_line(text: str) -> str:
    """`text` on one line."""
    return printable(text.replace("\n", " "))


def data(text: str, style: str = "") -> Text:
    """A text that came from a log, a report or a rule."""
    return Text(printable(text), style=style)


def sign_of(diagnosis: Diagnosis) -> tuple[str, str]:
    """Sign and style of a hypothesis: ✗ cause, ! symptom, ? only possible, - refuted."""
    if diagnosis.status == "refuted":
        return "-", "dim"
    if diagnosis.kind == "cause" and diagnosis.status == "possible":
        return "?", "bold yellow"
    return KIND_SIGNS[diagnosis.kind]


def bar(confidence: float) -> str:
    """A confidence, 0 to 1, as a bar of BAR_CELLS cells."""
    full = min(BAR_CELLS, max(0, round(confidence * BAR_CELLS)))
    return "█" * full + "░" * (BAR_CELLS - full)
