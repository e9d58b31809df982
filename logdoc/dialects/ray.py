"""Prefixes of Ray actors and vLLM workers: `(RayTrainWorker pid=1978, ip=10.0.0.8) `, `(EngineCore_0 pid=58) `; and of
the logs of Ray's own daemons and driver, of which an INFO line keeps its own: nothing in one has gone wrong."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

RAY = Dialect(
    "ray",
    frozenset("("),
    (
        lazily(
            r"\((?P<component>[\w.<>:-]{1,200}?)(?:_(?:TP|DP|PP|EP)?\d{1,9}){0,8} "
            r"(?:rank=(?P<rank>\d+) )?pid=(?P<pid>\d+)"
            r"(?:, ip=(?P<host>[\w.:-]+))?\) ?"
        ),
        lazily(r"\(pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:-]+))?\) ?"),
        lazily(r"\(pid=gcs_server\)|\(raylet(?:, ip=(?P<host>[\w.:-]+))?\) ?"),
    ),
    outer=True,
)
_STAMP = r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})"
RAY_LOG = Dialect(
    "ray-log",
    frozenset("[0123456789"),
    (
        # its C++ half, with the process and the thread
        lazily(
            rf"\[{_STAMP} (?P<level>[WEF]) (?P<pid>\d+) (?P<thread>\d+)\] (?:\((?P<component>[\w.]+)\) )?"
            r"[\w./]+\.(?:cc|h):\d+: ?"
        ),
        lazily(rf"{_STAMP}\t(?P<level>WARNING|ERROR|CRITICAL) (?P<component>[\w.]+:\d+) -- "),
    ),
)
