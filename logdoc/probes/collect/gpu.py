"""Which GPUs there are, their memory, and who uses it. Standard library only, Python 3.8."""

from __future__ import annotations

import re
from typing import Any

from logdoc.probes.collect.gpu_reader import MIB, gpu_rows, integer, open_nvml, smi, smi_rows, words
from logdoc.probes.collect.machine import Machine, Sheet

LIST_FIELDS = [
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "compute_mode",
    "persistence_mode",
    "mig.mode.current",
    "compute_cap",
]
MEMORY_FIELDS = ["index", "uuid", "memory.total", "memory.used", "memory.free"]
PROCESS_FIELDS = ["gpu_uuid", "pid", "used_gpu_memory", "process_name"]
# A vGPU guest's card carries its profile in the name: GRID A100-20C, NVIDIA A40-48Q.
VGPU_NAME = re.compile(r"^GRID |-\d+(?:_\d+)?[ABCQ](?:ME)?$")
# More than any driver keeps for itself on an idle card.
OWN_OVERHEAD = 1 << 30
KERNEL_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+([\d.]+)")


def gpu_list(machine: Machine, sheet: Sheet) -> None:
    """Facts gpu.*: count, names, driver, modes; and what the kernel shows when no driver answers."""
    kernel_side(machine, sheet)
    rows, source = gpu_rows(machine, sheet, LIST_FIELDS)
    if rows is None:
        no_answer(machine, sheet)
        return
    lost = [row for row in rows if "fault" in row]
    rows = [row for row in rows if "fault" not in row]
    sheet.add("gpu.count", len(rows), source)
    if lost:
        sheet.add("gpu.lost", True, source)
        sheet.add("gpu.driver_error", "; ".join(f"GPU {row['index']}: {row['fault']}" for row in lost), source)
    if not rows:
        return
    summary(sheet, rows, source)
    visible(machine, sheet, len(rows))
    cuda_driver(machine, sheet)
    if sheet.value("gpu.mig"):
        listed = smi(machine, sheet, "-L") or ""
        sheet.add("gpu.mig_devices", len(re.findall(r"^\s+MIG ", listed, re.MULTILINE)), "nvidia-smi -L")


def kernel_side(machine: Machine, sheet: Sheet) -> None:
    """What the kernel knows without the driver's help: PCI devices, module, device nodes."""
    cards = 0
    for name in machine.names("/sys/bus/pci/devices"):
        folder = "/sys/bus/pci/devices/" + name
        vendor, kind = machine.read(folder + "/vendor"), machine.read(folder + "/class") or ""
        cards += vendor == "0x10de" and kind[:6] in ("0x0300", "0x0302")
    sheet.add("gpu.pci_count", cards, "/sys/bus/pci/devices")
    version = machine.read("/proc/driver/nvidia/version")
    sheet.add("gpu.driver_loaded", version is not None or machine.exists("/dev/dxg"), "/proc/driver/nvidia/version")
    found = KERNEL_MODULE.search(version or "")
    if found:
        sheet.add("gpu.kernel_module", found.group(1), "/proc/driver/nvidia/version")
        sheet.add("gpu.open_module", "Open Kernel Module" in (version or ""), "/proc/driver/nvidia/version")
    nodes = [name for name in machine.names("/dev") if re.match(r"nvidia\d+$", name)]
    sheet.add("gpu.device_nodes", len(nodes), "/dev/nvidia[0-9]*")


def no_answer(machine: Machine, sheet: Sheet) -> None:
    """Neither NVML nor nvidia-smi answered: zero GPUs only where the kernel shows none to this process."""
    silent = not any(error["kind"] in ("timeout", "abandoned") for error in sheet.errors)
    nodes = sheet.value("gpu.device_nodes") or machine.exists("/dev/dxg")
    if silent and not nodes and sheet.value("gpu.count") is None and sheet.value("gpu.driver_error") is None:
        sheet.add("gpu.count", 0, "no nvidia-smi, no NVML, no /dev/nvidia*")


def distinct(rows: list[dict[str, Any]], field: str) -> str | None:
    return ", ".join(sorted({str(row[field]) for row in rows if row.get(field)})) or None


def summary(sheet: Sheet, rows: list[dict[str, Any]], source: str) -> None:
    names = [str(row.get("name")) for row in rows]
    sheet.add("gpu.name", names[0], source)
    sheet.add("gpu.names", ", ".join(names), source)
    sheet.add("gpu.driver", distinct(rows, "driver_version"), source)
    sheet.add("gpu.sm", distinct(rows, "compute_cap"), source)
    sheet.add("gpu.mixed_models", len(set(names)) > 1, source)
    modes = [row["compute_mode"] for row in rows if row.get("compute_mode")]
    strict = [mode for mode in modes if mode != "Default"]
    sheet.add("gpu.compute_mode", (strict or modes or [None])[0], source)
    sheet.add("gpu.mig", any(row.get("mig.mode.current") == "Enabled" for row in rows), source)
    persistence = [row.get("persistence_mode") for row in rows if row.get("persistence_mode")]
    if persistence:
        sheet.add("gpu.persistence", all(mode == "Enabled" for mode in persistence), source)
    sheet.add("gpu.vgpu", any(VGPU_NAME.search(name) for name in names), source)
    for row in rows:
        for field, fact in (("name", "name"), ("uuid", "uuid"), ("pci.bus_id", "bus_id"), ("compute_cap", "sm")):
            sheet.add(f"gpu.{row.get('index')}.{fact}", row.get(field), source)


