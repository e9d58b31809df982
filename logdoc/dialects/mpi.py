"""Prefixes of MPI launchers (Open MPI --tag-output, --timestamp-output; Intel MPI -l; Horovod uses the first), and of
the signal handlers of Open MPI and UCX."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

MPI = Dialect(
    "mpi",
    frozenset("[MTWFS"),
    (
        lazily(r"(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[\d+,(?P<rank>\d+)\]<\w+>: ?"),
        # Horovod's gloo launcher: `Thu Aug 29 16:41:02 2019[0]<stderr>:`
        lazily(r"(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[(?P<rank>\d+)\]<\w+>: ?"),
        lazily(r"\[\d+,(?P<rank>\d+)\](?:\[[^\]]*\])?: ?"),
        # `[node-b:04242] ` before each line of Open MPI's report, `[node-b:4242 :0:4242] ` before the first of UCX's
        lazily(
            r"\[(?P<host>[A-Za-z][\w.-]{0,252}):(?P<pid>\d{1,9})\] "
            r"(?=\*\*\* (?:Process received signal|End of error message) |Signal(?: code)?: |Failing at address: "
            r"|\[ ?\d+\] )"
        ),
        lazily(r"\[(?P<host>[A-Za-z][\w.-]{0,252}):(?P<pid>\d{1,9}) *:\d+:\d+\] (?=Caught signal \d)"),
    ),
    outer=True,
)
