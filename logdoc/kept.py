"""Files that only save time between runs: bound to a key, written whole or not at all, never trusted, never needed."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from typing import Any

BUILT_SUFFIX = ".built"  # a data file's parsed form, made when the wheel is built

_MARK = b"logdoc-kept-1"


def kept(name: str, key: str) -> bytes | None:
    """What an earlier run kept under `name`, if it is undamaged and was made for this very `key`; else None."""
    return kept_at(os.path.join(_folder(), name), key)


def kept_at(path: str, key: str) -> bytes | None:
    """The same, of a file anywhere."""
    try:
        with open(path, "rb") as file:
            head, _, content = file.read().partition(b"\n")
    except OSError:
        return None
    return content if head == _head(key, content) else None


def keep(name: str, key: str, content: bytes) -> None:
    """Keep `content` for later runs. A folder that cannot be written (read-only home, full disk) is no error."""
    folder = _folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return
    keep_at(os.path.join(folder, name), key, content)


def keep_at(path: str, key: str, content: bytes) -> None:
    """The same, for a file anywhere; readers see the old file or the new one, never half of it."""
    draft = f"{path}.{os.getpid()}.new"
    try:
        with open(draft, "wb") as file:
            file.write(_head(key, content) + b"\n" + content)
        os.replace(draft, path)
    except OSError:
        _remove(draft)


def kept_document(path: str, parse: Callable[[str], Any]) -> Any:
    """The content of a data file, parsed once: `parse` turns its text into what JSON can hold. Raises as it does."""
    status = os.stat(path)
    content = kept_at(path + BUILT_SUFFIX, _built_key(path, status.st_size))
    if content is not None:
        return json.loads(content)
    name, key = f"{os.path.basename(path)}.json", json.dumps([path, status.st_size, status.st_mtime_ns])
    content = kept(name, key)
    if content is not None:
        return json.loads(content)
    value = _parsed(path, parse)
    keep(name, key, json.dumps(value).encode())
    return value


def build_document(path: str, parse: Callable[[str], Any], to: str | None = None) -> None:
    """Write the parsed form of a data file beside it, where `kept_document` looks first, or to another place."""
    content = json.dumps(_parsed(path, parse)).encode()
    keep_at(to or path + BUILT_SUFFIX, _built_key(path, os.stat(path).st_size), content)


def _parsed(path: str, parse: Callable[[str], Any]) -> Any:
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def _built_key(path: str, size: int) -> str:
    return json.dumps([os.path.basename(path), size])


def _head(key: str, content: bytes) -> bytes:
    return b"%s %08x %s" % (_MARK, zlib.crc32(content), key.encode("ascii", "backslashreplace").replace(b"\n", b" "))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _folder() -> str:
    import platformdirs  # here, so that whoever keeps nothing does not pay for it

    return platformdirs.user_cache_dir("logdoc", appauthor=False)
