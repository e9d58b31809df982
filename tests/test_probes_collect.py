"""torch, libraries and GPUs, from small file trees, spoken answers and pretended modules."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.gpu import VGPU_NAME, gpu_list
from logdoc.probes.collect.libraries import packages, same_release, shadowing, shared_objects, toolchain
from logdoc.probes.collect.machine import Machine, Sheet
from logdoc.probes.collect.main import covered, joined
from logdoc.probes.collect.topology import acs_control, distance, matrix
from logdoc.probes.collect.torch_build import torch_build


class SmallMachine(Machine):
    """Files from a dict, answers from a dict; whatever is not given is not there."""

    def __init__(
        self,
        root: Path,
        files: dict[str, str] | None = None,
        answers: dict[str, Answer] | None = None,
        environ: dict[str, str] | None = None,
        module: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(root=str(root), run=self.answer, environ=environ or {})
        self.answers = answers or {}
        self.module = module
        for name, text in (files or {}).items():
            path = Path(self.at(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def answer(self, argv: Sequence[str], limit: float) -> Answer:
        return self.answers.get(" ".join(argv), Answer("missing", 127, "", ""))

    def import_module(self, name: str) -> Any:
        if name == "torch" and self.module:
            return self.module()
        raise ImportError(name)

    def module_path(self, name: str) -> str | None:
        return "/site/torch/__init__.py" if self.exists("/site/torch/__init__.py") else None

    def search_path(self) -> list[str]:
        return ["/site", "/other"]

    def prefix(self) -> str:
        return "/env"

    def which(self, name: str) -> str | None:
        return name if any(command.split()[0] == name for command in self.answers) else None

    def ipv4(self, interface: str) -> str | None:
        return self.read(f"/addresses/{interface}")

    def resolve(self, name: str) -> list[str]:
        return [self.read(f"/names/{name}") or self.unresolved(name)]

    def unresolved(self, name: str) -> str:
        raise OSError(name)

    def pause(self, seconds: float) -> None:
        Path(self.at("/proc/77/stat")).unlink(missing_ok=True)


def facts_of(section: Callable[[Machine, Sheet], None], machine: Machine) -> dict[str, Any]:
    sheet = Sheet("x")
    section(machine, sheet)
    return {fact["id"]: fact["value"] for fact in sheet.facts}


CUDA_WHEEL = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.6.0+cu124'
debug = False
cuda: Optional[str] = '12.4'
git_version = '1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340'
hip: Optional[str] = None
"""
OLD_WHEEL = "__version__ = '1.8.1'\ndebug = False\ncuda = '10.2'\ngit_version = '56b43f4f'\nhip = None\n"
INFO = "/site/torch-2.6.0+cu124.dist-info"


def torch_files(version: str = CUDA_WHEEL) -> dict[str, str]:
    return {
        "/site/torch/__init__.py": "",
        "/site/torch/version.py": version,
        f"{INFO}/INSTALLER": "pip\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\nTag: cp310-cp310-linux_x86_64\n",
    }


def fake_torch(available: bool = True, complaint: str = "", cudnn: Callable[[], Any] = lambda: 90100) -> Any:
    complaints = [complaint] if complaint else []

    def is_available() -> bool:
        if complaints:  # once in a process, to whoever counts devices first (torch 2.14.1, CUDA build)
            warnings.warn(complaints.pop(), stacklevel=1)
        return available

    def cudnn_version() -> Any:  # it counts devices too
        is_available()
        return cudnn()

    distributed = SimpleNamespace(
        is_available=lambda: True,
        is_gloo_available=lambda: True,
        is_nccl_available=lambda: True,
        is_mpi_available=lambda: False,
    )
    cuda = SimpleNamespace(
        is_available=is_available,
        device_count=lambda: 4,
        nccl=SimpleNamespace(version=lambda: (2, 21, 5)),
    )
    flags = "sm_50 sm_80 sm_86 sm_90 compute_90"
    compiled = SimpleNamespace(_cuda_getArchFlags=lambda: flags)
    backends = SimpleNamespace(cudnn=SimpleNamespace(version=cudnn_version))
    return SimpleNamespace(distributed=distributed, cuda=cuda, backends=backends, _C=compiled)


