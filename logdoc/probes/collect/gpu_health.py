"""Broken, throttled or badly connected GPUs; the NVLink fabric and its services. Standard library only, Python 3.8."""

from __future__ import annotations

import re
from typing import Any

from logdoc.probes.collect.gpu import KERNEL_MODULE
from logdoc.probes.collect.gpu_reader import NEEDED_ROWS, gpu_rows, integer, open_nvml, smi, smi_rows
from logdoc.probes.collect.kernel_log import age, kernel_log
from logdoc.probes.collect.machine import Machine, Sheet

THROTTLE = "clocks_throttle_reasons.active"
# Its name from driver 535 on; the old one is still accepted by most.
EVENTS = "clocks_event_reasons.active"
HEALTH_FIELDS = [
    "index",
    "ecc.errors.uncorrected.volatile.total",
    "ecc.errors.uncorrected.aggregate.total",
    THROTTLE,
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
]
REMAP_FIELDS = ["remapped_rows." + name for name in NEEDED_ROWS]
FABRIC_FIELDS = ["index", "fabric.state", "fabric.status"]
# Bits of nvmlClocksThrottleReasons that mean trouble; idle, application clocks and the plain power cap are ordinary.
HARMFUL_THROTTLE = ((0x08, "hw-slowdown"), (0x20, "sw-thermal"), (0x40, "hw-thermal"), (0x80, "hw-power-brake"))
XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
IMEX_STATE = re.compile(r"^Domain State: (\S+)", re.MULTILINE)
# Node #3   - 10.40.3.14   - UNAVAILABLE   - Version: …; a star marks the node that was asked.
IMEX_NODE = re.compile(r"^Node #\d+ +[-*] +(\S+) +(?:[-*] +)+(\w+)", re.MULTILINE)
NVLINK_LINE = re.compile(r"^\s*Link (\d+): (.+)$")


def gpu_health(machine: Machine, sheet: Sheet) -> None:
    """Facts on ECC, remapped rows, throttling, PCIe, NVLink, Xids."""
    rows, source = gpu_rows(machine, sheet, HEALTH_FIELDS)
    if rows:
        rows = [row for row in rows if "fault" not in row]
        errors(sheet, rows, source)
        if not any(THROTTLE in row for row in rows):
            rows = with_events(machine, sheet, rows)
        throttle(sheet, rows, source)
        pcie(sheet, rows, source)
        remapped_rows(machine, sheet)
        nvlink(machine, sheet)
    if rows or machine.exists("/proc/driver/nvidia/version"):
        xids(machine, sheet)


def errors(sheet: Sheet, rows: list[dict[str, Any]], source: str) -> None:
    for fact, counter in (("gpu.ecc_uncorrected", "volatile"), ("gpu.ecc_uncorrected_aggregate", "aggregate")):
        counts = [integer(row, f"ecc.errors.uncorrected.{counter}.total") for row in rows]
        known = [count for count in counts if count is not None]
        if known:
            sheet.add(fact, sum(known), source)


