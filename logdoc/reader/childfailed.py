"""torchrun's ChildFailedError report: one Record for each failure it lists, with its rank, host and exit code."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.kept.patterns import lazily
from logdoc.reader.clock import seconds
from logdoc.reader.peel import Line
from logdoc.types.record import Identity, Record
from logdoc.types.value import replace

ROOT_CAUSE = "root-cause"  # component of the failure torchrun observed first
OTHER_FAILURE = "other-failure"
DIALECT = "torchrun-report"

_BLOCK = lazily(r"\s*\[(\d+)\]:\s*$")
_FIELD = lazily(r"\s*(time|host|rank|exitcode|error_file|traceback|msg)\s*: ?(.*)$")
_RANK = lazily(r"(\d{1,9}) \(local_rank: (\d{1,9})\)")
_PID = lazily(r"\(pid: (\d{1,9})\)")
_EDGE = lazily(r"\s*(?:-{5,}|={5,}|Root Cause)")
_BETWEEN = lazily(r"\s*(?:$|Failures:|<NO_OTHER_FAILURES>)")


def is_report(body: str) -> bool:
    return "ChildFailedError" in body.split("\n", 1)[0] or ("ChildFailedError" in body and "Root Cause" in body)


def beside_failures(lines: list[Line]) -> Iterator[Line]:
    """The lines of no failure: the report's own title, and what others printed into one that has no end."""
    is_begun = in_block = False
    for line in lines:
        if "ChildFailedError" in line.text or "FAILED" in line.text:
            is_begun = True
            yield line
        elif _BLOCK.match(line.text):
            in_block = True
        elif _EDGE.match(line.text):
            in_block = False
        elif is_begun and not in_block and not _BETWEEN.match(line.text):
            yield line


def failures(report: Record, lines: list[Line]) -> Iterator[Record]:
    """A Record for each `[i]:` block: its body is `exitcode : …` and the worker's traceback, free of indentation."""
    root = False
    block: list[Line] = []
    for line in lines:
        if "Root Cause" in line.text:
            yield from _failure(report, block, root)
            root, block = True, []
        elif _BLOCK.match(line.text):
            yield from _failure(report, block, root)
            block = [line]
        elif block and _EDGE.match(line.text):
            yield from _failure(report, block, root)
            block = []
        elif block:
            block.append(line)
    yield from _failure(report, block, root)


def _failure(report: Record, block: list[Line], root: bool) -> Iterator[Record]:
    fields: dict[str, str] = {}
    kept: list[tuple[int, str]] = []
    for line in block[1:]:
        found = _FIELD.match(line.text)
        if found and "traceback" not in fields:
            name, value = found.groups()
            fields[name] = value
            if name == "exitcode":
                kept.append((line.number, f"exitcode: {value.strip()}"))
            elif name == "traceback" and value.strip():
                kept.append((line.number, value.rstrip()))
        elif line.text.strip():
            kept.append((line.number, line.text.removeprefix("  ").rstrip()))
    if not kept:
        return
    numbers = tuple(number for number, _ in kept)
    stamp = fields.get("time", "").replace("_", " ").strip() or None
    yield replace(
        report,
        line=numbers[0],
        end_line=numbers[-1],
        body="\n".join(text for _, text in kept),
        raw=kept[0][1],
        who=_who(fields),
        time=seconds(stamp) if stamp else None,
        time_text=stamp,
        near_time=(seconds(stamp) if stamp else None) or report.near_time,
        dialects=(*report.dialects, DIALECT),
        component=ROOT_CAUSE if root else OTHER_FAILURE,
        line_numbers=numbers,
    )


def _who(fields: dict[str, str]) -> Identity:
    ranks = _RANK.search(fields.get("rank", ""))
    pid = _PID.search(fields.get("exitcode", ""))
    return Identity(
        rank=int(ranks.group(1)) if ranks else None,
        local_rank=int(ranks.group(2)) if ranks else None,
        host=fields.get("host", "").strip() or None,
        pid=int(pid.group(1)) if pid else None,
    )
