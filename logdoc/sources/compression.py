"""Unpacks gzip, bzip2, xz and zstd streams block by block, as far as they are whole; told by their first bytes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from logdoc.sources.limits import size_in_words
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

MAGIC_BYTES = 10  # what codec_of looks at
# Small steps: what follows a finished member is copied, and a hostile file has a member every twenty bytes.
_STEP = 16 << 10
# xz -9 asks for 65 MiB; a header may ask for 4 GiB. (zstd refuses windows above 128 MiB by itself.)
_XZ_MEMORY = 256 << 20


class Member(Protocol):
    """One compressed stream of a file, in the interface that bz2, lzma and zstd share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """A compression format: its name, and what starts a member of it."""

    name: str
    new_member: Callable[[], Member]


@dataclass(slots=True)
class Unpacking:
    """How far the unpacking of one file got. `fed` counts compressed bytes, `given` plain ones; `note` says what was
    wrong with the file, and `cut` that plain bytes are missing because of it."""

    fed: int = 0
    given: int = 0
    members: int = 0
    note: str | None = None
    cut: bool = False


class _DamagedError(Exception):
    """The decompressor refused the bytes."""


def codec_of(head: bytes) -> Codec | None:
    """The compression whose magic number `head` (MAGIC_BYTES, if there are as many) begins with."""
    if head.startswith(b"\x1f\x8b\x08"):
        return Codec("gzip", _GzipMember)
    # "BZh9" alone could be text; a block's or an empty file's own magic follows it.
    if head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return Codec("bzip2", _bzip2_member)
    if head.startswith(b"\xfd7zXZ\x00"):
        return Codec("xz", _xz_member)
    # A zstd file may begin with a skippable frame, as pzstd's do.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return Codec("zstd", _zstd_member)
    return None


def unpacked(
    codec: Codec, raw: Iterable[bytes], reopen: Callable[[], Iterator[bytes]], progress: Unpacking, block_bytes: int
) -> Iterator[bytes]:
    """The plain bytes of `raw` in blocks of at most `block_bytes`; what ends them early is noted in `progress`.

    `reopen` gives the compressed bytes anew: a decompressor that meets a fault keeps what it had unpacked in the same
    call, so the bytes before a fault are fetched by a second run that goes byte by byte where the first one failed.
    """
    step = 0
    try:
        for plain in _members(codec, _steps(raw), progress, block_bytes):
            progress.given += len(plain)
            yield plain
    except _DamagedError as error:
        step = (progress.fed - 1) // _STEP
        for plain in _salvaged(codec, _bytewise_at(reopen(), step), progress.given, block_bytes):
            progress.given += len(plain)
            yield plain
        progress.note = f"damaged {codec.name} data ({error}): read up to there, {size_in_words(progress.given)}"
        progress.cut = True


def _members(codec: Codec, steps: Iterable[bytes], progress: Unpacking, block_bytes: int) -> Iterator[bytes]:
    """Each member's plain bytes; members may follow each other, as `cat a.gz b.gz` makes them."""
    member: Member | None = None
    fresh = False
    for step in steps:
        progress.fed += len(step)
        data = step
        while data:
            if member is None:
                data = data.lstrip(b"\0") if progress.members else data  # padding to a tape's or disk's block
                if not data:
                    break
                member, fresh = codec.new_member(), True
            try:
                for plain in _drained(member, data, block_bytes):
                    fresh = False
                    yield plain
            except _DamagedError:
                if not (progress.members and fresh):
                    raise
                progress.note = _foreign_tail(codec)
                return
            data = b""
            if member.eof:
                data, member = member.unused_data, None
                progress.members += 1
    if member is not None and progress.members and fresh:
        progress.note = _foreign_tail(codec)
    elif member is not None:
        progress.note = (
            f"the {codec.name} data ends early (cut off, or still being written): "
            f"read as far as it goes, {size_in_words(progress.given)}"
        )
        progress.cut = True


def _foreign_tail(codec: Codec) -> str:
    return f"what follows the {codec.name} data is not {codec.name} and was ignored"


def _drained(member: Member, data: bytes, block_bytes: int) -> Iterator[bytes]:
    """All that `member` can say once it has been given `data`."""
    plain = _decompress(member, data, block_bytes)
    while plain:
        yield plain
        if member.eof or member.needs_input:
            return
        plain = _decompress(member, b"", block_bytes)


def _decompress(member: Member, data: bytes, block_bytes: int) -> bytes:
    try:
        return member.decompress(data, block_bytes)
    except MemoryError as error:
        raise _DamagedError("it asks for too much memory") from error
    except Exception as error:  # zlib.error, OSError, LZMAError, ZstdError: each library has its own
        raise _DamagedError(" ".join(str(error).split())) from error


def _steps(raw: Iterable[bytes]) -> Iterator[bytes]:
    """`raw` recut so that step n begins at byte n * _STEP, however the blocks fall."""
    held = b""
    for block in raw:
        held += block
        whole = len(held) - len(held) % _STEP
        for start in range(0, whole, _STEP):
            yield held[start : start + _STEP]
        held = held[whole:]
    if held:
        yield held


def _bytewise_at(raw: Iterable[bytes], failing: int) -> Iterator[bytes]:
    """The steps of `raw` up to step `failing`, which is given byte by byte and is the last."""
    for number, step in enumerate(_steps(raw)):
        if number < failing:
            yield step
            continue
        for offset in range(len(step)):
            yield step[offset : offset + 1]
        return


def _salvaged(codec: Codec, steps: Iterable[bytes], given: int, block_bytes: int) -> Iterator[bytes]:
    """What a run over `steps` unpacks before it fails, without the first `given` bytes, which are known."""
    try:
        for plain in _members(codec, steps, Unpacking(), block_bytes):
            if len(plain) > given:
                yield plain[given:]
            given = max(0, given - len(plain))
    except _DamagedError:
        return


class _GzipMember:
    """zlib's decompressor in the interface of the others."""

    def __init__(self) -> None:
        import zlib

        self._inflater = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        plain = self._inflater.decompress(self._inflater.unconsumed_tail + data, max_length)
        # A full answer may have more behind it even though every byte of input has been taken.
        self.needs_input = not self._inflater.unconsumed_tail and len(plain) < max_length
        return plain


def _bzip2_member() -> Member:
    import bz2

    return bz2.BZ2Decompressor()


def _xz_member() -> Member:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _zstd_member() -> Member:
    # Part of Python from 3.14 on, before that a package; neither is loaded unless a zstd file is read.
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdDecompressor
        else:
            from backports.zstd import ZstdDecompressor
    except ImportError as error:
        raise InputError(
            "zstd-compressed input needs the package backports.zstd: pip install backports.zstd"
        ) from error
    return ZstdDecompressor()
