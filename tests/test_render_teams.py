"""Teams: a message for a Workflows webhook with an Adaptive Card 1.4, below the size that Teams refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from logdoc.render.teams import MOST_BYTES, render_teams
from tests.reportkit import (
    HOSTILE,
    LONG,
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

RUN = {
    "type": "object",
    "properties": {
        "type": {"const": "TextRun"},
        "text": {"type": "string", "minLength": 1},
        "size": {"enum": ["default", "small", "medium", "large", "extraLarge"]},
        "weight": {"enum": ["default", "lighter", "bolder"]},
        "color": {"enum": ["default", "dark", "light", "accent", "good", "warning", "attention"]},
        "fontType": {"enum": ["default", "monospace"]},
        "isSubtle": {"type": "boolean"},
    },
    "required": ["type", "text"],
    "additionalProperties": False,
}
# The Adaptive Card schema 1.4 as far as it is used. There is no TextBlock: its text would be read as Markdown.
MESSAGE = Draft202012Validator(
    {
        "$defs": {
            "element": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {
                            "type": {"const": "RichTextBlock"},
                            "inlines": {"type": "array", "minItems": 1, "items": RUN},
                            "separator": {"type": "boolean"},
                        },
                        "required": ["type", "inlines"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "type": {"const": "Container"},
                            "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/element"}},
                            "style": {"enum": ["default", "emphasis", "good", "attention", "warning", "accent"]},
                        },
                        "required": ["type", "items"],
                        "additionalProperties": False,
                    },
                ]
            }
        },
        "type": "object",
        "properties": {
            "type": {"const": "message"},
            "attachments": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                        "contentUrl": {"type": "null"},
                        "content": {
                            "type": "object",
                            "properties": {
                                "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
                                "type": {"const": "AdaptiveCard"},
                                "version": {"const": "1.4"},
                                "lang": {"enum": ["en", "zh"]},
                                "fallbackText": {"type": "string", "minLength": 1},
                                "body": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/element"}},
                            },
                            "required": ["type", "version", "body"],
                            "additionalProperties": False,
                        },
                    },
                    "required": ["contentType", "content"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["type", "attachments"],
        "additionalProperties": False,
    }
)


def checked(payload: str) -> list[dict[str, Any]]:
    """The card's body, if Teams would take the message."""
    message = json.loads(payload)
    MESSAGE.validate(message)
    assert len(payload.encode()) <= MOST_BYTES <= 20_480
    body: list[dict[str, Any]] = message["attachments"][0]["content"]["body"]
    return body


def texts(elements: list[dict[str, Any]]) -> list[str]:
    """What a reader sees, one text an element."""
    found: list[str] = []
    for one in elements:
        found += texts(one["items"]) if "items" in one else ["".join(run["text"] for run in one["inlines"])]
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_ordinary_reports(language: Language) -> None:
    for found in (report(language), healthy(language), unrecognised(language)):
        assert found.headline.split("`")[0] in texts(checked(render_teams(found)))[0]
    said = texts(checked(render_teams(report(language))))
    assert "torchrun --nproc-per-node 8 train.py --batch-size 4" in said
    assert [text for text in said if "torch.OutOfMemoryError" in text]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("world", [1, 4096])
def test_the_worst_report(language: Language, world: int) -> None:
    said = texts(checked(render_teams(hostile(language, world=world))))
    for number in range(3):
        assert f"fix-0-{number} --now" in said


@pytest.mark.parametrize("text", [*HOSTILE, LONG, "显" * 9000, '"' * 9000, "\\" * 9000])
def test_any_text_anywhere(text: str) -> None:
    checked(render_teams(saying(text)))


def test_evidence_is_dropped_before_any_fix() -> None:
    lines = tuple(evidence(f"evidence {number} " + "x" * 470, number) for number in range(5))
    fixes = tuple(fix(f"Fix {number}", commands=(f"run-{number} " + "y" * 700,)) for number in range(14))
    said = texts(checked(render_teams(report(diagnoses=(diagnosis(evidence=lines, fixes=fixes),)))))
    assert sum(text.startswith("run-") for text in said) == 14
    assert not [text for text in said if "evidence 0" in text]
    assert [text for text in said if "Left out to fit here" in text]


def test_only_the_fallback_may_be_read_as_markdown_and_it_is_escaped() -> None:
    card = json.loads(render_teams(report(headline="*x* [a](http://e) `c`")))["attachments"][0]["content"]
    assert card["fallbackText"] == r"✗ \*x\* \[a\]\(http://e\) \`c\`"
    assert texts(card["body"])[0] == "✗ *x* [a](http://e) `c`"
