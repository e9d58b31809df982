"""Runs the collector under the job's Python within a budget; judges nothing, never hangs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from logdoc.probes.collect.commands import Answer, run_command
from logdoc.probes.collector import script_text
from logdoc.probes.sheets import FactSheet, printed_sheet
from logdoc.probes.specs import passive_ids, spec
from logdoc.types.errors import InputError

Runner = Callable[[Sequence[str], float, str], Answer]


def job_python(explicit: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """The interpreter the job would use: as told, else the active virtual or conda environment's, else PATH's."""
    env = os.environ if environ is None else environ
    if explicit:
        return explicit
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        candidate = Path(env.get(variable, "")) / "bin" / "python"
        if env.get(variable) and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("python3", path=env.get("PATH")) or shutil.which("python", path=env.get("PATH"))
    return found or sys.executable


def run_collector(
    only: Sequence[str] = (),
    python: str | None = None,
    budget: float = 5.0,
    runner: Runner = run_command,
) -> FactSheet:
    """Facts of this host from the probes named (all passive ones by default), within `budget` seconds.

    The collector runs in a process group of its own and ends itself a little earlier; if it does not, it is stopped, or
    left behind when the kernel holds it: that too is within the budget. What went wrong is in `errors`; raises
    InputError only for an unknown probe.
    """
    unknown = [id for id in only if id not in passive_ids()]
    if unknown:
        known = spec(unknown[0])
        reason = "runs only as an active probe" if known else "is not a probe; there are: " + ", ".join(passive_ids())
        raise InputError(f"{unknown[0]} {reason}")
    interpreter = job_python(python)
    limit = budget - min(0.45, 0.15 * budget)
    own = limit - min(0.3, 0.1 * budget)
    argv = [interpreter, "-", "--budget", f"{own:.2f}", "--since", f"{time.time():.2f}", "--only", ",".join(only)]
    answer = runner(argv, limit, script_text())
    try:
        sheet = printed_sheet(answer.out, interpreter)
    except InputError:
        sheet = None
    if sheet is not None:
        return sheet
    old = "; the collector needs Python 3.8 or newer" if answer.state == "ok" else ""
    fate = answer.fate(f"the collector under {interpreter}", interpreter)
    return FactSheet.unanswered(only or passive_ids(), answer, fate + old, interpreter)