def test_a_cuda_wheel_is_told_from_its_files_and_its_import(tmp_path: Path) -> None:
    known = facts_of(torch_build, SmallMachine(tmp_path, torch_files(), module=fake_torch))
    assert known["torch.version"] == "2.6.0+cu124"
    assert known["torch.local_version"] == "cu124"
    assert (known["torch.cuda"], known["torch.cuda_major"], known["torch.cpu_wheel"]) == ("12.4", 12, False)
    assert known["torch.has_nccl"] is True
    assert known["torch.nccl"] == known["nccl.version"] == "2.21.5"
    assert known["torch.backends"] == "gloo,nccl"
    assert known["torch.arch_list"] == "sm_50,sm_80,sm_86,sm_90,compute_90"
    assert (known["torch.cuda_available"], known["torch.device_count"]) == (True, 4)
    assert known["torch.wheel"] == "torch-2.6.0+cu124 cp310-cp310-linux_x86_64"
    assert (known["torch.installer"], known["torch.mixed_installers"]) == ("pip", False)


@pytest.mark.parametrize(("number", "version"), [(90100, "9.1.0"), (91002, "9.10.2"), (8902, "8.9.2"), (None, "none")])
def test_the_version_of_cudnn(number: int | None, version: str, tmp_path: Path) -> None:
    machine = SmallMachine(tmp_path, torch_files(), module=lambda: fake_torch(cudnn=lambda: number))
    assert facts_of(torch_build, machine)["torch.cudnn"] == version


def test_a_cudnn_that_does_not_fit_is_told_and_ends_nothing(tmp_path: Path) -> None:
    def refuse() -> int:
        raise RuntimeError("cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0)")

    known = facts_of(torch_build, SmallMachine(tmp_path, torch_files(), module=lambda: fake_torch(cudnn=refuse)))
    assert known["torch.cudnn_error"].startswith("RuntimeError: cuDNN version incompatibility")
    assert "torch.cudnn" not in known
    assert known["torch.cuda_available"] is True


def test_the_drivers_complaint_is_kept(tmp_path: Path) -> None:
    complaint = "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    machine = SmallMachine(tmp_path, torch_files(), module=lambda: fake_torch(False, complaint))
    known = facts_of(torch_build, machine)
    assert known["torch.cuda_available"] is False
    assert known["torch.device_count"] == 0
    assert known["torch.cuda_error"] == complaint


def test_an_import_that_fails_leaves_the_facts_of_the_files(tmp_path: Path) -> None:
    def broken() -> Any:
        raise ImportError("libcudnn.so.9: cannot open shared object file: No such file or directory")

    known = facts_of(torch_build, SmallMachine(tmp_path, torch_files(OLD_WHEEL), module=broken))
    assert (known["torch.version"], known["torch.cuda"], known["torch.import_ok"]) == ("1.8.1", "10.2", False)
    assert known["torch.import_error"].startswith("ImportError: libcudnn.so.9")
    # Whether a CUDA build has NCCL is only known from its import.
    assert "torch.has_nccl" not in known


def test_a_cpu_wheel_has_no_nccl_even_if_it_cannot_be_imported(tmp_path: Path) -> None:
    version = CUDA_WHEEL.replace("cu124", "cpu").replace("'12.4'", "None")
    known = facts_of(torch_build, SmallMachine(tmp_path, torch_files(version)))
    assert (known["torch.cpu_wheel"], known["torch.has_nccl"], known["torch.cuda"]) == (True, False, "none")


def test_a_half_installed_torch_is_an_error(tmp_path: Path) -> None:
    sheet = Sheet("torch-build")
    torch_build(SmallMachine(tmp_path, {"/site/torch/__init__.py": "", "/site/torch/version.py": "broken("}), sheet)
    assert "half installed" in sheet.errors[0]["error"]


