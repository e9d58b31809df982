"""Events, one a line: a stream that any reader of lines can follow, ending with the whole report."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from logdoc.render.jsonl import diagnosis_event, end_event, event, render_jsonl
from logdoc.schemas import report_schema
from tests.reportkit import diagnosis, healthy, hostile, report

VALIDATOR = Draft202012Validator(report_schema())


def test_a_diagnosis_each_then_the_end() -> None:
    found = report(diagnoses=(diagnosis(), diagnosis(rule="a.other")))
    events = [json.loads(line) for line in render_jsonl(found).splitlines()]
    assert [one["event"] for one in events] == ["diagnosis", "diagnosis", "end"]
    assert {one["schema"] for one in events} == {"logdoc.event/v1"}
    assert [one["number"] for one in events[:2]] == [1, 2]
    assert events[1]["diagnosis"]["rule"] == "a.other"
    assert (events[2]["outcome"], events[2]["headline"]) == ("cause-found", found.headline)
    VALIDATOR.validate(events[2]["report"])


def test_a_healthy_log_is_one_event() -> None:
    assert [json.loads(line)["event"] for line in render_jsonl(healthy()).splitlines()] == ["end"]


def test_hostile_text_never_breaks_a_line() -> None:
    found = hostile(diagnoses=30, world=64)
    text = render_jsonl(found)
    text.encode()
    assert len(text.splitlines()) == 31
    last = json.loads(text.splitlines()[-1])
    assert last["report"]["diagnoses"][1]["summary"] == found.diagnoses[1].summary
    assert last["report"]["warnings"][5] == found.warnings[5]


@pytest.mark.parametrize("sign", ["\n", "\r", "\x85", "\u2028", "\u2029", "\x1c", "\ud800", "\x00"])
def test_every_line_end_and_lone_surrogate_is_escaped(sign: str) -> None:
    line = event("x", text=f"a{sign}b")
    assert line.count("\n") == 1
    assert len(line.splitlines()) == 1
    line.encode()
    assert json.loads(line)["text"] == f"a{sign}b"


def test_the_events_of_a_stream_are_those_of_the_whole() -> None:
    found = report()
    assert diagnosis_event(found.diagnoses[0], 1) + end_event(found) == render_jsonl(found)
