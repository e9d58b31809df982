"""What the user typed → named byte streams: files, folders, patterns, pipes, URLs; unpacked, bounded, never parsed."""

from __future__ import annotations

from logdoc.sources.discover import STDIN_NAME, Discovered, discover, source_from_bytes
from logdoc.sources.hints import PathHints, path_hints
from logdoc.sources.limits import Limits
from logdoc.sources.stream import Source

__all__ = ["STDIN_NAME", "Discovered", "Limits", "PathHints", "Source", "discover", "path_hints", "source_from_bytes"]
