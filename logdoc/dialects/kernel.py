"""The kernel's voice: dmesg (seconds or -T), /var/log/messages, journalctl in its short and ISO forms."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

_UPTIME = r"(?:<\d+>)?\[ *\d+\.\d+\] ?"

KERNEL = Dialect(
    "kernel",
    frozenset("[<JFMASONDTW0123456789"),
    (
        lazily(r"(?:<\d+>)?\[ *(?P<time>\d+\.\d{6})\](?:\[ *[TC]\d+\])? "),
        lazily(r"\[ *\+\d+\.\d{6}\] "),  # dmesg -d: only the time since the line before
        lazily(r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4})\] ?"),
        lazily(rf"(?P<time>[A-Z][a-z]{{2}} +\d+ \d\d:\d\d:\d\d) (?P<host>[\w.-]+) kernel: (?:{_UPTIME})?"),
        lazily(
            r"(?:[A-Z][a-z]{2} )?(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
            rf"(?: [A-Z]{{3,4}})? (?P<host>[\w.-]+) kernel: (?:{_UPTIME})?"
        ),
        # other daemons of the same journal (kubelet, dockerd, nvidia-fabricmanager): keep their name in the body
        lazily(
            r"(?P<time>[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d) (?P<host>[\w.-]+) "
            r"(?=[\w.@/-]+(?:\[\d+\])?: )"
        ),
    ),
)
