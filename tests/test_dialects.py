"""Each prefix of each format and generation: what it tells, and what is left of the line."""

from __future__ import annotations

import pytest

from logdoc.dialects.torchrun import default_group_rank
from logdoc.reader.peel import peel

TORCHRUN_W = "W0922 18:51:16.217000 28001 torch/distributed/run.py:757] "


@pytest.mark.parametrize(
    ("line", "body", "told"),
    [
        ("[rank3]: ValueError: bad", "ValueError: bad", {"rank": 3}),
        ("[default1]:[rank5]: ValueError: bad", "ValueError: bad", {"rank": 5, "local_rank": 1}),
        ("[trainer0]:step 3", "step 3", {"local_rank": 0}),
        ("704.7s\t1437\t[rank1]: ValueError: bad", "ValueError: bad", {"rank": 1}),
        ("[1,mpirank:3,algo-1]<stderr>:ValueError: bad", "ValueError: bad", {"rank": 3, "host": "algo-1"}),
        ("[f35a2cc1] [rank=0] [INFO] [logging.py:69:log_dist] saved", "saved", {"rank": 0}),
        ("nemo.llm.pretrain/0 [default2]:[rank6]: boom", "boom", {"rank": 6, "local_rank": 2}),
        ("gpu-7.hall:12: [rank12]: ValueError: bad", "ValueError: bad", {"rank": 12, "host": "gpu-7.hall"}),
        ("train.py:12: [rank3]: boom", "train.py:12: [rank3]: boom", {}),
        (
            "2026-03-02 04:00:00 gpu-a1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7",
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=7",
            {"host": "gpu-a1", "time": "2026-03-02 04:00:00"},
        ),
        (
            "Mon 2026-03-02 04:00:00 UTC gpu-a1 kernel: [  12.345678] NVRM: x",
            "NVRM: x",
            {"host": "gpu-a1", "time": "2026-03-02 04:00:00"},
        ),
        ("1076:[default0]:[rank8]: ValueError: bad", "ValueError: bad", {"rank": 8, "local_rank": 0}),
        ("1105:RuntimeError: bad", "RuntimeError: bad", {}),
        ("12:30 step 5", "12:30 step 5", {}),
        ("fa88a9df [rank=1] || ValueError: bad", "ValueError: bad", {"rank": 1}),
        ("[default0|rank=12]: boom", "boom", {"rank": 12, "local_rank": 0}),
        ("[E ProcessGroupNCCL.cpp:474] [Rank 0] text", "[Rank 0] text", {"level": "ERROR"}),
        (
            "[rank3]:[E1206 18:44:16.997991020 ProcessGroupNCCL.cpp:1515] [PG ID 1 PG GUID 5(mesh_dp) Rank 6] text",
            "[PG ID 1 PG GUID 5(mesh_dp) Rank 6] text",
            {"rank": 3, "level": "ERROR", "time": "1206 18:44:16", "component": "ProcessGroupNCCL.cpp:1515"},
        ),
        ("[W1130 07:26:36.407510292 TCPStore.cpp:340] [c10d] text", "[c10d] text", {"level": "WARNING"}),
        (
            "I0527 15:16:57.219332 58624 ProcessGroupNCCL.cpp:2074] [PG 0 (default_pg) Rank 0] text",
            "[PG 0 (default_pg) Rank 0] text",
            {"level": "INFO", "thread": 58624},
        ),
        (TORCHRUN_W + "Setting OMP", "Setting OMP", {"level": "WARNING", "component": "torch/distributed/run.py:757"}),
        ("[2026-11-30 07:48:30,023] torch.distributed.run: [WARNING] text", "text", {"level": "WARNING"}),
        ("WARNING:torch.distributed.run:text", "text", {"component": "torch.distributed.run"}),
        (
            "node1:311:402 [0] include/alloc.h:462 NCCL WARN Failed to CUDA malloc 4 bytes",
            "include/alloc.h:462 NCCL WARN Failed to CUDA malloc 4 bytes",
            {"host": "node1", "pid": 311, "thread": 402, "device": 0},
        ),
        (
            "[2026-05-05 06:16:47] node-2:1:2 [3] transport/net_ib.cc:99 (ncclIbTest) NCCL WARN NET/IB : x",
            "transport/net_ib.cc:99 (ncclIbTest) NCCL WARN NET/IB : x",
            {"host": "node-2", "time": "2026-05-05 06:16:47", "device": 3},
        ),
        ("node1:311:402 [0] NCCL INFO Using network Socket", "NCCL INFO Using network Socket", {"level": "INFO"}),
        ("[1,3]<stderr>:n1:1:2 [0] NCCL INFO x", "NCCL INFO x", {"rank": 3, "host": "n1"}),
        (" 3: step 1", "step 1", {"task": 3}),
        ("2024-01-02T03:04:05.123456789Z [rank1]: boom", "boom", {"rank": 1, "time": "2024-01-02T03:04:05.123456789Z"}),
        ("2024-01-02T03:04:05.123456789Z stderr F boom", "boom", {"time": "2024-01-02T03:04:05.123456789Z"}),
        ("[pod/train-worker-3/pytorch] boom", "boom", {"task": 3}),
        ("worker-1  | boom", "boom", {"task": 1}),
        ("trainer  | [rank2]: boom", "boom", {"rank": 2}),
        ("0c1d2e3f [rank=2] || boom", "boom", {"rank": 2}),
        ("> [rank2]: boom", "boom", {"rank": 2}),
        (">>> import torch", ">>> import torch", {}),
        (">       raise ValueError(x)", ">       raise ValueError(x)", {}),
        ("srun: error: n1: task 0: Killed", "srun: error: n1: task 0: Killed", {}),
        ('{"log": "[rank2]: boom\\n", "stream": "stderr", "time": "2024-01-02T03:04:05Z"}', "boom", {"rank": 2}),
        ("(RayTrainWorker pid=1978, ip=10.0.0.8) boom", "boom", {"pid": 1978, "host": "10.0.0.8"}),
        (
            "(EngineCore_0 pid=58) ERROR 08-20 18:04:22 [core.py:700] EngineCore failed to start.",
            "EngineCore failed to start.",
            {"level": "ERROR", "time": "08-20 18:04:22", "component": "core.py:700"},
        ),
        ("(VllmWorker rank=3 pid=223) ERROR 05-01 10:00:00 [x.py:1] boom", "boom", {"rank": 3, "pid": 223}),
        ("[15]worker-23:83:2526 [0] NCCL INFO x", "NCCL INFO x", {"rank": 15, "host": "worker-23"}),
        ("E       RuntimeError: boom", "RuntimeError: boom", {}),
        ("[  +0.000012] NVRM: Xid", "NVRM: Xid", {}),
        ("2024-05-01T10:00:00.123456+00:00 node7 kernel: NVRM: Xid", "NVRM: Xid", {"host": "node7"}),
        ("[2025-01-01 10:00:00 TP3] Scheduler hit an exception", "Scheduler hit an exception", {"local_rank": 3}),
        (
            "[2024-12-01 01:02:03,456] [INFO] [logging.py:128:log_dist] [Rank 0] step",
            "[Rank 0] step",
            {"level": "INFO"},
        ),
        ("2023-07-26 09:59:13.215 | INFO     | a.b:train:26 - hello", "hello", {"component": "a.b:train:26"}),
        ("[2025-07-28 17:49:57,134][__main__][INFO] - hello", "hello", {"component": "__main__"}),
        ("[Mon Apr  8 17:04:05 2024] NVRM: Xid", "NVRM: Xid", {"time": "Mon Apr  8 17:04:05 2024"}),
        ("[  123.456789] NVRM: Xid", "NVRM: Xid", {"time": "123.456789"}),
        ("Apr  8 17:04:05 node7 kernel: [ 12.345678] NVRM: Xid", "NVRM: Xid", {"host": "node7"}),
        ("slurmstepd: error: *** JOB 1 ON n1 CANCELLED ***", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED ***", {}),
    ],
)
def test_prefix(line: str, body: str, told: dict[str, object]) -> None:
    peeled = peel(1, line)
    assert peeled.text == body
    for name, value in told.items():
        seen = {"time": peeled.time_text, "level": peeled.level, "component": peeled.component}
        assert seen.get(name, getattr(peeled.who, name, None)) == value, name


@pytest.mark.parametrize(
    "line",
    [
        "[Rank 3] Watchdog caught collective operation timeout",
        "    raise RuntimeError('[rank0]: no')",
        "RuntimeError: bad",
        "[1/3] compiling",
        "[]",
        "3:14 pm",
        "{not json",
        '{"loss": 0.5}',
    ],
)
def test_what_is_no_prefix_stays(line: str) -> None:
    peeled = peel(1, line)
    assert peeled.text == line
    assert peeled.who.rank is None


@pytest.mark.parametrize(
    ("body", "rank"),
    [
        ("[Rank 3] text", 3),
        ("[PG 0 Rank 3] text", 3),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 3]  text", 3),
        ("[PG GUID 0(default_pg) Rank 3] text", 3),
        ("[PG GUID 0 Rank 3] text", 3),
        ("[PG GUID 5(mesh_dp) Rank 3] text", None),
        ("[PG GUID 12 Rank 3] text", None),
    ],
)
def test_the_rank_within_the_default_group_is_the_global_rank(body: str, rank: int | None) -> None:
    assert default_group_rank(body) == rank
