"""Dumps of torch 2.2 and 2.3 (format 1.x) in the words of later ones; later dumps pass through unchanged.

Format 1.1 has neither groups nor record numbers, 1.4 gives each group its ranks under the rank's own number for it, 1.5
names groups as today. All of them count sends, receives and collectives of a group together (torch's TraceUtils.h).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from logdoc.flight_recorder import fields

_P2P = re.compile(r"(?:.*:)?(?:send|recv) \d+(?:->|<-)\d+", re.DOTALL)


def renewed(content: Mapping[str, object]) -> Mapping[str, object]:
    """The content with `process_group`, `record_id`, `collective_seq_id` and `p2p_seq_id` in each entry."""
    rows = content.get("entries")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        return content
    if "seq_id" not in rows[0]:
        return content
    config = content.get("pg_config")
    groups, names = _named(config) if isinstance(config, dict) else ({}, {})
    if not groups and any(row.get("pg_id") for row in rows):
        raise fields.MalformedError("torch 2.2 does not say which ranks share a process group; 2.4 and later do")
    return {**content, "pg_config": groups, "entries": list(_rows(rows, names))}


def _named(config: Mapping[object, object]) -> tuple[dict[str, object], dict[int, tuple[str, str]]]:
    """Groups by a name that is the same on all ranks, and that name by the rank's own number.

    A rank numbers its groups itself, so only their ranks tell which is which; of two alike the first is the first.
    """
    groups: dict[str, object] = {}
    names: dict[int, tuple[str, str]] = {}
    alike: Counter[tuple[int, ...]] = Counter()
    for number, group in config.items():
        if not isinstance(number, int):
            groups[str(number)] = group
            continue
        ranks = fields.ranks(group)
        alike[ranks] += 1
        desc = "default_pg" if number == 0 else ""
        name = desc or f"{'-'.join(map(str, ranks[:8]))} of {len(ranks)}, {alike[ranks]}"
        groups[name] = {"name": name, "desc": desc, "ranks": list(ranks)}
        names[number] = (name, desc)
    return groups, names


def _rows(rows: Sequence[Mapping[str, object]], names: Mapping[int, tuple[str, str]]) -> Iterable[dict[str, object]]:
    exchanged: dict[int, set[int]] = {}  # by group: numbers that sends and receives took
    numbers = [(fields.number(row, "pg_id"), fields.number(row, "seq_id")) for row in rows]
    lost = any(seq > 1 for seq in dict(reversed(numbers)).values())  # the ring buffer has overwritten the first ones
    for place, (row, (group, seq)) in enumerate(zip(rows, numbers, strict=True)):
        taken = exchanged.setdefault(group, set())
        if _P2P.fullmatch(fields.text(row, "profiling_name")):
            taken.add(seq)
        yield {
            "record_id": place + lost,
            "process_group": names.get(group, (str(group), "default_pg" if group == 0 else "")),
            "collective_seq_id": seq - len(taken),
            "p2p_seq_id": seq if seq in taken else 0,
            **row,
        }
