"""Prefixes of Ray actors and vLLM workers: `(RayTrainWorker pid=1978, ip=10.0.0.8) `, `(EngineCore_0 pid=58) `."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

RAY = Dialect(
    "ray",
    frozenset("("),
    (
        lazily(
            r"\((?P<component>[\w.<>:-]+?)(?:_(?:TP|DP|PP|EP)?\d+)* (?:rank=(?P<rank>\d+) )?pid=(?P<pid>\d+)"
            r"(?:, ip=(?P<host>[\w.:-]+))?\) ?"
        ),
        lazily(r"\(pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:-]+))?\) ?"),
        lazily(r"\(pid=gcs_server\)|\(raylet(?:, ip=(?P<host>[\w.:-]+))?\) ?"),
    ),
    outer=True,
)
