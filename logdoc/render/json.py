"""The Report as one JSON object: the public contract, byte-stable for equal input but for `seconds`."""

from __future__ import annotations

import json

from logdoc.types.report import Report
from logdoc.types.value import asdict


def render_json(report: Report, *, indent: int | None = 2) -> str:
    """One JSON object with the fields in the contract's order; non-ASCII text stays readable."""
    return json.dumps(asdict(report), ensure_ascii=False, indent=indent, allow_nan=False, default=str)
