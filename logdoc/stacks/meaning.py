"""What frames mean, as stack_frames.yaml has it: the place of a main thread, and processes that are no ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from typing import Any

from logdoc.catalog.frames import is_user_code
from logdoc.kept.data import document
from logdoc.stacks.model import Frame, Place, ProcessStacks, Thread
from logdoc.types.value import dataclass

DECIDES, BARELY = 2, 0  # of `tells`


@dataclass(frozen=True, slots=True)
class Kind:
    """`waits`: on peers, maybe, or no. `does`: a verb phrase, {call} in it. `tells`: how much a frame of it decides."""

    waits: str
    does: str
    tells: int


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    files: tuple[str, ...]
    functions: frozenset[str]
    symbols: frozenset[str]
    prefixes: tuple[str, ...]
    libraries: tuple[str, ...]

    def fits(self, frame: Frame) -> bool:
        file = (frame.file or "").replace("\\", "/")
        if not frame.is_native:
            named = not self.functions or frame.function in self.functions
            return named and any(file == end or file.endswith(f"/{end}") for end in self.files)
        if self.libraries and file.rsplit("/", 1)[-1].startswith(self.libraries):
            return True
        name = frame.function.lstrip("_").removeprefix("GI_").lstrip("_")
        return name in self.symbols or (bool(self.prefixes) and name.startswith(self.prefixes))


@dataclass(frozen=True, slots=True)
class _Table:
    kinds: dict[str, Kind]
    entries: tuple[_Entry, ...]
    roles: tuple[_Entry, ...]
    forked: _Entry
    crashes: frozenset[str]
    local_rank: tuple[re.Pattern[str], ...]


def kind_of(place: Place) -> Kind | None:
    """What the table says of a place's kind."""
    return _table().kinds.get(place.kind or "")


def is_crash(reason: str | None) -> bool:
    """Whether faulthandler's reason is a crash of the process itself."""
    return reason in _table().crashes


def local_rank_of(stacks: ProcessStacks) -> int | None:
    """The local rank of a process by its printer's prefix, else by its command line or title."""
    if stacks.record.who.local_rank is not None:
        return stacks.record.who.local_rank
    found = (pattern.search(stacks.command[:4096]) for pattern in _table().local_rank)
    return next((int(one[1]) for one in found if one is not None), None)


def role_of(stacks: ProcessStacks) -> str | None:
    """What a process is that is no rank: launcher, loader-worker, compile-worker or helper; None for all others."""
    frames = own_frames(stacks.main) if stacks.main is not None else []
    return next((role.kind for role in _table().roles if any(map(role.fits, frames))), None)


def frames_within_role(stacks: ProcessStacks) -> list[Frame]:
    """The frames of the main thread deeper than those that tell its role: of a loader's worker, the dataset's code."""
    frames = own_frames(stacks.main) if stacks.main is not None else []
    return list(takewhile(lambda frame: not any(role.fits(frame) for role in _table().roles), frames))


def place_of(thread: Thread) -> Place:
    """Where a thread is: of the frames that tell most the innermost decides."""
    user: Frame | None = None
    found, most = Place(), -1
    for frame in own_frames(thread):
        if user is None and not frame.is_native and is_user_code(frame.file or ""):
            user = frame
        entry = _entry(frame) if most < DECIDES else None
        tells = _table().kinds[entry.kind].tells if entry is not None else -1
        if entry is not None and tells > most and (tells > BARELY or user is None):
            found, most = Place(entry.kind, frame.function), tells
    return Place(found.kind, found.call, user)


def own_frames(thread: Thread) -> list[Frame]:
    """The frames of the process itself, without those in which its parent forked it."""
    return list(takewhile(lambda frame: not _table().forked.fits(frame), thread.frames))


def _entry(frame: Frame) -> _Entry | None:
    return next((entry for entry in _table().entries if entry.fits(frame)), None)


@cache
def _table() -> _Table:
    data = document("stack_frames.yaml")
    kinds = {name: Kind(one["waits"], one["does"], one.get("tells", DECIDES)) for name, one in data["kinds"].items()}
    return _Table(
        kinds=kinds,
        entries=tuple(_read(entry["kind"], entry) for entry in data["frames"]),
        roles=tuple(_read(name, entry) for name, entry in data["roles"].items()),
        forked=_read("forked", data["forked"]),
        crashes=frozenset(data["crashes"]),
        local_rank=tuple(re.compile(pattern) for pattern in data["local_rank"]),
    )


def _read(kind: str, entry: Any) -> _Entry:
    symbols: Iterable[str] = entry.get("symbols", ())
    return _Entry(
        kind=kind,
        files=tuple(entry.get("files", ())),
        functions=frozenset(entry.get("functions", ())),
        symbols=frozenset(name for name in symbols if not name.endswith("*")),
        prefixes=tuple(name[:-1] for name in symbols if name.endswith("*")),
        libraries=tuple(entry.get("libraries", ())),
    )
