"""Report to what people and programs read. Pure: no I/O, no decisions, every log text is data."""

from __future__ import annotations

from logdoc.render.json import render_json
from logdoc.render.text import TextOptions, render_text

__all__ = ["TextOptions", "render_json", "render_text"]
