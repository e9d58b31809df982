"""The kernel's voice: dmesg (seconds or -T), /var/log/messages, journalctl in its short and ISO forms."""

from __future__ import annotations

import re

from logdoc.dialects.base import Dialect

_UPTIME = r"(?:<\d+>)?\[ *\d+\.\d+\] ?"

KERNEL = Dialect(
    "kernel",
    frozenset("[<JFMASOND0123456789"),
    (
        re.compile(r"(?:<\d+>)?\[ *(?P<time>\d+\.\d{6})\](?:\[ *[TC]\d+\])? "),
        re.compile(r"\[ *\+\d+\.\d{6}\] "),  # dmesg -d: only the time since the line before
        re.compile(r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4})\] ?"),
        re.compile(rf"(?P<time>[A-Z][a-z]{{2}} +\d+ \d\d:\d\d:\d\d) (?P<host>[\w.-]+) kernel: (?:{_UPTIME})?"),
        re.compile(
            r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?[+-]\d\d:?\d\d) (?P<host>[\w.-]+) kernel: "
            rf"(?:{_UPTIME})?"
        ),
        # other daemons of the same journal (kubelet, dockerd, nvidia-fabricmanager): keep their name in the body
        re.compile(
            r"(?P<time>[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d) (?P<host>[\w.-]+) "
            r"(?=[\w.@/-]+(?:\[\d+\])?: )"
        ),
    ),
)
