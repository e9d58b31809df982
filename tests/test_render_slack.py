"""Slack's Block Kit: every documented limit and the undocumented total, and no log text read as mrkdwn."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from logdoc.render.slack import MOST_BLOCKS, MOST_CHARACTERS, bounded, length, render_slack, whole
from tests.reportkit import (
    HOSTILE,
    LONG,
    LONG_TICKS,
    Language,
    diagnosis,
    evidence,
    fix,
    healthy,
    hostile,
    report,
    saying,
    unrecognised,
)

PLAIN = {
    "type": "object",
    "properties": {
        "type": {"const": "plain_text"},
        "text": {"type": "string", "minLength": 1},
        "emoji": {"type": "boolean"},
    },
    "required": ["type", "text"],
    "additionalProperties": False,
}
MRKDWN = {
    "type": "object",
    "properties": {
        "type": {"const": "mrkdwn"},
        "text": {"type": "string", "minLength": 1},
        "verbatim": {"type": "boolean"},
    },
    "required": ["type", "text"],
    "additionalProperties": False,
}


def limited(schema: dict[str, Any], most: int) -> dict[str, Any]:
    properties = {**schema["properties"], "text": {**schema["properties"]["text"], "maxLength": most}}
    return {**schema, "properties": properties}


def block(kind: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *properties],
        "additionalProperties": False,
    }


# Block Kit as far as it is used, with the limits of its reference pages.
MESSAGE = Draft202012Validator(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 4000},
            "blocks": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": {
                    "oneOf": [
                        block("header", text=limited(PLAIN, 150)),
                        block("section", text={"oneOf": [limited(PLAIN, 3000), limited(MRKDWN, 3000)]}),
                        block("context", elements={"type": "array", "minItems": 1, "maxItems": 10, "items": limited(PLAIN, 2000)}),
                        block("divider"),
                    ]
                },
            },
        },
        "required": ["text", "blocks"],
        "additionalProperties": False,
    }
)  # fmt: skip


def checked(payload: str) -> dict[str, Any]:
    """The message, if Slack would take it."""
    message: dict[str, Any] = json.loads(payload)
    MESSAGE.validate(message)
    assert length(payload) <= MOST_CHARACTERS == 12_000
    assert len(message["blocks"]) <= MOST_BLOCKS
    for text in texts(message):
        assert length(text) <= 3000
        assert not re.search(r"[<>]|&(?!(?:amp|lt|gt);)", text), "Slack's control characters are escaped"
    for text in fences(message):
        assert text.startswith("```\n")
        assert text.endswith("\n```")
        assert text.count("```") == 2
    return message


def texts(message: dict[str, Any]) -> list[str]:
    found = [message["text"]]
    for one in message["blocks"]:
        found += [one["text"]["text"]] if "text" in one else [element["text"] for element in one.get("elements", [])]
    return found


def fences(message: dict[str, Any]) -> list[str]:
    return [one["text"]["text"] for one in message["blocks"] if one.get("text", {}).get("type") == "mrkdwn"]


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\u200b", "")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_ordinary_reports(language: Language) -> None:
    for found in (report(language), healthy(language), unrecognised(language)):
        message = checked(render_slack(found))
        assert found.headline.split("<")[0][:20] in unescaped(message["text"])
    message = checked(render_slack(report(language)))
    assert message["blocks"][0]["type"] == "header"
    assert [text for text in fences(message) if "train.py --batch-size 4" in text]
    assert [text for text in fences(message) if "rank_3.log:812 r3 │ torch.OutOfMemoryError" in text]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("world", [1, 8, 4096])
def test_the_worst_report(language: Language, world: int) -> None:
    message = checked(render_slack(hostile(language, world=world)))
    said = "\n".join(fences(message))
    for number in range(3):
        assert f"fix-0-{number} --now" in said


@pytest.mark.parametrize(
    "text", [*HOSTILE, LONG, LONG_TICKS, "&" * 5000, "<" * 5000, "👍🏽" * 4000, "显" * 9000, "``````", "`"]
)
def test_any_text_anywhere(text: str) -> None:
    checked(render_slack(saying(text)))


def test_evidence_is_dropped_before_any_fix() -> None:
    lines = tuple(evidence(f"evidence {number} " + "x" * 470, number) for number in range(5))
    few = [fix(f"Fix {number}", commands=(f"run-{number} " + "y" * 500,)) for number in range(12)]
    message = checked(render_slack(report(diagnoses=(diagnosis(evidence=lines, fixes=tuple(few)),))))
    said = json.dumps(message)
    assert all(f"run-{number} " in said for number in range(12))
    assert "evidence 0" not in said
    assert "Left out to fit here" in said


def test_a_command_too_long_for_a_message_is_named_and_never_cut() -> None:
    top = diagnosis(fixes=(fix(commands=("short --flag", "z" * 9000)),))
    said = "\n".join(fences(checked(render_slack(report(diagnoses=(top,))))))
    assert "short --flag" in said
    assert "a command of 9,000 characters is left out" in said
    assert "zzz" not in said


def test_text_outside_code_is_plain_text_so_that_stars_and_backticks_are_no_format() -> None:
    top = diagnosis(summary="*bold* _it_ ~gone~ `code` @here <!channel>")
    message = checked(render_slack(report(diagnoses=(top,))))
    (why,) = [one for one in message["blocks"] if "bold" in json.dumps(one)]
    assert why["text"]["type"] == "plain_text"
    assert unescaped(why["text"]["text"]) == "Why: *bold* _it_ ~gone~ `code` @here <!channel>"


def test_cuts_never_split_an_entity() -> None:
    for most in range(1, 30):
        cut = whole("a&lt;b&amp;c&gt;" * 3, most)
        assert length(cut) <= most
        assert not re.search(r"&[a-z]*$|&[a-z]*…", cut)
    assert bounded("<" * 10, 9) == "&lt;&lt;…"
