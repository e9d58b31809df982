"""Runs the sections side by side, each in an expendable child, and prints the facts as JSON.

Standard library only, Python 3.8. The parent never blocks in the kernel: a section that does is left behind and named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from logdoc.probes.collect.gpu import gpu_list, gpu_memory, gpu_processes
from logdoc.probes.collect.gpu_health import fabric_services, gpu_health
from logdoc.probes.collect.gpu_reader import NVML_INIT
from logdoc.probes.collect.host import disk, host_memory, limits, shm
from logdoc.probes.collect.libraries import libraries
from logdoc.probes.collect.machine import Machine, Sheet
from logdoc.probes.collect.network import network
from logdoc.probes.collect.pieces import json_line, printed
from logdoc.probes.collect.rdma import rdma
from logdoc.probes.collect.surroundings import clock, container, environment, scheduler
from logdoc.probes.collect.topology import topology
from logdoc.probes.collect.torch_build import torch_build

SCHEMA = "logdoc.facts/v1"
DEFAULT_BUDGET = 20.0
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
# Every section and the seconds it may take at most; the whole run's budget may be less.
SECTIONS: dict[str, tuple[Callable[[Machine, Sheet], None], float]] = {
    "torch-build": (torch_build, 20.0),
    "gpu-list": (gpu_list, 15.0),
    "gpu-memory": (gpu_memory, 15.0),
    "gpu-processes": (gpu_processes, 15.0),
    "gpu-health": (gpu_health, 15.0),
    "fabric": (fabric_services, 15.0),
    "topology": (topology, 15.0),
    "rdma": (rdma, 5.0),
    "network": (network, 8.0),
    "shm": (shm, 5.0),
    "limits": (limits, 5.0),
    "disk": (disk, 5.0),
    "host-memory": (host_memory, 8.0),
    "container": (container, 5.0),
    "libraries": (libraries, 8.0),
    "scheduler": (scheduler, 8.0),
    "clock": (clock, 2.0),
    "env": (environment, 2.0),
}


class Worker:
    """A child that runs one section and writes its entries, a line of JSON each, into a pipe."""

    def __init__(self, probe: str, pid: int, pipe: int, deadline: float) -> None:
        self.probe, self.pid, self.pipe, self.deadline = probe, pid, pipe, deadline
        self.began = time.monotonic()
        self.buffer = b""
        self.ended = False
        self.late = False
        self.last_words = ""


def start(probe: str, deadline: float) -> Worker:
    section, seconds = SECTIONS[probe]
    deadline = min(deadline, time.monotonic() + seconds)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        run_section(probe, section, write_end, deadline)
    os.close(write_end)
    return Worker(probe, pid, read_end, deadline)


def run_section(probe: str, section: Callable[[Machine, Sheet], None], pipe: int, deadline: float) -> None:
    """The child's whole life. Its own session keeps whatever it starts in reach of one signal."""
    try:
        os.setsid()
        for name in STOP_SIGNALS:
            signal.signal(name, signal.SIG_DFL)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            # Libraries that chat while they are imported must not spoil the output.
            os.dup2(silence, stream)
        with os.fdopen(pipe, "wb", buffering=0) as out:
            sheet = Sheet(probe, lambda entry: write_all(out, json_line(entry) + "\n"))
            examine(section, Machine(deadline=deadline), sheet)
            write_all(out, json_line({"end": probe}) + "\n")
    finally:
        os._exit(0)


def write_all(out: Any, text: str) -> None:
    data = text.encode("ascii")
    while data:
        data = data[out.write(data) :]


def examine(section: Callable[[Machine, Sheet], None], machine: Machine, sheet: Sheet) -> None:
    """Run a section; whatever goes wrong in it is an entry of its sheet, not the end of the run."""
    try:
        section(machine, sheet)
    except Exception as error:
        sheet.fail(f"{type(error).__name__}: {error}")


def gather(workers: Sequence[Worker], facts: list[dict[str, Any]], errors: list[dict[str, Any]]) -> None:
    """Read every worker to its end or its deadline, then end what is left."""
    open_ones = {worker.pipe: worker for worker in workers}
    while open_ones:
        now = time.monotonic()
        for worker in [worker for worker in open_ones.values() if worker.deadline <= now]:
            worker.late = True
            del open_ones[worker.pipe]
        wait = min((worker.deadline - now for worker in open_ones.values()), default=0.0)
        ready = select.select(list(open_ones), [], [], max(0.0, wait))[0] if open_ones else []
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            worker = open_ones[pipe]
            if data:
                take(worker, data, facts, errors)
            else:
                del open_ones[pipe]
    for worker in workers:
        os.close(worker.pipe)
        kill(worker.pid)
    limit = time.monotonic() + 0.25
    for worker in workers:
        close(worker, limit, facts, errors)


def take(worker: Worker, data: bytes, facts: list[dict[str, Any]], errors: list[dict[str, Any]]) -> None:
    lines = (worker.buffer + data).split(b"\n")
    worker.buffer = lines.pop()
    for line in lines:
        entry = json.loads(line.decode("ascii"))
        if "fact" in entry:
            facts.append(entry["fact"])
        elif "error" in entry:
            errors.append(entry["error"])
        elif "doing" in entry:
            worker.last_words = entry["doing"]
        else:
            worker.ended = True


