"""Variables found in logs and scripts, and what is said of them: no folklore passes, no sane setting is blamed."""

from __future__ import annotations

import string
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from logdoc.catalog import environment
from logdoc.envlint import lint, read_job_script, variables_in
from logdoc.envlint.versions import is_before, is_beyond
from logdoc.types.report import EnvironmentProblem


def only(seen: Mapping[str, str | None], **known: object) -> EnvironmentProblem:
    """The single problem of some settings."""
    (problem,) = lint(seen, **known)  # type: ignore[arg-type]
    return problem


def severities(seen: Mapping[str, str | None], **known: object) -> dict[str, str]:
    return {problem.variable: problem.severity for problem in lint(seen, **known)}  # type: ignore[arg-type]


SANE = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,^TUNING",
    "NCCL_IB_HCA": "mlx5_0:1,mlx5_1:1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_ALGO": "^NVLS,ring",
    "NCCL_PROTO": "Simple",
    "NCCL_IB_TIMEOUT": "22",
    "NCCL_IB_RETRY_CNT": "7",
    "NCCL_P2P_LEVEL": "NVL",
    "NCCL_NET_GDR_LEVEL": "SYS",
    "NCCL_P2P_DISABLE": "0",
    "NCCL_IB_DISABLE": "0",
    "NCCL_NVLS_ENABLE": "2",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_BUFFSIZE": "8388608",
    "NCCL_CROSS_NIC": "1",
    "NCCL_IB_TC": "106",
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p.log",
    "NCCL_VERSION": "2.21.5-1",
    "NCCL_FASTRAK_NUM_FLOWS": "2",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "1800",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "true",
    "TORCH_DISTRIBUTED_DEBUG": "INFO",
    "TORCH_CPP_LOG_LEVEL": "INFO",
    "TORCH_LOGS": "+dist",
    "TORCH_CUDA_ARCH_LIST": "8.0;9.0",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2]",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "CUDA_LAUNCH_BLOCKING": "0",
    "CUDA_HOME": "/usr/local/cuda",
    "GLOO_SOCKET_IFNAME": "eth0",
    "OMP_NUM_THREADS": "8",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "3",
    "UCX_SOME_SETTING_LOGDOC_NEVER_HEARD_OF": "y",
    "FI_CXI_DEFAULT_RX_SIZE": "1024",
    "PATH": "/usr/bin",
}


@pytest.mark.parametrize("name", sorted(SANE))
def test_a_sane_setting_is_left_alone(name: str) -> None:
    assert lint({name: SANE[name]}) == ()


@pytest.mark.parametrize("versions", [{}, {"nccl": "2.20.5", "torch": "2.13.0"}])
def test_many_sane_settings_together_are_left_alone(versions: dict[str, str]) -> None:
    assert lint(SANE, versions=versions) == ()


