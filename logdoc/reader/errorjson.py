"""torchrun's error.json (@record, torch elastic's error_handler) as the text a terminal would have shown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
        text = stack if isinstance(stack, str) else message.get("message")
    else:
        text = message
    return text.encode("utf-8", "replace") if isinstance(text, str) else data
