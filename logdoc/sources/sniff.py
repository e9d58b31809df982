"""What the first bytes of a file tell: text or binary, log, error.json, flight-recorder dump, or an archive."""

from __future__ import annotations

import re

from logdoc.kept.patterns import lazily
from logdoc.scanner.text import UTF16
from logdoc.sources.compression import codec_of
from logdoc.sources.limits import Limits
from logdoc.sources.names import ERROR_FILE, is_dump_name, without_compression_suffix
from logdoc.sources.origins import Origin
from logdoc.sources.stream import OnePass
from logdoc.types.value import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.sources.stream import Kind

HEAD_BYTES = 4 << 10


@dataclass(frozen=True, slots=True)
class Head:
    """The first plain bytes of a source; `fault` is set if it is damaged so early that there are none."""

    plain: bytes
    fault: str | None = None


def head_of(origin: Origin, limits: Limits) -> Head:
    """Reads no more than it takes to see HEAD_BYTES plain bytes; OSError or InputError if that cannot be done."""
    reading = OnePass(origin, replace(limits, block_bytes=HEAD_BYTES))
    held = b""
    for block in reading.blocks():
        held += block
        if len(held) >= HEAD_BYTES:
            break
    return Head(held[:HEAD_BYTES], reading.notes[0] if reading.cut and not held else None)


def kind_of(name: str, head: bytes) -> Kind:
    """What a file is for, by its name and by its content; anything not recognised is a log."""
    if _is_dump(head, named_so=is_dump_name(name)):
        return "flight-recorder"
    if without_compression_suffix(name).lower() == ERROR_FILE or _ERROR_JSON.match(head):
        return "error-json"
    return "log"


# What torch.distributed.elastic writes: {"message": {"message": .., "extraInfo": {..}}}, under any name the user chose.
_ERROR_JSON = lazily(rb'\s*\{\s*"message"\s*:\s*\{\s*"(?:message|extraInfo|errorCode)"')


def _is_dump(head: bytes, *, named_so: bool) -> bool:
    """A pickle (protocol 2 to 5) or JSON object; where the name does not tell, it must speak of process groups."""
    is_pickle = len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5
    is_json = head.lstrip().startswith(b"{")
    if named_so and is_pickle:
        return True
    if is_json and (named_so or b'"collective_seq_id"' in head or b'"pg_config"' in head):
        return b'"entries"' in head or b'"version"' in head
    return is_pickle and b"pg_config" in head


# The controls that logs do use: bell, backspace, tab, line feed, form feed, carriage return, escape.
_CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27}) + b"\x7f"
_BINARY_SHARE = 0.05  # random bytes have 0.1; a log with a burst of NULs from a crashed node has less


def looks_binary(head: bytes) -> bool:
    """Is this no text in any encoding (UTF-8, Latin-1, GBK, UTF-16 with its mark)?"""
    if not head or head[:2] in UTF16:
        return False
    return len(head) - len(head.translate(None, _CONTROLS)) > _BINARY_SHARE * len(head)


_ARCHIVES = (
    (0, b"PK\x03\x04", "zip archive", "unzip -d {folder} {file} && logdoc explain {folder}"),
    (0, b"PK\x05\x06", "zip archive", "unzip -d {folder} {file} && logdoc explain {folder}"),
    (257, b"ustar", "tar archive", "mkdir {folder} && tar -xf {file} -C {folder} && logdoc explain {folder}"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z archive", "7z x -o{folder} {file} && logdoc explain {folder}"),
    (0, b"Rar!\x1a\x07", "rar archive", "unrar x {file} {folder}/ && logdoc explain {folder}"),
    (0, b"\x04\x22\x4d\x18", "lz4 file", "lz4 -dc {file} | logdoc explain -"),
    (0, b"LZIP\x01", "lzip file", "lzip -dc {file} | logdoc explain -"),
    (0, b"\x1f\x9d", "compress (.Z) file", "zcat {file} | logdoc explain -"),
)


def archive_advice(name: str, head: bytes, *, is_file: bool = True) -> str | None:
    """For plain bytes that must be unpacked by another program first: what they are, and the command where they are in
    a file here. None for others."""
    codec = codec_of(head)
    if codec is not None:
        return f"is {codec.name} data in another compression; only one is unpacked here: take off the outer one first"
    for offset, magic, what, command in _ARCHIVES:
        if head.startswith(magic, offset):
            if not is_file:
                return f"is a {what}; unpack it first"
            import shlex  # few inputs are archives

            folder = re.sub(r"[^\w.-]", "_", re.split(r"[/\\]", name)[-1].split(".")[0]).lstrip("-") or "unpacked"
            return f"is a {what}; unpack it first: " + command.format(
                file=shlex.quote(f"./{name}" if name.startswith("-") else name), folder=f"{folder}-unpacked"
            )
    return None