def test_a_rocm_wheel_is_no_cpu_wheel(tmp_path: Path) -> None:
    version = (
        CUDA_WHEEL.replace("cu124", "rocm6.2.4").replace("'12.4'", "None").replace("= None\n", "= '6.2.41134'\n", 2)
    )
    version = version.replace("cuda: Optional[str] = '6.2.41134'", "cuda: Optional[str] = None")
    known = facts_of(torch_build, SmallMachine(tmp_path, torch_files(version)))
    assert (known["torch.hip"], known["torch.cuda"], known["torch.cpu_wheel"]) == ("6.2.41134", "none", False)
    assert "torch.has_nccl" not in known


def test_the_libraries_really_loaded(tmp_path: Path) -> None:
    line = "7f0000000000-7f0000001000 r-xp 00000000 fd:01 1234 {}\n"
    loaded = (
        "/site/nvidia/nccl/lib/libnccl.so.2",
        "/opt/cuda/libcudart.so.12",
        "/site/x/libcudnn.so.9",
        "/lib/libc.so.6",
    )
    maps = "".join(map(line.format, loaded)) + "7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0 [stack]\n"
    machine = SmallMachine(tmp_path, torch_files() | {"/proc/self/maps": maps}, module=fake_torch)
    known = facts_of(torch_build, machine)
    assert known["lib.loaded_nccl"] == "/site/nvidia/nccl/lib/libnccl.so.2"
    assert known["lib.loaded_cudart"] == "/opt/cuda/libcudart.so.12"
    assert known["lib.loaded_cudnn"] == "/site/x/libcudnn.so.9"


def test_two_torches_and_two_installers_are_seen(tmp_path: Path) -> None:
    files = torch_files() | {
        "/other/torch/version.py": CUDA_WHEEL,
        "/site/torch-2.4.1.dist-info/INSTALLER": "pip",
        "/env/conda-meta/pytorch-2.5.1-py3.10_cuda12.4_cudnn9.1.0_0.json": "{}",
    }
    known = facts_of(torch_build, SmallMachine(tmp_path, files, module=fake_torch))
    assert known["torch.duplicates"] == 1
    assert known["torch.duplicate_paths"] == "/site/torch, /other/torch"
    assert known["torch.mixed_installers"] is True
    assert "torch-2.4.1" in known["torch.metadata_copies"]


@pytest.mark.parametrize(
    ("card", "arches", "fits"),
    [
        ("9.0", "sm_80,sm_90", True),
        ("8.9", "sm_80", True),  # machine code of 8.0 runs on 8.9
        ("8.0", "sm_86", False),  # but not the other way round
        ("12.0", "sm_80,sm_90", False),
        ("12.0", "sm_80,compute_90", True),  # PTX is compiled for what is newer
        ("10.3", "sm_90a,compute_90a", False),  # architecture-specific code is not portable
        ("9.0", "sm_90a", True),
        ("7.5", "sm_70,sm_75", True),
    ],
)
def test_code_for_a_card(card: str, arches: str, fits: bool) -> None:
    assert covered(card, arches.split(",")) is fits
    values = {"torch.arch_list": arches, "gpu.sm": card}
    found = joined([{"id": name, "value": value} for name, value in values.items()])
    assert [(fact["id"], fact["value"]) for fact in found] == [("torch.arch_covers_gpu", fits)]


