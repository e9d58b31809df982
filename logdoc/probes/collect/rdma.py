"""InfiniBand, RoCE and EFA devices as the kernel shows them. Standard library only, Python 3.8."""

from __future__ import annotations

import re

from logdoc.probes.collect.machine import Machine, Sheet

DEVICES = "/sys/class/infiniband"
# Counters that only faults move: (fact, folder, file).
COUNTERS = (
    ("rdma.link_downed", "counters", "link_downed"),
    ("rdma.link_error_recovery", "counters", "link_error_recovery"),
    ("rdma.symbol_errors", "counters", "symbol_error"),
    ("rdma.excessive_buffer_overruns", "counters", "excessive_buffer_overrun_errors"),
    ("rdma.retry_timeouts", "hw_counters", "local_ack_timeout_err"),
    ("rdma.sequence_errors", "hw_counters", "packet_seq_err"),
    ("rdma.out_of_sequence", "hw_counters", "out_of_sequence"),
    ("rdma.rnr_retries", "hw_counters", "rnr_nak_retry_err"),
)
PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def rdma(machine: Machine, sheet: Sheet) -> None:
    """Facts rdma.*: devices, ports, GIDs, fault counters, and what GPUDirect RDMA needs."""
    devices = machine.names(DEVICES)
    sheet.add("rdma.devices", len(devices), DEVICES)
    verbs = [name for name in machine.names("/dev/infiniband") if name.startswith("uverbs")]
    sheet.add("rdma.uverbs", len(verbs), "/dev/infiniband")
    gpu_direct(machine, sheet)
    if not devices:
        return
    sheet.add("rdma.device_names", ", ".join(devices), DEVICES)
    drivers = {machine.link(f"{DEVICES}/{name}/device/driver").rsplit("/", 1)[-1] for name in devices}
    sheet.add("rdma.efa", "efa" in drivers, DEVICES + "/*/device/driver")
    ports = [(device, port) for device in devices for port in machine.names(f"{DEVICES}/{device}/ports")]
    port_states(machine, sheet, ports)
    gids(machine, sheet, ports)
    for fact, folder, name in COUNTERS:
        values = [machine.number(f"{DEVICES}/{device}/ports/{port}/{folder}/{name}") for device, port in ports]
        known = [value for value in values if value is not None]
        if known:
            sheet.add(fact, sum(known), f"{DEVICES}/*/ports/*/{folder}/{name}")


def gpu_direct(machine: Machine, sheet: Sheet) -> None:
    """GPUDirect RDMA goes through the module nvidia-peermem or through DMA-BUF (kernel 5.12, open GPU module)."""
    modules = {line.split()[0] for line in (machine.read("/proc/modules") or "").splitlines() if line.split()}
    if modules:
        sheet.add("rdma.peermem_loaded", any(name in modules for name in PEER_MODULES), "/proc/modules")
    release = re.match(r"(\d+)\.(\d+)", machine.read("/proc/sys/kernel/osrelease") or "")
    version = machine.read("/proc/driver/nvidia/version")
    if release and version:
        recent = (int(release.group(1)), int(release.group(2))) >= (5, 12)
        source = "/proc/sys/kernel/osrelease and /proc/driver/nvidia/version"
        sheet.add("rdma.dmabuf_possible", recent and "Open Kernel Module" in version, source)


def port_states(machine: Machine, sheet: Sheet, ports: list[tuple[str, str]]) -> None:
    told, active, layers = [], 0, set()
    for device, port in ports:
        folder = f"{DEVICES}/{device}/ports/{port}/"
        state = (machine.read(folder + "state") or "?").split(": ")[-1]
        physical = (machine.read(folder + "phys_state") or "?").split(": ")[-1]
        layer = machine.read(folder + "link_layer") or "?"
        rate = machine.read(folder + "rate") or "?"
        active += state == "ACTIVE"
        layers.add(layer)
        told.append(f"{device}/{port} {state} {physical} {rate} {layer}")
    source = DEVICES + "/*/ports/*/state"
    sheet.add("rdma.ports_active", active, source)
    sheet.add("rdma.ports_down", len(ports) - active, source)
    sheet.add("rdma.port_states", "; ".join(told) or None, source)
    sheet.add("rdma.link_layer", ",".join(sorted(layers)) or None, DEVICES + "/*/ports/*/link_layer")


def gids(machine: Machine, sheet: Sheet, ports: list[tuple[str, str]]) -> None:
    """GIDs in use, and the first index that is RoCE v2 over IPv4 on every active Ethernet port (what NCCL_IB_GID_INDEX
    would have to name)."""
    count = 0
    common: set[int] | None = None
    for device, port in ports:
        folder = f"{DEVICES}/{device}/ports/{port}/"
        routable = set()
        for index in machine.names(folder + "gids"):
            gid = machine.read(folder + "gids/" + index) or ""
            if not gid.strip("0:"):
                continue
            count += 1
            kind = machine.read(folder + "gid_attrs/types/" + index) or ""
            if kind.lower() == "roce v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:"):
                routable.add(int(index))
        ethernet = machine.read(folder + "link_layer") == "Ethernet"
        if ethernet and (machine.read(folder + "state") or "").endswith("ACTIVE"):
            common = routable if common is None else common & routable
    sheet.add("rdma.gids", count, DEVICES + "/*/ports/*/gids")
    if common is not None:
        sheet.add("rdma.roce_v2_gid", bool(common), DEVICES + "/*/ports/*/gid_attrs/types")
        sheet.add("rdma.roce_v2_gid_index", min(common) if common else None, DEVICES + "/*/ports/*/gid_attrs/types")
