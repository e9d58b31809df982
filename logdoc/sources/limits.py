"""How much is read before reading stops with a warning; the numbers, and how a size is said, nothing else."""

from __future__ import annotations

from logdoc.types.value import dataclass

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep any input from filling memory, disk or an evening. Bytes, counts and seconds.

    `max_bytes` is what one source may give after decompression; `max_special_bytes` what a device or named pipe
    may give. A source that has given more than `ratio_free_bytes` may not have unpacked more than `max_ratio` to 1.
    `max_entries` bounds the directory entries looked at. `spool_memory_bytes` of a pipe stay in memory, the rest
    goes to a temporary file. A named pipe gets `writer_wait_seconds` to find a writer; a writer, `idle_seconds`
    to say something.
    """

    max_bytes: int = 8 * GIB
    max_special_bytes: int = 64 * MIB
    max_files: int = 20_000
    max_entries: int = 400_000
    max_ratio: int = 1_000
    ratio_free_bytes: int = 64 * MIB
    block_bytes: int = 512 * KIB
    spool_memory_bytes: int = 8 * MIB
    writer_wait_seconds: float = 2.0
    idle_seconds: float = 30.0


DEFAULT_LIMITS = Limits()


def size_in_words(count: int) -> str:
    """A byte count as people say it: `8 GiB`, `1.5 MiB`, `12 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} byte" if count == 1 else f"{count} bytes"
