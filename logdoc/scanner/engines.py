"""Two interchangeable multi-literal scanners. Literals only: Vectorscan can lose matches of full patterns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

from logdoc.kept import keep, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


class LiteralScanner(Protocol):
    """Finds all occurrences of its literals."""

    name: str

    def ends(self, buffer: bytes) -> list[tuple[int, int]]:
        """(literal number, end offset) of every occurrence, overlapping ones too, ordered by end and number."""


class HyperscanScanner:
    """Vectorscan through the `hyperscan` wheel: the fast one."""

    name = "hyperscan"

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._database = hyperscan_database(literals, [0] * len(literals))
        import hyperscan

        self._scratch: Any = hyperscan.Scratch(self._database)

    def ends(self, buffer: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end, number))

        self._database.scan(buffer, match_event_handler=note, scratch=self._scratch)
        found.sort()
        return [(number, end) for end, number in found]


class AhoCorasickScanner:
    """ahocorasick-rs: where there is no hyperscan wheel, with equal results."""

    name = "ahocorasick"

    def __init__(self, literals: Sequence[bytes]) -> None:
        import ahocorasick_rs

        self._automaton = ahocorasick_rs.BytesAhoCorasick(list(literals))

    def ends(self, buffer: bytes) -> list[tuple[int, int]]:
        found = self._automaton.find_matches_as_indexes(buffer, overlapping=True)
        return sorted(((number, end) for number, _, end in found), key=lambda hit: (hit[1], hit[0]))


def best_scanner(literals: Sequence[bytes]) -> LiteralScanner:
    """hyperscan where it works on this machine and finds what it must, else ahocorasick-rs."""
    try:
        scanner = HyperscanScanner(literals)
        if _finds_all(scanner, literals[:64]):
            return scanner
    except Exception:
        # a wheel for another CPU fails in many ways (ImportError, OSError, hyperscan.error); the other engine is equal
        return AhoCorasickScanner(literals)
    return AhoCorasickScanner(literals)


def _finds_all(scanner: LiteralScanner, literals: Sequence[bytes]) -> bool:
    found = {number for number, _ in scanner.ends(b"\x00".join(literals))}
    return found >= set(range(len(literals)))


def _machine() -> str:
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine()


def hyperscan_database(literals: Sequence[bytes], flags: Sequence[int], is_kept: bool = True) -> Any:
    """The compiled literals. Compiling thousands takes longer than a small log, so it is kept, for this CPU only.

    Vectorscan checks version, platform and checksum of what it loads, and says InvalidError of any other.
    `is_kept`: False for a set that no other run will ask for.
    """
    import hyperscan

    text = b"\n".join(b"%d %s" % pair for pair in zip(flags, literals, strict=True))
    name = f"literals-{zlib.crc32(text):08x}"
    version: str = getattr(hyperscan, "__version__", "")
    key = repr((version, _machine(), len(literals), zlib.adler32(text)))
    content = kept(name, key) if is_kept else None
    if content is not None:
        try:
            return hyperscan.loadb(bytes(content), hyperscan.HS_MODE_BLOCK)
        except hyperscan.error:
            content = None
    database = hyperscan.Database()
    database.compile(expressions=list(literals), ids=list(range(len(literals))), flags=list(flags), literal=True)
    if is_kept:
        keep(name, key, hyperscan.dumpb(database))
    return database