def visible(machine: Machine, sheet: Sheet, count: int) -> None:
    """How many of them CUDA_VISIBLE_DEVICES leaves: CUDA stops at the first entry it does not accept."""
    asked = machine.environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        sheet.add("gpu.visible", count, "CUDA_VISIBLE_DEVICES is not set")
        return
    left = 0
    for entry in (part.strip() for part in asked.split(",")):
        if (entry.isdigit() and int(entry) >= count) or not re.match(r"^(\d+|GPU-\S+|MIG-\S+)$", entry):
            break
        left += 1
    sheet.add("gpu.visible", left, f"CUDA_VISIBLE_DEVICES={asked}")


def cuda_driver(machine: Machine, sheet: Sheet) -> None:
    """The newest CUDA this driver can run."""
    nvml = open_nvml(machine, sheet)
    if nvml is not None:
        try:
            number = int(nvml.nvmlSystemGetCudaDriverVersion())
        except Exception:
            return  # a driver from before CUDA 9
        version, source = f"{number // 1000}.{number % 1000 // 10}", "NVML"
    else:
        found = re.search(r"CUDA Version:\s*(\d+\.\d+)", smi(machine, sheet) or "")
        if not found:
            return
        version, source = found.group(1), "nvidia-smi"
    sheet.add("gpu.cuda_driver", version, source)
    sheet.add("gpu.cuda_driver_major", int(version.split(".")[0]), source)


def gpu_memory(machine: Machine, sheet: Sheet) -> None:
    """Facts gpu.total, gpu.used, gpu.free of the fullest card, and of each card, in bytes."""
    rows, source = gpu_rows(machine, sheet, MEMORY_FIELDS)
    cards: list[tuple[str, int, int, int]] = []
    for row in rows or []:
        total, used, free = (integer(row, "memory." + part) for part in ("total", "used", "free"))
        if total is None or used is None or free is None or total <= 0:
            continue
        cards.append((str(row.get("index")), total, used, free))
        for part, value in (("total", total), ("used", used), ("free", free)):
            sheet.add(f"gpu.{row.get('index')}.{part}", value, source, "bytes")
    if not cards:
        return
    index, total, used, free = max(cards, key=lambda card: card[2] / card[1])
    sheet.add("gpu.fullest", index, source)
    sheet.add("gpu.total", total, source, "bytes")
    sheet.add("gpu.used", used, source, "bytes")
    sheet.add("gpu.free", free, source, "bytes")
    sheet.add("gpu.used_fraction", round(used / total, 4), source)


def nvml_processes(nvml: Any) -> list[dict[str, Any]]:
    """Compute processes of every card, in the shape of nvidia-smi's rows but with bytes."""
    rows: list[dict[str, Any]] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            card = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception:
            continue  # a lost card has no processes, and hides none of the others'
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(card):
            used = process.usedGpuMemory
            rows.append({"gpu_uuid": words(nvml.nvmlDeviceGetUUID(card)), "pid": str(process.pid), "bytes": used})
    return rows


def process_rows(machine: Machine, sheet: Sheet) -> tuple[list[dict[str, Any]] | None, str]:
    nvml = open_nvml(machine, sheet)
    if nvml is not None:
        try:
            return nvml_processes(nvml), "NVML"
        except Exception as error:
            sheet.fail(f"NVML: {error}")
    rows = smi_rows(machine, sheet, "compute-apps", PROCESS_FIELDS)
    for row in rows or []:
        mib = integer(row, "used_gpu_memory")
        row["bytes"] = None if mib is None else mib * MIB
    return rows, "nvidia-smi --query-compute-apps"


def gpu_processes(machine: Machine, sheet: Sheet) -> None:
    """Facts gpu.processes, gpu.other_process_bytes: every compute process counts, the job's own too while it runs."""
    rows, source = process_rows(machine, sheet)
    if rows is None:
        return
    cards, _source = gpu_rows(machine, sheet, MEMORY_FIELDS)
    sheet.add("gpu.processes", len({row["pid"] for row in rows}), source)
    per_card: dict[str, int] = {}
    told = []
    for row in rows:
        size = row.get("bytes")
        name = machine.read(f"/proc/{row['pid']}/comm") or row.get("process_name") or "?"
        held = "" if size is None else f" {size / 2**30:.1f} GiB"
        told.append(f"pid {row['pid']} ({name.rsplit('/', 1)[-1]}){held}")
        if size is not None:
            per_card[str(row["gpu_uuid"])] = per_card.get(str(row["gpu_uuid"]), 0) + size
    if told:
        sheet.add("gpu.process_list", ", ".join(told), source)
    # Memory in use that no visible process owns: another container's, or the driver's own few hundred MiB.
    unowned = [
        used - per_card.get(str(card.get("uuid")), 0)
        for card in cards or []
        for used in [integer(card, "memory.used")]
        if used is not None
    ]
    if unowned and (per_card or not rows):
        sheet.add("gpu.unattributed_bytes", max(0, *unowned), source, "bytes")
    # An empty list means "none" only where little memory is in use: containers and WSL hide other processes.
    if per_card or (not rows and max(unowned, default=0) < OWN_OVERHEAD):
        sheet.add("gpu.other_process_bytes", max(per_card.values(), default=0), source, "bytes")
