"""What ranks print when a simulated job fails: the first failure of each kind, its victims, and benign noise.

Messages are in the formats of NCCL, PyTorch and the kernel, written from their sources; nothing is copied from a log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

PER_NODE = 8
PER_GROUP = 4  # ranks of a tensor-parallel group
Voice = Literal["rank", "kernel", "logger"]
"""Who says a line: the process itself, its host's kernel, or the process through its logger."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of first failure: the rules it may lead to, the first one best, and what is printed on the failing rank.

    `exitcode` is what its launcher sees. `victims_time_out`: nobody exits, the others' watchdogs end the job.
    """

    kind: str
    causes: tuple[str, ...]
    lines: Callable[[int, random.Random], list[str]]
    exitcode: int = 1
    victims_time_out: bool = False
    voice: Voice = "rank"


def traceback(message: str, line: str = "loss.backward()") -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/home/trainer/train.py", line 88, in <module>',
        "    main()",
        '  File "/home/trainer/train.py", line 61, in train_step',
        f"    {line}",
        message,
    ]


def nccl_head(rank: int) -> str:
    return f"node-{rank // PER_NODE}:{5000 + rank}:{7000 + rank} [{rank % PER_NODE}]"


def _oom(rank: int, dice: random.Random) -> list[str]:
    return traceback(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {dice.randint(1, 9)}.00 GiB. GPU "
        f"{rank % PER_NODE} has a total capacity of 79.15 GiB of which 512.00 MiB is free. Including non-PyTorch memory, "
        "this process has 78.60 GiB memory in use. Of the allocated memory 76.20 GiB is allocated by PyTorch, and 310.00 "
        "MiB is reserved by PyTorch but unallocated."
    )


def _ib(rank: int, dice: random.Random) -> list[str]:
    peer = f"10.0.{dice.randrange(4)}.{dice.randrange(2, 250)}"
    return [
        f"{nccl_head(rank)} transport/net_ib.cc:2297 NCCL WARN NET/IB: Got completion from peer {peer}<47001> with status="
        "IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 req_type=Send localGid fe80::1 "
        "remoteGids fe80::2 hca mlx5_2",
        f"{nccl_head(rank)} NCCL INFO transport/net.cc:1298 -> 6",
        *traceback(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, remote process exited or there was a "
            "network error, NCCL version 2.27.5"
        ),
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "Last error:",
        f"NET/IB: Got completion from peer {peer}<47001> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1)",
    ]


def _segfault(_rank: int, _dice: random.Random) -> list[str]:
    return [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x00007f1b2c000740 (most recent call first):",
        '  File "/home/trainer/ops.py", line 12 in fused_step',
        '  File "/home/trainer/train.py", line 61 in train_step',
    ]


FAULTS: tuple[Fault, ...] = (
    Fault("exception", ("process.user-exception",),
          lambda rank, _: traceback(f"ValueError: sample {rank * 7} has no label")),
    Fault("gpu-oom", ("memory.gpu-oom",), _oom),
    Fault("illegal-access", ("gpu.illegal-memory-access",),
          lambda _rank, _: traceback("RuntimeError: CUDA error: an illegal memory access was encountered")),
    Fault("file-missing", ("data.file-missing",), lambda rank, _: traceback(
        f"FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-{rank}.tar'", "batch = next(batches)")),
    Fault("disk-full", ("host.disk-full",), lambda _rank, _: traceback(
        "OSError: [Errno 28] No space left on device", "torch.save(state, path)")),
    Fault("segfault", ("process.segfault",), _segfault, exitcode=-11),
    Fault("ib-error", ("network.ib-link-fault",), _ib),
    Fault("device-assert", ("gpu.device-side-assert",),
          lambda _rank, _: traceback("RuntimeError: CUDA error: device-side assert triggered")),
    Fault("loader-killed", ("data.dataloader-worker-died",), lambda rank, _: traceback(
        f"RuntimeError: DataLoader worker (pid {9000 + rank}) is killed by signal: Killed. ", "for batch in loader:")),
    Fault("oom-killer", ("memory.host-oom-kill",), lambda rank, _: [
        f"Memory cgroup out of memory: Killed process {5000 + rank} (python3) total-vm:98304000kB, anon-rss:64000000kB, "
        "file-rss:71234kB, shmem-rss:0kB, UID:1000 pgtables:131072kB oom_score_adj:0"], exitcode=-9, voice="kernel"),
    Fault("xid-79", ("gpu.fell-off-bus",), lambda rank, _: [
        f"NVRM: Xid (PCI:0000:{0x1A + rank % PER_NODE:02x}:00): 79, pid={5000 + rank}, name=python3, GPU has fallen off "
        "the bus."], voice="kernel"),
    Fault("killed", ("memory.host-oom-kill",), lambda _rank, _: [], exitcode=-9),
    Fault("straggler", ("collective.rank-straggled",), lambda _rank, _: [], victims_time_out=True),
    Fault("busy-loading", ("collective.rank-straggled",), lambda _rank, _: [
        "preprocessing shard 17 again, the cached index is stale"], victims_time_out=True, voice="logger"),
    Fault("group-straggler", ("collective.rank-straggled",), lambda _rank, _: [], victims_time_out=True),
    Fault("mismatch", ("collective.mismatch",), lambda _rank, _: [], victims_time_out=True),
)  # fmt: skip
BY_KIND = {fault.kind: fault for fault in FAULTS}


def victim(rank: int, dice: random.Random) -> list[str]:
    """A rank whose peer went away: NCCL's warning and exception, gloo's, the store's, or only the launcher's signal."""
    way = dice.randrange(4)
    peer = f"10.0.0.{dice.randrange(2, 250)}"
    if way == 0:
        lost = f"socketProgress: Connection closed by remote peer {peer}<4711>"
        return [
            f"{nccl_head(rank)} misc/socket.cc:50 NCCL WARN {lost}",
            *traceback(
                "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, remote process exited or there was a "
                "network error, NCCL version 2.27.5"
            ),
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "Last error:",
            lost,
        ]
    if way == 1:
        return traceback(f"RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [{peer}]:8578")
    if way == 2:
        return [
            f"[W505 06:01:0{dice.randrange(10)}.{dice.randrange(10**9):09} TCPStore.cpp:138] [c10d] recvValueWithTimeout "
            f"failed on SocketImpl(fd=3, addr=[::ffff:{peer}]:34132, remote=[::ffff:10.0.0.1]:29500): Failed to recv, got "
            "0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"
        ]
    return []


def watchdog(rank: int, at: datetime, dice: random.Random, seq: int, odd: bool, ahead: int, group: str) -> list[str]:
    """The watchdog of a rank gives up after ten minutes. `odd`: its call differs; `ahead`: calls it made behind that.

    `group`: empty for the default group; another one counts its ranks itself.
    """
    glog = f"[E{at:%m%d %H:%M:%S}.{dice.randrange(10**9):09} ProcessGroupNCCL.cpp:685]"
    op = "BROADCAST, NumelIn=8192, NumelOut=8192" if odd else "ALLREDUCE, NumelIn=4096, NumelOut=4096"
    own = rank % PER_GROUP if group else rank
    number = f"PG ID 2 PG GUID {3 + rank // PER_GROUP}({group})" if group else "PG ID 0 PG GUID 0(default_pg)"
    return [
        f"{glog} [Rank {own}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, "
        f"Timeout(ms)=600000) ran for 600{dice.randint(10, 99)} milliseconds before timing out.",
        f"{glog} [{number} Rank {own}]  failure detected by watchdog at work sequence id: {seq} "
        f"PG status: last enqueued work: {seq + ahead}, last completed work: {seq - 1}",
    ]


def decoy(rank: int, dice: random.Random) -> list[str]:
    """An error of another rank that the program caught, said so, and went on."""
    caught = (
        traceback("ConnectionError: HTTPSConnectionPool(host='metrics', port=443): Max retries exceeded", "upload(metrics)"),
        traceback("OSError: [Errno 5] Input/output error: '/data/a.tar'", "batch = next(batches)"),
        traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 "
                  "GiB of which 1.50 GiB is free."),
    )  # fmt: skip
    return ["step failed, trying again with the next batch", *dice.choice(caught)]


def noise(rank: int, step: int, dice: random.Random) -> str | None:
    """A harmless line now and then: warnings, timeouts that were retried, words such as error in a metric."""
    if dice.random() > 0.05:
        return None
    return dice.choice(
        (
            f"UserWarning: detected {dice.randint(2, 9)} slow batches at step {step}",
            f"validation error 0.{dice.randint(100, 999)} at step {step}",
            "retrying upload of metrics after timeout (attempt 1 of 5)",
            f"{nccl_head(rank)} NCCL INFO Channel 00/0 : {rank}[{rank % PER_NODE}] -> {rank + 1}[0] via P2P/CUMEM",
            "gradient norm clipped, nothing failed",
        )
    )
