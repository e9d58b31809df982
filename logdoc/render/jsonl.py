"""The Report as events, one JSON object a line: a `diagnosis` for each, then `end` with the whole report."""

from __future__ import annotations

import json
from typing import Any

from logdoc.render.json import spelt_out
from logdoc.types.report import Diagnosis, Report
from logdoc.types.value import asdict

SCHEMA = "logdoc.event/v1"


def render_jsonl(report: Report) -> str:
    """All events of a finished report; each line ends with a newline."""
    events = [diagnosis_event(diagnosis, number) for number, diagnosis in enumerate(report.diagnoses, start=1)]
    return "".join([*events, end_event(report)])


def diagnosis_event(diagnosis: Diagnosis, number: int) -> str:
    """One hypothesis; `number` is its place in the order, 1 for the best."""
    return event("diagnosis", number=number, diagnosis=asdict(diagnosis))


def end_event(report: Report) -> str:
    """The last line of every stream: outcome and headline for a quick look, and the whole report."""
    return event("end", outcome=report.outcome, headline=report.headline, report=asdict(report))


def event(name: str, **fields: Any) -> str:
    """A line of the stream: `event` and `schema` first."""
    line = json.dumps({"event": name, "schema": SCHEMA, **fields}, ensure_ascii=False, allow_nan=False, default=str)
    return spelt_out(line) + "\n"
