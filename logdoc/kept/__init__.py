"""Files that only save time between runs: bound to a key, written whole or not at all, never trusted, never needed."""

from __future__ import annotations

import marshal
import os
import sys
import zlib

TYPE_CHECKING = False  # as `typing` has it, which takes long to import
if TYPE_CHECKING:
    from typing import Any

MOST_FILES = 256  # in the folder; beyond, those go that were read longest ago

_MARK = b"logdoc-kept-3"
_FORMAT = 4  # of marshal, as every Python from 3.4 on reads it


def kept(name: str, key: str) -> memoryview | None:
    """What an earlier run of this user kept under `name`, if it is undamaged and was made for this `key`; else None."""
    return _content(os.path.join(_folder(), name), key, own=True)


def kept_at(path: str, key: str) -> memoryview | None:
    """The same, of a file anywhere, whoever wrote it: one that came with the package."""
    return _content(path, key, own=False)


def _content(path: str, key: str, own: bool) -> memoryview | None:
    try:
        with open(path, "rb") as file:
            if own and not _is_ours(os.fstat(file.fileno()).st_uid):
                return None
            data = file.read()  # in one piece: after a readline, the rest of a megabyte takes twenty times as long
    except OSError:
        return None
    end = data.find(b"\n")
    content = memoryview(data)[end + 1 :]
    return content if data[: max(end, 0)] == _head(key, content) else None


def _is_ours(owner: int) -> bool:
    """What is kept is as much this program as its .pyc files are: never taken from somebody else."""
    return os.name == "nt" or owner == os.geteuid()


def keep(name: str, key: str, content: bytes) -> None:
    """Keep `content` for later runs. A folder that cannot be written (read-only home, full disk) is no error."""
    folder = _folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _make_room(folder)
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


def kept_value(name: str, key: str) -> Any:
    """A value that `keep_value` kept, else None."""
    return _value(kept(name, key))


def kept_value_at(path: str, key: str) -> Any:
    """The same, of a file anywhere, whoever wrote it."""
    return _value(kept_at(path, key))


def keep_value(name: str, key: str, value: Any) -> None:
    """As `keep`, of texts, numbers, lists and mappings. Raises ValueError for anything else."""
    keep(name, key, marshal.dumps(value, _FORMAT))


def keep_value_at(path: str, key: str, value: Any) -> None:
    """The same, for a file anywhere."""
    keep_at(path, key, marshal.dumps(value, _FORMAT))


def user_folder(kind: str) -> str:
    """This user's folder for logdoc of a `kind`, cache or config, e.g. ~/.cache/logdoc; it may not be there."""
    if sys.platform == "linux":  # by the XDG rules, as platformdirs has it; its import takes longer than all the rest
        named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        return os.path.join(named if os.path.isabs(named) else os.path.expanduser(f"~/.{kind}"), "logdoc")
    import platformdirs

    folder = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_config_dir
    return folder("logdoc", appauthor=False if kind == "cache" else None)


def _value(content: memoryview | None) -> Any:
    """What the marshalled `content` holds; None for one that is damaged in a way that its checksum does not show."""
    if content is None:
        return None
    try:
        return marshal.loads(content)
    except (ValueError, EOFError, TypeError):
        return None


def _head(key: str, content: bytes | memoryview) -> bytes:
    return b"%s %08x %s" % (_MARK, zlib.crc32(content), key.encode("ascii", "backslashreplace").replace(b"\n", b" "))


def _make_room(folder: str) -> None:
    """Remove what was read longest ago, where there is too much: rules and literals change, and each has its own."""
    entries = list(os.scandir(folder))
    if len(entries) < MOST_FILES:
        return
    last_read = {entry.path: max(entry.stat().st_atime, entry.stat().st_mtime) for entry in entries if entry.is_file()}
    for path in sorted(last_read, key=lambda path: last_read[path])[: len(entries) - MOST_FILES // 2]:
        _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _folder() -> str:
    return user_folder("cache")
