"""Active probes: gloo and TCP for real; the GPU ones through scripts that answer in their place."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from logdoc.probes.active import gloo_pair, nccl_allreduce, p2p_copy, run_active, tcp_reach
from logdoc.probes.collect.commands import Answer
from logdoc.probes.memory_peak import MemoryPeak, Sample, read_memory
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import PROBES, spec
from logdoc.types.errors import InputError


def values(sheet: FactSheet) -> dict[str, Any]:
    probe = sheet.facts[0].origin.partition("@")[0] if sheet.facts else ""
    known = spec(probe)
    declared = known.facts if known else ()
    for fact in sheet.facts:
        assert fact.id in declared or fact.id.startswith("gpu."), fact.id
        assert fact.origin == f"{probe}@{sheet.host}"
    return {fact.id: fact.value for fact in sheet.facts}


def verdict(ok: bool, error: str = "", **more: Any) -> str:
    return json.dumps({"allreduce": True, "ok": ok, "error": error, "late": [], "seconds": 0.5, **more}) + "\n"


class Cards:
    """Stands for a machine: says what each all-reduce gives, by its size and the variables it runs with."""

    def __init__(self, broken: str | None = None, from_size: int = 2) -> None:
        self.broken, self.from_size = broken, from_size
        self.runs: list[tuple[int, list[str]]] = []

    def __call__(self, argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
        assert "dist.all_reduce" in script
        assert argv[2] == "nccl"
        size = int(argv[3])
        off = sorted(name for name in env if name.startswith("NCCL_") and name.endswith("_DISABLE"))
        self.runs.append((size, off))
        fails = self.broken is not None and size >= self.from_size and f"NCCL_{self.broken}_DISABLE" not in off
        said = "node:1:2 [0] transport/p2p.cc:275 NCCL WARN Cuda failure 'peer access is not supported'\n" * fails
        return Answer("ok", 0, said + verdict(not fails, "rank 0: DistBackendError: NCCL error" if fails else ""), "")


@pytest.mark.torch
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_a_gloo_pair_on_this_host() -> None:
    known = values(gloo_pair(sys.executable))
    assert known["gloo.ok"] is True
    assert 0 < known["gloo.seconds"] < 40
    assert "gloo.error" not in known


def test_a_gloo_pair_without_torch_says_so(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    known = values(gloo_pair(str(bare)))
    assert known["gloo.ok"] is False
    assert "No module named 'torch'" in known["gloo.error"]
    missing = gloo_pair(str(tmp_path / "nowhere"))
    assert missing.facts == ()
    assert "does not exist" in missing.errors[0].error


def test_a_gloo_pair_that_hangs_is_stopped(tmp_path: Path) -> None:
    hung = tmp_path / "python"
    hung.write_text("#!/bin/sh\nsleep 300\n")
    hung.chmod(0o755)
    began = time.monotonic()
    known = values(gloo_pair(str(hung), limit=1.0))
    assert time.monotonic() - began < 2.0
    assert known == {
        "gloo.ok": False,
        "gloo.error": "the probe gave no result within the time limit and was stopped",
    }


def test_a_port_that_listens_is_reached() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        known = values(tcp_reach("127.0.0.1", port))
    assert (known["tcp.ok"], known["tcp.address"], known["tcp.target"]) == (True, "127.0.0.1", f"127.0.0.1:{port}")
    refused = values(tcp_reach("127.0.0.1", port))
    assert refused["tcp.ok"] is False
    assert refused["tcp.error"] == os.strerror(111)


def test_names_and_ports_that_cannot_be() -> None:
    for host, port in (("", 80), ("-x", 80), ("a", 0), ("a", 70000)):
        with pytest.raises(InputError, match="not a host and port"):
            tcp_reach(host, port)


def test_every_active_probe_runs_by_its_id_or_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(server.getsockname()[1]))
        assert values(run_active("tcp-reach"))["tcp.ok"] is True
    monkeypatch.delenv("MASTER_ADDR")
    with pytest.raises(InputError, match="MASTER_ADDR"):
        run_active("tcp-reach")
    with pytest.raises(InputError, match="--sample-memory"):
        run_active("gpu-memory-peak")
    with pytest.raises(InputError, match="not an active probe"):
        run_active("gpu-list")
    with pytest.raises(InputError, match="--hosts"):
        run_active("gloo-hosts")
    asking = ("tcp-reach", "gpu-memory-peak", "gloo-hosts")
    for id in (entry.id for entry in PROBES if entry.active and entry.id not in asking):
        sheet = run_active(id, "/nowhere/python")
        assert {error.probe for error in sheet.errors} == {id}


def test_all_reduce_that_works_is_tried_at_every_size_and_detour() -> None:
    cards = Cards()
    known = values(nccl_allreduce("python", gpus=6, run=cards))
    detours = [(6, ["NCCL_P2P_DISABLE"]), (6, ["NCCL_SHM_DISABLE"]), (6, ["NCCL_IB_DISABLE"])]
    assert cards.runs == [(1, []), (2, []), (4, []), (6, []), *detours]
    assert (known["nccl.allreduce_ok"], known["nccl.gpus_ok"], known["nccl.p2p_broken"]) == (True, 6, False)
    assert "nccl.gpus_failed" not in known


def test_p2p_is_proved_broken_when_only_its_absence_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    # The job's own workaround must not hide what is being tested.
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    cards = Cards(broken="P2P")
    known = values(nccl_allreduce("python", gpus=4, run=cards))
    assert cards.runs[:2] == [(1, []), (2, [])]
    assert (known["nccl.allreduce_ok"], known["nccl.gpus_ok"], known["nccl.gpus_failed"]) == (False, 1, 2)
    assert known["nccl.p2p_broken"] is True
    assert known["nccl.without_shm_ok"] is False
    assert "nccl.shm_broken" not in known  # it fails with and without: nothing is proved
    assert known["nccl.allreduce_error"].endswith("[Cuda failure 'peer access is not supported']")


def test_all_reduce_that_fails_on_one_card_accuses_no_path() -> None:
    known = values(nccl_allreduce("python", gpus=2, run=Cards(broken="NOTHING", from_size=1)))
    assert known["nccl.allreduce_ok"] is False
    assert not [name for name in known if name.endswith("_broken")]


def test_no_cards_no_verdict() -> None:
    sheet = nccl_allreduce("python", gpus=0, run=Cards())
    assert sheet.facts == ()
    assert sheet.errors[0].error == "no GPU is visible here"


def copying(answer: Answer) -> FactSheet:
    def run(argv: Sequence[str], limit: float, script: str, env: Mapping[str, str]) -> Answer:
        assert "can_device_access_peer" in script
        return answer

    return p2p_copy("python", run=run)


# Stands for a host of two GPUs: the CPU plays both, gloo plays NCCL, and FAULT says what is broken between them.
TWO_GPUS = """
import os
import torch
import torch.distributed as dist