def close(worker: Worker, limit: float, facts: list[dict[str, Any]], errors: list[dict[str, Any]]) -> None:
    """Note how a worker ended that was killed. One that does not die until `limit` is left to the kernel and named."""
    status = reap(worker.pid, limit)
    if worker.ended:
        return
    sheet = Sheet(worker.probe)
    last = f" (last step: {worker.last_words})" if worker.last_words else ""
    if status is None:
        sheet.fail(f"blocked in the kernel and does not react to SIGKILL; left behind{last}", "abandoned")
    elif worker.late:
        sheet.fail(f"not finished in time, stopped{last}", "timeout")
    elif os.WIFSIGNALED(status):
        sheet.fail(f"died of signal {os.WTERMSIG(status)}{last}")
    else:
        sheet.fail(f"ended early{last}")
    if worker.late and worker.last_words == NVML_INIT:
        # NVML answers within the process or not at all: only from outside can it be told that the driver hangs.
        sheet.add("gpu.unanswered_seconds", round(worker.deadline - worker.began, 1), NVML_INIT, "s")
    facts.extend(sheet.facts)
    errors.extend(sheet.errors)


def kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        return


def reap(pid: int, limit: float) -> int | None:
    """The exit status of a child, waiting until `limit`; None while it lives on."""
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except OSError:
            return 0
        if done:
            return status
        if time.monotonic() >= limit:
            return None
        time.sleep(0.005)


def collect(only: Sequence[str], budget: float) -> dict[str, Any]:
    """All facts of the sections asked for, within `budget` seconds."""
    deadline = time.monotonic() + budget
    facts: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    began = time.time()
    if hasattr(os, "fork"):
        workers: list[Worker] = []

        def stop(_signal: int, _frame: Any) -> None:
            for worker in workers:
                kill(worker.pid)
            os._exit(130)

        for name in STOP_SIGNALS:
            signal.signal(name, stop)
        for probe in only:
            workers.append(start(probe, deadline))
        gather(workers, facts, errors)
    else:
        # No fork, no expendable child (Windows): one section after the other, none started after the deadline.
        for probe in only:
            sheet = Sheet(probe)
            if time.monotonic() < deadline:
                examine(SECTIONS[probe][0], Machine(deadline=deadline), sheet)
            else:
                sheet.fail("no time left", "timeout")
            facts.extend(sheet.facts)
            errors.extend(sheet.errors)
    facts.extend(joined(facts))
    order = {probe: place for place, probe in enumerate(SECTIONS)}
    # A fact stated twice by a section (torch's files, then its import) counts as last stated.
    last = {(fact["probe"], fact["id"]): fact for fact in facts}
    return {
        "schema": SCHEMA,
        "host": Machine().hostname(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "python": platform.python_version(),
        "executable": sys.executable,
        "facts": sorted(last.values(), key=lambda fact: (order[fact["probe"]], fact["id"])),
        "errors": sorted(errors, key=lambda error: order[error["probe"]]),
    }


def joined(facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fact that needs two sections: whether this torch carries code for these GPUs."""
    known = {fact["id"]: fact["value"] for fact in facts}
    sheet = Sheet("torch-build")
    arches, cards = known.get("torch.arch_list"), known.get("gpu.sm")
    if arches and cards:
        fits = all(covered(str(card), str(arches).split(",")) for card in str(cards).split(", "))
        sheet.add("torch.arch_covers_gpu", fits, "torch.arch_list against gpu.sm")
    return sheet.facts


def covered(capability: str, arches: Sequence[str]) -> bool:
    """Machine code (sm_) runs on its own major version from its minor upwards; PTX (compute_) on everything newer."""
    card = int(capability.replace(".", ""))
    for arch in arches:
        found = re.match(r"^(sm|compute)_(\d+)([af]?)$", arch)
        if not found:
            continue
        built = int(found.group(2))
        exact = built == card
        if exact or (
            not found.group(3) and built <= card and (found.group(1) == "compute" or built // 10 == card // 10)
        ):
            return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Facts of this machine as one line of JSON; reads only, sends nothing."
    )
    parser.add_argument("--only", default="", help="sections, comma separated: " + ", ".join(SECTIONS))
    parser.add_argument("--budget", type=float, default=DEFAULT_BUDGET, help="seconds for everything together")
    parser.add_argument("--since", type=float, default=0.0, help="when that time began (seconds of the epoch) [now]")
    options = parser.parse_args(arguments)
    only = [name for name in options.only.split(",") if name] or list(SECTIONS)
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are: {', '.join(SECTIONS)}")
    # An interpreter on a slow file system takes seconds to start: they are part of the budget.
    spent = max(0.0, time.time() - options.since) if options.since else 0.0
    sys.stdout.write(printed(collect(list(dict.fromkeys(only)), options.budget - spent), os.environ))
    sys.stdout.flush()
    return 0
