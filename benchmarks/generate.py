"""A deterministic log of a 64-rank job: 99.9 % healthy lines of many printers, then a failure; for measuring only."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

RANKS, HOSTS = 64, 8
ONE_IN = 1000  # lines that look like a failure
POOL = 200_000  # different lines; repeated in shuffled order, their step numbers apart

FAILURES = (
    "[rank{r}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB. GPU {g} has a total capacity "
    "of 79.10 GiB of which 1.20 GiB is free.",
    "[rank{r}]:[E1130 {s}.123456 ProcessGroupNCCL.cpp:629] [Rank {r}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600010 milliseconds "
    "before timing out.",
    "node{h:02d}:{p}:{p} [{g}] NCCL WARN NET/IB : Got completion from peer 10.0.0.{g}<4791> with status=12 opcode=0 "
    "len=0 vendor err 129",
    "node{h:02d} kernel: NVRM: Xid (PCI:0000:{g}a:00): 79, pid={p}, name=python, GPU has fallen off the bus.",
    "[rank{r}]: ValueError: batch {n} has no label",
)


def line(dice: random.Random, number: int) -> bytes:
    """One line, in one of the forms that such a job prints."""
    r = dice.randrange(RANKS)
    h, g, p, n, s = r // HOSTS, r % 8, 1000 + r, dice.randrange(1, 90), clock(number)
    if dice.randrange(ONE_IN) == 0:
        return failure(dice, r, number)
    kind = dice.random()
    if kind < 0.35:
        text = f"[rank{r}]: step {number} loss {dice.random() * 3:.4f} lr 1.0e-04 grad_norm {dice.random():.3f}"
    elif kind < 0.55:
        path = f"{r}[{g}] -> {(r + 1) % RANKS}[{g}] via NET/IB/0/GDRDMA"
        text = f"node{h:02d}:{p}:{p + 9} [{g}] NCCL INFO Channel {n % 32:02d}/0 : {path}"
    elif kind < 0.70:
        beat = f"heartbeat {dice.random():.3f} ms"
        text = f"[rank{r}]:I1130 {s}.{n:06d} {p} ProcessGroupNCCL.cpp:2074] [PG ID 0 Rank {r}] {beat}"
    elif kind < 0.85:
        spent = f"elapsed (ms): {dice.random() * 900:.1f}"
        text = f"2026-11-30 {s},{n:03d} - trainer - INFO - iteration {number}/100000 | {spent}"
    elif kind < 0.90:
        text = f"\rTraining:  {n}%|####      | {n}/100 [00:{n % 60:02d}<01:00,  1.{g}it/s]"
    elif kind < 0.95:
        return f"[rank{r}]: fetched shard {n:06d}.tar in {dice.random():.2f}s\r\n".encode()
    elif kind < 0.99:
        text = f"INFO 11-30 {s} [core.py:700] worker {r} allocated 61.{n} GiB reserved 70 GiB"
    else:
        return b"[rank%d]: caf\xe9 \xff\xfe latin text %d\n" % (r, n)
    return text.encode() + b"\n"


def failure(dice: random.Random, r: int, number: int) -> bytes:
    """A line of one of the failures, by rank `r`."""
    told = dice.choice(FAILURES)
    n = dice.randrange(1, 90)
    return told.format(r=r, h=r // HOSTS, g=r % 8, p=1000 + r, n=n, s=clock(number)).encode() + b"\n"


def clock(number: int) -> str:
    return f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"


def log(size: int, seed: int = 1) -> Iterator[bytes]:
    """About `size` bytes in blocks of whole lines, the same for the same seed."""
    dice = random.Random(seed)
    pool = [line(dice, number) for number in range(POOL)]
    given = 0
    while given < size:
        block = b"".join(dice.choices(pool, k=4096))
        given += len(block)
        yield block
    yield b"[rank3]: ValueError: the last line of this log\n"


def storm(size: int, seed: int = 3) -> Iterator[bytes]:
    """About `size` bytes in which every line is a failure."""
    dice = random.Random(seed)
    pool = [failure(dice, dice.randrange(RANKS), number) for number in range(20_000)]
    given = 0
    while given < size:
        block = b"".join(dice.choices(pool, k=4096))
        given += len(block)
        yield block


def write(path: Path, size: int, seed: int = 1) -> None:
    with path.open("wb") as file:
        file.writelines(log(size, seed))


def write_folder(folder: Path, files: int, size: int) -> None:
    """A folder of `files` logs of `size` bytes each."""
    folder.mkdir(parents=True, exist_ok=True)
    text = b"".join(log(files * size // 8))
    for number in range(files):
        start = number * size % max(1, len(text) - size)
        (folder / f"rank_{number}.log").write_bytes(text[start : start + size])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("mebibytes", type=int)
    chosen = parser.parse_args()
    write(chosen.path, chosen.mebibytes << 20)
