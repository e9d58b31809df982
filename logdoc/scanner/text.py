"""Raw bytes as the scan needs them: one encoding, whole lines, and nothing between the letters of a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logdoc.kept.patterns import lazily

UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # by its mark
LEAST_OPENING = 3  # bytes, in which each mark of an encoding has room
LONGEST_LINE = 1 << 20  # bytes; a longer line is cut here, so that memory does not grow with it

# As in the reader, but never across a newline: the scan counts lines.
_ANSI = lazily(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[PX^_][^\x1b\n]{0,4096}\x1b\\|[ -/]*[0-~])"
)
_CONTROLS = bytes(code for code in range(32) if code not in (9, 10, 13)) + b"\x7f"


def as_utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 logs (PowerShell's `>`) become UTF-8; all else passes, without a byte order mark."""
    stream = iter(blocks)
    first = next(stream, b"")
    while len(first) < LEAST_OPENING and (more := next(stream, b"")):
        first += more
    encoding = UTF16.get(first[:2])
    if encoding is None:
        yield first.removeprefix(b"\xef\xbb\xbf")
        yield from stream
        return
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield decoder.decode(first[2:]).encode()
    for block in stream:
        yield decoder.decode(block).encode()


def bare(text: bytes) -> bytes:
    """`text` without colours and control characters, line for line: they may stand in the middle of a literal."""
    if b"\x1b" not in text and b"\x00" not in text:
        return text
    return _ANSI.sub(b"", text).translate(None, _CONTROLS)


def whole_lines(blocks: Iterable[bytes], least_last: int = 0) -> Iterator[tuple[bytes, bool]]:
    """Blocks that end with a newline, and whether each is the last, which has at least `least_last` bytes if it can."""
    held: bytes | None = None
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if not end and len(rest) + len(block) <= LONGEST_LINE:
            rest += block
            continue
        end = end or len(block)
        if held:
            yield held, False
        held, rest = rest + block[:end], block[end:]
    held = held or b""
    if held and rest and len(rest) >= least_last:
        yield held, False
        held = b""
    if held + rest:
        yield held + rest, True
