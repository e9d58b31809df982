"""Finds the user's own code in the stack of a collective; knows file paths only."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.catalog.frames import owner_of
from logdoc.flight_recorder.model import Frame


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of user code; if a framework made the call on its own, that framework's innermost frame.

    torch records the innermost frame first. None: no frame outside torch, or no stack at all.
    """
    innermost: dict[str, Frame] = {}
    for frame in frames:
        innermost.setdefault(owner_of(frame.file), frame)
    return innermost.get("user") or innermost.get("package")