# For every check of the catalogue: settings it must speak about (versions and context where it needs them).
HOLDS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, object]]] = {
    "algo-protocol-word-new": ({"NCCL_ALGO": "simple"}, {"nccl": "2.24.3"}, {}),
    "algo-protocol-word-old": ({"NCCL_ALGO": "simple"}, {"nccl": "2.21.5"}, {}),
    "algo-protocol-word": ({"NCCL_ALGO": "simple"}, {}, {}),
    "algo-unknown-word-new": ({"NCCL_ALGO": "Ring,Star"}, {"nccl": "2.27.3"}, {}),
    "algo-unknown-word-old": ({"NCCL_ALGO": "Star"}, {"nccl": "2.18.1"}, {}),
    "algo-unknown-word": ({"NCCL_ALGO": "allreduce:star"}, {}, {}),
    "proto-algorithm-word-new": ({"NCCL_PROTO": "ring"}, {"nccl": "2.24.3"}, {}),
    "proto-algorithm-word-old": ({"NCCL_PROTO": "ring"}, {"nccl": "2.20.5"}, {}),
    "proto-algorithm-word": ({"NCCL_PROTO": "ring"}, {}, {}),
    "proto-unknown-word-new": ({"NCCL_PROTO": "LL64"}, {"nccl": "2.26.2"}, {}),
    "proto-unknown-word": ({"NCCL_PROTO": "LL64"}, {}, {}),
    "debug-error": ({"NCCL_DEBUG": "ERROR"}, {}, {}),
    "debug-unknown": ({"NCCL_DEBUG": "1"}, {}, {}),
    "debug-file-shared": ({"NCCL_DEBUG_FILE": "/tmp/nccl.log"}, {}, {}),
    "ib-timeout-endless": ({"NCCL_IB_TIMEOUT": "1800"}, {}, {}),
    "ib-timeout-zero": ({"NCCL_IB_TIMEOUT": "0"}, {}, {}),
    "ib-timeout-long": ({"NCCL_IB_TIMEOUT": "28"}, {}, {}),
    "ib-disabled-with-infiniband": ({"NCCL_IB_DISABLE": "1"}, {}, {"infiniband": True}),
    "ib-disabled": ({"NCCL_IB_DISABLE": "1"}, {}, {}),
    "p2p-disabled": ({"NCCL_P2P_DISABLE": "1"}, {}, {}),
    "p2p-level-loc": ({"NCCL_P2P_LEVEL": "LOC"}, {}, {}),
    "shm-disabled": ({"NCCL_SHM_DISABLE": "1"}, {}, {}),
    "gdr-off": ({"NCCL_NET_GDR_LEVEL": "0"}, {}, {}),
    "nvls-off": ({"NCCL_NVLS_ENABLE": "0"}, {}, {}),
    "net-socket": ({"NCCL_NET": "socket"}, {}, {}),
    "flush-off": ({"NCCL_GDR_FLUSH_DISABLE": "1"}, {}, {}),
    "ofi-flush-off": ({"OFI_NCCL_GDR_FLUSH_DISABLE": "1"}, {}, {}),
    "buffsize-huge": ({"NCCL_BUFFSIZE": "1073741824"}, {}, {}),
    "gid-index-forced": ({"NCCL_IB_GID_INDEX": "3"}, {"nccl": "2.21.5"}, {}),
    "launch-mode-group": ({"NCCL_LAUNCH_MODE": "GROUP"}, {}, {}),
    "check-pointers-old": ({"NCCL_CHECK_POINTERS": "1"}, {"nccl": "2.30.7"}, {}),
    "mnnvl-required": ({"NCCL_MNNVL_ENABLE": "1"}, {}, {}),
    "ifname-rdma-device": ({"NCCL_SOCKET_IFNAME": "mlx5_0"}, {}, {}),
    "ifname-address": ({"NCCL_SOCKET_IFNAME": "10.0.0.1"}, {}, {}),
    "ifname-too-short": ({"NCCL_SOCKET_IFNAME": "e"}, {}, {}),
    "ifname-loopback-nodes": ({"NCCL_SOCKET_IFNAME": "lo"}, {}, {"nodes": 2}),
    "ifname-loopback": ({"NCCL_SOCKET_IFNAME": "=lo"}, {}, {}),
    "ifname-virtual-nodes": ({"NCCL_SOCKET_IFNAME": "docker0"}, {}, {"nodes": 4}),
    "ifname-virtual": ({"NCCL_SOCKET_IFNAME": "docker0"}, {}, {}),
    "hca-is-interface": ({"NCCL_IB_HCA": "ib0"}, {}, {}),
    "gloo-ifname-pattern": ({"GLOO_SOCKET_IFNAME": "^docker0"}, {}, {}),
    "gloo-ifname-address": ({"GLOO_SOCKET_IFNAME": "10.0.0.1"}, {}, {}),
    "gloo-ifname-loopback": ({"GLOO_SOCKET_IFNAME": "lo"}, {}, {"nodes": 2}),
    "async-handling-off": ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, {}, {}),
    "async-handling-off-old-name": ({"NCCL_ASYNC_ERROR_HANDLING": "0"}, {}, {}),
    "blocking-wait": ({"TORCH_NCCL_BLOCKING_WAIT": "1"}, {}, {}),
    "blocking-wait-old-name": ({"NCCL_BLOCKING_WAIT": "1"}, {}, {}),
    "monitoring-off": ({"TORCH_NCCL_ENABLE_MONITORING": "0"}, {}, {}),
    "heartbeat-short": ({"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "10"}, {}, {}),
    "recorder-off": ({"TORCH_FR_BUFFER_SIZE": "0"}, {}, {}),
    "record-streams-old": ({"TORCH_NCCL_AVOID_RECORD_STREAMS": "1"}, {"torch": "2.9.1"}, {}),
    "distributed-debug-invalid": ({"TORCH_DISTRIBUTED_DEBUG": "1"}, {}, {}),
    "distributed-debug-detail": ({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, {}, {}),
    "launch-blocking": ({"CUDA_LAUNCH_BLOCKING": "1"}, {}, {}),
    "caching-off": ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "0"}, {}, {}),
    "untrusted-load": ({"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}, {}, {}),
    "master-addr-with-port": ({"MASTER_ADDR": "node1:29500"}, {}, {}),
    "master-addr-local-nodes": ({"MASTER_ADDR": "localhost"}, {}, {"nodes": 2}),
    "master-port-invalid": ({"MASTER_PORT": "auto"}, {}, {}),
    "master-port-range": ({"MASTER_PORT": "99999"}, {}, {}),
    "master-port-privileged": ({"MASTER_PORT": "80"}, {}, {}),
    "rank-not-a-number": ({"RANK": "node-0"}, {}, {}),
    "world-size-not-a-number": ({"WORLD_SIZE": "two"}, {}, {}),
    "visible-devices-none": ({"CUDA_VISIBLE_DEVICES": ""}, {}, {}),
    "visible-devices-words": ({"CUDA_VISIBLE_DEVICES": "all"}, {}, {}),
    "visible-devices-mig": ({"CUDA_VISIBLE_DEVICES": "MIG-aa,MIG-bb"}, {}, {}),
    "nvidia-visible-none": ({"NVIDIA_VISIBLE_DEVICES": "void"}, {}, {}),
    "driver-capabilities-no-compute": ({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, {}, {}),
    "driver-capabilities-no-utility": ({"NVIDIA_DRIVER_CAPABILITIES": "compute"}, {}, {}),
    "omp-threads-zero": ({"OMP_NUM_THREADS": "0"}, {}, {}),
    "provider-tcp": ({"FI_PROVIDER": "tcp"}, {}, {}),
    "no-intra-node-transport-at-all": (
        {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET_DISABLE_INTRA": "1"},
        {},
        {},
    ),
    "p2p-and-shm-off": ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, {}, {}),
    "p2p-level-without-p2p": ({"NCCL_P2P_DISABLE": "1", "NCCL_P2P_LEVEL": "SYS"}, {}, {}),
    "ib-demanded-and-disabled": ({"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"}, {}, {}),
    "hca-without-ib": ({"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_DISABLE": "1"}, {}, {}),
    "subsys-without-info": ({"NCCL_DEBUG_SUBSYS": "NET", "NCCL_DEBUG": "WARN"}, {}, {}),
    "nvls-algorithm-without-nvls": ({"NCCL_ALGO": "NVLS", "NCCL_NVLS_ENABLE": "0"}, {}, {}),
    "collnet-algorithm-without-collnet": ({"NCCL_ALGO": "CollnetDirect", "NCCL_COLLNET_ENABLE": "0"}, {}, {}),
    "ctas-crossed": ({"NCCL_MIN_CTAS": "32", "NCCL_MAX_CTAS": "16"}, {}, {}),
    "channels-crossed": ({"NCCL_MIN_NCHANNELS": "32", "NCCL_MAX_NCHANNELS": "16"}, {}, {}),
    "blocking-wait-and-async-handling": (
        {"TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
        {},
        {},
    ),
    "blocking-wait-and-async-handling-old-names": (
        {"NCCL_BLOCKING_WAIT": "1", "NCCL_ASYNC_ERROR_HANDLING": "1"},
        {},
        {},
    ),
    "dump-without-recorder": ({"TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}, {"torch": "2.5.1"}, {}),
    "register-hook-and-expandable": (
        {
            "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK": "1",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        },
        {},
        {},
    ),
    "weights-only-both": (
        {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
        {},
        {},
    ),
    "rank-beyond-world": ({"RANK": "8", "WORLD_SIZE": "8"}, {}, {}),
    "local-rank-beyond-world": ({"LOCAL_RANK": "4", "LOCAL_WORLD_SIZE": "4"}, {}, {}),
    "local-master-on-several-nodes": ({"MASTER_ADDR": "127.0.0.1", "GROUP_WORLD_SIZE": "2"}, {}, {}),
    "local-master-on-several-slurm-nodes": ({"MASTER_ADDR": "localhost", "SLURM_NNODES": "4"}, {}, {}),
    "local-master-on-several-launch-nodes": ({"MASTER_ADDR": "localhost", "NNODES": "2"}, {}, {}),
}  # fmt: skip


class TestChecks:
    def test_every_check_has_an_example(self) -> None:
        assert {check.id for check in environment.env_checks() if not check.silent} == set(HOLDS)

    @pytest.mark.parametrize("check_id", sorted(HOLDS))
    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_it_speaks_about_its_example(self, check_id: str, language: str) -> None:
        (check,) = (check for check in environment.env_checks() if check.id == check_id)
        seen, versions, context = HOLDS[check_id]
        said = [
            problem
            for problem in lint(seen, versions=versions, language=language, context=context)
            if problem.variable == check.variable and problem.severity == check.severity
        ]
        beginning = check.problem.in_language(language).split("{")[0]
        assert any(problem.problem.startswith(beginning) for problem in said)
        assert not any("{" in problem.problem + problem.fix for problem in said)

    def test_a_single_invalid_value_is_reported_once(self) -> None:
        assert len(lint({"NCCL_DEBUG": "ERROR"})) == 1
        assert len(lint({"NCCL_IB_TIMEOUT": "1800"})) == 1
        assert len(lint({"NCCL_ALGO": "simple"})) == 1

    def test_loopback_is_right_on_one_node(self) -> None:
        assert lint({"NCCL_SOCKET_IFNAME": "lo"}, context={"nodes": 1}) == ()
        assert lint({"MASTER_ADDR": "localhost"}, context={"nodes": 1}) == ()
        assert lint({"MASTER_ADDR": "localhost", "NNODES": "1"}) == ()

    def test_an_excluded_interface_is_no_chosen_one(self) -> None:
        assert lint({"NCCL_SOCKET_IFNAME": "^lo,docker0"}) == ()

    def test_the_wrong_algorithm_gets_the_right_protocol(self) -> None:
        assert only({"NCCL_ALGO": "simple"}).fix == "NCCL_PROTO=Simple"
        assert only({"NCCL_ALGO": "^ll128"}).fix == "NCCL_PROTO=LL128"
        assert only({"NCCL_PROTO": "tree"}).fix == "NCCL_ALGO=Tree"

    def test_what_the_wrong_algorithm_does_depends_on_the_version(self) -> None:
        assert only({"NCCL_ALGO": "simple"}, versions={"nccl": "2.23.4"}).severity == "ineffective"
        assert only({"NCCL_ALGO": "simple"}, versions={"nccl": "2.24.3"}).severity == "breaks"

    def test_values_filled_in_by_a_shell_are_not_judged(self) -> None:
        assert lint({"MASTER_PORT": "$PORT", "RANK": "${SLURM_PROCID}", "NCCL_DEBUG": "`level`"}) == ()
        assert lint({"MASTER_ADDR": "<first node>", "NCCL_DEBUG": None}) == ()


class TestNames:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
            ("NCCL_IB_GID_INDX", "NCCL_IB_GID_INDEX"),
            ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
            ("NCCL_DEBUG_SUBSYSTEM", "NCCL_DEBUG_SUBSYS"),
            ("NCCL_PROTOS", "NCCL_PROTO"),
            ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
            ("PYTORCH_CUDA_ALLOC_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"),
            ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
        ],
    )
    def test_a_slip_is_told_with_the_right_name(self, name: str, meant: str) -> None:
        problem = only({name: "1"})
        assert (problem.severity, problem.fix) == ("ineffective", meant)

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"),
            ("NCCL_HIGH_PRIORITY", "TORCH_NCCL_HIGH_PRIORITY"),
            ("TORCH_NCCL_DEBUG", "NCCL_DEBUG"),
        ],
    )
    def test_a_wrong_prefix_is_told(self, name: str, meant: str) -> None:
        problem = only({name: "1"})
        assert (problem.severity, problem.fix) == ("ineffective", meant)

    def test_an_unknown_name_is_not_called_wrong(self) -> None:
        problem = only({"NCCL_MY_PLUGIN_MODE": "x"})
        assert problem.severity == "note"
        assert "plugin" in problem.problem

    @pytest.mark.parametrize("name", ["UCX_TLX", "FI_PROVIDERS", "OFI_NCCL_PROTOCOLS", "TORCH_MY_SWITCH", "FOO", ""])
    def test_families_known_in_part_are_left_alone(self, name: str) -> None:
        assert lint({name: "1"}) == ()

    @pytest.mark.parametrize("name", ["NCCL_INIT_TIMEOUT", "NCCL_NVLS_DISABLE", "NCCL_LOG_LEVEL", "TORCH_USE_CUDA_DSA"])
    @pytest.mark.parametrize("versions", [{}, {"nccl": "2.27.3", "torch": "2.8.0"}])
    def test_folklore_does_nothing_in_any_version(self, name: str, versions: dict[str, str]) -> None:
        problem = only({name: "1"}, versions=versions)
        assert problem.severity == "ineffective"
        assert problem.fix

    def test_a_name_some_frameworks_read_is_told_honestly(self) -> None:
        assert "framework" in only({"NCCL_TIMEOUT": "1800"}).problem
        assert "框架" in only({"NCCL_TIMEOUT": "1800"}, language="zh").problem

    def test_a_renamed_variable(self) -> None:
        old = "NCCL_ASYNC_ERROR_HANDLING"
        assert severities({old: "1"}) == {old: "deprecated"}
        assert severities({old: "1"}, versions={"torch": "2.5.1"}) == {old: "deprecated"}
        assert only({old: "1"}).fix == "TORCH_NCCL_ASYNC_ERROR_HANDLING"

    def test_an_old_torch_knows_the_old_name_only(self) -> None:
        assert lint({"NCCL_ASYNC_ERROR_HANDLING": "1"}, versions={"torch": "1.13.1"}) == ()
        assert lint({"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}, versions={"torch": "2.5.1"}) == ()

    def test_a_name_the_installed_version_no_longer_reads(self) -> None:
        gone = {"NCCL_WORK_FIFO_DEPTH": "65536"}
        assert lint(gone, versions={"nccl": "2.21.5"}) == ()
        assert only(gone, versions={"nccl": "2.22.3"}).severity == "ineffective"
        assert only(gone).severity == "note"
        assert only({"NCCL_TREE_THRESHOLD": "0"}, versions={"nccl": "2.20.5"}).severity == "ineffective"

    def test_a_name_the_installed_version_does_not_read_yet(self) -> None:
        new = {"NCCL_SOCKET_RETRY_CNT": "100"}
        assert lint(new) == ()
        assert lint(new, versions={"nccl": "2.24.3"}) == ()
        problem = only(new, versions={"nccl": "2.21.5+cuda12.4"})
        assert problem.severity == "ineffective"
        assert "2.24.3" in problem.problem
        assert "2.21.5" in problem.problem

    def test_minor_releases_are_numbers_not_decimals(self) -> None:
        assert (is_before(Version("2.9.1"), "2.10", "nccl"), is_before(Version("2.10.3"), "2.9", "nccl")) == (
            True,
            False,
        )
        assert (is_beyond(Version("2.10.3"), "2.9"), is_beyond(Version("2.9.1"), "2.10")) == (True, False)
        assert not is_beyond(Version("2.9.1"), "2.9")

    def test_pytorch_may_have_read_a_name_one_release_earlier(self) -> None:
        assert [is_before(Version(f"2.{minor}.0"), "2.11", "torch") for minor in (9, 10, 11)] == [True, False, False]

    def test_an_unreadable_version_is_an_unknown_one(self) -> None:
        assert lint({"NCCL_SOCKET_RETRY_CNT": "100"}, versions={"nccl": "unknown"}) == ()
        assert only({"NCCL_ALGO": "simple"}, versions={"nccl": "?"}).severity == "breaks"


class TestValues:
    @pytest.mark.parametrize(
        ("name", "value", "severity"),
        [
            ("NCCL_P2P_DISABLE", "true", "ineffective"),
            ("NCCL_IB_DISABLE", "yes", "ineffective"),
            ("NCCL_P2P_DISABLE", "2", "ineffective"),
            ("NCCL_CUMEM_ENABLE", "true", "ineffective"),
            ("NCCL_BUFFSIZE", "8M", "ineffective"),
            ("NCCL_MIN_CTAS", "many", "ineffective"),
            ("NCCL_MIN_CTAS", "200", "ineffective"),
            ("NCCL_IB_TC", "300", "ineffective"),
            ("NCCL_P2P_LEVEL", "nvl", "ineffective"),
            ("NCCL_P2P_LEVEL", "FAST", "ineffective"),
            ("NCCL_SOCKET_FAMILY", "IPv4", "ineffective"),
            ("NCCL_DEBUG_SUBSYS", "INIT,NETWORK", "ineffective"),
            ("TORCH_NCCL_DUMP_ON_TIMEOUT", "maybe", "breaks"),
            ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "long", "breaks"),
            ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "7", "ineffective"),
            ("CUDA_DEVICE_MAX_CONNECTIONS", "64", "ineffective"),
        ],
    )
    def test_an_impossible_value(self, name: str, value: str, severity: str) -> None:
        assert only({name: value}).severity == severity

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("NCCL_CUMEM_ENABLE", "false"),
            ("NCCL_CUMEM_ENABLE", "-2"),
            ("NCCL_MIN_CTAS", "-1"),
            ("NCCL_P2P_LEVEL", "4"),
            ("NCCL_SOCKET_MAGIC", "0x1234"),
            ("NCCL_DEBUG", "info"),
            ("NCCL_DEBUG", ""),
            ("NCCL_SET_THREAD_NAME", "true"),
            ("TORCH_NCCL_DUMP_ON_TIMEOUT", "FALSE"),
            ("TORCH_DISTRIBUTED_DEBUG", "off"),
            ("CUDA_VISIBLE_DEVICES", "GPU-8f6c1a2b-0000-1111-2222-333344445555"),
            ("CUDA_VISIBLE_DEVICES", "0, 1"),
            ("NCCL_ALGO", "allreduce:tree,ring;broadcast:ring"),
        ],
    )
    def test_a_possible_value(self, name: str, value: str) -> None:
        assert lint({name: value}) == ()

    def test_a_word_in_lower_case_gets_its_spelling(self) -> None:
        assert only({"NCCL_P2P_LEVEL": "sys"}).fix == "NCCL_P2P_LEVEL=SYS"

    def test_a_word_for_yes_gets_the_number(self) -> None:
        problem = only({"NCCL_P2P_DISABLE": "true"})
        assert problem.fix == "NCCL_P2P_DISABLE=1"
        assert "nothing is disabled" in problem.problem

    def test_a_huge_value_is_quoted_in_part(self) -> None:
        problem = only({"NCCL_BUFFSIZE": "x" * 10_000})
        assert len(problem.problem) < 500
        assert problem.value is not None
        assert len(problem.value) < 200


class TestAllocatorOptions:
    @pytest.mark.parametrize(
        ("value", "word"),
        [
            ("expandable_segment:True", "expandable_segments"),
            ("expandable_segments:true", "True"),
            ("expandable_segments=True", "colon"),
            ("max_split_size_mb:16", "21.."),
            ("garbage_collection_threshold:80", "0.0..1.0"),
            ("backend:jemalloc", "cudaMallocAsync"),
            ("speed:max", "speed"),
        ],
    )
    def test_what_pytorch_refuses_breaks_the_job(self, value: str, word: str) -> None:
        problem = only({"PYTORCH_CUDA_ALLOC_CONF": value})
        assert problem.severity == "breaks"
        assert word in problem.problem

    def test_each_option_is_judged(self) -> None:
        problems = lint({"PYTORCH_ALLOC_CONF": "fast:1,backend:native,slow:2"})
        assert len(problems) == 2

    def test_options_depend_on_the_version(self) -> None:
        new = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        assert lint(new, versions={"torch": "2.5.1"}) == ()
        assert "1.13" in only(new, versions={"torch": "1.13.1"}).problem
        gone = {"PYTORCH_CUDA_ALLOC_CONF": "roundup_bypass_threshold_mb:64"}
        assert lint(gone, versions={"torch": "2.0.1"}) == ()
        assert only(gone, versions={"torch": "2.1.2"}).severity == "breaks"


class TestReport:
    def test_the_gravest_comes_first_and_the_order_is_fixed(self) -> None:
        seen = {"NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "simple", "NCCL_LAUNCH_MODE": "GROUP", "NCCL_DEBUG": "ERROR"}
        problems = lint(seen)
        assert [problem.severity for problem in problems] == ["breaks", "ineffective", "deprecated", "note"]
        assert lint(dict(reversed(seen.items()))) == problems

    def test_it_speaks_chinese(self) -> None:
        assert "协议" in only({"NCCL_ALGO": "simple"}, language="zh").problem

    def test_a_value_is_never_read_as_a_template(self) -> None:
        assert "'%s %(value)s \\1'" in only({"NCCL_DEBUG": "%s %(value)s \\1"}).problem


SETTINGS = [
    ("node1:311:402 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.", {"NCCL_IB_TIMEOUT": "22"}),
    ("node1:311:402 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0", {"NCCL_SOCKET_IFNAME": "eth0"}),
    ("NCCL_IB_ADDR_RANGE set by environment to 10.0.0.0/8", {"NCCL_IB_ADDR_RANGE": "10.0.0.0/8"}),
    ("node1:311:402 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0", {"NCCL_IB_HCA": "mlx5_0"}),
    ("export NCCL_ALGO=simple", {"NCCL_ALGO": "simple"}),
    ("  export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1  # work round", {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}),
    ('export NCCL_SOCKET_IFNAME="eth0,eth1"', {"NCCL_SOCKET_IFNAME": "eth0,eth1"}),
    ("export NCCL_DEBUG", {"NCCL_DEBUG": None}),
    ("cd /data && export NCCL_DEBUG=INFO; torchrun train.py", {"NCCL_DEBUG": "INFO"}),
    ("NCCL_PROTO=LL torchrun --nproc-per-node 8 train.py", {"NCCL_PROTO": "LL"}),
    ("NCCL_DEBUG=INFO NCCL_PROTO=LL ./all_reduce_perf -b 8", {"NCCL_DEBUG": "INFO", "NCCL_PROTO": "LL"}),
    ("env NCCL_DEBUG=WARN python3.11 train.py", {"NCCL_DEBUG": "WARN"}),
    ("user@host:~$ OMP_NUM_THREADS=4 python train.py", {"OMP_NUM_THREADS": "4"}),
    ("+ export TORCH_DISTRIBUTED_DEBUG=DETAIL", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    ("NCCL_DEBUG=INFO", {"NCCL_DEBUG": "INFO"}),
    ("[rank0]: NCCL_MAX_NCHANNELS=16", {"NCCL_MAX_NCHANNELS": "16"}),
    ("3: CUDA_VISIBLE_DEVICES=0,1", {"CUDA_VISIBLE_DEVICES": "0,1"}),
    ("RANK=0", {"RANK": "0"}),
    ("CUDA_VISIBLE_DEVICES=", {"CUDA_VISIBLE_DEVICES": ""}),
    (
        "docker run --gpus all -e NCCL_SHM_DISABLE=1 --env CUDA_VISIBLE_DEVICES=0,1 --env=NCCL_DEBUG=INFO image",
        {"NCCL_SHM_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "INFO"},
    ),
    ("docker run -e NCCL_DEBUG image", {"NCCL_DEBUG": None}),
    (
        "mpirun -np 8 -x NCCL_NET=IB -x LD_LIBRARY_PATH -x NCCL_DEBUG ./all_reduce_perf",
        {"NCCL_NET": "IB", "NCCL_DEBUG": None},
    ),
    ("    -x NCCL_TOPO_FILE=/opt/topo.xml \\", {"NCCL_TOPO_FILE": "/opt/topo.xml"}),
    ("mpiexec -genv NCCL_DEBUG INFO ./a.out", {"NCCL_DEBUG": "INFO"}),
    ("#SBATCH --export=ALL,NCCL_CROSS_NIC=1", {"NCCL_CROSS_NIC": "1"}),
    ("srun --export=ALL,NCCL_DEBUG=INFO,NCCL_PROTO=LL python x.py", {"NCCL_DEBUG": "INFO", "NCCL_PROTO": "LL"}),
    ("sbatch --export ALL,NCCL_DEBUG=INFO job.sh", {"NCCL_DEBUG": "INFO"}),
    ("ENV NCCL_NVLS_ENABLE 0", {"NCCL_NVLS_ENABLE": "0"}),
    ('ENV NCCL_CUMEM_ENABLE=0 NCCL_ALGO="Tree"', {"NCCL_CUMEM_ENABLE": "0", "NCCL_ALGO": "Tree"}),
    ("setenv NCCL_MIN_NCHANNELS 4", {"NCCL_MIN_NCHANNELS": "4"}),
    ('os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"', {"TORCH_NCCL_BLOCKING_WAIT": "1"}),
    ("    os.environ['RANK'] = str(rank)", {"RANK": None}),
    ("os.environ.setdefault('MASTER_ADDR', 'localhost')", {"MASTER_ADDR": "localhost"}),
    ("- {name: GLOO_SOCKET_IFNAME, value: eth0}", {"GLOO_SOCKET_IFNAME": "eth0"}),
]

ADVICE = [
    "Disable NVLS (NCCL_NVLS_ENABLE=0) if you wish to avoid this error in the future. ",
    "You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "consider passing CUDA_LAUNCH_BLOCKING=1.",
    "CUDA_LAUNCH_BLOCKING=1.",
    "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "Warning: 0TORCH_NCCL_AVOID_RECORD_STREAMS=1 has no effect for point-to-point collectives.",
    "ValueError: local_rank 4 exceeds available GPUs in CUDA_VISIBLE_DEVICES=0,1",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    "Environment variable NCCL_BLOCKING_WAIT is deprecated; use TORCH_NCCL_BLOCKING_WAIT instead",
    "export NCCL_P2P_DISABLE=1 to work around it",
    "export NCCL_P2P_DISABLE=1 and run again",
    "Run `export NCCL_P2P_DISABLE=1` and retry",
    "Set NCCL_DEBUG=INFO; export NCCL_IB_DISABLE=1",
    "set NCCL_DEBUG=INFO to see more",
    "with NCCL_P2P_DISABLE set to 1 it works",
    "NCCL_DEBUG=INFO is recommended",
    "NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1",
    "# NCCL_DEBUG=INFO",
    "#export NCCL_DEBUG=INFO",
    "    # export NCCL_DEBUG=INFO",
    "expected RANK=0 but got RANK=1",
    "(hint: RANK=0 is special)",
    "- NCCL_P2P_DISABLE=1: slower, but starts",
    'if os.environ["NCCL_DEBUG"] == "INFO":',
    'print(os.environ["NCCL_DEBUG"])',
    "name: NCCL_DEBUG_of_something",
    "NCCL_DEBUG='INFO",
]


class TestVariablesIn:
    @pytest.mark.parametrize(("line", "expected"), SETTINGS, ids=[line for line, _ in SETTINGS])
    def test_a_setting(self, line: str, expected: dict[str, str | None]) -> None:
        assert variables_in([line]) == {name: (value, 0) for name, value in expected.items()}

    @pytest.mark.parametrize("line", ADVICE)
    def test_advice_is_no_setting(self, line: str) -> None:
        assert variables_in([line]) == {}

    def test_a_kubernetes_manifest(self) -> None:
        lines = [
            "        env:",
            "        - name: NCCL_IB_GID_INDEX",
            '          value: "3"',
            "        - name: POD_IP",
            '          value: "10.0.0.1"',
            "        - name: MASTER_ADDR",
            "          valueFrom:",
            "            fieldRef: {fieldPath: status.podIP}",
        ]
        assert variables_in(lines) == {"NCCL_IB_GID_INDEX": ("3", 2), "MASTER_ADDR": (None, 5)}

    def test_the_line_is_told(self) -> None:
        assert variables_in(["#!/bin/bash", "", "export NCCL_DEBUG=INFO"]) == {"NCCL_DEBUG": ("INFO", 2)}

    def test_the_last_setting_wins_and_unset_takes_away(self) -> None:
        lines = ["export NCCL_DEBUG=INFO", "export NCCL_DEBUG=WARN", "export NCCL_PROTO=LL", "unset NCCL_PROTO"]
        assert variables_in(lines) == {"NCCL_DEBUG": ("WARN", 1)}

    def test_what_nccl_read_beats_what_a_script_says(self) -> None:
        lines = ["h:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.", "export NCCL_IB_DISABLE=1"]
        assert variables_in(lines) == {"NCCL_IB_DISABLE": ("0", 0)}

    def test_only_our_families_are_taken(self) -> None:
        assert variables_in(["export LD_LIBRARY_PATH=/x HOME=/y SECRET_TOKEN=abc NCCL_DEBUG=INFO"]) == {
            "NCCL_DEBUG": ("INFO", 0)
        }

    def test_a_record_of_several_lines_counts_as_one(self) -> None:
        assert variables_in(["banner\nNCCL_DEBUG=INFO\nend"]) == {"NCCL_DEBUG": ("INFO", 0)}

    def test_an_environment_dump(self) -> None:
        dump = ["NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=^lo,docker", "SHELL=/bin/bash", "CUDA_HOME=/usr/local/cuda-12.4"]
        assert {name: value for name, (value, _) in variables_in(dump).items()} == {
            "NCCL_DEBUG": "INFO",
            "NCCL_SOCKET_IFNAME": "^lo,docker",
            "CUDA_HOME": "/usr/local/cuda-12.4",
        }

    @given(st.lists(st.text(max_size=200), max_size=10))
    def test_any_text_is_read(self, lines: list[str]) -> None:
        assert all(0 <= index < len(lines) for _, index in variables_in(lines).values())

    @given(st.text(alphabet=string.printable + "NCCL_DEBUG=\"'$;&|-e", max_size=300))
    def test_hostile_lines_are_read_and_judged(self, text: str) -> None:
        found = read_job_script(f"export NCCL_DEBUG=INFO\nNCCL_ALGO={text}")
        assert "NCCL_DEBUG" in found or "unset" in text
        lint({name: value for name, (value, _) in found.items()})


class TestReadJobScript:
    def test_yaml_mappings_count_in_a_file_known_to_be_a_script(self) -> None:
        script = 'environment:\n  NCCL_DEBUG: INFO\n  NCCL_IB_HCA: "mlx5_0:1"  # fast\n  - NCCL_PROTO=LL\n'
        found = {name: value for name, (value, _) in read_job_script(script).items()}
        assert found == {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0:1", "NCCL_PROTO": "LL"}
        assert variables_in(script.splitlines()) == {}

    def test_it_finds_what_variables_in_finds(self) -> None:
        script = "#!/bin/bash\n#SBATCH --export=ALL,NCCL_CROSS_NIC=1\nexport NCCL_DEBUG=INFO\ntorchrun x.py\n"
        assert read_job_script(script) == {"NCCL_CROSS_NIC": ("1", 1), "NCCL_DEBUG": ("INFO", 2)}

    def test_nothing_in_nothing_out(self) -> None:
        assert read_job_script("") == {}


@given(
    st.dictionaries(
        st.sampled_from(sorted(environment.env_variables())), st.one_of(st.none(), st.text(max_size=50)), max_size=20
    )
)
def test_any_value_of_any_variable_can_be_judged(seen: dict[str, str | None]) -> None:
    for problem in lint(seen, versions={"nccl": "2.21.5", "torch": "2.5.1"}):
        assert problem.variable in seen
        assert problem.problem
