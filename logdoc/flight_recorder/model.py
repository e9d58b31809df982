"""What a flight-recorder dump says and what the dumps of one job say together: values only, no reading, no wording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

State = Literal["scheduled", "started", "completed"]
Kind = Literal["healthy", "missing-rank", "lagging", "mismatch", "stuck-in-collective", "no-dump", "unknown"]
Why = Literal["not-joined", "no-dump", "mismatch", "not-started", "held-up", "unfinished", "unknown"]
Difference = Literal["op", "dtype", "size"]

Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame of the call that enqueued an operation."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Group:
    """A process group. `ranks` are global, in the order of the rank within the group; empty: the dump does not say."""

    name: str
    desc: str
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """The sequence numbers a process group itself remembers; None: nothing yet.

    A group that also sends and receives counts both kinds here, so a number may be a p2p one.
    """

    enqueued: int | None
    started: int | None
    completed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One recorded operation: `record` is its order on its rank, `created_ns` nanoseconds of that rank's own clock.

    `seq` counts collectives of the group (of a p2p operation: those enqueued before it), `p2p_seq` sends and receives.
    `op` is torch's name without the backend; `peer` is the other side of a p2p operation, as a rank of the group.
    `retired`: the watchdog has dropped it, finished or not.
    """

    record: int
    group: Group
    seq: int
    p2p_seq: int
    backend: str
    op: str
    peer: int | None
    is_p2p: bool
    input_sizes: Sizes
    input_dtypes: tuple[str, ...]
    output_sizes: Sizes
    output_dtypes: tuple[str, ...]
    state: State
    retired: bool
    created_ns: int | None
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The dump of one rank. `status` is by group name; `entries` are in the order they were recorded.

    `status_complete`: every group this rank ever used has a status here, so one that has none was never used.
    """

    name: str
    rank: int
    version: str
    groups: tuple[Group, ...]
    status: Mapping[str, Status]
    status_complete: bool
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """The ranks that called one form of an operation whose callers disagree."""

    ranks: tuple[int, ...]
    op: str
    sizes: Sizes
    dtypes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Ranks of a group called different operations at one sequence number.

    `minority` holds the ranks that differ from the largest variant; empty on a tie: nobody can tell who is wrong.
    """

    what: Difference
    variants: tuple[Variant, ...]
    minority: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """One process group: who should have a dump, and the first collective not everybody completed (`seq` None: none).

    `joined` enqueued it, `missing` did not, of `unclear` the dump does not say. `finished` and `unfinished` split
    `joined`; `started` are the unfinished ones whose kernel is known to run.
    """

    group: Group
    expected: tuple[int, ...]
    without_dump: tuple[int, ...]
    seq: int | None = None
    op: str | None = None
    joined: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    started: tuple[int, ...] = ()
    disagreement: Disagreement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A rank waits in an operation for the ranks `on`. `seq` counts collectives, or sends and receives if `is_p2p`."""

    rank: int
    on: tuple[int, ...]
    why: Why
    group: Group
    seq: int
    op: str
    is_p2p: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank is: its operation and the innermost frame of user code that called it (None: no stack recorded).

    Of a culprit that never enqueued what others wait for, this is the last thing it did enqueue. `seq` counts
    collectives, or sends and receives if `is_p2p`.
    """

    rank: int
    role: Literal["culprit", "suspect", "waiting"]
    kind: Kind
    group: Group | None = None
    seq: int | None = None
    op: str | None = None
    is_p2p: bool = False
    frame: Frame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What all dumps say together.

    `culprits` hold others up and wait for nobody themselves. `suspects` are sets of which one is to blame, but the
    dumps do not say which. `without_dump` are ranks some group names and no dump came from.
    """

    kind: Kind
    culprits: tuple[int, ...] = ()
    suspects: tuple[int, ...] = ()
    world: tuple[int, ...] = ()
    without_dump: tuple[int, ...] = ()
    groups: tuple[GroupReport, ...] = ()
    waits: tuple[Wait, ...] = ()
    places: tuple[Place, ...] = ()
