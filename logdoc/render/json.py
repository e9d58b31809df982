"""The Report as one JSON object: the public contract, byte-stable for equal input but for `seconds`."""

from __future__ import annotations

import json

from logdoc.kept.patterns import lazily
from logdoc.types.report import Report
from logdoc.types.value import asdict

# What a terminal obeys or hides, readers that split at any Unicode line end take for one, or no UTF-8 stream takes.
_AWKWARD = lazily("[\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def render_json(report: Report, *, indent: int | None = 2) -> str:
    """One JSON object with the fields in the contract's order; non-ASCII text stays readable."""
    text = json.dumps(asdict(report), ensure_ascii=False, indent=indent, allow_nan=False, default=str)
    return spelt_out(text)


def spelt_out(document: str) -> str:
    """A JSON text with the same value, in which no unseen character stands as itself."""
    return _AWKWARD.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
