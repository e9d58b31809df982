"""How facts are printed: one line of JSON a host, or short lines where the output of several hosts runs together.

Standard library only, Python 3.8: a part of the collector's script and of the one for gloo between hosts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

# srun (SLURM_IO_MAX_MSG_LEN of Slurm) hands a line of up to 1024 bytes on whole; a longer one it cuts there, and the
# pieces of several tasks mix.
LINE_LIMIT = 1000
# What a piece carries beside its entries: schema, host, whose piece of how many.
HEAD_LIMIT = 300
PART_LIMIT = 300
SHARED_OUTPUT = "SLURM_STEP_ID"


def printed(sheet: dict[str, Any], environ: Mapping[str, str]) -> str:
    """A sheet as a launcher can carry it: one line, under srun short ones that belong together."""
    lines = pieces(sheet) if environ.get(SHARED_OUTPUT) else [sheet]
    return "".join(json_line(line) + "\n" for line in lines)


def json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def pieces(sheet: dict[str, Any]) -> list[dict[str, Any]]:
    """The sheet as several small ones, each of which names the process it is of, its number and their count."""
    once = {key: value for key, value in sheet.items() if key not in ("facts", "errors")}
    bundles: list[dict[str, list[Any]]] = [{"facts": [], "errors": []}]
    room = 0  # the first piece carries what is said once
    for kind, text in (("facts", "value"), ("errors", "error")):
        for entry in (short for whole in sheet[kind] for short in cut(whole, text)):
            size = len(json.dumps(entry)) + 2
            if size > room:
                bundles.append({"facts": [], "errors": []})
                room = LINE_LIMIT - HEAD_LIMIT
            bundles[-1][kind].append(entry)
            room -= size
    of = f"{sheet['host']}.{os.getpid()}"
    small = {"schema": sheet["schema"], "host": sheet["host"]}
    return [
        {**(small if number else once), **bundle, "piece": {"of": of, "number": number, "count": len(bundles)}}
        for number, bundle in enumerate(bundles)
    ]


def cut(entry: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """A fact or error; one with a long text in parts, of which all but the first say that they continue it."""
    text = entry.get(key)
    if not isinstance(text, str) or len(json.dumps(text)) <= PART_LIMIT:
        yield entry
        return
    step = PART_LIMIT if text.isascii() else PART_LIMIT // 6  # json spells what is not ASCII in six signs
    yield {**entry, key: text[:step]}
    for start in range(step, len(text), step):
        rest = {"probe": entry.get("probe", ""), key: text[start : start + step], "continued": True}
        yield {**rest, "id": entry["id"]} if "id" in entry else rest
