"""One question, two answerers: NVML through nvidia-ml-py where it can be imported, else nvidia-smi's CSV.

Field names are nvidia-smi's. Standard library only, Python 3.8."""

from __future__ import annotations

import csv
import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

from logdoc.probes.collect.machine import STOPPING, Machine, Sheet

MIB = 1 << 20
# Where WSL keeps it, not always on PATH.
WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"
SMI_LIMIT = 15.0
# Said before NVML is asked, which may never return.
NVML_INIT = "nvmlInit"
UNKNOWN = (
    "",
    "N/A",
    "[N/A]",
    "[Not Supported]",
    "Not Supported",
    "[Unknown Error]",
    "[Insufficient Permissions]",
    "ERR!",
)
INVALID_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
COMPUTE_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
FABRIC_STATES = {0: "Not Supported", 1: "Not Started", 2: "In Progress", 3: "Completed"}
SWITCH = {0: "Disabled", 1: "Enabled"}
YES = {0: "No", 1: "Yes"}
NEEDED_ROWS = ("correctable", "uncorrectable", "pending", "failure")
# Words of nvidia-smi, or of NVML itself, for a driver that cannot be used: (text, fact, value).
DRIVER_FAULTS: tuple[tuple[str, str, Any], ...] = (
    ("Failed to initialize NVML", "gpu.driver_usable", False),
    ("NVIDIA-SMI has failed", "gpu.driver_usable", False),
    ("Driver/library version mismatch", "gpu.driver_mismatch", True),
    ("NVML/RM version mismatch", "gpu.driver_mismatch", True),
    ("couldn't communicate with the NVIDIA driver", "gpu.count", 0),
    ("No devices were found", "gpu.count", 0),
    ("couldn't find libnvidia-ml.so", "gpu.nvml_missing", True),
    ("Driver Not Loaded", "gpu.driver_usable", False),
    ("Driver Not Loaded", "gpu.count", 0),
    ("GPU is lost", "gpu.lost", True),
    ("Unable to determine the device handle", "gpu.lost", True),
)


def words(value: Any) -> str:
    """Text of what NVML returned: older bindings give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def remapped(position: int) -> Callable[[Any, Any], str]:
    def read(nvml: Any, card: Any) -> str:
        value = nvml.nvmlDeviceGetRemappedRows(card)[position]
        return YES[int(bool(value))] if position >= 2 else str(value)

    return read


def fabric(part: str) -> Callable[[Any, Any], str]:
    def read(nvml: Any, card: Any) -> str:
        info = nvml.c_nvmlGpuFabricInfo_t()
        nvml.nvmlDeviceGetGpuFabricInfo(card, ctypes.byref(info))
        if part == "state":
            return FABRIC_STATES.get(int(info.state), str(info.state))
        return "Success" if int(info.status) == 0 else f"error {int(info.status)}"

    return read


def ecc(counter: int) -> Callable[[Any, Any], str]:
    """Uncorrectable memory errors; counter 0 since the last reset (volatile), 1 over the card's life (aggregate)."""
    return lambda nvml, card: str(nvml.nvmlDeviceGetTotalEccErrors(card, 1, counter))


NVML_FIELDS: dict[str, Callable[[Any, Any], str]] = {
    "index": lambda nvml, card: str(nvml.nvmlDeviceGetIndex(card)),
    "name": lambda nvml, card: words(nvml.nvmlDeviceGetName(card)),
    "uuid": lambda nvml, card: words(nvml.nvmlDeviceGetUUID(card)),
    "pci.bus_id": lambda nvml, card: words(nvml.nvmlDeviceGetPciInfo(card).busId),
    "driver_version": lambda nvml, card: words(nvml.nvmlSystemGetDriverVersion()),
    "compute_mode": lambda nvml, card: COMPUTE_MODES[nvml.nvmlDeviceGetComputeMode(card)],
    "persistence_mode": lambda nvml, card: SWITCH[nvml.nvmlDeviceGetPersistenceMode(card)],
    "mig.mode.current": lambda nvml, card: SWITCH[nvml.nvmlDeviceGetMigMode(card)[0]],
    "compute_cap": lambda nvml, card: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(card))),
    "memory.total": lambda nvml, card: str(nvml.nvmlDeviceGetMemoryInfo(card).total),
    "memory.used": lambda nvml, card: str(nvml.nvmlDeviceGetMemoryInfo(card).used),
    "memory.free": lambda nvml, card: str(nvml.nvmlDeviceGetMemoryInfo(card).free),
    "ecc.errors.uncorrected.volatile.total": ecc(0),
    "ecc.errors.uncorrected.aggregate.total": ecc(1),
    "clocks_throttle_reasons.active": lambda nvml, card: hex(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(card)),
    "pcie.link.gen.current": lambda nvml, card: str(nvml.nvmlDeviceGetCurrPcieLinkGeneration(card)),
    "pcie.link.gen.max": lambda nvml, card: str(nvml.nvmlDeviceGetMaxPcieLinkGeneration(card)),
    "pcie.link.width.current": lambda nvml, card: str(nvml.nvmlDeviceGetCurrPcieLinkWidth(card)),
    "pcie.link.width.max": lambda nvml, card: str(nvml.nvmlDeviceGetMaxPcieLinkWidth(card)),
    "fabric.state": fabric("state"),
    "fabric.status": fabric("status"),
}
NVML_FIELDS.update({"remapped_rows." + name: remapped(place) for place, name in enumerate(NEEDED_ROWS)})


