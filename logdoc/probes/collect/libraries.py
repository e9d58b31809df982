"""Compilers, CUDA libraries on the search paths, and the Python packages that must fit torch.

Standard library only, Python 3.8."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable
from typing import Any

from logdoc.probes.collect.machine import Machine, Sheet

SYSTEM_FOLDERS = (
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
)
WHEEL_FOLDERS = ("nvidia/nccl/lib", "nvidia/cuda_runtime/lib", "nvidia/cudnn/lib", "nvidia/cu13/lib", "torch/lib")
# Where AWS and HPC-X put NCCL's network plugins, beside the loader's own folders.
PLUGIN_FOLDERS = (
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/amazon/efa/lib",
    "/opt/amazon/efa/lib64",
    "/opt/aws-ofi-nccl/lib",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
)
SHADOWING = ("libnccl.so", "libcudart.so", "libcudnn.so", "libcublas.so", "libcublasLt.so", "libtorch.so", "libcuda.so")
PACKAGES = [
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "flash-attn",
    "xformers",
    "deepspeed",
    "transformers",
    "accelerate",
    "lightning",
    "pytorch-lightning",
    "vllm",
    "apex",
    "bitsandbytes",
    "transformer-engine",
    "megatron-core",
    "peft",
    "datasets",
    "numpy",
    "ray",
    "nvidia-ml-py",
    "nvidia-cudnn-cu11",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu11",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-runtime",
]
TORCH_PIN = re.compile(r"^torch\s*\(?==\s*([\w.+!]+)\)?\s*(?:;|$)")


def libraries(machine: Machine, sheet: Sheet) -> None:
    """Facts lib.*, nvcc.*, gcc.*, package.*."""
    shared_objects(machine, sheet)
    shadowing(machine, sheet)
    toolchain(machine, sheet)
    packages(sheet, installed_packages())


def library_folders(machine: Machine) -> list[str]:
    """Every folder a CUDA or RDMA library could come from, in the order the loader prefers."""
    folders = [entry for entry in machine.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    for entry in machine.search_path():
        folders.extend(os.path.join(entry, inner) for inner in WHEEL_FOLDERS)
    home = machine.environ.get("CUDA_HOME") or machine.environ.get("CUDA_PATH")
    folders.extend([home + "/lib64"] if home else [])
    folders.append(machine.prefix() + "/lib")
    folders.extend(SYSTEM_FOLDERS)
    return folders


def find_libraries(machine: Machine, folders: Iterable[str], start: str) -> list[str]:
    """Distinct files whose name begins with `start`; links to one file count once."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in machine.names(folder):
            if name.startswith(start):
                path = os.path.join(folder, name)
                found.setdefault(machine.real(path), path)
    return list(found.values())


def shared_objects(machine: Machine, sheet: Sheet) -> None:
    """Where NCCL, the CUDA runtime and the driver's libraries lie."""
    folders = library_folders(machine)
    source = "library folders"
    for name, start in (("nccl", "libnccl.so"), ("cudart", "libcudart.so"), ("cudnn", "libcudnn.so")):
        paths = find_libraries(machine, folders, start)
        sheet.add(f"lib.{name}_paths", ", ".join(paths) or "none", source)
        sheet.add(f"lib.{name}_copies", len(paths), source)
    cache = machine.ask(sheet, ["ldconfig", "-p"], 2.0).out
    driver = (("libcuda", "libcuda.so.1"), ("nvml", "libnvidia-ml.so.1"), ("ibverbs", "libibverbs.so.1"))
    for fact, start in driver:
        paths = find_libraries(machine, folders, start)
        listed = re.search(rf"^\s*{re.escape(start)} .*=> (\S+)$", cache, re.MULTILINE)
        sheet.add("lib." + fact, bool(paths or listed), "library folders and ldconfig -p")
    plugins = find_libraries(machine, [*folders, *PLUGIN_FOLDERS], "libnccl-net")
    sheet.add("lib.nccl_net_plugin", ", ".join(plugins) or "none", source)
    fabric = find_libraries(machine, [*folders, *PLUGIN_FOLDERS], "libfabric.so")
    sheet.add("lib.libfabric", ", ".join(fabric) or "none", source)
    sheet.add("lib.gdrcopy", machine.exists("/dev/gdrdrv"), "/dev/gdrdrv")


