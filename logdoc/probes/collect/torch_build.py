"""Which torch the job's interpreter would import, how it was built, and what it sees.

Facts from files come first: an import may hang. Standard library only, Python 3.8."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from typing import Any

from logdoc.probes.collect.machine import Machine, Sheet

ASSIGNMENT = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*(.+)$", re.MULTILINE)
LOADED = {"lib.loaded_nccl": "libnccl.so", "lib.loaded_cudart": "libcudart", "lib.loaded_cudnn": "libcudnn.so"}


def torch_build(machine: Machine, sheet: Sheet) -> None:
    """Facts torch.*: from the files first, then from an import of torch (this process is expendable)."""
    sheet.add("python.version", ".".join(map(str, sys.version_info[:3])), "sys")
    sheet.add("python.path", sys.executable, "sys")
    path = machine.module_path("torch")
    sheet.add("torch.installed", path is not None, "search for torch on sys.path")
    if path is None:
        return
    folder = os.path.dirname(path)
    sheet.add("torch.path", folder, "search for torch on sys.path")
    version_file(machine, sheet, folder)
    copies(machine, sheet)
    installer(machine, sheet, os.path.dirname(folder))
    sheet.doing("import torch")
    try:
        torch = machine.import_module("torch")
    except Exception as error:
        sheet.add("torch.import_ok", False, "import torch")
        sheet.add("torch.import_error", f"{type(error).__name__}: {error}", "import torch")
        return
    sheet.add("torch.import_ok", True, "import torch")
    backends(sheet, torch)
    loaded_libraries(machine, sheet)
    cuda_state(sheet, torch)
    cudnn_version(sheet, torch)


def version_file(machine: Machine, sheet: Sheet, folder: str) -> None:
    """torch/version.py is written by the build: version, CUDA, commit; readable without importing anything."""
    source = folder + "/version.py"
    known: dict[str, Any] = {}
    for name, value in ASSIGNMENT.findall(machine.read(source) or ""):
        try:
            known[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
    version = known.get("__version__")
    if not isinstance(version, str):
        sheet.fail(f"{source} does not state a version: this torch is broken or half installed")
        return
    cuda = known.get("cuda")
    accelerators = [name for name in ("cuda", "hip", "xpu") if known.get(name)]
    sheet.add("torch.version", version, source)
    sheet.add("torch.git", known.get("git_version"), source)
    sheet.add("torch.local_version", version.partition("+")[2] or "none", source)
    sheet.add("torch.has_cuda", bool(cuda), source)
    sheet.add("torch.cuda", cuda or "none", source)
    sheet.add("torch.hip", known.get("hip"), source)
    if cuda:
        sheet.add("torch.cuda_major", int(str(cuda).split(".")[0]), source)
    sheet.add("torch.cpu_wheel", not accelerators, source)
    if not accelerators:
        # NCCL is only ever compiled into CUDA (and, as RCCL, ROCm) builds.
        sheet.add("torch.has_nccl", False, source)


def copies(machine: Machine, sheet: Sheet) -> None:
    """Several torches on sys.path: the first one wins, the others confuse pip, conda and the reader."""
    found: list[str] = []
    for entry in machine.search_path():
        place = machine.real(os.path.join(entry, "torch"))
        if machine.exists(os.path.join(entry, "torch", "version.py")) and place not in found:
            found.append(place)
    sheet.add("torch.duplicates", max(0, len(found) - 1), "search for torch on sys.path")
    if len(found) > 1:
        sheet.add("torch.duplicate_paths", ", ".join(found), "search for torch on sys.path")


def installer(machine: Machine, sheet: Sheet, site: str) -> None:
    """Who installed torch, from which wheel, and whether pip and conda both did."""
    infos = [name for name in machine.names(site) if re.match(r"torch-[^-]+\.dist-info$", name)]
    conda = [
        name
        for name in machine.names(machine.prefix() + "/conda-meta")
        if re.match(r"(pytorch|libtorch|torch)-\d.*\.json$", name)
    ]
    pip = ""
    for name in infos:
        info = os.path.join(site, name)
        pip = (machine.read(info + "/INSTALLER") or "").split("\n")[0]
        tags = re.findall(r"^Tag: (\S+)", machine.read(info + "/WHEEL") or "", re.MULTILINE)
        sheet.add("torch.wheel", f"{name[: -len('.dist-info')]} {tags[0] if tags else ''}", info)
        sheet.add("torch.metadata_version", name[len("torch-") : -len(".dist-info")], info)
    if len(infos) > 1:
        sheet.add("torch.metadata_copies", ", ".join(infos), site)
    by_conda = bool(conda)
    if by_conda or pip:
        sheet.add("torch.installer", "conda" if by_conda else pip, "INSTALLER and conda-meta")
        sheet.add("torch.mixed_installers", by_conda and pip not in ("", "conda"), "INSTALLER and conda-meta")


def backends(sheet: Sheet, torch: Any) -> None:
    """What torch.distributed was compiled with, and the NCCL inside."""
    source = "torch.distributed"
    dist = getattr(torch, "distributed", None)
    available = bool(dist and dist.is_available())
    sheet.add("torch.has_distributed", available, source + ".is_available()")
    built: list[str] = []
    for name in ("gloo", "nccl", "mpi", "ucc", "xccl"):
        check = getattr(dist, f"is_{name}_available", None) if available else None
        has = bool(check()) if check else False
        if has:
            built.append(name)
        if name in ("gloo", "nccl", "mpi"):
            sheet.add("torch.has_" + name, has, f"{source}.is_{name}_available()")
    sheet.add("torch.backends", ",".join(built) or "none", source)
    if "nccl" in built:
        try:
            version = torch.cuda.nccl.version()
            text = ".".join(str(part) for part in version) if isinstance(version, tuple) else str(version)
            for fact in ("torch.nccl", "nccl.version"):
                sheet.add(fact, text, "torch.cuda.nccl.version()")
        except Exception as error:
            sheet.fail(f"torch.cuda.nccl.version(): {error}")
    flags = getattr(getattr(torch, "_C", None), "_cuda_getArchFlags", None)
    arches = flags() if flags else None
    if arches:
        sheet.add("torch.arch_list", ",".join(arches.split()), "torch._C._cuda_getArchFlags()")


def cudnn_version(sheet: Sheet, torch: Any) -> None:
    """The cuDNN that torch loads, or its complaint when that is not the one it was compiled with."""
    source = "torch.backends.cudnn.version()"
    sheet.doing(source)
    ask = getattr(getattr(getattr(torch, "backends", None), "cudnn", None), "version", None)
    if ask is None:
        return
    try:
        number = ask()
    except Exception as error:
        sheet.add("torch.cudnn_error", f"{type(error).__name__}: {error}", source)
        return
    if number is None:
        sheet.add("torch.cudnn", "none", source)
        return
    # 8902 is 8.9.2; from version 9 on there are two digits for each part: 90100 is 9.1.0.
    step = 1000 if number < 90000 else 10000
    sheet.add("torch.cudnn", f"{number // step}.{number % step // 100}.{number % 100}", source)


def cuda_state(sheet: Sheet, torch: Any) -> None:
    """Whether this torch reaches a GPU, and the driver's own words when it does not. Opens the driver: may hang.

    The first call that counts devices gets the words, later ones none (seen with torch 2.14.1, where cuDNN's version
    asks for them too): so nothing may touch CUDA before this.
    """
    source = "torch.cuda.is_available()"
    sheet.doing(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            available = bool(torch.cuda.is_available())
            sheet.add("torch.device_count", int(torch.cuda.device_count()) if available else 0, source)
            sheet.add("torch.cuda_available", available, source)
        except Exception as error:
            sheet.add("torch.cuda_error", str(error), source)
    said = [str(entry.message) for entry in caught if "CUDA" in str(entry.message)]
    if said and not sheet.value("torch.cuda_available"):
        sheet.add("torch.cuda_error", said[0], source)


def loaded_libraries(machine: Machine, sheet: Sheet) -> None:
    """The libraries the loader really chose once torch was imported (not those that a path lists)."""
    maps = machine.read("/proc/self/maps") or ""
    files = {line.split(None, 5)[5] for line in maps.split("\n") if line.count("/") and len(line.split(None, 5)) == 6}
    for fact, start in LOADED.items():
        hits = sorted(path for path in files if os.path.basename(path).startswith(start))
        if hits:
            sheet.add(fact, ", ".join(hits), "/proc/self/maps after import torch")