def test_a_library_before_the_wheels_own_is_seen(tmp_path: Path) -> None:
    files = {"/opt/cuda/lib/libcudart.so.11.0": "", "/opt/cuda/lib/libnccl.so.2": "", "/drv/libcuda.so.1": ""}
    environ = {"LD_LIBRARY_PATH": "/drv::/opt/cuda/lib", "LD_PRELOAD": "/lib/libjemalloc.so.2"}
    known = facts_of(shadowing, SmallMachine(tmp_path, files, environ=environ))
    assert known["lib.ld_library_path_surprise"] is True
    assert known["lib.ld_library_path_hits"] == "/opt/cuda/lib/libnccl.so.2, /opt/cuda/lib/libcudart.so.11.0"
    known = facts_of(shadowing, SmallMachine(tmp_path, environ={"LD_LIBRARY_PATH": "/drv"}))
    assert known == {"lib.ld_library_path_surprise": False}
    known = facts_of(shadowing, SmallMachine(tmp_path, environ={"LD_PRELOAD": "/a/libnccl.so.2.19:/b/libc.so"}))
    assert known["lib.ld_library_path_hits"] == "/a/libnccl.so.2.19"


def test_shared_objects_are_found_in_wheels_folders_and_the_loaders_cache(tmp_path: Path) -> None:
    files = {"/site/nvidia/nccl/lib/libnccl.so.2": "", "/usr/lib64/libnccl.so.2.18.3": "", "/dev/gdrdrv": ""}
    files |= {"/opt/amazon/efa/lib/libfabric.so.1": "", "/opt/amazon/ofi-nccl/lib/libnccl-net.so": ""}
    files |= {"/site/nvidia/cudnn/lib/libcudnn.so.9": "", "/site/nvidia/cudnn/lib/libcudnn_ops.so.9": ""}
    cache = "\tlibibverbs.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libibverbs.so.1\n"
    machine = SmallMachine(tmp_path, files, {"ldconfig -p": Answer("ok", 0, cache, "")})
    (tmp_path / "usr/lib64/libnccl.so.2").symlink_to("libnccl.so.2.18.3")
    known = facts_of(shared_objects, machine)
    assert known["lib.nccl_copies"] == 2
    assert (known["lib.ibverbs"], known["lib.libcuda"], known["lib.gdrcopy"]) == (True, False, True)
    assert known["lib.cudart_paths"] == "none"
    assert (known["lib.cudnn_copies"], known["lib.libfabric"]) == (1, "/opt/amazon/efa/lib/libfabric.so.1")
    assert known["lib.nccl_net_plugin"] == "/opt/amazon/ofi-nccl/lib/libnccl-net.so"


def test_the_compilers_versions(tmp_path: Path) -> None:
    said = "Cuda compilation tools, release 12.8, V12.8.93\n"
    answers = {"nvcc --version": Answer("ok", 0, said, "")}
    known = facts_of(toolchain, SmallMachine(tmp_path, answers=answers))
    assert (known["nvcc.version"], known["nvcc.major"], known["gcc.found"]) == ("12.8", 12, False)
    home = SmallMachine(tmp_path, {"/cuda/bin/nvcc": ""}, environ={"CUDA_HOME": "/cuda"})
    assert facts_of(toolchain, home)["nvcc.path"] == "/cuda/bin/nvcc"


def test_packages_that_want_another_torch() -> None:
    sheet = Sheet("libraries")
    installed = {
        "torch": ("2.6.0+cu124", []),
        "torchvision": ("0.21.0", ["numpy", "torch==2.6.0", "pillow>=5.3"]),
        "torchaudio": ("2.5.1", ["torch==2.5.1"]),
        "xformers": ("0.0.29", ["torch (==2.5.1) ; python_version >= '3.9'"]),
        "vllm": ("0.8.0", ["torch>=2.5"]),
    }
    packages(sheet, installed)
    assert sheet.value("package.torchvision") == "0.21.0"
    assert sheet.value("package.torch_mismatch") is True
    wrong = "torchaudio 2.5.1 wants torch==2.5.1; xformers 0.0.29 wants torch==2.5.1"
    assert sheet.value("package.torch_mismatches") == wrong
    assert not same_release("2.6.0+cu126", "2.6.0+cu124")


