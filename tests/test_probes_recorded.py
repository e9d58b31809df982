"""Machines nobody has at hand, played to the collector: outputs written by hand in the formats of the real tools.

A recording (tests/data/probes/*.txt) is a list of entries, each begun by a line `-- …`:
`$ COMMAND [exit N]` an answer, `PATH` a file, `hex PATH` a binary file, `link PATH -> TARGET`, `host NAME`,
`env NAME=VALUE`, `limit NAME SOFT HARD`, `space PATH TOTAL FREE INODES FREE`, `address INTERFACE IP`,
`resolve NAME IP`, `port N taken`, `clock SYNCHRONISED ERROR`. A command of a recorded program that is not itself
recorded is an error of the test.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logdoc.kept.sentences import PLACEHOLDER
from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.machine import Machine, Sheet
from logdoc.probes.collect.main import SECTIONS, joined
from logdoc.probes.collecting import run_collector
from logdoc.probes.doctor import check
from logdoc.probes.sheets import FactSheet, sheet_of
from logdoc.probes.specs import PROBES, passive_ids
from logdoc.reporting.wording import fill, fill_command

DATA = Path(__file__).parent / "data" / "probes"
MACHINES = sorted(path.stem for path in DATA.glob("*.txt"))
# torch-build and libraries look at this very interpreter; test_probes.py runs them for real.
PLAYED = [probe for probe in passive_ids() if probe not in ("torch-build", "libraries")]


class RecordedMachine(Machine):
    """A machine made of a recording, laid out below `root`."""

    def __init__(self, name: str, root: Path, nvml: Any = None) -> None:
        super().__init__(root=str(root), run=self.answer, environ={"HOME": "/home/user"})
        self.nvml = nvml
        self.commands: dict[str, Answer] = {}
        self.settings: list[list[str]] = []
        self.asked: list[str] = []
        text = (DATA / f"{name}.txt").read_text(encoding="utf-8")
        for entry in re.split(r"^-- ", text, flags=re.MULTILINE)[1:]:
            head, _newline, body = entry.partition("\n")
            self.lay(head, body)

    def lay(self, head: str, body: str) -> None:
        if head.startswith("$ "):
            found = re.fullmatch(r"\$ (.*?)(?: \[exit (\d+)\])?( \[stderr\])?", head)
            assert found
            out, err = ("", body) if found[3] else (body, "")
            self.commands[found[1]] = Answer("ok", int(found[2] or 0), out, err)
        elif head.startswith(("/", "hex /")):
            path = Path(self.at(head.removeprefix("hex ")))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes.fromhex(body) if head.startswith("hex ") else body.encode())
        elif head.startswith("link "):
            name, target = head.removeprefix("link ").split(" -> ")
            path = Path(self.at(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
        elif head.startswith("env "):
            variable, value = head.removeprefix("env ").split("=", 1)
            self.environ[variable] = value
        else:
            self.settings.append(head.split())

    def answer(self, argv: Sequence[str], limit: float) -> Answer:
        words = " ".join(argv)
        self.asked.append(words)
        if words in self.commands:
            return self.commands[words]
        assert argv[0] not in {command.split()[0] for command in self.commands}, f"not recorded: {words}"
        return Answer("missing", 127, "", "")

    def setting(self, *key: str) -> list[str] | None:
        return next((words[len(key) :] for words in self.settings if words[: len(key)] == list(key)), None)

    def import_module(self, name: str) -> Any:
        if name == "pynvml" and self.nvml:
            return self.nvml
        raise ImportError(name)

    def which(self, name: str) -> str | None:
        return name if any(command.split()[0] == name for command in self.commands) else None

    def hostname(self) -> str:
        return (self.setting("host") or ["node"])[0]

    def system(self) -> tuple[str, str, str]:
        return ("Linux", self.read("/proc/sys/kernel/osrelease") or "6.1.0", "x86_64")

    def limit_of(self, name: str) -> tuple[int, int] | None:
        pair = self.setting("limit", name)
        return (int(pair[0]), int(pair[1])) if pair else None

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        total, free, inodes, left = map(int, self.setting("space", path) or self.setting("space", "/") or "0000")
        return (total, free, inodes, left)

    def ipv4(self, interface: str) -> str | None:
        return (self.setting("address", interface) or [None])[0]

    def resolve(self, name: str) -> list[str]:
        found = self.setting("resolve", name)
        if not found:
            raise OSError("Name or service not known")
        return found

    def port_taken(self, port: int) -> bool | None:
        return self.setting("port", str(port)) == ["taken"]

    def clock(self) -> tuple[bool, float] | None:
        found = self.setting("clock")
        return (found[0] == "true", float(found[1])) if found else None

    def pause(self, seconds: float) -> None:
        return


def play(name: str, root: Path, nvml: Any = None) -> FactSheet:
    """All sections but those about this interpreter, on a recorded machine."""
    machine = RecordedMachine(name, root, nvml)
    facts: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    for probe in PLAYED:
        sheet = Sheet(probe)
        SECTIONS[probe][0](machine, sheet)
        facts += sheet.facts
        errors += sheet.errors
    facts += joined(facts)
    return sheet_of({"host": machine.hostname(), "facts": facts, "errors": errors}, name)


def subset(sheet: FactSheet, wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: sheet.value(name) for name in wanted}


EXPECTED: dict[str, dict[str, Any]] = {
    "h100x8-nvswitch": {
        "gpu.count": 8, "gpu.driver": "550.54.15", "gpu.cuda_driver": "12.4", "gpu.sm": "9.0", "gpu.visible": 8,
        "gpu.compute_mode": "Default", "gpu.mig": False, "gpu.persistence": True, "gpu.pci_count": 8,
        "gpu.kernel_module": "550.54.15", "gpu.open_module": True, "gpu.total": 81559 << 20, "gpu.used": 3 << 20,
        "gpu.0.free": 81005 << 20, "gpu.processes": 0, "gpu.other_process_bytes": 0, "gpu.ecc_uncorrected": 0,
        "gpu.remapped_rows_pending": False, "gpu.throttle": "none", "gpu.nvlink_up": 144, "gpu.nvlink_down": 0,
        "gpu.xids": "none", "gpu.xid_count": 0, "fabric.nvswitches": 4, "fabric.manager_active": True,
        "fabric.version_matches": True, "fabric.state": "Completed", "imex.active": False, "topo.worst": "NV18",
        "topo.matrix": "NV18 x28", "topo.nvlink": True, "topo.p2p_ok": True, "topo.p2p_reason": "OK", "topo.nics": 12,
        "topo.gpu_nic": "PIX", "acs.enabled": False, "iommu.enabled": False, "numa.nodes": 2, "rdma.devices": 12,
        "rdma.ports_active": 12, "rdma.ports_down": 0, "rdma.peermem_loaded": True, "rdma.gids": 12,
        "rdma.out_of_sequence": 36, "net.nccl_would_take": "bond0", "net.ifname_matches": True, "net.mtu": 9000,
        "net.master_is_local": True, "net.master_port": 29511, "net.master_port_in_use": False,
        "net.gloo_would_take": "bond0", "slurm.job_id": "481203", "slurm.job_state": "RUNNING",
        "slurm.time_left": 98441, "slurm.node_state": "ALLOCATED", "cgroup.limit": 1924145348608,
        "cgroup.usage": 2 << 30, "ipc.private_namespace": False, "clock.synchronised": True, "env.NCCL_DEBUG": "INFO",
        "env.HF_TOKEN": None, "slurm.time_limit": 172800, "slurm.cpus": 224, "slurm.gpus": 8, "slurm.tasks": 32,
        "slurm.memory": 1835008 << 20, "slurm.partition": "train", "clock.service": "chronyd",
        "cpu.model": "Intel(R) Xeon(R) Platinum 8480C", "net.gateway": "10.12.4.1", "net.speed": 200000,
        "net.routes": "10.12.4.0/24 dev bond0; 0.0.0.0/0 via 10.12.4.1 dev bond0", "net.master_interface": "lo",
        "net.mtus": "lo 65536, bond0 9000", "gpu.remapped_rows": 0, "disk.quota_free": None,
        "topo.gpu_numa": "0000:18:00.0 0, 0000:2a:00.0 0, 0000:3a:00.0 0, 0000:5d:00.0 0, "
        "0000:9a:00.0 1, 0000:ab:00.0 1, 0000:ba:00.0 1, 0000:db:00.0 1",
    },
    "v100x8-efa": {
        "gpu.count": 8, "gpu.driver": "450.119.03", "gpu.cuda_driver": "11.0", "gpu.sm": None, "gpu.mig": False,
        "gpu.nvlink_up": 48, "gpu.nvlink_down": 0, "gpu.throttle": "none", "gpu.remapped_rows": None,
        "fabric.state": None, "fabric.manager_active": False, "topo.best": "NV2", "topo.worst": "PHB",
        "topo.matrix": "NV2 x8, NV1 x8, PHB x12", "topo.nvlink": False, "topo.p2p_ok": False, "topo.p2p_reason": "TNS",
        "topo.nics": 0, "rdma.efa": True, "rdma.link_layer": "Unspecified", "rdma.dmabuf_possible": False,
        "container.vm": True, "os.machine_maker": "Amazon EC2", "net.gloo_would_take": "ens5", "net.mtu": 9001,
        "gpu.open_module": False, "gpu.kernel_module": "450.119.03",
    },
    "b200x8-podman": {
        "gpu.count": 8, "gpu.driver": "580.65.06", "gpu.cuda_driver": "13.0", "gpu.sm": "10.0",
        "gpu.throttle": "hw-power-brake", "gpu.remapped_rows": 1, "gpu.remapped_rows_pending": False,
        "gpu.ecc_uncorrected_aggregate": 1, "gpu.nvlink_up": 144, "fabric.state": "Completed",
        "fabric.manager_active": None, "topo.matrix": "NV18 x28", "topo.p2p_ok": True, "topo.gpu_nic": "SYS",
        "container.kind": "podman", "container.privileged": False, "container.seccomp": True, "container.vm": False,
        "ipc.private_namespace": True, "cpu.quota": 16.0, "cgroup.limit": 512 << 30, "cgroup.oom_kills": 0,
        "disk.quota_free": 614400, "disk.quota_filesystem": "nas3:/export/home", "disk.quota_inodes_free": None,
        "net.gloo_ifname_matches": False, "net.gloo_would_take": "none", "net.nccl_would_take": "eth0",
        "net.speed": 400000, "net.master_is_local": False, "net.master_interface": "eth0", "rdma.roce_v2_gid_index": 3,
        "rdma.peermem_loaded": True, "rdma.dmabuf_possible": True, "clock.service": None, "limit.memlock": 8388608,
    },
    "a100x8-pcie-docker": {
        "gpu.count": 8, "gpu.persistence": False, "gpu.fullest": "5", "gpu.other_process_bytes": 30088 << 20,
        "gpu.process_list": "pid 41877 (python) 29.4 GiB", "gpu.ecc_uncorrected": 2,
        "gpu.ecc_uncorrected_aggregate": 7, "gpu.remapped_rows_pending": True, "gpu.throttle": "hw-thermal",
        "gpu.pcie_width": 8, "gpu.pcie_width_max": 16, "gpu.pcie_narrow": True, "gpu.nvlink_down": 0,
        "gpu.xids": "63,94", "gpu.last_xid": 94, "gpu.last_xid_bus": "0000:3e:00", "gpu.last_xid_age": 86499.0,
        "topo.worst": "SYS", "topo.best": "PXB", "topo.matrix": "PXB x4, NODE x8, SYS x16", "topo.nvlink": False,
        "topo.p2p_ok": True, "topo.p2p_nvlink": False, "topo.gpu_nic": "NODE", "acs.enabled": True, "acs.bridges": 2,
        "iommu.enabled": True, "iommu.type": "DMA-FQ", "rdma.ports_down": 1, "rdma.roce_v2_gid": True,
        "rdma.roce_v2_gid_index": 3, "rdma.link_downed": 5, "rdma.retry_timeouts": 271, "rdma.uverbs": 0,
        "rdma.peermem_loaded": False, "rdma.dmabuf_possible": False, "shm.total": 64 << 20, "limit.memlock": 65536,
        "limit.pids_max": 2048, "disk.inodes_free": 480, "cgroup.limit": 64 << 30, "cgroup.oom_kills": 1,
        "kernel.last_oom_process": "pid 30412 (python)", "container.kind": "docker", "container.privileged": False,
        "container.seccomp": True, "ipc.private_namespace": True, "net.master_port_in_use": True,
        "fabric.manager_active": None, "clock.synchronised": False,
    },
    "rtx4090x2": {
        "gpu.count": 2, "gpu.mig": False, "gpu.sm": "8.9", "gpu.ecc_uncorrected": None, "gpu.pcie_width": 8,
        "gpu.nvlink_up": None, "gpu.xids": None, "topo.worst": "PHB", "topo.p2p_ok": False, "topo.p2p_reason": "CNS",
        "topo.p2p_bad_pairs": "GPU0-GPU1", "topo.nics": 0, "acs.enabled": None, "iommu.enabled": False,
        "iommu.type": "identity", "fabric.nvswitches": 0, "fabric.manager_active": False,
        "net.nccl_would_take": "enp6s0", "net.hostname_is_loopback": True, "net.gloo_would_take": "lo",
        "limit.nofile": 1024, "limit.nofile_hard": 1048576, "limit.pids_max": 84787, "kernel.log_readable": False,
    },
    "a100-mig-pod": {
        "gpu.count": 1, "gpu.sm": None, "gpu.mig": True, "gpu.mig_devices": 2, "gpu.cuda_driver": "11.4",
        "gpu.total": None, "fabric.state": None, "gpu.nvlink_down": 0, "topo.p2p_ok": None, "topo.worst": None,
        "container.kind": "kubernetes", "scheduler.kind": "kubernetes", "k8s.namespace": "ml-team",
        "k8s.node": "gpu-node-3", "cgroup.limit": 32 << 30, "cgroup.usage": 28 << 30, "cgroup.oom_kills": 2,
        "limit.pids_max": None, "net.mtu": 1450,
    },
    "gb200x4": {
        "gpu.count": 4, "gpu.sm": "10.0", "fabric.nvswitches": 0, "fabric.state": "In Progress",
        "fabric.status": "Success", "imex.active": False, "imex.channels": 0, "gpu.nvlink_down": 1,
        "imex.domain_state": "DOWN", "imex.nodes": 3,
        "imex.nodes_not_ready": "10.40.3.11 STARTING, 10.40.3.12 UNAVAILABLE", "cpu.model": None,
        "gpu.nvlink_up": 71, "gpu.xids": "149", "gpu.last_xid_age": 60.5, "topo.worst": "NV18", "topo.gpu_nic": "SYS",
        "topo.p2p_ok": True, "rdma.dmabuf_possible": True, "rdma.peermem_loaded": False, "rdma.devices": 4,
    },
    "vgpu-vm": {
        "gpu.count": 2, "gpu.vgpu": True, "gpu.throttle": None, "gpu.pcie_width": None, "gpu.processes": 1,
        "gpu.other_process_bytes": None, "gpu.fullest": "1", "topo.p2p_ok": False, "topo.p2p_reason": "NS",
        "container.vm": True, "os.machine_maker": "VMware, Inc.", "net.hostname_resolves": False,
    },
    "wsl2": {
        "gpu.count": 1, "gpu.driver": "560.94", "gpu.device_nodes": 0, "gpu.driver_loaded": True, "gpu.pci_count": 0,
        "container.wsl": True, "gpu.other_process_bytes": None, "gpu.unattributed_bytes": 1420 << 20,
        "topo.worst": None,
    },
    "container-without-gpu": {
        "gpu.count": 0, "gpu.pci_count": 4, "gpu.device_nodes": 0, "gpu.driver_loaded": True, "gpu.driver": None,
        "container.kind": "docker", "gpu.total": None,
    },
    "driver-mismatch": {
        "gpu.driver_mismatch": True, "gpu.driver_usable": False, "gpu.count": None, "gpu.kernel_module": "550.90.07",
    },
    "driver-not-running": {"gpu.driver_usable": False, "gpu.count": 0, "gpu.pci_count": 1, "gpu.driver_loaded": False},
    "gpu-lost": {"gpu.lost": True, "gpu.count": None, "gpu.driver_usable": None},
}  # fmt: skip


def test_every_recording_is_judged() -> None:
    assert sorted(EXPECTED) == MACHINES


@pytest.mark.parametrize("name", MACHINES)
def test_facts_of_a_recorded_machine(name: str, tmp_path: Path) -> None:
    assert subset(play(name, tmp_path), EXPECTED[name]) == EXPECTED[name]


FINDINGS = {
    "h100x8-nvswitch": [],
    "a100x8-pcie-docker": [
        "ecc-errors", "remap-pending", "xids", "memory-taken", "master-port-taken", "shm-small", "memlock-low",
        "rdma-port-down", "rdma-no-verbs", "no-gpudirect", "pids-low", "disk-full", "oom-kills", "acs-on",
        "iommu-translates", "throttled", "pcie-narrow", "clock-drifts",
    ],
    "rtx4090x2": ["hostname-loopback", "nofile-low", "p2p-refused", "pcie-narrow"],
    "a100-mig-pod": ["mig", "shm-small", "oom-kills"],
    "gb200x4": ["fabric-not-ready", "imex-missing", "imex-domain", "xids", "nvlink-down"],
    "vgpu-vm": ["vgpu", "hostname-unresolved", "nofile-low", "p2p-refused"],
    "wsl2": ["hostname-loopback", "pcie-narrow"],
    "container-without-gpu": ["container-without-gpus", "shm-small"],
    "driver-mismatch": ["driver-mismatch", "hostname-unresolved", "no-interface", "shm-small", "disk-full"],
    "driver-not-running": [
        "driver-not-loaded", "driver-unusable", "hostname-unresolved", "no-interface", "shm-small", "disk-full",
    ],
    "v100x8-efa": ["p2p-refused"],
    "b200x8-podman": ["ifname-wrong", "memlock-low", "quota-used", "throttled"],
    "gpu-lost": ["gpu-lost", "hostname-unresolved", "no-interface", "shm-small", "disk-full"],
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_doctor_on_a_recorded_machine(name: str, tmp_path: Path) -> None:
    findings = check(play(name, tmp_path))
    assert [finding.id for finding in findings] == FINDINGS[name]
    for finding in findings:
        for text in (finding.say.en, finding.say.zh):
            # A sentence with an unknown placeholder would be dropped: nothing may be lost here.
            for found in PLACEHOLDER.finditer(text):
                assert found["name"] in finding.values or found["default"] is not None
            assert fill(text, finding.values)
        assert finding.run
        for command in finding.run:
            assert "<" not in fill_command(command, finding.values)
        assert finding.facts


def test_every_fact_is_declared_and_every_declared_fact_is_seen(tmp_path: Path) -> None:
    seen = {fact.id for name in MACHINES for fact in play(name, tmp_path / name).facts}
    live = run_collector(python=sys.executable, budget=30.0)
    seen |= {fact.id for fact in live.facts}
    declared = {fact for entry in PROBES if not entry.active for fact in entry.facts}
    assert [fact for fact in seen if not any(fnmatchcase(fact, one) for one in declared)] == []
    # What neither the recordings nor this machine show is tested by name beside this file.
    files = [Path(__file__).parent / f"test_probes_{name}.py" for name in ("collect", "host")]
    units = "".join(path.read_text(encoding="utf-8") for path in files)
    unseen = {one for one in declared if not any(fnmatchcase(fact, one) for fact in seen)}
    assert [one for one in sorted(unseen) if f'"{one}"' not in units] == []


@pytest.mark.parametrize("name", ["h100x8-nvswitch", "gb200x4", "b200x8-podman"])
def test_a_recorded_machine_is_never_asked_to_change_anything(name: str, tmp_path: Path) -> None:
    machine = RecordedMachine(name, tmp_path)
    for probe in PLAYED:
        SECTIONS[probe][0](machine, Sheet(probe))
    reading = re.compile(
        r"^(?:nvidia-smi(?: --query-\S+ --format=\S+| topo -(?:m|p2p [rwnp])| nvlink --status| -L)?|dmesg"
        r"|journalctl -k .*|systemctl is-active \S+|nv-fabricmanager --version|nvidia-imex-ctl -N|ldconfig -p|squeue -h .*"
        r"|scontrol show node \S+ -o|quota -w -p)$"
    )
    assert machine.asked
    assert [command for command in machine.asked if not reading.match(command)] == []


class FabricInfo(ctypes.Structure):
    _fields_ = (("status", ctypes.c_uint), ("state", ctypes.c_ubyte))


def fake_nvml() -> SimpleNamespace:
    """nvidia-ml-py's functions, answering for the same eight H100 as the recording."""

    def fabric_info(card: int, info: Any) -> None:
        info._obj.status, info._obj.state = 0, 3

    def memory(card: int) -> SimpleNamespace:
        used = (1 if card else 3) << 20
        return SimpleNamespace(total=81559 << 20, used=used, free=(81007 if card else 81005) << 20)

    values: dict[str, Any] = {
        "Index": lambda card: card, "Name": lambda card: b"NVIDIA H100 80GB HBM3", "UUID": lambda card: f"GPU-{card}",
        "PciInfo": lambda card: SimpleNamespace(busId=f"00000000:{card}8:00.0"), "ComputeMode": lambda card: 0,
        "PersistenceMode": lambda card: 1, "MigMode": lambda card: [0, 0],
        "CudaComputeCapability": lambda card: (9, 0), "MemoryInfo": memory,
        "TotalEccErrors": lambda card, kind, since: 0,
        "CurrentClocksThrottleReasons": lambda card: 1, "CurrPcieLinkGeneration": lambda card: 5,
        "MaxPcieLinkGeneration": lambda card: 5, "CurrPcieLinkWidth": lambda card: 16,
        "MaxPcieLinkWidth": lambda card: 16, "RemappedRows": lambda card: (0, 0, 0, 0), "GpuFabricInfo": fabric_info,
        "ComputeRunningProcesses": lambda card: [], "HandleByIndex": lambda index: index, "Count": lambda: 8,
    }  # fmt: skip
    functions = {"nvmlDeviceGet" + name: function for name, function in values.items()}
    return SimpleNamespace(
        **functions,
        nvmlInit=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "550.54.15",
        nvmlSystemGetCudaDriverVersion=lambda: 12040,
        c_nvmlGpuFabricInfo_t=FabricInfo,
    )


def test_nvml_and_nvidia_smi_tell_the_same(tmp_path: Path) -> None:
    by_text = play("h100x8-nvswitch", tmp_path / "text")
    by_nvml = play("h100x8-nvswitch", tmp_path / "nvml", fake_nvml())
    assert by_nvml.commands["gpu.count"] == "NVML"
    assert by_text.commands["gpu.count"] == "nvidia-smi --query-gpu"
    own = re.compile(r"\.(uuid|bus_id)$")
    values = [
        {fact.id: fact.value for fact in sheet.facts if not own.search(fact.id) and fact.id != "clock.time"}
        for sheet in (by_text, by_nvml)
    ]
    assert values[0] == values[1]


def test_nvml_that_does_not_know_a_function_leaves_the_fact_out(tmp_path: Path) -> None:
    old = fake_nvml()
    del old.nvmlDeviceGetGpuFabricInfo, old.nvmlDeviceGetRemappedRows
    sheet = play("h100x8-nvswitch", tmp_path, old)
    assert sheet.value("gpu.count") == 8
    assert sheet.value("fabric.state") is None
    assert sheet.value("gpu.remapped_rows_pending") is None
