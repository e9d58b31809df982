"""Probes that do something: run only when asked for, after their sentence (`spec(id).does`) was said, each in a process
of its own with a time limit. Their judgement is theirs to state as facts, never more than what was tried shows."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logdoc.probes.collect.commands import Answer, run_command
from logdoc.probes.collecting import job_python, run_collector
from logdoc.probes.collector import probe_script
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import spec
from logdoc.types.errors import InputError
from logdoc.types.rule import FactValue

Run = Callable[[Sequence[str], float, str, Mapping[str, str]], Answer]
MASTER_PORT = 29500  # torchrun's default
# What is switched off to find the broken path, and the fact that says whether it then works.
DETOURS = (("p2p", "NCCL_P2P_DISABLE"), ("shm", "NCCL_SHM_DISABLE"), ("ib", "NCCL_IB_DISABLE"))


def run_script(argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
    """Run a script fed through standard input, so that nothing is written to disk."""
    return run_command(argv, limit, feed=script, env=dict(env))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The JSON lines of a script that `program` ran, and what became of its process."""

    program: str
    answer: Answer
    lines: tuple[dict[str, Any], ...]

    def last(self, key: str) -> dict[str, Any]:
        """The last line that carries `key`; empty when there is none."""
        return next((line for line in reversed(self.lines) if key in line), {})

    def complaint(self) -> str:
        """Why there is no result: the process's fate, or its last words."""
        if self.answer.state != "ok":
            return self.answer.fate("the probe", self.program)
        return (self.answer.err.strip().splitlines() or [f"ended with code {self.answer.code}"])[-1][:400]


def _play(name: str, argv: Sequence[str], limit: float, env: Mapping[str, str], run: Run) -> Outcome:
    answer = run(argv, limit, probe_script(name), env)
    lines = []
    for line in answer.out.splitlines():
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            lines.append(value)
    return Outcome(argv[0], answer, tuple(lines))


def run_active(id: str, python: str | None = None) -> FactSheet:
    """Run an active probe by its id, with its defaults.

    Raises InputError for an id that is no active probe, or one that needs what is not given here.
    """
    asked = spec(id)
    if asked is None or not asked.active:
        raise InputError(f"{id} is not an active probe")
    if asked.needs:
        raise InputError(f"{id} {asked.needs}")
    by_id: dict[str, Callable[[str | None], FactSheet]] = {
        "tcp-reach": _master_reach,
        "gloo-pair": gloo_pair,
        "nccl-allreduce": nccl_allreduce,
        "p2p-copy": p2p_copy,
    }
    return by_id[id](python)


def _master_reach(python: str | None) -> FactSheet:
    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", str(MASTER_PORT))
    if not host or not port.isdecimal():
        raise InputError("tcp-reach connects to MASTER_ADDR:MASTER_PORT; set them, or say --hosts HOST --port PORT")
    return tcp_reach(host, int(port))


def gloo_pair(python: str | None = None, limit: float = 40.0, run: Run = run_script) -> FactSheet:
    """Two processes on this host join over gloo and add up a tensor: facts gloo.ok, gloo.seconds, gloo.error."""
    interpreter = job_python(python)
    outcome = _play("allreduce", [interpreter, "-", "gloo", "2", f"{limit - 2:g}"], limit, os.environ, run)
    result = outcome.last("allreduce")
    values = {
        "gloo.ok": bool(result.get("ok")),
        "gloo.seconds": result.get("seconds") if result.get("ok") else None,
        "gloo.error": result.get("error") or (None if result else outcome.complaint()),
    }
    if not result and outcome.answer.state == "missing":
        return FactSheet.live("gloo-pair", {}, "gloo all-reduce", interpreter, outcome.complaint())
    return FactSheet.live("gloo-pair", values, "gloo all-reduce of 2 processes on localhost", interpreter)


def tcp_reach(host: str, port: int, limit: float = 6.0, run: Run = run_script) -> FactSheet:
    """Whether a TCP connection to host:port can be opened: facts tcp.ok, tcp.error, tcp.seconds, tcp.address."""
    if not 0 < port < 65536 or not host or host.startswith("-"):
        raise InputError(f"{host}:{port} is not a host and port")
    argv = [sys.executable, "-I", "-", host, str(port), f"{max(0.5, limit - 1):g}"]
    outcome = _play("tcp_reach", argv, limit, os.environ, run)
    result = outcome.last("tcp")
    values = {
        "tcp.target": f"{host}:{port}",
        "tcp.ok": bool(result.get("ok")),
        "tcp.seconds": result.get("seconds"),
        "tcp.error": result.get("error") or (None if result else outcome.complaint()),
        "tcp.address": result.get("address"),
    }
    return FactSheet.live("tcp-reach", values, f"connect to {host}:{port}", sys.executable)


