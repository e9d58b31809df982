"""Network, limits, memory, container, scheduler and variables, from small file trees and spoken answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from logdoc.probes.collect.host import host_memory, limits, shm
from logdoc.probes.collect.machine import Answer
from logdoc.probes.collect.network import chosen, network
from logdoc.probes.collect.surroundings import container_kind, environment, masked, scheduler, seconds, shareable
from tests.test_probes_collect import SmallMachine, facts_of

NAMES = ["lo", "eth0", "eth1", "docker0", "ibp12s0", "virbr0", "enp1s0"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("=eth", []),
        ("^docker,lo,virbr", ["eth0", "eth1", "ibp12s0", "enp1s0"]),
        ("^=eth0,lo", ["eth1", "docker0", "ibp12s0", "virbr0", "enp1s0"]),
        ("bond0", []),
        ("enp1s0,eth1", ["eth1", "enp1s0"]),
    ],
)
def test_names_as_nccl_reads_them(pattern: str, names: list[str]) -> None:
    assert chosen(pattern, NAMES) == names


def interface_files(*named: tuple[str, str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for index, (name, address) in enumerate(named, start=1):
        folder = f"/sys/class/net/{name}"
        files |= {f"{folder}/ifindex": str(index), f"{folder}/flags": "0x1003", f"{folder}/mtu": str(1400 + index)}
        files |= {f"{folder}/operstate": "up", **({f"/addresses/{name}": address} if address else {})}
    return files


def test_nccl_prefers_infiniband_then_plain_interfaces(tmp_path: Path) -> None:
    named = [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("eth0", "10.0.0.1"), ("ib0", "10.1.0.1")]
    known = facts_of(network, SmallMachine(tmp_path / "ib", interface_files(*named)))
    assert (known["net.nccl_would_take"], known["net.mtu"]) == ("ib0", 1404)
    known = facts_of(network, SmallMachine(tmp_path / "eth", interface_files(*named[:3])))
    assert known["net.nccl_would_take"] == "eth0"
    known = facts_of(network, SmallMachine(tmp_path / "docker", interface_files(*named[:2], ("eth0", ""))))
    assert known["net.nccl_would_take"] == "docker0"


def test_a_demanded_interface_that_is_missing(tmp_path: Path) -> None:
    files = interface_files(("lo", "127.0.0.1"), ("ens3", "10.0.0.1")) | {"/names/m": "10.0.0.9"}
    environ = {"NCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "ens", "MASTER_ADDR": "m", "MASTER_PORT": "99999"}
    known = facts_of(network, SmallMachine(tmp_path, files, environ=environ))
    assert known["net.ifname_matches"] is False
    assert known["net.gloo_ifname_matches"] is False  # Gloo wants the whole name
    assert known["net.nccl_would_take"] == "none"
    assert (known["net.master_resolves"], known["net.master_is_local"]) == (True, False)
    assert known["net.master_port"] == 29500  # 99999 is no port
    assert "net.master_port_in_use" not in known


def test_an_ipv6_address_counts(tmp_path: Path) -> None:
    files = interface_files(("eth0", "")) | {
        "/proc/net/if_inet6": "fd00000000000000000000000000000a 02 40 00 80 eth0\n"
    }
    known = facts_of(network, SmallMachine(tmp_path, files))
    assert (known["net.interfaces"], known["net.nccl_would_take"]) == ("eth0 fd00::a up", "eth0")


def test_the_smallest_limit_of_the_groups_above_counts(tmp_path: Path) -> None:
    files = {
        "/sys/fs/cgroup/cgroup.controllers": "memory",
        "/proc/self/cgroup": "0::/job/step\n",
        "/sys/fs/cgroup/job/step/memory.max": "max",
        "/sys/fs/cgroup/job/step/memory.current": "11",
        "/sys/fs/cgroup/job/memory.max": "4096",
        "/sys/fs/cgroup/job/memory.current": "99",
    }
    known = facts_of(host_memory, SmallMachine(tmp_path, files))
    assert (known["cgroup.limited"], known["cgroup.limit"], known["cgroup.usage"]) == (True, 4096, 11)


def test_the_old_groups_no_limit_is_no_limit(tmp_path: Path) -> None:
    files = {
        "/proc/self/cgroup": "4:memory:/docker/abc\n0::/\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\noom_kill 3\n",
    }
    known = facts_of(host_memory, SmallMachine(tmp_path, files))
    assert (known["cgroup.limited"], known["cgroup.oom_kills"]) == (False, 3)
    assert "cgroup.limit" not in known


def test_only_what_stays_in_the_kernel_is_stuck(tmp_path: Path) -> None:
    files = {
        "/proc/42/stat": "42 (pt_main (x) D) D 1 42 42 0",
        "/proc/77/stat": "77 (cat) D 1 77 77 0",  # gone at the second look
        "/proc/9/stat": "9 (kworker/0:1) D 2 0 0 0",
        "/proc/43/stat": "43 (python) S 1 43 43 0",
    }
    known = facts_of(limits, SmallMachine(tmp_path, files))
    assert known["proc.uninterruptible"] == 1
    assert known["proc.uninterruptible_list"] == "pid 42 (pt_main (x) D)"


def test_leftovers_and_removal_of_shared_memory(tmp_path: Path) -> None:
    files = {
        "/dev/shm/nccl-AbC123": "", "/dev/shm/torch_1_2": "", "/dev/shm/sem.x": "",
        "/etc/systemd/logind.conf": "[Login]\n#RemoveIPC=yes\n", "/etc/systemd/logind.conf.d/a.conf": "RemoveIPC=no\n",
    }  # fmt: skip
    known = facts_of(shm, SmallMachine(tmp_path, files))
    assert (known["shm.nccl_leftovers"], known["shm.torch_leftovers"], known["ipc.remove_ipc"]) == (1, 1, False)


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({}, {"APPTAINER_NAME": "x.sif"}, "singularity"),
        ({"/proc/1/cgroup": "0::/system.slice/docker-1f.scope"}, {}, "docker"),
        ({"/run/systemd/container": "systemd-nspawn"}, {}, "systemd-nspawn"),
        ({"/proc/1/cgroup": "0::/init.scope"}, {}, "none"),
    ],
)
def test_kinds_of_containers(files: dict[str, str], environ: dict[str, str], kind: str, tmp_path: Path) -> None:
    assert container_kind(SmallMachine(tmp_path, files, environ=environ))[0] == kind


def test_a_drained_node_says_why(tmp_path: Path) -> None:
    node = "NodeName=n7 State=IDLE+DRAIN+NOT_RESPONDING Reason=Not responding [slurm@2025-11-03T08:00:00] Owner=N/A\n"
    answers = {
        "squeue -h -j 42 -o %T|%L": Answer("ok", 0, "RUNNING|UNLIMITED\n", ""),
        "scontrol show node n7 -o": Answer("ok", 0, node, ""),
    }
    environ = {"SLURM_JOB_ID": "42", "SLURMD_NODENAME": "n7"}
    known = facts_of(scheduler, SmallMachine(tmp_path, answers=answers, environ=environ))
    assert known["slurm.node_state"] == "IDLE+DRAIN+NOT_RESPONDING"
    assert known["slurm.node_reason"] == "Not responding [slurm@2025-11-03T08:00:00]"
    assert "slurm.time_left" not in known


def test_a_hostile_job_id_reaches_no_command(tmp_path: Path) -> None:
    class Deaf(SmallMachine):
        def answer(self, argv: Sequence[str], limit: float) -> Answer:
            raise AssertionError(argv)

    environ = {"SLURM_JOB_ID": "1 --help", "SLURMD_NODENAME": "-o x"}
    assert facts_of(scheduler, Deaf(tmp_path, environ=environ))["scheduler.kind"] == "slurm"


def test_slurms_time_left() -> None:
    assert seconds("1-02:03:04") == 93784
    assert seconds("03:04") == 184
    assert seconds("2:03:04") == 7384
    assert seconds("UNLIMITED") is None


def test_names_that_may_be_shared() -> None:
    for name in (
        "NCCL_DEBUG",
        "CUDA_VISIBLE_DEVICES",
        "MASTER_ADDR",
        "HF_HOME",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "SLURM_JOB_ID",
    ):
        assert shareable(name), name
    for name in (
        "HF_TOKEN",
        "HF_HUB_TOKEN",
        "NCCL_AUTH",
        "RAY_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HOME",
        "SLURM_JWT",
        "FI_KEY",
    ):
        assert not shareable(name), name
    assert masked("x" * 600) == "x" * 500 + "..."


def test_nccls_own_files_count_after_the_environment(tmp_path: Path) -> None:
    files = {
        "/h/.nccl.conf": "NCCL_DEBUG=WARN\nNCCL_ALGO = simple\n",
        "/etc/nccl.conf": "NCCL_ALGO=Ring\nNCCL_P2P_LEVEL=NVL\n",
    }
    known = facts_of(environment, SmallMachine(tmp_path, files, environ={"HOME": "/h", "NCCL_DEBUG": "INFO"}))
    assert known == {
        "env.NCCL_DEBUG": "INFO", "env.NCCL_ALGO": "simple", "env.NCCL_P2P_LEVEL": "NVL",
        "nccl.conf_files": "/h/.nccl.conf, /etc/nccl.conf",
    }  # fmt: skip
