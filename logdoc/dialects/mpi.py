"""Prefixes of MPI launchers (Open MPI --tag-output, --timestamp-output; Intel MPI -l; Horovod uses the first)."""

from __future__ import annotations

import re

from logdoc.dialects.base import Dialect

MPI = Dialect(
    "mpi",
    frozenset("[MTWFS"),
    (
        re.compile(r"(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[\d+,(?P<rank>\d+)\]<\w+>: ?"),
        # Horovod's gloo launcher: `Thu Aug 29 16:41:02 2019[0]<stderr>:`
        re.compile(r"(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[(?P<rank>\d+)\]<\w+>: ?"),
        re.compile(r"\[\d+,(?P<rank>\d+)\](?:\[[^\]]*\])?: ?"),
    ),
    outer=True,
)
