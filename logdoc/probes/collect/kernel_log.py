"""The kernel's own log, where this user may read it. Standard library only, Python 3.8."""

from __future__ import annotations

import re

from logdoc.probes.collect.machine import Machine, Sheet

READERS = (("dmesg",), ("journalctl", "-k", "-b", "-n", "20000", "--no-pager", "-q", "-o", "short-monotonic"))
STAMP = re.compile(r"^\[\s*(\d+\.\d+)\]")


def kernel_log(machine: Machine, sheet: Sheet) -> tuple[list[str], str] | None:
    """Lines and the command that gave them; None when nobody lets this user read them."""
    for argv in READERS:
        answer = machine.ask(sheet, list(argv), 3.0)
        if answer.state == "ok" and answer.code == 0 and answer.out.strip():
            return answer.out.splitlines(), " ".join(argv)
    return None


def age(machine: Machine, line: str) -> float | None:
    """Seconds since a kernel message; stamps count from boot."""
    stamp = STAMP.match(line)
    uptime = re.match(r"\d+\.\d+", machine.read("/proc/uptime") or "")
    if not stamp or not uptime:
        return None
    return max(0.0, float(uptime.group()) - float(stamp.group(1)))
