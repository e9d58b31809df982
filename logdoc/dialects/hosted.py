"""Prefixes of hosted notebooks and training services: Kaggle, SageMaker, Determined, torchx, milabench; the
template that a torchrun can be given; and what grep -n puts before a line."""

from __future__ import annotations

from logdoc.dialects.base import LETTERS, Dialect
from logdoc.kept.patterns import lazily

HOSTED = Dialect(
    "hosted",
    LETTERS | frozenset("[#0123456789"),
    (
        # Kaggle: seconds since the start, the line's number
        lazily(r"\d{1,7}\.\d{1,3}s[\t ]+\d{1,7}[\t ]"),
        # grep -n: the line's number, before a rank's prefix or what begins a message
        lazily(
            r"\d{1,7}[:-](?=\[(?:default|rank)\d+\]:|Traceback \(most recent call last\):"
            r"|(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception): )"
        ),
        # SageMaker: `[1,mpirank:3,algo-1]<stdout>:`
        lazily(r"\[\d+,mpirank:(?P<rank>\d+),(?P<host>[A-Za-z][\w.-]{0,252})\](?:<\w+>:?)? ?"),
        # torchrun --log-line-prefix-template '${hostname}:${rank}: ' (2.14), before the rank's own prefix or a logger's
        lazily(r"(?P<host>[A-Za-z][\w.-]{0,252}):(?P<rank>\d{1,6}): (?=\[rank(?P=rank)\]|\[[FEWIV]\d{4} )"),
        # NeMo-Run and other users of torchx: role and replica, before torchrun's own prefix
        lazily(r"(?:# )?[A-Za-z][\w.-]{1,80}/\d{1,4} (?=\[default\d|\[rank\d|\[\d)"),
        # Determined: the container's id, then who is talking in it: `fa88a9df [rank=1] || message`
        lazily(r"[0-9a-f]{8} \[rank=(?P<rank>\d+)\] \|\| ?"),
        lazily(r"\[[0-9a-f]{8}\] (?:\[rank=(?P<rank>\d+)\] )?"),
        # milabench: the benchmark, the node or device and the tag of a run, then the stream
        lazily(r"[a-z][\w.-]{1,160} \[(?:stdout|stderr)\](?: |$)"),
    ),
    outer=True,
)