fault = os.environ.get("FAULT")
full, to, join, reduce = torch.full, torch.Tensor.to, dist.init_process_group, dist.all_reduce

def moved(tensor, device):
    copy = to(tensor, "cpu").clone()
    if fault == "p2p" and device.index == 0 and getattr(tensor, "at", None) == 1:
        copy[4096] ^= 255
    copy.at = device.index
    return copy

def reduced(tensor):
    reduce(tensor)
    if fault == "p2p" and dist.get_world_size() > 1 and os.environ.get("NCCL_P2P_DISABLE") != "1":
        tensor[4096] += 1

torch.cuda.set_device = torch.cuda.synchronize = lambda device: None
torch.cuda.device_count = lambda: 2
torch.cuda.can_device_access_peer = lambda source, target: True
torch.full = lambda *given, device, **named: full(*given, **named)
torch.Tensor.to = moved
dist.init_process_group = lambda backend, **named: join({"nccl": "gloo"}[backend], **named)
dist.all_reduce = reduced
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every Python that starts from now on believes that its torch has two GPUs."""
    (tmp_path / "sitecustomize.py").write_text(TWO_GPUS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return monkeypatch


@pytest.mark.torch
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_the_scripts_themselves_find_two_good_cards_good(two_gpus: pytest.MonkeyPatch) -> None:
    two_gpus.delenv("FAULT", raising=False)
    assert values(p2p_copy(sys.executable)) == {"p2p.copy_ok": True, "p2p.peer_pairs": 2, "p2p.pairs": 2}
    known = values(nccl_allreduce(sys.executable, gpus=2))
    assert (known["nccl.allreduce_ok"], known["nccl.gpus_ok"], known.get("nccl.gpus_failed")) == (True, 2, None)
    assert [known[f"nccl.{path}_broken"] for path in ("p2p", "shm", "ib")] == [False, False, False]


@pytest.mark.torch
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_the_scripts_themselves_prove_p2p_broken_by_what_it_did_to_the_data(two_gpus: pytest.MonkeyPatch) -> None:
    two_gpus.setenv("FAULT", "p2p")
    copied = values(p2p_copy(sys.executable))
    assert (copied["p2p.copy_ok"], copied["p2p.bad_pairs"]) == (False, "1-0")
    known = values(nccl_allreduce(sys.executable, gpus=2))
    assert (known["nccl.allreduce_ok"], known["nccl.gpus_ok"], known["nccl.gpus_failed"]) == (False, 1, 2)
    assert "wrong sum: data was corrupted on the way" in known["nccl.allreduce_error"]
    assert known["nccl.p2p_broken"] is True
    assert (known["nccl.without_shm_ok"], known.get("nccl.shm_broken")) == (False, None)


@pytest.mark.torch
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_a_copy_that_reaches_no_gpu_says_torchs_own_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    reason = p2p_copy(sys.executable).errors[0].error
    assert re.search("not compiled with CUDA|NVIDIA driver|No CUDA GPUs|cudaGetDeviceCount", reason), reason


def test_copied_data_is_compared() -> None:
    good = json.dumps({"p2p": True, "bad": [], "peers": ["0-1", "1-0"], "pairs": 2})
    assert values(copying(Answer("ok", 0, good, ""))) == {"p2p.copy_ok": True, "p2p.peer_pairs": 2, "p2p.pairs": 2}
    bad = json.dumps({"p2p": True, "bad": ["1-0"], "peers": ["0-1", "1-0"], "pairs": 2})
    known = values(copying(Answer("ok", 0, '{"copying": "0-1"}\n' + bad, "")))
    assert (known["p2p.copy_ok"], known["p2p.bad_pairs"]) == (False, "1-0")


def test_a_copy_that_hangs_names_its_pair() -> None:
    sheet = copying(Answer("timeout", -9, '{"copying": "0-1"}\n{"copying": "0-2"}\n', ""))
    assert values(sheet) == {"p2p.copy_ok": False, "p2p.bad_pairs": "0-2 (hangs)"}
    # Before the first copy (importing torch, opening the driver) a hang says nothing about P2P.
    assert "p2p.copy_ok" not in values(copying(Answer("timeout", -9, "", "")))
    crash = copying(Answer("ok", 1, '{"copying": "0-1"}\n', "Traceback\nRuntimeError: CUDA error: out of memory"))
    assert values(crash) == {"p2p.error": "RuntimeError: CUDA error: out of memory"}


def test_one_card_has_nothing_to_copy_to() -> None:
    sheet = copying(Answer("ok", 0, json.dumps({"p2p": True, "bad": [], "peers": [], "pairs": 0}), ""))
    assert "fewer than two" in sheet.errors[0].error


def test_the_highest_memory_is_kept() -> None:
    readings: list[Sample] = [{0: (10, 100), 1: (5, 50)}, {0: (90, 100), 1: (20, 50)}, {0: (30, 100), 1: (48, 50)}, {}]
    seen = threading.Event()

    def read() -> Sample:
        if not readings:
            seen.set()
            return {}
        return readings.pop(0)

    with MemoryPeak(read, interval=0.001) as peak:
        assert seen.wait(10)
    known = values(peak.sheet())
    assert known["gpu.peak_fraction"] == 0.96
    assert (known["gpu.peak_card"], known["gpu.peak_used"], known["gpu.peak_total"]) == (1, 48, 50)
    assert (known["gpu.0.peak_used"], known["gpu.peak_samples"]) == (90, 3)


def test_a_reading_that_hangs_does_not_hold_up_the_command() -> None:
    release = threading.Event()
    began = time.monotonic()

    def read() -> Sample:
        release.wait(60)
        return {}

    with MemoryPeak(read) as peak:
        pass
    assert time.monotonic() - began < 2.0
    assert peak.sheet().errors
    release.set()


def test_memory_is_read_from_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, 1024, 24564'\necho '1, [N/A], [N/A]'\necho '2, 5, 6'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert read_memory() == {0: (1 << 30, 24564 << 20), 2: (5 << 20, 6 << 20)}
