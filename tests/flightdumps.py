"""Writes what the ranks of a `flightkit` play would dump: every layout since torch 2.2, as pickle or JSON, whole,
active calls only, or what a full ring buffer has left."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from logdoc.flight_recorder import Dump, read_dump
from tests.flightkit import Call, Play

Layout = Literal["1.1", "1.4", "1.5", "2.2", "2.4", "2.9", "2.10"]
TORCH = "/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


@dataclass(frozen=True, slots=True)
class Form:
    """`timing`: the recorder knows what has started; `keep`: entries the ring buffer holds; `lost`: ranks without dump."""

    layout: Layout = "2.10"
    as_json: bool = False
    only_active: bool = False
    keep: int | None = 2000
    timing: bool = False
    lost: tuple[int, ...] = ()


class _Groups:
    """A rank's process groups: torch numbers all of a job for the name, and a rank's own for `pg_id`."""

    def __init__(self, play: Play, rank: int) -> None:
        every = [(kind, ranks) for kind, parts in play.job.groups.items() for ranks in parts]
        self.own = [(number, *group) for number, group in enumerate(every) if rank in group[1]]
        self.number = {kind: number for number, kind, _ in self.own}
        self.local = {kind: place for place, (_, kind, _) in enumerate(self.own)}
        self.ranks = {kind: ranks for _, kind, ranks in self.own}


def dumps(play: Play, form: Form) -> list[Dump]:
    """The dumps as logdoc reads them; killed ranks and those of `form.lost` left none."""
    gone = {fault.rank for fault in play.faults.values() if fault.damage == "killed"} | set(form.lost)
    return [read_dump(written(play, rank, form), f"rank_{rank}") for rank in range(play.job.world) if rank not in gone]


def written(play: Play, rank: int, form: Form) -> bytes:
    groups = _Groups(play, rank)
    rows = [row for call in play.calls[rank] for row in _rows(play, call, groups, form)]
    for record, row in enumerate(rows):
        row["record_id"] = record
    kept = (
        [row for row in rows[-form.keep :] if not (form.only_active and row["state"] == "completed")]
        if form.keep
        else rows
    )
    content = {"version": form.layout, "entries": [_as_of(row, form) for row in kept]} | _about(
        play, rank, groups, form
    )
    if form.as_json:
        return json.dumps(content).encode()
    return pickle.dumps(content, protocol=2)


def _rows(play: Play, call: Call, groups: _Groups, form: Form) -> Iterable[dict[str, Any]]:
    op, state = call.op, play.state(call)
    ranks = groups.ranks[op.group]
    name = op.name
    if op.peer is not None:
        name += f" {ranks.index(call.rank)}{'->' if op.name == 'send' else '<-'}{ranks.index(op.peer)}"
    if state == "started" and not form.timing:
        state = "scheduled"
    row = {
        "frames": [
            {"name": op.name, "filename": TORCH, "line": 3245},
            {"name": "train_step", "filename": "/home/user/train.py", "line": 10},
        ],
        "pg_id": groups.local[op.group],
        "process_group": (str(groups.number[op.group]), op.group),
        "collective_seq_id": call.seq,
        "p2p_seq_id": call.p2p_seq,
        "op_id": call.seq + call.p2p_seq,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": 10**18 + int(call.created * 1e9),
        "input_sizes": [list(op.size)],
        "input_dtypes": [op.dtype],
        "output_sizes": [list(op.size)],
        "output_dtypes": [op.dtype],
        "state": state,
        "time_discovered_started_ns": 10**18 if state != "scheduled" and form.timing else None,
        "time_discovered_completed_ns": 10**18 if state == "completed" else None,
        "retired": state == "completed",
        "timeout_ms": 600000,
        "is_p2p": op.peer is not None,
    }
    if op.batch == 1:
        return [row]
    parts: list[dict[str, Any]] = [row | {"state": "scheduled", "retired": False} for _ in range(op.batch)]
    return [*parts, row | {"profiling_name": "nccl:coalesced", "input_sizes": [], "output_sizes": []}]


def _as_of(row: dict[str, Any], form: Form) -> dict[str, Any]:
    """A row in the words of a version: dtypes and p2p numbers came in 2.4, groups' names in 1.5, record ids in 1.4."""
    row = dict(row)
    if form.as_json:
        row.pop("frames")
        row |= {key: row[key] or 0 for key in ("time_discovered_started_ns", "time_discovered_completed_ns")}
    if form.layout >= "2" or form.layout == "2.10":
        return row
    row["seq_id"] = row["collective_seq_id"] + row["p2p_seq_id"]
    dropped = ["collective_seq_id", "p2p_seq_id", "input_dtypes", "output_dtypes", "timeout_ms", "is_p2p"]
    dropped += ["process_group"] if form.layout < "1.5" else []
    dropped += ["record_id", "op_id"] if form.layout < "1.4" else []
    return {key: value for key, value in row.items() if key not in dropped}


def _about(play: Play, rank: int, groups: _Groups, form: Form) -> dict[str, Any]:
    if form.layout == "1.1":
        return {}
    if form.layout == "1.4":
        return {"pg_config": {place: list(ranks) for place, (_, _, ranks) in enumerate(groups.own)}}
    config = {
        str(number): {"name": str(number), "desc": kind, "ranks": str(list(ranks))}
        for number, kind, ranks in groups.own
    }
    if form.layout in ("1.5", "2.2"):
        return {"pg_config": config}
    key = "comm_lib_version" if form.layout == "2.10" else "nccl_version"
    return {"pg_config": config, "pg_status": _status(play, rank, groups, form), key: "2.27.3"}


def _status(play: Play, rank: int, groups: _Groups, form: Form) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {}
    for call in play.calls[rank]:
        number = call.seq if call.op.peer is None else call.p2p_seq
        empty = {f"last_{what}_collective": -1 for what in ("enqueued", "started", "completed")}
        status = found.setdefault(str(groups.local[call.op.group]), empty)
        status["last_enqueued_collective"] = number
        if play.state(call) == "completed":
            status["last_completed_collective"] = number
        if form.timing and play.state(call) != "scheduled":
            status["last_started_collective"] = number
    if form.as_json:
        return {group: {key: str(value) for key, value in one.items()} for group, one in found.items()}
    return found
