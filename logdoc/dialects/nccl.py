"""NCCL's own lines, every prefix from 2.3 to 2.30 (nccl src/debug.cc; shared facts: catalog/nccl.md, line prefixes)."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

# `[15]host:…` is Horovod's rank in front of it; before 2.3 the word NCCL was missing.
# The body keeps `file:line (func) NCCL LEVEL message`: rules tell a failure by its source file, e.g. nvls.cc.
_LINE = lazily(
    r"(?:\[(?P<time>\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d[^\]]*)\] ?)?"
    r"(?:\[(?P<rank>\d+)\])?(?P<host>[\w.-]+):(?P<pid>\d+):(?P<thread>\d+) (?:\[(?P<device>-?\d+)\] )?"
    r"(?=(?:\d+\.\d+ )?(?:[^\s:]+:\d+ )?(?:\([^)]*\) )?(?:NCCL )?(?P<level>WARN|INFO|TRACE|CALL|ABORT) )"
)

NCCL = Dialect("nccl", frozenset(), (_LINE,))
