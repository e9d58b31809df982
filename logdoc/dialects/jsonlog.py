"""JSON lines of structured loggers and container collectors: the message is a field, the rest tells who and when."""

from __future__ import annotations

from logdoc.dialects.base import Dialect, Peeled

_MESSAGE_KEYS = ("message", "msg", "log", "MESSAGE", "textPayload", "event", "body", "text")
_FIELD_KEYS = {
    "time": ("time", "timestamp", "ts", "asctime", "@timestamp", "datetime"),
    "level": ("level", "levelname", "severity", "lvl", "log_level"),
    "rank": ("rank", "global_rank", "RANK"),
    "local_rank": ("local_rank", "localRank", "LOCAL_RANK"),
    "host": ("host", "hostname", "node", "nodename", "node_name", "_HOSTNAME"),
    "pid": ("pid", "process", "processId", "_PID"),
    "component": ("logger", "name", "module", "component"),
}
# What structured loggers keep beside the message, and where the failure often is.
_MORE_KEYS = (
    "error",
    "err",
    "exception",
    "exc_info",
    "exc_text",
    "stack",
    "stack_trace",
    "stacktrace",
    "traceback",
    "reason",
)
_LONGEST = 1 << 20


def _read(text: str) -> Peeled | None:
    if not text.startswith("{") or len(text) > _LONGEST:
        return None
    end = text.rstrip()
    if not end.endswith("}"):
        return None
    import json  # here: most logs have no such line

    try:
        value = json.loads(end)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    message = next((value[key] for key in _MESSAGE_KEYS if isinstance(value.get(key), str)), None)
    if message is None:
        return None
    fields: dict[str, str] = {}
    for name, keys in _FIELD_KEYS.items():
        found = next((value[key] for key in keys if isinstance(value.get(key), str | int | float)), None)
        if found is not None and not isinstance(found, bool):
            fields[name] = str(found)
    beside = [value[key] for key in _MORE_KEYS if isinstance(value.get(key), str)]
    more = [text for text in beside if text.strip() and text not in message]
    return Peeled(fields, "\n".join([message.rstrip("\n"), *more]))


JSONLOG = Dialect("json", frozenset("{"), outer=True, extract=_read)
