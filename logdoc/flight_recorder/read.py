"""Bytes of a flight-recorder dump (pickle or JSON) to a `Dump`; trusts nothing in them and runs nothing of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath

from logdoc.flight_recorder import fields, unpickle
from logdoc.flight_recorder.early import renewed
from logdoc.flight_recorder.model import Dump, Entry, Frame, Group, State, Status
from logdoc.types.errors import InputError

MAX_BYTES = 256 << 20
MAX_ENTRIES = 200_000  # torch keeps 2,000 unless told otherwise
MAX_MEMBERS = 2_000_000
MAX_FRAMES = 256
# Every container and every value of JSON costs at least one of these bytes.
MAX_JSON_CONTAINERS = unpickle.MAX_CONTAINERS
MAX_JSON_VALUES = unpickle.MAX_OPCODES

_RANK_WORD = re.compile(r"rank[_-]?(\d{1,7})(?!.*rank[_-]?\d)", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(\d{1,7})$")
_EXTENSIONS = re.compile(r"(\.[A-Za-z]\w*)+$")
_PEER = re.compile(r"(?P<op>send|recv) (?P<own>\d{1,7})(?:->|<-)(?P<peer>\d{1,7})")
_STATES: Mapping[str, State] = {"scheduled": "scheduled", "started": "started", "completed": "completed"}


def read_dump(data: bytes, name: str) -> Dump:
    """The dump in `data`; `name` is its file name, which most often holds the rank.

    Raises InputError (one line) when `data` is empty, cut off, hostile, no dump, or no rank can be found for it.
    """
    content = _content(data, name)
    try:
        content = renewed(content)
        groups = _groups(fields.mapping(content, "pg_config"))
        rows = fields.rows(content, "entries", MAX_ENTRIES)
        entries = _Entries(groups).read(rows)
        status, complete = _status(fields.mapping(content, "pg_status"), groups, rows, entries)
        return Dump(
            name=name,
            rank=_rank(name, groups, rows, entries),
            version=fields.text(content, "version"),
            groups=_named_groups(groups, entries),
            status=status,
            status_complete=complete,
            entries=entries,
        )
    except fields.MalformedError as fault:
        raise InputError(f"{name}: not a flight recorder dump: {fault}") from None


def _content(data: bytes, name: str) -> Mapping[str, object]:
    if not data:
        raise InputError(f"{name}: empty (the trainer was killed while writing it)")
    if len(data) > MAX_BYTES:
        raise InputError(f"{name}: refused: larger than {MAX_BYTES >> 20} MiB")
    start = data[:64].lstrip()[:1]
    value = _from_json(data, name) if start in (b"{", b"[") else _from_pickle(data, name)
    if isinstance(value, list) and value and isinstance(value[0], dict) and "seq_id" in value[0]:
        # the first recorder, of torch 2.2, wrote its entries and nothing else
        value = {"entries": value}
    if isinstance(value, dict) and "entries" not in value and "pg_config" not in value:
        raise InputError(f"{name}: not a flight recorder dump: it has neither entries nor pg_config")
    if not isinstance(value, dict):
        raise InputError(f"{name}: not a flight recorder dump: it holds a {type(value).__name__}, not a dict")
    return value


def _from_pickle(data: bytes, name: str) -> object:
    try:
        return unpickle.load(data)
    except unpickle.TruncatedError:
        raise InputError(f"{name}: cut off after {len(data)} bytes (the trainer was killed while writing it)") from None
    except unpickle.RefusedError as reason:
        raise InputError(f"{name}: refused: {reason}") from None


def _from_json(data: bytes, name: str) -> object:
    if data.count(b"[") + data.count(b"{") > MAX_JSON_CONTAINERS or data.count(b",") > MAX_JSON_VALUES:
        raise InputError(f"{name}: refused: more than {MAX_JSON_CONTAINERS} lists and dicts")
    try:
        return json.loads(data)
    except RecursionError:
        raise InputError(f"{name}: refused: values nested too deeply") from None
    except ValueError as fault:  # a JSONDecodeError, a wrong encoding, or an integer of thousands of digits
        raise InputError(f"{name}: not JSON, or cut off: {fault}") from None


def _groups(config: Mapping[str, object]) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    members = 0
    for name in config:
        group = fields.mapping(config, name)
        groups[name] = Group(name, fields.text(group, "desc"), fields.ranks(group.get("ranks", "[]")))
        members += 1 + len(groups[name].ranks)
        if members > MAX_MEMBERS:
            raise fields.MalformedError(f"its process groups hold more than {MAX_MEMBERS} ranks together")
    return groups


class _Entries:
    """Rows to entries; operations share stacks, frames and sizes, so each is converted once."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._groups = groups
        self._lists = fields.Lists()
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._rankless: dict[str, Group] = {}

    def read(self, rows: list[Mapping[str, object]]) -> tuple[Entry, ...]:
        return tuple(self._entry(row) for row in rows)

    def _entry(self, row: Mapping[str, object]) -> Entry:
        backend, _, call = fields.text(row, "profiling_name").rpartition(":")
        peer = _PEER.fullmatch(call)
        return Entry(
            record=fields.number(row, "record_id"),
            group=self._group(row),
            seq=fields.number(row, "collective_seq_id"),
            p2p_seq=fields.number(row, "p2p_seq_id"),
            backend=backend,
            op=peer["op"] if peer else call,
            peer=int(peer["peer"]) if peer else None,
            is_p2p=row.get("is_p2p") is True or peer is not None,
            input_sizes=self._lists.sizes(row, "input_sizes"),
            input_dtypes=self._lists.texts(row, "input_dtypes"),
            output_sizes=self._lists.sizes(row, "output_sizes"),
            output_dtypes=self._lists.texts(row, "output_dtypes"),
            state=_STATES.get(fields.text(row, "state"), "scheduled"),
            retired=row.get("retired") is True,
            created_ns=fields.time(row, "time_created_ns"),
            frames=self._stack(row),
        )

    def _group(self, row: Mapping[str, object]) -> Group:
        name, desc = fields.pair(row, "process_group")
        if name in self._groups:
            return self._groups[name]
        # gloo (torch 2.13) files every group's ranks under the name ''; the last one created wins, so they are
        # those of this group only if it is the default group and nothing has overwritten it.
        unnamed = self._groups.get("")
        ranks = unnamed.ranks if unnamed and desc == "default_pg" else ()
        return self._rankless.setdefault(name, Group(name, desc, ranks))

    def _stack(self, row: Mapping[str, object]) -> tuple[Frame, ...]:
        key = id(row.get("frames"))
        if key not in self._stacks:
            self._stacks[key] = tuple(map(self._frame, fields.rows(row, "frames", MAX_FRAMES)))
        return self._stacks[key]

    def _frame(self, row: Mapping[str, object]) -> Frame:
        frame = self._frames.get(id(row))
        if frame is None:
            frame = Frame(fields.text(row, "name"), fields.text(row, "filename"), fields.number(row, "line"))
            self._frames[id(row)] = frame
        return frame


