"""Where rules come from: the built-in ones, the user's own, installed packs, and `--rules DIR`."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable

from logdoc.kept import keep_value, kept_value, user_folder
from logdoc.types.errors import InputError

ENTRY_POINTS = "logdoc.rules"


def builtin_root() -> str:
    """The rules of this checkout, else those the wheel carries.

    The checkout comes first: an editable install would leave a stale copy in site-packages (conventions, Packaging).
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    above = os.path.dirname(package)
    checkout = os.path.join(above, "rules")
    if os.path.isfile(os.path.join(above, "pyproject.toml")) and os.path.isdir(checkout):
        return checkout
    return os.path.join(package, "_rules")


def user_root() -> str:
    """Where a user keeps own rules, e.g. ~/.config/logdoc/rules on Linux."""
    return os.path.join(user_folder("config"), "rules")


def rule_roots(extra: Iterable[str] = ()) -> list[str]:
    """Every root in order of precedence, the last wins. Raises InputError for a given path that is not there."""
    roots = [builtin_root(), *_installed_roots()]
    if os.path.isdir(user_root()):
        roots.append(user_root())
    for name in extra:
        if not os.path.exists(name):
            raise InputError(f"--rules {name}: no such file or directory")
        if os.path.isdir(name) and not os.access(name, os.R_OK | os.X_OK):
            raise InputError(f"--rules {name}: may not be read")  # whoever walks it would find it empty
        roots.append(name)
    return roots


def _installed_roots() -> list[str]:
    """Packages that announce themselves under the entry point group `logdoc.rules`.

    Asking every installed package takes longer than a small log: the answer is kept until a folder of packages changes.
    """
    key = repr([(folder, _changed(folder)) for folder in sys.path])
    name = f"packs-{zlib.crc32(os.pathsep.join(sys.path).encode('utf-8', 'surrogateescape')):08x}"
    names = kept_value(name, key)
    if names is None:
        names = _announced() if any(map(_may_announce, sys.path)) else []
        keep_value(name, key, names)
    return list(names)


def _changed(folder: str) -> int:
    """When a folder's entries changed last, in ns; 0 if it is not there."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def _may_announce(folder: str) -> bool:
    """Whether some package of this place may have such an entry point: the library that reads them loads slowly."""
    try:
        entries = [entry for entry in os.scandir(folder or ".") if entry.name.endswith((".dist-info", ".egg-info"))]
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    return any(_names_the_group(os.path.join(entry.path, "entry_points.txt")) for entry in entries)


def _names_the_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return ENTRY_POINTS.encode() in file.read()
    except OSError:
        return False


def _announced() -> list[str]:
    from importlib import metadata, resources

    roots = []
    for entry in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        root = str(resources.files(entry.value))
        if os.path.isdir(root):
            roots.append(root)
    return roots