def with_events(machine: Machine, sheet: Sheet, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with what the reasons' newer name gives."""
    newer = smi_rows(machine, sheet, "gpu", ["index", EVENTS]) or []
    by_card = {row["index"]: row.get(EVENTS) for row in newer}
    return [{**row, THROTTLE: by_card.get(row["index"])} for row in rows]


def throttle(sheet: Sheet, rows: list[dict[str, Any]], source: str) -> None:
    masks = [integer(row, THROTTLE) for row in rows]
    known = [mask for mask in masks if mask is not None]
    if known:
        reasons = [name for bit, name in HARMFUL_THROTTLE if any(mask & bit for mask in known)]
        sheet.add("gpu.throttle", ",".join(reasons) or "none", source)


def pcie(sheet: Sheet, rows: list[dict[str, Any]], source: str) -> None:
    """The narrowest card's link. Only the width is judged: an idle card lowers its generation to save power."""
    links = []
    for row in rows:
        width, widest = integer(row, "pcie.link.width.current"), integer(row, "pcie.link.width.max")
        if width and widest:
            links.append((width / widest, row))
    if not links:
        return
    share, row = min(links, key=lambda link: link[0])
    sheet.add("gpu.pcie_width", integer(row, "pcie.link.width.current"), source, "lanes")
    sheet.add("gpu.pcie_width_max", integer(row, "pcie.link.width.max"), source, "lanes")
    sheet.add("gpu.pcie_gen", integer(row, "pcie.link.gen.current"), source)
    sheet.add("gpu.pcie_gen_max", integer(row, "pcie.link.gen.max"), source)
    sheet.add("gpu.pcie_narrow", share < 1, source)


def remapped_rows(machine: Machine, sheet: Sheet) -> None:
    """Memory rows replaced or waiting to be (Ampere and later): a pending one needs a GPU reset."""
    if open_nvml(machine, sheet) is not None:
        rows, source = gpu_rows(machine, sheet, REMAP_FIELDS)
    else:
        rows, source = smi_rows(machine, sheet, "remapped-rows", REMAP_FIELDS), "nvidia-smi --query-remapped-rows"
    for fact, field in (("gpu.remapped_rows_pending", "pending"), ("gpu.remapped_rows_failure", "failure")):
        values = [row["remapped_rows." + field] for row in rows or [] if row.get("remapped_rows." + field)]
        if values:
            # Yes/No from NVML's flags, a number or Yes/No from nvidia-smi by version.
            sheet.add(fact, any(value not in ("No", "0") for value in values), source)
    counts = [integer(row, f"remapped_rows.{kind}") for row in rows or [] for kind in ("correctable", "uncorrectable")]
    if any(count is not None for count in counts):
        sheet.add("gpu.remapped_rows", sum(count for count in counts if count is not None), source)


def nvlink(machine: Machine, sheet: Sheet) -> None:
    """Inactive links count as down only where another link of the machine works: a card without a bridge has none."""
    output = smi(machine, sheet, "nvlink", "--status")
    up = down = 0
    for line in (output or "").splitlines():
        link = NVLINK_LINE.match(line)
        if link and "inactive" in link.group(2):
            down += 1
        elif link and re.match(r"[\d.]+ GB/s", link.group(2)):
            up += 1
    if up or down:
        sheet.add("gpu.nvlink_up", up, "nvidia-smi nvlink --status")
        sheet.add("gpu.nvlink_down", down if up else 0, "nvidia-smi nvlink --status")


def xids(machine: Machine, sheet: Sheet) -> None:
    """The driver's Xid messages since boot, as far as the kernel's ring buffer reaches."""
    log = kernel_log(machine, sheet)
    if log is None:
        sheet.fail(
            "the kernel log is not readable for this user: Xid messages cannot be seen (dmesg needs a privilege)"
        )
        return
    lines, source = log
    hits = [(match, line) for line in lines for match in [XID.search(line)] if match]
    codes = sorted({int(match.group(2)) for match, _line in hits})
    sheet.add("gpu.xids", ",".join(str(code) for code in codes) or "none", source)
    sheet.add("gpu.xid_count", len(hits), source)
    if hits:
        last, line = hits[-1]
        sheet.add("gpu.last_xid", int(last.group(2)), source)
        sheet.add("gpu.last_xid_bus", last.group(1), source)
        since = age(machine, line)
        sheet.add("gpu.last_xid_age", None if since is None else round(since, 1), source, "s")


def fabric_services(machine: Machine, sheet: Sheet) -> None:
    """Facts fabric.*, imex.*: NVSwitch machines need the fabric manager, multi-node NVLink needs IMEX."""
    switches = [name for name in machine.names("/dev") if re.match(r"nvidia-nvswitch\d+$", name)]
    count = len(switches) or len(machine.names("/proc/driver/nvidia-nvswitch/devices")) or bridges(machine)
    sheet.add("fabric.nvswitches", count, "/dev/nvidia-nvswitch*, PCI")
    sheet.add(
        "fabric.manager_active", service(machine, sheet, "nvidia-fabricmanager", "nv-fabricmanager"), "systemctl, /proc"
    )
    version = re.search(r"version is : ([\d.]+)", machine.ask(sheet, ["nv-fabricmanager", "--version"], 2.0).out)
    if version:
        sheet.add("fabric.manager_version", version.group(1), "nv-fabricmanager --version")
        module = KERNEL_MODULE.search(machine.read("/proc/driver/nvidia/version") or "")
        if module:
            sheet.add("fabric.kernel_module", module.group(1), "/proc/driver/nvidia/version")
            sheet.add("fabric.version_matches", version.group(1) == module.group(1), "nv-fabricmanager --version")
    rows, source = gpu_rows(machine, sheet, FABRIC_FIELDS)
    states = [str(row["fabric.state"]) for row in rows or [] if row.get("fabric.state") not in (None, "Not Supported")]
    if states:
        waiting = [state for state in states if state != "Completed"]
        sheet.add("fabric.state", (waiting or states)[0], source)
        statuses = [str(row["fabric.status"]) for row in rows or [] if row.get("fabric.status")]
        sheet.add("fabric.status", next((status for status in statuses if status != "Success"), "Success"), source)
    sheet.add("imex.active", service(machine, sheet, "nvidia-imex", "nvidia-imex"), "systemctl, /proc")
    channels = machine.names("/dev/nvidia-caps-imex-channels")
    sheet.add("imex.channels", len(channels), "/dev/nvidia-caps-imex-channels")
    if channels or machine.exists("/etc/nvidia-imex/nodes_config.cfg"):
        imex_domain(machine, sheet)


def imex_domain(machine: Machine, sheet: Sheet) -> None:
    """What IMEX's own tool says of the domain: its state, and the nodes that are not ready."""
    source = "nvidia-imex-ctl -N"
    answer = machine.ask(sheet, source.split(), 3.0)
    said = answer.out + answer.err
    state = IMEX_STATE.search(said)
    nodes = IMEX_NODE.findall(said)
    if state:
        sheet.add("imex.domain_state", state.group(1), source)
    elif answer.state == "ok":
        sheet.fail(f"`{source}` tells no state of the domain: {' '.join(said.split())[:200]}")
    if nodes:
        sheet.add("imex.nodes", len(nodes), source)
        waiting = [f"{address} {status}" for address, status in nodes if status != "READY"]
        sheet.add("imex.nodes_not_ready", ", ".join(waiting) or "none", source)


def bridges(machine: Machine) -> int:
    """NVSwitches seen on PCI: NVIDIA's devices of class 0x0680."""
    count = 0
    for name in machine.names("/sys/bus/pci/devices"):
        folder = "/sys/bus/pci/devices/" + name
        count += (
            machine.read(folder + "/vendor") == "0x10de" and (machine.read(folder + "/class") or "")[:6] == "0x0680"
        )
    return count


def service(machine: Machine, sheet: Sheet, unit: str, process: str) -> bool | None:
    """Whether a system service runs; None inside a container, which sees neither systemd nor the host's processes."""
    for name in machine.names("/proc"):
        # The kernel cuts a process's name at 15 characters.
        if name.isdigit() and machine.read(f"/proc/{name}/comm") == process[:15]:
            return True
    answer = machine.ask(sheet, ["systemctl", "is-active", unit], 2.0)
    state = answer.out.strip()
    if answer.state != "ok" or state not in ("active", "inactive", "failed", "activating", "deactivating"):
        return None
    return state == "active"
