"""Forks RANKS processes on this host, lets them join over BACKEND and add up a tensor, and checks every element.

Usage: python - BACKEND RANKS SECONDS. Prints one line of JSON: {"allreduce": true, "ok": …, "error": …, "late": […]}.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import select
import signal
import socket
import sys
import time

if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]
ELEMENTS = 1 << 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_rank(backend: str, rank: int, world: int, port: int, seconds: float) -> dict[str, object]:
    """One rank's part: join, reduce, compare with the sum that must come out."""
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    began = time.monotonic()
    dist.init_process_group(
        backend,
        init_method="tcp://127.0.0.1:" + str(port),
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=seconds),
    )
    tensor = torch.full((ELEMENTS,), float(rank + 1), device=device)
    dist.all_reduce(tensor)
    expected = world * (world + 1) / 2
    right = bool((tensor == expected).all().item())
    took = time.monotonic() - began
    dist.destroy_process_group()
    error = "" if right else "wrong sum: data was corrupted on the way"
    return {"rank": rank, "ok": right, "error": error, "seconds": round(took, 3)}


def child(backend: str, rank: int, world: int, port: int, seconds: float, pipe: int) -> None:
    os.setsid()
    # Inside a torchrun worker these would make the new group wait for the job's own store.
    for name in [name for name in os.environ if name.startswith("TORCHELASTIC_")]:
        del os.environ[name]
    try:
        result = run_rank(backend, rank, world, port, seconds)
    except BaseException as error:
        text = str(error).strip().splitlines()
        result = {"rank": rank, "ok": False, "error": type(error).__name__ + ": " + " | ".join(text)[:600]}
    os.write(pipe, (json.dumps(result) + "\n").encode("ascii"))
    os._exit(0)


def main() -> None:
    backend, world, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    deadline = time.monotonic() + seconds
    port = free_port()
    pipes: dict[int, int] = {}
    pids: list[int] = []
    for rank in range(world):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            child(backend, rank, world, port, seconds, write_end)
        os.close(write_end)
        pipes[read_end] = rank
        pids.append(pid)
    results: dict[int, dict[str, object]] = {}
    while pipes and time.monotonic() < deadline:
        for pipe in select.select(list(pipes), [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(pipe, 1 << 16)
            rank = pipes.pop(pipe)
            results[rank] = json.loads(data.decode("ascii")) if data else {"ok": False, "error": "died without a word"}
    for pid in pids:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            continue
    late = [rank for rank in range(world) if rank not in results]
    errors = [f"rank {rank}: {results[rank]['error']}" for rank in sorted(results) if not results[rank]["ok"]]
    if late and not errors:
        errors = [f"no answer within {seconds:g} s from ranks {late}"]
    slowest = max([float(str(result.get("seconds", 0.0))) for result in results.values()], default=0.0)
    ok = not late and not errors
    verdict = {"allreduce": True, "ok": ok, "error": "; ".join(errors[:2]), "late": late, "seconds": slowest}
    sys.stdout.write(json.dumps(verdict) + "\n")


main()
