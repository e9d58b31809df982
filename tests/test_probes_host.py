"""Network, limits, memory, container, scheduler and variables, from small file trees and spoken answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.host import disk, host_memory, limits, shm
from logdoc.probes.collect.network import chosen, network, route_to, routes
from logdoc.probes.collect.surroundings import (
    container_kind,
    cpu_quota,
    environment,
    masked,
    scheduler,
    seconds,
    shareable,
)
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


def test_the_choice_of_gloo_follows_its_variable_then_the_hosts_name(tmp_path: Path) -> None:
    files = interface_files(("lo", "127.0.0.1"), ("eth0", "10.0.0.1"), ("ib0", "10.1.0.1"))

    def choice(folder: str, address: str = "", **environ: str) -> object:
        machine = SmallMachine(tmp_path / folder, dict(files), environ=environ)
        if address:
            named = Path(machine.at(f"/names/{machine.hostname()}"))
            named.parent.mkdir(parents=True, exist_ok=True)
            named.write_text(address)
        return facts_of(network, machine)["net.gloo_would_take"]

    assert choice("named", "10.0.0.1") == "eth0"
    assert choice("loopback", "127.0.1.1") == "lo"
    assert choice("elsewhere", "10.9.9.9") == "lo"  # an address that cannot be bound: torch falls back
    assert choice("unresolved") == "lo"
    assert choice("told", "10.0.0.1", GLOO_SOCKET_IFNAME="ib0") == "ib0"
    assert choice("both", "10.0.0.1", GLOO_SOCKET_IFNAME="ib0,eth0") == "eth0, ib0"
    assert choice("wrong", "10.0.0.1", GLOO_SOCKET_IFNAME="ib1") == "none"


def test_the_most_specific_route_wins_then_the_lowest_metric(tmp_path: Path) -> None:
    table = (
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        "eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
        "eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
        "ib0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
        "broken\tzz\n"
    )
    files = interface_files(("eth0", "192.168.0.5"), ("ib0", "10.1.0.1")) | {
        "/proc/net/route": table,
        "/names/m": "10.1.7.7",
    }
    machine = SmallMachine(tmp_path, files, environ={"MASTER_ADDR": "m"})
    known = facts_of(network, machine)
    assert known["net.routes"] == (
        "10.1.0.0/16 dev ib0; 0.0.0.0/0 via 192.168.0.1 dev eth0; 0.0.0.0/0 via 10.0.0.1 dev eth1"
    )
    assert (known["net.default_interface"], known["net.gateway"]) == ("eth0", "192.168.0.1")
    assert known["net.master_interface"] == "ib0"
    assert [getattr(route_to(routes(machine), one), "interface", None) for one in ("8.8.8.8", "fd00::1")] == [
        "eth0",
        None,
    ]


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


def test_the_tightest_quota_is_told(tmp_path: Path) -> None:
    said = (
        "Disk quotas for user a (uid 1): \n     Filesystem  blocks  quota  limit  grace  files  quota  limit  grace\n"
        "/dev/sda1 100 0 1100 0 5 0 0 0\nnas:/home 2000* 1000 0 60 100* 90 120 60\n/dev/sdb1 1 0 0 0 1 0 0 0\n"
    )
    machine = SmallMachine(tmp_path, answers={"quota -w -p": Answer("ok", 1, said, "")})
    known = facts_of(disk, machine)
    assert (known["disk.quota_free"], known["disk.quota_filesystem"]) == (0, "nas:/home")
    assert known["disk.quota_inodes_free"] == 20
    assert "disk.quota_free" not in facts_of(disk, SmallMachine(tmp_path))


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cgroup.controllers": "cpu", "job/cpu.max": "max 100000", "cpu.max": "250000 100000"}, 2.5),
        ({"cgroup.controllers": "cpu", "job/cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    ],
)
def test_the_processors_that_a_group_leaves(files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    laid = {f"/sys/fs/cgroup/{name}": text for name, text in files.items()}
    group = "0::/job\n" if "cgroup.controllers" in files else "3:cpu,cpuacct:/\n"
    assert cpu_quota(SmallMachine(tmp_path, laid | {"/proc/self/cgroup": group})) == quota


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
        ({"/proc/mounts": "overlay / overlay rw,lowerdir=/a 0 0\nproc /proc proc rw 0 0\n"}, {}, "unknown"),
        ({"/proc/mounts": "/dev/sda1 / ext4 rw 0 0\noverlay /var/x overlay rw 0 0\n"}, {}, "none"),
    ],
)
def test_kinds_of_containers(files: dict[str, str], environ: dict[str, str], kind: str, tmp_path: Path) -> None:
    assert container_kind(SmallMachine(tmp_path, files, environ=environ))[0] == kind


def test_a_drained_node_says_why(tmp_path: Path) -> None:
    node = "NodeName=n7 State=IDLE+DRAIN+NOT_RESPONDING Reason=Not responding [slurm@2025-11-03T08:00:00] Owner=N/A\n"
    answers = {
        "squeue -h -j 42 -o %T|%L|%l": Answer("ok", 0, "RUNNING|UNLIMITED|UNLIMITED\n", ""),
        "scontrol show node n7 -o": Answer("ok", 0, node, ""),
    }
    environ = {"SLURM_JOB_ID": "42", "SLURMD_NODENAME": "n7"}
    known = facts_of(scheduler, SmallMachine(tmp_path, answers=answers, environ=environ))
    assert known["slurm.node_state"] == "IDLE+DRAIN+NOT_RESPONDING"
    assert known["slurm.node_reason"] == "Not responding [slurm@2025-11-03T08:00:00]"
    assert "slurm.time_left" not in known
    assert "slurm.time_limit" not in known


def test_what_slurm_gave_the_job(tmp_path: Path) -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_CPU": "2048", "SLURM_GPUS_PER_NODE": "a100:4", "SLURM_NPROCS": "8"}
    known = facts_of(scheduler, SmallMachine(tmp_path, environ={**environ, "SLURM_MEM_PER_NODE": "0"}))
    assert (known["slurm.memory_per_cpu"], known["slurm.tasks"]) == (2 << 30, 8)
    # A typed GPU request is no number, and 0 is Slurm's word for all of the node's memory.
    assert "slurm.gpus" not in known
    assert "slurm.memory" not in known


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
