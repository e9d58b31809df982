"""What screens ask of the app."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class Copy(Message):
    """Put this text on the clipboard, and show it."""

    text: str


@dataclass
class OpenRule(Message):
    """Show the page of this rule."""

    rule_id: str