def nccl_allreduce(
    python: str | None = None, gpus: int | None = None, limit: float = 240.0, run: Run = run_script
) -> FactSheet:
    """NCCL all-reduce on 1, 2, 4 … `gpus` cards, then at the size that failed (or the largest) with P2P, SHM and IB
    switched off in turn. A path is broken when all fails with it and works without it."""
    interpreter = job_python(python)
    count = gpus if gpus is not None else _visible(interpreter)
    if not count:
        return FactSheet.live("nccl-allreduce", {}, "NCCL all-reduce", interpreter, "no GPU is visible here")
    deadline = time.monotonic() + limit
    values: dict[str, FactValue | None] = {}
    plain = {name: text for name, text in os.environ.items() if name not in {variable for _path, variable in DETOURS}}
    size, failed = count, None
    for size in _sizes(count):
        result = _allreduce(interpreter, size, plain, deadline, run)
        values |= {
            "nccl.allreduce_ok": result["ok"],
            "nccl.allreduce_gpus": size,
            "nccl.allreduce_seconds": result.get("seconds") if result["ok"] else None,
            "nccl.allreduce_error": result["error"],
        }
        if not result["ok"]:
            failed = size
            break
        values["nccl.gpus_ok"] = size
    values["nccl.gpus_failed"] = failed
    for path, variable in DETOURS if size > 1 else ():
        if time.monotonic() > deadline - 5:
            break
        detour = _allreduce(interpreter, size, {**plain, variable: "1"}, deadline, run)
        values[f"nccl.without_{path}_ok"] = detour["ok"]
        if failed is None or detour["ok"]:
            values[f"nccl.{path}_broken"] = failed is not None
    return FactSheet.live("nccl-allreduce", values, f"NCCL all-reduce on {size} GPUs", interpreter)


def _visible(interpreter: str) -> int:
    found = run_collector(["gpu-list"], interpreter, budget=15.0)
    count = found.value("gpu.visible")
    return count if isinstance(count, int) else 0


def _sizes(count: int) -> Iterable[int]:
    """1, 2, 4 … and the whole."""
    size = 1
    while size < count:
        yield size
        size *= 2
    yield count


def _allreduce(interpreter: str, size: int, env: Mapping[str, str], deadline: float, run: Run) -> dict[str, Any]:
    seconds = max(5.0, min(60.0, deadline - time.monotonic()))
    outcome = _play(
        "allreduce",
        [interpreter, "-", "nccl", str(size), f"{seconds - 2:g}"],
        seconds,
        {**env, "NCCL_DEBUG": "WARN"},
        run,
    )
    result = outcome.last("allreduce")
    said = [line for line in (outcome.answer.out + outcome.answer.err).splitlines() if "NCCL WARN" in line]
    error = str(result.get("error") or ("" if result else outcome.complaint()))
    if said and error:
        error = f"{error} [{said[0].split('NCCL WARN', 1)[1].strip()[:300]}]"
    return {"ok": bool(result.get("ok")), "error": error, "seconds": result.get("seconds")}


def p2p_copy(python: str | None = None, limit: float = 90.0, run: Run = run_script) -> FactSheet:
    """Copies data between every pair of GPUs and compares it: facts p2p.copy_ok, p2p.bad_pairs, p2p.peer_pairs."""
    interpreter = job_python(python)
    outcome = _play("p2p_copy", [interpreter, "-"], limit, os.environ, run)
    result = outcome.last("p2p")
    command = "copy of 16 MiB between every pair of GPUs"
    if not result:
        pair = outcome.last("copying").get("copying")
        if pair is None or outcome.answer.state not in ("timeout", "abandoned"):
            return FactSheet.live(
                "p2p-copy", {"p2p.error": outcome.complaint()}, command, interpreter, outcome.complaint()
            )
        values: dict[str, FactValue | None] = {"p2p.copy_ok": False, "p2p.bad_pairs": f"{pair} (hangs)"}
        return FactSheet.live("p2p-copy", values, command, interpreter, outcome.complaint())
    if not result["pairs"]:
        return FactSheet.live(
            "p2p-copy", {"p2p.pairs": 0}, command, interpreter, "fewer than two GPUs are visible: nothing to copy"
        )
    values = {
        "p2p.copy_ok": not result["bad"],
        "p2p.bad_pairs": ", ".join(result["bad"]) or None,
        "p2p.peer_pairs": len(result["peers"]),
        "p2p.pairs": result["pairs"],
    }
    return FactSheet.live("p2p-copy", values, command, interpreter)
