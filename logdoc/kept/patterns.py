"""Compiled patterns, kept between runs: compiling takes longer than the searches of a small log, as does the import of
`regex`'s compiler. A pattern is compiled, or fetched, when it is first used."""

from __future__ import annotations

import copyreg
import os
import re
import sys
from functools import cache
from importlib.machinery import PathFinder

from logdoc.kept import keep_value, kept_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["guarded", "keep_patterns", "lazily"]

_KEPT = "patterns"
_MOST = 5000  # kept patterns; there are fewer in all rules, so beyond it most are of rules that are gone
_new: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # what this run compiled


def _lazily(pattern: str | bytes, flags: int = 0) -> Lazy:
    """As `re.compile`; a fault in the pattern shows when it is used, so a test uses them all."""
    return Lazy(pattern, int(flags))


if TYPE_CHECKING:
    from re import compile as lazily
else:
    lazily = _lazily


class Lazy:
    """Stands for a pattern of `re` until its first use, then hands out what the compiled one has."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = _of_re(self.pattern, self.flags)
        for member in ("match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "groupindex"):
            self.__dict__[member] = getattr(compiled, member)
        return getattr(compiled, name)


@cache
def guarded(pattern: str) -> Any:
    """A rule's pattern, compiled by `regex`, whose searches take a time limit; `^` and `$` are line ends."""
    engine, kept = _regex_engine(), _earlier().get((pattern,))
    if engine is not None and kept is not None:
        return engine.compile(*kept)
    import regex

    made = regex.compile(pattern, regex.MULTILINE)
    reduced: Any = copyreg.dispatch_table[regex.Pattern](made)  # as pickle does it
    if engine is not None and reduced[0] is engine.compile:
        _new[pattern,] = reduced[1]
    return made


def keep_patterns() -> None:
    """Keep what this run compiled for the next."""
    if _new:
        held = _earlier() if len(_earlier()) + len(_new) <= _MOST else {}
        keep_value(_KEPT, _version(), {**held, **_new})


def _of_re(pattern: str | bytes, flags: int) -> Any:
    kept = _earlier().get((pattern, flags))
    try:
        import _sre  # type: ignore[import-not-found]

        arguments = kept or _re_arguments(pattern, flags)
        made = _sre.compile(*arguments)
    except (AttributeError, ImportError, TypeError):  # another Python does it otherwise
        return re.compile(pattern, flags)
    if kept is None:
        _new[pattern, flags] = arguments
    return made


def _re_arguments(pattern: str | bytes, flags: int) -> tuple[Any, ...]:
    """What `re.compile` hands to the engine at last."""
    from re import _compiler, _parser

    tree = _parser.parse(pattern, flags)
    names: list[str | None] = [None] * tree.state.groups
    for name, number in tree.state.groupdict.items():
        names[number] = name
    code = [int(word) for word in _compiler._code(tree, flags)]
    return pattern, flags | tree.state.flags, code, tree.state.groups - 1, dict(tree.state.groupdict), tuple(names)


@cache
def _earlier() -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What earlier runs compiled with these very engines."""
    return kept_value(_KEPT, _version()) or {}


@cache
def _version() -> str:
    path = getattr(_regex_engine(), "__file__", None)
    status = os.stat(path) if path else None
    return repr((sys.version, path, status and (status.st_size, status.st_mtime_ns)))


@cache
def _regex_engine() -> Any:
    """`regex._regex` without its package, which would bring the compiler; None where it is built in another way."""
    name = "regex._regex"
    if name not in sys.modules:
        package = PathFinder.find_spec("regex")
        spec = PathFinder.find_spec(name, package.submodule_search_locations) if package is not None else None
        module = spec.loader.create_module(spec) if spec is not None and spec.loader is not None else None
        if spec is None or spec.loader is None or module is None:
            return None
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]