def _named_groups(groups: Mapping[str, Group], entries: tuple[Entry, ...]) -> tuple[Group, ...]:
    used = {entry.group.name: entry.group for entry in entries}
    return tuple({**{name: group for name, group in groups.items() if name}, **used}.values())


def _status(
    rows: Mapping[str, object],
    groups: Mapping[str, Group],
    entries: list[Mapping[str, object]],
    read: tuple[Entry, ...],
) -> tuple[dict[str, Status], bool]:
    """The status by group name, and whether each status found its group.

    pg_status counts groups by their creation on this rank (`pg_id`), which only entries tie to a name. Groups named
    by number are named in order of creation too, so equal counts align; the entries must agree.
    """
    tied = ((row, entry) for row, entry in zip(entries, read, strict=True) if "pg_id" in row)
    known = {str(fields.number(row, "pg_id")): entry.group.name for row, entry in tied}
    names = dict(known)
    if len(rows) == len(groups) and all(key.isdecimal() for key in (*rows, *groups)):
        by_age = dict(zip(sorted(rows, key=int), sorted(groups, key=int), strict=True))
        if all(by_age.get(pg_id) == name for pg_id, name in known.items()):
            names = by_age
    status = {names[pg_id]: _one_status(fields.mapping(rows, pg_id)) for pg_id in rows if pg_id in names}
    return status, bool(rows) and len(status) == len(rows)


def _one_status(row: Mapping[str, object]) -> Status:
    enqueued, started, completed = (
        fields.number(row, f"last_{what}_collective", default=-1) for what in ("enqueued", "started", "completed")
    )
    return Status(*(None if value < 0 else value for value in (enqueued, started, completed)))


def _rank(name: str, groups: Mapping[str, Group], rows: list[Mapping[str, object]], entries: tuple[Entry, ...]) -> int:
    """The rank that wrote the dump: its name's, unless the groups, all of which it belongs to, say otherwise."""
    members = [group.ranks for group in groups.values() if group.ranks]
    shared = set(members[0]).intersection(*members[1:]) if members else set()
    named = _rank_in_name(name)
    if named is not None and (not shared or named in shared):
        return named
    if len(shared) == 1:
        return shared.pop()
    for row, entry in zip(rows, entries, strict=True):
        peer = _PEER.search(fields.text(row, "profiling_name"))
        if peer and int(peer["own"]) < len(entry.group.ranks):
            return entry.group.ranks[int(peer["own"])]
    if named is not None:
        raise InputError(f"{name}: named after rank {named}, which none of its process groups holds")
    raise InputError(f"{name}: nothing says which rank wrote it; name the file after its rank (…_rank_3)")


def _rank_in_name(name: str) -> int | None:
    stem = _EXTENSIONS.sub("", PurePath(name).name)
    found = _RANK_WORD.search(stem) or _LAST_NUMBER.search(stem)
    return int(found[1]) if found else None