def shadowing(machine: Machine, sheet: Sheet) -> None:
    """LD_LIBRARY_PATH and LD_PRELOAD come before a wheel's RUNPATH: a library found there replaces the shipped one."""
    entries = [entry for entry in machine.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    hits: list[str] = []
    for entry in entries:
        # The driver's own folders hold no toolkit library but libcuda, which belongs there.
        names = [name for name in SHADOWING if name != "libcuda.so" or "stubs" in entry]
        hits.extend(path for name in names for path in find_libraries(machine, [entry], name))
    preloaded = machine.environ.get("LD_PRELOAD", "")
    hits.extend(item for item in re.split(r"[ :]+", preloaded) if os.path.basename(item).startswith(SHADOWING))
    sheet.add("lib.ld_library_path_surprise", bool(hits), "LD_LIBRARY_PATH and LD_PRELOAD")
    if hits:
        sheet.add("lib.ld_library_path_hits", ", ".join(hits), "LD_LIBRARY_PATH and LD_PRELOAD")


def toolchain(machine: Machine, sheet: Sheet) -> None:
    """The compilers that building a CUDA extension needs; they matter for nothing else."""
    home = machine.environ.get("CUDA_HOME") or machine.environ.get("CUDA_PATH") or ""
    nvcc = machine.which("nvcc") or next(
        (path for path in (home + "/bin/nvcc", "/usr/local/cuda/bin/nvcc") if machine.exists(path)), None
    )
    sheet.add("nvcc.found", nvcc is not None, "nvcc on PATH, CUDA_HOME or /usr/local/cuda")
    if nvcc:
        sheet.add("nvcc.path", nvcc, "nvcc on PATH, CUDA_HOME or /usr/local/cuda")
        match = re.search(r"release (\d+)\.(\d+)", machine.ask(sheet, [nvcc, "--version"], 2.0).out)
        if match:
            sheet.add("nvcc.version", "{}.{}".format(*match.groups()), "nvcc --version")
            sheet.add("nvcc.major", int(match.group(1)), "nvcc --version")
    gcc = machine.which("gcc")
    sheet.add("gcc.found", gcc is not None, "gcc on PATH")
    if gcc:
        version = machine.ask(sheet, [gcc, "-dumpfullversion", "-dumpversion"], 2.0).out.strip()
        sheet.add("gcc.version", version or None, "gcc -dumpfullversion")
    sheet.add("ninja.found", machine.which("ninja") is not None, "ninja on PATH")


def installed_packages() -> dict[str, tuple[str, list[str]]]:
    """Version and requirements of each package in PACKAGES that this interpreter has; the first on sys.path counts."""
    metadata = importlib.import_module("importlib.metadata")
    found: dict[str, tuple[str, list[str]]] = {}
    for entry in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(entry.metadata["Name"] or "")).lower()
        if name in PACKAGES and name not in found:
            found[name] = (str(entry.version), list(entry.requires or []))
    return found


def packages(sheet: Sheet, found: dict[str, tuple[str, list[str]]]) -> None:
    """Versions, and packages whose own metadata pins another torch than the one that is installed."""
    source = "importlib.metadata"
    for name in PACKAGES:
        if name in found:
            sheet.add("package." + name, found[name][0], source)
    torch = found.get("torch", ("", []))[0]
    if not torch:
        return
    clashes = []
    for name, (version, requires) in sorted(found.items()):
        pins: list[Any] = [match.group(1) for match in map(TORCH_PIN.match, requires) if match]
        if pins and not any(same_release(pin, torch) for pin in pins):
            clashes.append(f"{name} {version} wants torch=={pins[0]}")
    sheet.add("package.torch_mismatch", bool(clashes), source)
    if clashes:
        sheet.add("package.torch_mismatches", "; ".join(clashes), source)


def same_release(pin: str, version: str) -> bool:
    """PEP 440's ==: a pin without a local part (+cu124) accepts any."""
    return pin == version if "+" in pin else pin == version.partition("+")[0]
