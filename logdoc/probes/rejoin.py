"""Puts together what launchers took apart: lines with a task's label before them, and the pieces of a host's sheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# srun --label writes `3: `, pdsh and clush `node3: ` before each line.
LABELLED = re.compile(r"^[ \t]*([\w.-]+): ?(.*)$")
LABELLED_SHEET = re.compile(r"^[ \t]*[\w.-]+: ?\{", re.MULTILINE)
# Where `srun --label` cuts a line and labels the rest anew.
CUT_AT = 1024


def unlabelled(text: str) -> str:
    """The text without labels, what one task printed on end; a text without labelled sheets as it is."""
    if LABELLED_SHEET.search(text) is None:
        return text
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        found = LABELLED.match(line)
        if found:
            body = found[2]
            said.setdefault(found[1], []).append(body if len(body.encode()) == CUT_AT else body + "\n")
    return "\n".join("".join(bodies) for bodies in said.values())


def rejoined(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fact sheets as their hosts had them, each where its first piece stood; says in a sheet's errors what is missing.

    Pieces come in any order. Those of one sheet name the same process (`piece.of`).
    """
    sheets: list[dict[str, Any]] = []
    pieces: dict[str, dict[int, dict[str, Any]]] = {}
    for value in values:
        piece = value.get("piece")
        if not isinstance(piece, dict) or not isinstance(piece.get("number"), int):
            sheets.append(value)
            continue
        of = str(piece.get("of"))
        if of not in pieces:
            pieces[of] = {}
            sheets.append({"piece": {"of": of}})
        pieces[of][piece["number"]] = value
    return [_whole(pieces[sheet["piece"]["of"]]) if _stands_for(sheet) else sheet for sheet in sheets]


def _stands_for(sheet: Mapping[str, Any]) -> bool:
    return "schema" not in sheet


def _whole(numbered: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    ordered = [numbered[number] for number in sorted(numbered)]
    count = max(
        [piece["piece"].get("count") for piece in ordered if isinstance(piece["piece"].get("count"), int)] or [0]
    )
    whole = {key: value for key, value in ordered[0].items() if key not in ("piece", "facts", "errors")}
    whole["facts"] = _continued((entry for piece in ordered for entry in piece.get("facts", [])), "value")
    whole["errors"] = _continued((entry for piece in ordered for entry in piece.get("errors", [])), "error")
    if len(ordered) < count:
        lost = f"{count - len(ordered)} of the {count} lines that this host printed are missing"
        whole["errors"].append({"probe": "collector", "error": lost, "kind": "failed"})
    return whole


def _continued(entries: Iterable[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The entries, long texts made whole again."""
    whole: list[dict[str, Any]] = []
    for entry in entries:
        before = whole[-1] if whole else {}
        goes_on = entry.get("continued") is True and before.get("id") == entry.get("id")
        if goes_on and isinstance(before.get(key), str) and isinstance(entry.get(key), str):
            whole[-1] = {**before, key: before[key] + entry[key]}
        else:
            whole.append(entry)
    return whole
