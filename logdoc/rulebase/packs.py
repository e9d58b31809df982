"""Where rules come from: the built-in ones, the user's own, installed packs, and `--rules DIR`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata, resources
from pathlib import Path

import platformdirs

from logdoc.types.errors import InputError

ENTRY_POINTS = "logdoc.rules"


def builtin_root() -> Path:
    """The rules of this checkout, else those the wheel carries.

    The checkout comes first: an editable install would leave a stale copy in site-packages (conventions, Packaging).
    """
    checkout = Path(__file__).resolve().parents[2] / "rules"
    if (checkout.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return Path(str(resources.files("logdoc"))) / "_rules"


def user_root() -> Path:
    """Where a user keeps own rules, e.g. ~/.config/logdoc/rules on Linux."""
    return Path(platformdirs.user_config_dir("logdoc")) / "rules"


def rule_roots(extra: Iterable[str] = ()) -> list[Path]:
    """Every root in order of precedence, the last wins. Raises InputError for a given path that is not there."""
    roots = [builtin_root(), *_installed_roots()]
    if user_root().is_dir():
        roots.append(user_root())
    for name in extra:
        path = Path(name)
        if not path.exists():
            raise InputError(f"--rules {name}: no such file or directory")
        roots.append(path)
    return roots


def _installed_roots() -> list[Path]:
    """Packages that announce themselves under the entry point group `logdoc.rules`."""
    roots = []
    for entry in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        root = Path(str(resources.files(entry.value)))
        if root.is_dir():
            roots.append(root)
    return roots
