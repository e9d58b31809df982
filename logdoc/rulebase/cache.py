"""Rules without the work of reading them: the set built for the wheel, or what an earlier run kept; else from YAML."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence

from logdoc.kept import keep, keep_at, kept, kept_at
from logdoc.rulebase.compiled import read_back, written
from logdoc.rulebase.index import build_index
from logdoc.rulebase.observations import observations
from logdoc.rulebase.rule_set import RuleSet

BUILT = "_rules.built"  # beside the package's modules; made when the wheel is built


def ready_rules(roots: Iterable[str | os.PathLike[str]]) -> RuleSet:
    """What `load_rules` gives, with its literal index, at a fraction of the time where the files are known already.

    Known are files of the same path, size and time of change, read by the same logdoc. Raises RulesError as
    `load_rules` does: a faulty set is never kept.
    """
    names = [os.fspath(root) for root in roots]
    shipped = kept_at(_built_path(), _built_key(names[0])) if len(names) == 1 else None
    if shipped is not None:
        return read_back(shipped, names, observations().rules)
    key = _key(names)
    name = f"rules-{zlib.crc32(os.pathsep.join(names).encode('utf-8', 'surrogateescape')):08x}"
    earlier = kept(name, key)
    if earlier is not None:
        return read_back(earlier, names, observations().rules)
    rule_set = _loaded(names)
    content = _content(rule_set, names)
    if content is not None:
        keep(name, key, content)
    return rule_set


def build(root: str | os.PathLike[str], path: str | None = None) -> None:
    """Write the built set of `root` (the wheel's rules) where `ready_rules` looks for it, or to `path`."""
    name = os.fspath(root)
    content = _content(_loaded([name]), [name])
    if content is not None:
        keep_at(path or _built_path(), _built_key(name), content)


def _loaded(roots: Sequence[str]) -> RuleSet:
    from pathlib import Path

    from logdoc.rulebase.load import load_rules

    rule_set = load_rules(map(Path, roots))
    index = build_index([*rule_set.active(), *observations().rules])
    return RuleSet(rule_set.rules, rule_set.digest, rule_set.overridden, index)


def _content(rule_set: RuleSet, names: list[str]) -> bytes | None:
    try:
        return written(rule_set, names)
    except ValueError:  # a pack with a word that the kept form cannot tell from its own
        return None


def _built_path() -> str:
    return os.path.join(os.path.dirname(__file__), BUILT)


def _built_key(root: str) -> str:
    """The built set counts as long as its files have their sizes: an installer gives them other times."""
    sizes = [[name.removeprefix(root), size] for name, size, _ in _files(root)]
    return repr(sizes)


def _key(roots: Sequence[str]) -> str:
    own = [status for folder in _own_folders() for status in _files(folder, (".py", ".yaml"))]
    files = [list(_files(root)) for root in roots]
    return repr((sys.version_info[:3], own, files))


def _own_folders() -> list[str]:
    """Whose change makes an old copy wrong: the loader, the literals, the types, the YAML dialect, the observations."""
    here = os.path.dirname(__file__)
    package = os.path.dirname(here)
    return [here, *(os.path.join(package, room) for room in ("types", "kept", "data"))]


def _files(root: str, suffixes: tuple[str, ...] = (".yaml",)) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of change (ns) of the files below a root, or of the root that is a file itself."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except NotADirectoryError:
        status = os.stat(root)
        yield root, status.st_size, status.st_mtime_ns
        return
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            yield from _files(entry.path, suffixes)
        elif entry.name.endswith(suffixes):
            status = entry.stat()
            yield entry.path, status.st_size, status.st_mtime_ns
