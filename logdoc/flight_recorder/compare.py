"""Do the callers of one collective agree? Compares operation, data type and size; never names a culprit on a tie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from logdoc.flight_recorder.model import Difference, Disagreement, Entry, Sizes, Variant

Side = Literal["input", "output"]

# The side whose size every rank must agree on, by torch's name of the operation. Only the root of a gather has
# outputs, only the root of a scatter has inputs, and the parts of an uneven all_gather or all_to_all may differ.
_COMMON_SIDE: Mapping[str, Side] = {
    "all_reduce": "input",
    "allreduce_coalesced": "input",
    "broadcast": "output",
    "reduce": "input",
    "gather": "input",
    "scatter": "output",
    "all_gather": "output",
    "_all_gather_base": "output",
    "all_gather_into_tensor_coalesced": "output",
    "reduce_scatter": "input",
    "_reduce_scatter_base": "input",
    "reduce_scatter_tensor_coalesced": "input",
}
_UNEVEN = "all_to_all"  # each pair of ranks has a size of its own
# When one rank has finished one of these, every rank has put its data in: who has not finished is itself stuck. The
# root of a broadcast and the leaves of a reduce may finish long before the others start.
_SYMMETRIC_PREFIXES = ("all_", "_all_", "allreduce", "reduce_scatter", "_reduce_scatter", "barrier")


def is_symmetric(op: str) -> bool:
    return op.startswith(_SYMMETRIC_PREFIXES)


def form(entry: Entry) -> tuple[object, ...]:
    """What must be alike on all ranks that call one collective."""
    return entry.op, _dtypes(entry), _elements(entry)


def disagreement(calls: Mapping[int, Entry], everybody: bool) -> Disagreement | None:
    """How the `calls` (by rank) of one collective differ. `everybody`: no member of the group is missing among them."""
    if len(calls) < 2:
        return None
    checks: Sequence[tuple[Difference, Callable[[Entry], object]]] = (
        ("op", lambda entry: entry.op),
        ("dtype", _dtypes),
        ("size", _elements),
    )
    for what, view in checks:
        parties: dict[object, list[int]] = {}
        for rank in sorted(calls):
            parties.setdefault(view(calls[rank]), []).append(rank)
        if len(parties) > 1:
            return _split(what, list(parties.values()), calls)
    return _lost_elements(calls) if everybody else None


def _split(what: Difference, parties: list[list[int]], calls: Mapping[int, Entry]) -> Disagreement:
    parties.sort(key=lambda ranks: (-len(ranks), ranks))
    tied = len(parties[0]) == len(parties[1])
    minority = () if tied else tuple(sorted(rank for ranks in parties[1:] for rank in ranks))
    return Disagreement(what, tuple(_variant(ranks, calls[ranks[0]]) for ranks in parties), minority)


def _variant(ranks: list[int], entry: Entry) -> Variant:
    if _side(entry) == "input":
        return Variant(tuple(ranks), entry.op, entry.input_sizes, entry.input_dtypes)
    return Variant(tuple(ranks), entry.op, entry.output_sizes, entry.output_dtypes)


def _side(entry: Entry) -> Side:
    return _COMMON_SIDE.get(entry.op, "input")


def _dtypes(entry: Entry) -> object:
    if entry.op not in _COMMON_SIDE and entry.op != _UNEVEN:
        return None
    return entry.input_dtypes if _side(entry) == "input" else entry.output_dtypes


def _elements(entry: Entry) -> object:
    """The number of elements of each tensor; a collective does not care how they are shaped."""
    if entry.op not in _COMMON_SIDE:
        return None
    return tuple(map(math.prod, entry.input_sizes if _side(entry) == "input" else entry.output_sizes))


def _lost_elements(calls: Mapping[int, Entry]) -> Disagreement | None:
    """An all_to_all whose ranks together send another number of elements than they receive: nobody can tell whose."""
    entries = [calls[rank] for rank in sorted(calls)]
    if entries[0].op != _UNEVEN or _total(e.input_sizes for e in entries) == _total(e.output_sizes for e in entries):
        return None
    return Disagreement("size", tuple(_variant([rank], calls[rank]) for rank in sorted(calls)), ())


def _total(sizes: Iterable[Sizes]) -> int:
    return sum(math.prod(tensor) for tensors in sizes for tensor in tensors)
