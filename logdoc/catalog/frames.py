"""Whose code a frame of a Python stack is, by its file's path alone; reads no stack and no file."""

from __future__ import annotations

import sys
from functools import cache, lru_cache

from logdoc.kept.data import document
from logdoc.kept.patterns import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Owner = Literal["user", "package", "torch", "python", "none"]

# Generated code, and the C++ frames of TORCH_FR_CPP_STACK.
_NO_FILE = lazily(r"^$|^<|^\?\?$|\.(?:c|cc|cpp|cu|h|hpp|so(?:\.\d+)*)$")
_PACKAGE = lazily(r"(?:^|/)(?:site|dist)-packages/([^/.]*)")
# also where it was built from its source tree
_TORCH = lazily(r"(?:^|/)torch/(?:_\w+|distributed|nn|autograd|utils|optim|cuda|csrc|multiprocessing|fx|amp)(?:/|\.)")
# lib64 is Red Hat's, python3.13t the one without a GIL; the last two are Windows'
_PYTHON = lazily(r"(?:^|/)lib(?:64)?/(?:python|pypy)3(?:\.\d+)?t?/|/python3\d+\.zip/|^[A-Za-z]:/.*/(?i:lib)/([^/.]+)")


@lru_cache(maxsize=4096)
def owner_of(path: str) -> Owner:
    """Whose the code in a file is: the user's, an installed package's, torch's, Python's own, or of no Python file.

    A path that is not absolute, as py-spy shortens it, is known by its first part: packages of stack_frames.yaml and
    the standard library's modules.
    """
    file = path.replace("\\", "/").removeprefix("./")
    if _NO_FILE.search(file):
        return "none"
    if found := _PACKAGE.search(file):
        return "torch" if found[1] == "torch" else "package"
    if _TORCH.search(file):
        return "torch"
    if (found := _PYTHON.search(file)) and (found[1] is None or found[1] in sys.stdlib_module_names):
        return "python"
    return "user" if file.startswith("/") or ":" in file[:3] else _owner_of_module(file)


def is_user_code(path: str) -> bool:
    """Neither native, nor generated, nor of an installed package, nor of the standard library."""
    return owner_of(path) == "user"


def _owner_of_module(file: str) -> Owner:
    top = file.split("/", 1)[0].removesuffix(".py")
    if top in _packages():
        return "torch" if top == "torch" else "package"
    return "python" if top in sys.stdlib_module_names else "user"


@cache
def _packages() -> frozenset[str]:
    return frozenset(document("stack_frames.yaml")["packages"])