@pytest.mark.parametrize(
    ("value", "visible"),
    [("0,1", 2), ("", 0), ("-1", 0), ("0,9,1", 1), ("GPU-1a, GPU-2b", 2), ("3", 1), ("0,-1,1", 1)],
)
def test_what_cuda_visible_devices_leaves(value: str, visible: int, tmp_path: Path) -> None:
    rows = "".join(
        f"{index}, Tesla T4, GPU-{index}, 00000000:00:1E.0, 535.1, Default, Enabled, [N/A], 7.5\n" for index in range(4)
    )
    query = "index,name,uuid,pci.bus_id,driver_version,compute_mode,persistence_mode,mig.mode.current,compute_cap"
    answers = {f"nvidia-smi --query-gpu={query} --format=csv,noheader,nounits": Answer("ok", 0, rows, "")}
    known = facts_of(gpu_list, SmallMachine(tmp_path, answers=answers, environ={"CUDA_VISIBLE_DEVICES": value}))
    assert (known["gpu.count"], known["gpu.visible"]) == (4, visible)


def test_without_tools_device_nodes_leave_the_count_unknown(tmp_path: Path) -> None:
    known = facts_of(gpu_list, SmallMachine(tmp_path, {"/dev/nvidia0": "", "/dev/nvidiactl": ""}))
    assert known["gpu.device_nodes"] == 1
    assert "gpu.count" not in known


def test_a_driver_that_does_not_answer_leaves_the_count_unknown(tmp_path: Path) -> None:
    class Hung(SmallMachine):
        def answer(self, argv: Sequence[str], limit: float) -> Answer:
            return Answer("abandoned", -1, "", "")

    sheet = Sheet("gpu-list")
    gpu_list(Hung(tmp_path), sheet)
    assert sheet.value("gpu.count") is None
    assert sheet.value("gpu.unanswered_seconds") == 15.0
    assert "left behind" in sheet.errors[0]["error"]


def test_a_container_without_the_drivers_libraries(tmp_path: Path) -> None:
    class Bare(SmallMachine):
        def answer(self, argv: Sequence[str], limit: float) -> Answer:
            return Answer("ok", 12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "")

    known = facts_of(gpu_list, Bare(tmp_path))
    assert known["gpu.nvml_missing"] is True
    assert "libnvidia-ml.so" in known["gpu.driver_error"]
    assert "gpu.count" not in known


def test_names_of_virtual_gpus() -> None:
    for name in ("GRID A100-20C", "NVIDIA A40-48Q", "NVIDIA L40S-8Q", "NVIDIA A16-2B", "NVIDIA H100XM-80C"):
        assert VGPU_NAME.search(name), name
    for name in ("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "Tesla V100-PCIE-16GB", "NVIDIA GB200"):
        assert not VGPU_NAME.search(name), name


def test_a_topology_table_with_named_adapters() -> None:
    text = (
        "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n"
        "GPU0\t X \tNV12\tPIX\t0-31\n"
        "GPU1\tNV12\t X \tSYS\t0-31\n"
        "mlx5_0\tPIX\tSYS\t X \t\n"
    )
    names, cells = matrix(text)
    assert names == ["GPU0", "GPU1", "mlx5_0"]
    assert cells[("GPU1", "mlx5_0")] == "SYS"
    order = ["X", "NV18", "NV2", "NV1", "C2C", "PIX", "PHB", "SYS", "new"]
    assert sorted(order, key=distance) == order


def test_the_acs_register() -> None:
    config = bytearray(0x120)
    struct.pack_into("<I", config, 0x100, 0x0001 | 1 << 16 | 0x110 << 20)
    struct.pack_into("<I", config, 0x110, 0x000D | 1 << 16)
    struct.pack_into("<H", config, 0x116, 0x1D)
    assert acs_control(bytes(config)) == 0x1D
    struct.pack_into("<H", config, 0x110, 0x0003)
    assert acs_control(bytes(config)) == 0  # a bridge without ACS
    assert acs_control(bytes(config[:64])) is None  # all a plain user may read
    struct.pack_into("<I", config, 0x110, 0x0003 | 0x110 << 20)
    assert acs_control(bytes(config)) == 0  # a list that runs in a circle ends
