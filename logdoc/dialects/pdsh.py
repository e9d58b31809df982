"""pdsh, DeepSpeed's launcher of several nodes: the host's name before each line."""

from __future__ import annotations

from logdoc.dialects.base import LETTERS, Dialect
from logdoc.kept.patterns import lazily

# Any word with a colon may begin a message: only what a rank or NCCL says is surely the line of a host.
PDSH = Dialect(
    "pdsh",
    LETTERS,
    (
        lazily(
            r"(?P<host>[A-Za-z][\w.-]{0,62}): (?=\[(?:rank|default)\d+\]:|[\w.-]+:\d+:\d+ \[-?\d+\] [^\n]{0,120}NCCL )"
        ),
    ),
    outer=True,
)