def open_nvml(machine: Machine, sheet: Sheet) -> Any:
    """The initialised pynvml module, or None: then nvidia-smi is asked, which explains more of what is wrong."""
    try:
        nvml = machine.import_module("pynvml")
    except Exception:
        return None
    sheet.doing(NVML_INIT)
    try:
        nvml.nvmlInit()
    except Exception as error:
        if machine.which(smi_path(machine)) is None:
            note_fault(sheet, str(error), "NVML")
        return None
    return nvml


def nvml_rows(nvml: Any, fields: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        row: dict[str, Any] = {}
        try:
            card = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as error:
            rows.append({"index": str(index), "fault": str(error)})
            continue
        for field in fields:
            try:
                row[field] = NVML_FIELDS[field](nvml, card)
            except Exception:
                # Unsupported on this card, by this driver, or unknown to this version of the binding.
                row[field] = None
        rows.append(row)
    return rows


def smi_path(machine: Machine) -> str:
    return WSL_SMI if machine.which("nvidia-smi") is None and machine.exists(WSL_SMI) else "nvidia-smi"


def smi(machine: Machine, sheet: Sheet, *arguments: str) -> str | None:
    """Output of nvidia-smi; None when it is missing, hangs or fails (its words become facts)."""
    given = min(SMI_LIMIT, machine.remaining() - STOPPING)
    answer = machine.ask(sheet, [smi_path(machine), *arguments], SMI_LIMIT)
    if answer.state in ("timeout", "abandoned"):
        # A driver that does not answer is itself a finding; how long it was given tells a hang from a slow start.
        sheet.add("gpu.unanswered_seconds", round(given, 1), "nvidia-smi", "s")
    if answer.state != "ok":
        return None
    said = answer.out + answer.err
    if INVALID_FIELD.search(said):
        return said
    if note_fault(sheet, said) or answer.code == 0:
        return answer.out if answer.code == 0 else None
    sheet.fail(f"`nvidia-smi {' '.join(arguments)}` ended with code {answer.code}: {' '.join(said.split())[:300]}")
    return None


def note_fault(sheet: Sheet, said: str, source: str = "nvidia-smi") -> bool:
    """Turn the driver's complaint into facts; False when it has none."""
    hits = [(fact, value) for text, fact, value in DRIVER_FAULTS if text in said]
    if not hits:
        return False
    if sheet.value("gpu.driver_error") is None:
        sheet.add("gpu.driver_error", " ".join(said.split())[:400], source)
    for fact, value in hits:
        if sheet.value(fact) is None:
            sheet.add(fact, value, source)
    return True


def smi_rows(machine: Machine, sheet: Sheet, switch: str, fields: Sequence[str]) -> list[dict[str, Any]] | None:
    """Rows of a CSV query; a field that this driver does not know is left out, as its message asks."""
    asked = list(fields)
    while asked:
        output = smi(machine, sheet, f"--query-{switch}={','.join(asked)}", "--format=csv,noheader,nounits")
        if output is None:
            return None
        refused = INVALID_FIELD.search(output)
        if not refused:
            lines = csv.reader(output.splitlines(), skipinitialspace=True)
            # A line about a lost card stands among the rows and has fewer cells.
            return [to_row(asked, cells) for cells in lines if len(cells) >= len(asked)]
        if refused.group(1) not in asked:
            return None
        asked.remove(refused.group(1))
    return None


def to_row(fields: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for place, field in enumerate(fields):
        value = cells[place].strip() if place < len(cells) else ""
        row[field] = None if value in UNKNOWN else value
        if field.startswith("memory.") and row[field] is not None:
            row[field] = str(int(float(value) * MIB)) if re.match(r"^[\d.]+$", value) else None
    return row


def gpu_rows(machine: Machine, sheet: Sheet, fields: Sequence[str]) -> tuple[list[dict[str, Any]] | None, str]:
    """One row per GPU (memory in bytes) and the source; rows are None when nobody could answer."""
    nvml = open_nvml(machine, sheet)
    if nvml is not None:
        try:
            return nvml_rows(nvml, fields), "NVML"
        except Exception as error:
            sheet.fail(f"NVML: {error}")
    return smi_rows(machine, sheet, "gpu", fields), "nvidia-smi --query-gpu"


def integer(row: dict[str, Any], field: str) -> int | None:
    """A whole number from a row, decimal or 0x…; None where the driver does not tell."""
    try:
        return int(str(row.get(field)), 0)
    except ValueError:
        return None
