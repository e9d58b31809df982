"""Finds the user's own code in the stack of a collective; knows file paths only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from logdoc.flight_recorder.model import Frame

_TORCH = re.compile(r"(^|/)torch/(_\w+|distributed|nn|autograd|utils|optim|cuda|csrc|multiprocessing|fx|amp)(/|\.)")
_PACKAGE = re.compile(r"(^|/)(site|dist)-packages/")
_STDLIB = re.compile(r"(^|/)lib/python3(\.\d+)?/(?!(site|dist)-packages/)")
# Generated code, and the C++ frames of TORCH_FR_CPP_STACK.
_NO_FILE = re.compile(r"^$|^<|^\?\?$|\.(c|cc|cpp|cu|h|hpp|so(\.\d+)*)$")


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of user code; if a framework made the call on its own, that framework's innermost frame.

    torch records the innermost frame first. None: no frame outside torch, or no stack at all.
    """
    outside = [frame for frame in frames if not any(path.search(frame.file) for path in (_NO_FILE, _TORCH, _STDLIB))]
    own = (frame for frame in outside if not _PACKAGE.search(frame.file))
    return next(own, outside[0] if outside else None)
