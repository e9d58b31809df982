"""Sizes and durations as logs write them, to bytes and seconds."""

from __future__ import annotations

import re
from functools import cache

_BYTES = {
    "": 1, "b": 1, "byte": 1, "bytes": 1,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "pib": 2**50, "eib": 2**60,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
}  # fmt: skip
_SECONDS = {
    "us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip


def number_and_unit(text: str) -> tuple[float, str] | None:
    """`4.17 GiB` as (4.17, "gib"); None for a text that is no number with a unit."""
    found = _quantity().match(text)
    if found is None:
        return None
    return float(found.group(1).replace(",", "").replace("_", "")), found.group(2).lower()


def size_in_bytes(value: object) -> float | None:
    """A size in bytes. Numbers are bytes already; KiB is binary, KB decimal, a bare K, M, G binary as in nvidia-smi."""
    return _scaled(value, _BYTES)


def duration_in_seconds(value: object) -> float | None:
    """A duration in seconds; a bare number is seconds already."""
    return _scaled(value, _SECONDS)


@cache
def _quantity() -> re.Pattern[str]:
    """Compiled when a first size is read: few small logs name one."""
    return re.compile(r"\s*(-?[\d_,]*\.?\d+)\s*([A-Za-z]*)\s*$")


def _scaled(value: object, units: dict[str, float] | dict[str, int]) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    read = number_and_unit(str(value))
    scale = units.get(read[1]) if read else None
    return None if read is None or scale is None else read[0] * scale
