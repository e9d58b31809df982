"""The catalogue's tables: complete, consistent in themselves, and right where a fact is well known."""

from __future__ import annotations

import errno
import re
import signal
import sys
from string import ascii_letters

import pytest
from packaging.version import Version

from logdoc.catalog import environment, gpu, host, versions
from logdoc.facts import FactSet, version_facts
from logdoc.kept.data import document, rows
from logdoc.kept.sentences import sentences
from logdoc.types.finding import Fact
from logdoc.types.rule import Text

PLACEHOLDER = re.compile(r"\{(\w+)\}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def bilingual_rows() -> list[tuple[str, str, str, str]]:
    """(table, key, English, Chinese) of every row a person may read."""
    tables = [
        "env.tsv",
        "env_allocator_keys.tsv",
        "xid.tsv",
        "cuda_errors.tsv",
        "nccl_results.tsv",
        "library_status.tsv",
        "ib_wc_status.tsv",
        "errno.tsv",
        "signals.tsv",
        "exit_codes.tsv",
        "slurm_states.tsv",
        "k8s_reasons.tsv",
    ]
    return [
        (name, next(iter(row.values())), row["meaning_en"], row["meaning_zh"]) for name in tables for row in rows(name)
    ]


@pytest.mark.parametrize(
    "name",
    ["env_checks.yaml", "env_combinations.yaml", "env_wording.yaml", *sorted({entry[0] for entry in bilingual_rows()})],
)
def test_every_table_is_read_once_and_not_empty(name: str) -> None:
    read = document if name.endswith(".yaml") else rows
    assert len(read(name)) > 5
    assert read(name) is read(name)


def test_what_a_person_reads_is_there_in_both_languages() -> None:
    half = [entry for entry in bilingual_rows() if bool(entry[2]) != bool(entry[3])]
    latin = [entry for entry in bilingual_rows() if entry[3] and not CHINESE.search(entry[3])]
    assert not half
    assert not latin


def test_texts_have_the_same_placeholders_in_both_languages() -> None:
    texts = [(check.id, text) for check in environment.env_checks() for text in (check.problem, check.fix)]
    texts += list(sentences("env_wording.yaml").items())
    assert not [
        name for name, text in texts if sorted(PLACEHOLDER.findall(text.en)) != sorted(PLACEHOLDER.findall(text.zh))
    ]


class TestEnvironment:
    def test_every_known_name_is_there(self) -> None:
        assert len(environment.env_variables()) >= 514
        by_owner = {
            owner: sum(v.owner == owner for v in environment.env_variables().values()) for owner in ("nccl", "torch")
        }
        assert by_owner["nccl"] >= 300
        assert by_owner["torch"] >= 110

    @pytest.mark.parametrize(
        "name",
        [
            "CUDA_VISIBLE_DEVICES",
            "CUDA_LAUNCH_BLOCKING",
            "CUDA_DEVICE_ORDER",
            "CUDA_DEVICE_MAX_CONNECTIONS",
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
            "OMP_NUM_THREADS",
            "GLOO_SOCKET_IFNAME",
            "MASTER_ADDR",
            "MASTER_PORT",
            "RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "OFI_NCCL_PROTOCOL",
            "UCX_TLS",
            "FI_PROVIDER",
        ],
    )
    def test_the_launchers_and_drivers_names_are_there(self, name: str) -> None:
        assert environment.env_variables()[name].status == "current"

    @pytest.mark.parametrize(
        ("name", "instead"),
        [
            ("NCCL_INIT_TIMEOUT", "init_process_group(timeout="),
            ("NCCL_TIMEOUT", "init_process_group(timeout="),
            ("NCCL_SOCKET_TIMEOUT", "NCCL_SOCKET_RETRY_CNT"),
            ("NCCL_CONNECT_TIMEOUT", "NCCL_SOCKET_RETRY_CNT"),
            ("NCCL_NET_RETRY_COUNT", "NCCL_IB_RETRY_CNT"),
            ("NCCL_NVLS_DISABLE", "NCCL_NVLS_ENABLE=0"),
            ("NCCL_GDR_DISABLE", "NCCL_NET_GDR_LEVEL=LOC"),
        ],
    )
    def test_folklore_says_what_to_set_instead(self, name: str, instead: str) -> None:
        entry = environment.env_variables()[name]
        assert entry.status == "never-existed"
        assert entry.owner == "folklore"
        assert instead in entry.instead

    def test_every_replacement_is_itself_read(self) -> None:
        table = environment.env_variables()
        for entry in table.values():
            if entry.renamed_to:
                assert table[entry.renamed_to].status in ("current", "undocumented"), entry.name
            for named in re.findall(r"\b(?:NCCL|TORCH)_[A-Z0-9_]+", entry.instead):
                assert table[named].status in ("current", "undocumented") or named == entry.name, entry.name

    def test_versions_can_be_compared(self) -> None:
        for entry in environment.env_variables().values():
            spans = [Version(text) for text in (entry.since, entry.until) if text]
            assert spans == sorted(spans), entry.name

    def test_a_wildcard_covers_its_names(self) -> None:
        covered = environment.env_variable("NCCL_FASTRAK_NUM_FLOWS")
        assert covered is not None
        assert covered.name == "NCCL_FASTRAK_*"
        assert environment.env_variable("NCCL_FASTRA") is None

    def test_documented_variables_are_explained_in_chinese(self) -> None:
        untold = [v.name for v in environment.env_variables().values() if v.meaning.zh == v.meaning.en]
        assert not untold

    def test_the_longest_family_wins(self) -> None:
        family = environment.env_family("TORCH_NCCL_ENABLE_MONITORING")
        assert family is not None
        assert (family.prefix, family.closed) == ("TORCH_NCCL_", True)
        assert environment.env_family("HOME") is None

    def test_allocator_options_know_their_release(self) -> None:
        assert environment.allocator_keys()["expandable_segments"].since == "2.1"
        assert environment.allocator_keys()["roundup_bypass_threshold_mb"].until == "2.0"

    def test_checks_report_on_a_catalogued_variable(self) -> None:
        for check in environment.env_checks():
            assert environment.env_variable(check.variable), check.id
            assert check.variable in check.when, check.id
            assert check.silent or (check.problem.en and check.fix.en), check.id
        ids = [check.id for check in environment.env_checks()]
        assert len(ids) == len(set(ids))

    def test_advice_names_only_variables_that_somebody_reads(self) -> None:
        """No folklore: a fix must not itself be a name that nobody reads."""
        readable = {v.name for v in environment.env_variables().values() if v.status != "never-existed"}
        for check in environment.env_checks():
            if "unset" not in check.fix.en:
                assert set(re.findall(r"\b(?:NCCL|TORCH|CUDA)_[A-Z0-9_]+", check.fix.en)) <= readable, check.id


class TestCuda:
    @pytest.mark.parametrize(
        "key",
        [
            700,
            "700",
            "cudaErrorIllegalAddress",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "an illegal memory access was encountered",
            "An illegal memory access was encountered.",
        ],
    )
    def test_an_error_is_found_by_number_name_and_text(self, key: int | str) -> None:
        error = gpu.cuda_error(key)
        assert error is not None
        assert (error.code, error.fault) == (700, "application")

    def test_an_older_wording_is_known(self) -> None:
        error = gpu.cuda_error("all CUDA-capable devices are busy or unavailable")
        assert error is not None
        assert error.code == 46

    def test_the_unknown_is_none(self) -> None:
        assert gpu.cuda_error("no such text") is None
        assert gpu.cuda_error(12345) is None

    def test_library_statuses(self) -> None:
        alloc = gpu.library_status("CUBLAS_STATUS_ALLOC_FAILED")
        assert alloc is not None
        assert (alloc.library, alloc.codes, alloc.hint) == ("cublas", (3,), "gpu-memory")
        internal = gpu.library_status("CUDNN_STATUS_INTERNAL_ERROR")
        assert internal is not None
        assert internal.codes == (4, 4000)
        assert gpu.library_status("CUDNN_STATUS_NONSENSE") is None

    def test_nccl_results(self) -> None:
        names = [result.name for code in range(9) if (result := gpu.nccl_result(code))]
        assert names[0] == "ncclSuccess"
        assert names[6] == "ncclRemoteError"
        remote = gpu.nccl_result(6)
        assert remote is not None
        assert remote.secondary
        assert gpu.nccl_result(99) is None


class TestXid:
    @pytest.mark.parametrize(
        ("code", "fault", "action"),
        [
            (13, "application", "restart-job"),
            (31, "application", "restart-job"),
            (45, "application", "ignore"),
            (48, "hardware", "reset-gpu"),
            (63, "hardware", "ignore"),
            (74, "fabric", "reset-gpu"),
            (79, "hardware", "drain-node"),
            (94, "hardware", "restart-job"),
            (95, "hardware", "reset-gpu"),
            (119, "driver", "reset-gpu"),
        ],
    )
    def test_well_known_ones(self, code: int, fault: str, action: str) -> None:
        found = gpu.xid(code)
        assert found is not None
        assert (found.fault, found.action, found.in_use) == (fault, action, True)

    def test_every_code_in_use_is_explained(self) -> None:
        found = [entry for code in range(1, 173) if (entry := gpu.xid(code))]
        used = [entry for entry in found if entry.in_use]
        assert len(found) == 172
        assert len(used) >= 60
        assert all(entry.fault and entry.meaning.en and entry.meaning.zh for entry in used)
        assert gpu.xid(0) is None


class TestHost:
    @pytest.mark.parametrize(
        ("code", "signal_name", "role"),
        [
            (0, None, "ok"),
            (1, None, "own-fault"),
            (2, None, "own-fault"),
            (137, "SIGKILL", "outside"),
            (-9, "SIGKILL", "outside"),
            ("-9", "SIGKILL", "outside"),
            ("0:9", "SIGKILL", "outside"),
            ("1:0", None, "own-fault"),
            (139, "SIGSEGV", "own-fault"),
            (134, "SIGABRT", "own-fault"),
            (-6, "SIGABRT", "own-fault"),
            (143, "SIGTERM", "consequence"),
            (135, "SIGBUS", "own-fault"),
            (127, None, "own-fault"),
            (255, None, "own-fault"),
            (3, None, "own-fault"),
        ],
    )
    def test_exit_codes(self, code: int | str, signal_name: str | None, role: str) -> None:
        status = host.exit_status(code)
        assert status is not None
        assert (status.signal, status.role) == (signal_name, role)
        assert status.meaning.en
        assert status.meaning.zh

    @pytest.mark.parametrize("code", [-99, 256, 100000, "", "abc", "9:9:9", "1" * 50])
    def test_no_exit_code(self, code: int | str) -> None:
        assert host.exit_status(code) is None

    @pytest.mark.skipif(sys.platform != "linux", reason="the table holds Linux numbers")
    def test_numbers_agree_with_this_linux(self) -> None:
        for row in rows("signals.tsv"):
            assert signal.Signals(int(row["number"])).name in (row["name"], "SIGPOLL")
        for row in rows("errno.tsv"):
            assert getattr(errno, row["name"]) == int(row["number"])

    @pytest.mark.parametrize("key", [111, "111", "ECONNREFUSED", "Connection refused"])
    def test_errno(self, key: int | str) -> None:
        found = host.linux_errno(key)
        assert found is not None
        assert found.name == "ECONNREFUSED"

    def test_infiniband_statuses(self) -> None:
        statuses = [host.ib_completion(code) for code in range(23)]
        assert all(statuses)
        flush, retry = host.ib_completion(5), host.ib_completion(12)
        assert flush is not None
        assert retry is not None
        assert flush.role == "consequence"
        assert retry.name == "IBV_WC_RETRY_EXC_ERR"
        assert host.ib_completion(99) is None

    @pytest.mark.parametrize(
        ("name", "class_"),
        [("OUT_OF_MEMORY", "limit"), ("OOM", "limit"), ("CANCELLED by 1000", "user"), ("CANCELLED+", "user"),
         ("NODE_FAIL", "node"), ("TIMEOUT", "limit"), ("PREEMPTED", "scheduler"), ("NonZeroExitCode", "application")],
    )  # fmt: skip
    def test_slurm(self, name: str, class_: str) -> None:
        state = host.slurm_state(name)
        assert state is not None
        assert state.class_ == class_

    @pytest.mark.parametrize(
        ("name", "class_"),
        [("OOMKilled", "limit"), ("Evicted", "node"), ("Error", "application"), ("ContainerCannotRun", "image"),
         ("NodeLost", "node"), ("Preempted", "scheduler"), ("DeadlineExceeded", "limit")],
    )  # fmt: skip
    def test_kubernetes(self, name: str, class_: str) -> None:
        reason = host.kubernetes_reason(name)
        assert reason is not None
        assert reason.class_ == class_

    def test_unknown_words_are_none(self) -> None:
        assert host.slurm_state("") is None
        assert host.kubernetes_reason("oomkilled?") is None


class TestVersions:
    @pytest.mark.parametrize(
        ("version", "ranges", "inside"),
        [
            ("2.21.5+cuda12.4", ">=2.21", True),
            ("2.1.0a0+29c30b1", ">=2.1", True),
            ("2.29U1", ">=2.29", True),
            ("v2.18.3", "<2.19", True),
            ("2.24.0", "<2.24", False),
            ("unknown", ">=1", None),
            ("2.1", "not a range", None),
        ],
    )
    def test_ranges(self, version: str, ranges: str, inside: bool | None) -> None:
        assert versions.within(version, ranges) is inside

    @pytest.mark.parametrize(
        ("cuda", "minimum", "shipped"),
        [
            ("12.1", "525.60.13", "530.30.02"),
            ("12.4.1", "525.60.13", "550.54.15"),
            ("11.8", "450.80.02", "520.61.05"),
            ("13.0", "580.65.06", "580.65.06"),
            ("13.0.2", "580.65.06", "580.95.05"),
            ("11.0", "450.36.06", "450.36.06"),
            ("10.2", "440.33", "440.33"),
        ],
    )
    def test_drivers(self, cuda: str, minimum: str, shipped: str) -> None:
        found = versions.cuda_min_driver(cuda)
        assert found is not None
        assert (found.minimum, found.shipped) == (minimum, shipped)

    @pytest.mark.parametrize("text", ["", "99.9", "none"])
    def test_an_unknown_cuda_has_no_driver(self, text: str) -> None:
        assert versions.cuda_min_driver(text) is None

    @pytest.mark.parametrize("text", ["sm_90", "sm_90a", "compute_90", "9.0", "90"])
    def test_an_architecture_in_any_spelling(self, text: str) -> None:
        found = versions.arch_support(text)
        assert found is not None
        assert (found.architecture, found.first_cuda) == ("Hopper", "11.8")

    def test_blackwell_and_dropped_architectures(self) -> None:
        for sm, first, last in (
            ("sm_100", "12.8", ""),
            ("sm_120", "12.8", ""),
            ("sm_70", "9.0", "12.9"),
            ("3.7", "6.5", "11.8"),
        ):
            found = versions.arch_support(sm)
            assert found is not None
            assert (found.first_cuda, found.last_cuda) == (first, last)
        assert versions.arch_support("sm_999") is None
        assert versions.arch_support("ampere") is None

    @pytest.mark.parametrize(
        ("name", "sm"),
        [
            ("NVIDIA A100-SXM4-80GB", "8.0"),
            ("NVIDIA A10", "8.6"),
            ("NVIDIA A10G", "8.6"),
            ("NVIDIA H100 80GB HBM3", "9.0"),
            ("NVIDIA H20-3e", "9.0"),
            ("NVIDIA GB200", "10.0"),
            ("NVIDIA GeForce RTX 4090", "8.9"),
            ("NVIDIA GeForce RTX 3090 Ti", "8.6"),
            ("NVIDIA RTX 6000 Ada Generation", "8.9"),
            ("NVIDIA RTX A6000", "8.6"),
            ("Quadro RTX 6000", "7.5"),
            ("Tesla V100-SXM2-32GB", "7.0"),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ],
    )
    def test_gpus_by_name(self, name: str, sm: str) -> None:
        found = versions.gpu_model(name)
        assert found is not None
        assert found.sm == sm
        assert versions.arch_support(found.sm) is not None

    @pytest.mark.parametrize(
        ("name", "first", "last"), [("Tesla V100-SXM2-32GB", "9.0", "12.9"), ("NVIDIA B200", "12.8", None)]
    )
    def test_a_log_that_names_a_gpu_tells_which_cuda_compiles_for_it(
        self, name: str, first: str, last: str | None
    ) -> None:
        facts = FactSet()
        facts.add([Fact(id="gpu.name", value=name, origin="log:1")])
        found = {fact.id: fact.value for fact in version_facts(facts)}
        assert (found["gpu.min_cuda"], found.get("gpu.last_cuda")) == (first, last)

    def test_an_unknown_gpu(self) -> None:
        assert versions.gpu_model("AMD Instinct MI300X") is None

    def test_what_a_torch_release_ships(self) -> None:
        bundle = versions.torch_bundles("2.5.1+cu124")
        assert bundle is not None
        assert (bundle.nccl, bundle.torchvision, bundle.torchaudio) == ("2.21.5", "0.20.1", "2.5.1")
        assert bundle.cuda == ("11.8", "12.1", "12.4")
        minor = versions.torch_bundles("2.4")
        assert minor is not None
        assert minor.torch == "2.4.1"
        assert versions.torch_bundles("2.5.9") is None
        assert versions.torch_bundles("?") is None

    def test_every_fact_names_its_source(self) -> None:
        for name in ("cuda_drivers.tsv", "gpu_arch_cuda.tsv", "gpu_names.tsv", "torch_bundles.tsv", "known_bad.tsv"):
            assert all(row["source"] for row in rows(name)), name

    def test_known_bad_releases(self) -> None:
        assert [bad.id for bad in versions.known_bad("nccl", "2.20.5")] == [
            "nccl-subgroup-truncation",
            "nccl-port-scan",
            "nccl-wrong-socket-type",
        ]
        (cublas,) = versions.known_bad("cublas", "12.1.3.1")
        assert cublas.where == "H20"
        assert isinstance(cublas.symptom, Text)
        assert versions.known_bad("nccl", "2.30.7") == ()
        assert versions.known_bad("nccl", ascii_letters) == ()
