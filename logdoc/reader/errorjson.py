"""torchrun's error.json (@record, torch elastic's error_handler) as the text a terminal would have shown."""

from __future__ import annotations

from logdoc.kept.patterns import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EXCEPTION = lazily(r"(?m)^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::|$)")


def as_text(data: bytes) -> bytes:
    """The traceback and message of an error.json; the bytes themselves where they are no such thing.

    Shapes: {"message": {"message": "KeyError: …", "extraInfo": {"py_callstack": "…", "timestamp": "…"}}} and
    {"message": "…", "timestamp": …} (torch 1.8 to 2.13, elastic/multiprocessing/errors).
    """
    import json

    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return data
    message = value.get("message") if isinstance(value, dict) else None
    if isinstance(message, dict):
        extra = message.get("extraInfo")
        stack = extra.get("py_callstack") if isinstance(extra, dict) else None
        text = stack if isinstance(stack, str) else _as_exception(message.get("message"))
    else:
        text = _as_exception(message)
    return text.encode("utf-8", "replace") if isinstance(text, str) else data


def _as_exception(message: Any) -> Any:
    """A message that names no exception is still what a worker failed with: the file is written for nothing else."""
    is_bare = isinstance(message, str) and message.strip() and _EXCEPTION.search(message) is None
    return f"Exception: {message.strip()}" if is_bare else message
