"""How the GPUs reach each other, and what on the PCI bus may prevent it. Standard library only, Python 3.8."""

from __future__ import annotations

import re
import struct

from logdoc.probes.collect.gpu_reader import smi
from logdoc.probes.collect.machine import Machine, Sheet

ANSI = re.compile(r"\x1b\[[0-9;]*m")
# nvidia-smi's words, nearest first; NV# counts bonded NVLinks.
DISTANCE = ("X", "NV", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS")
PEER_CAPABILITIES = (("r", "read"), ("w", "write"), ("n", "nvlink"), ("p", "pcie"))
ACS_CAPABILITY = 0x0D
# P2P request redirect and completion redirect: the bits that send GPU-to-GPU traffic up to the root complex.
ACS_REDIRECT = 0x0004 | 0x0008


def topology(machine: Machine, sheet: Sheet) -> None:
    """Facts topo.*, acs.*, iommu.*, numa.nodes."""
    nodes = [name for name in machine.names("/sys/devices/system/node") if re.match(r"node\d+$", name)]
    sheet.add("numa.nodes", len(nodes), "/sys/devices/system/node")
    pci_isolation(machine, sheet)
    output = smi(machine, sheet, "topo", "-m")
    if output is None:
        return
    names, cells = matrix(output)
    links(sheet, names, cells)
    if sum(name.startswith("GPU") for name in names) > 1:
        peer_access(machine, sheet)


def matrix(output: str) -> tuple[list[str], dict[tuple[str, str], str]]:
    """Devices of a `topo` table and what stands between each ordered pair of them."""
    names: list[str] = []
    cells: dict[tuple[str, str], str] = {}
    for line in ANSI.sub("", output).splitlines():
        words = line.split()
        if not names and words and words[0] == "GPU0" and (len(words) == 1 or words[1] != "X"):
            names = words[: words.index("CPU")] if "CPU" in words else words
        elif names and words and words[0] in names:
            for name, cell in zip(names, words[1:]):  # noqa: B905 - strict= needs Python 3.10
                cells[(words[0], name)] = cell
    return names, cells


def distance(link: str) -> float:
    """How far two devices are from each other; more bonded NVLinks are nearer."""
    bonded = re.match(r"^NV(\d+)$", link)
    if bonded:
        return DISTANCE.index("NV") - int(bonded.group(1)) / 1000
    return DISTANCE.index(link) if link in DISTANCE else len(DISTANCE)


def links(sheet: Sheet, names: list[str], cells: dict[tuple[str, str], str]) -> None:
    """The worst and best GPU pair, a count of each kind of link, and how near the nearest NIC is to each GPU."""
    source = "nvidia-smi topo -m"
    cards = [name for name in names if name.startswith("GPU")]
    between = [cells[(a, b)] for a in cards for b in cards if a < b and (a, b) in cells]
    if between:
        sheet.add("topo.worst", max(between, key=distance), source)
        sheet.add("topo.best", min(between, key=distance), source)
        sheet.add("topo.nvlink", all(re.match(r"^NV\d+$", link) for link in between), source)
        kinds = sorted(set(between), key=distance)
        sheet.add("topo.matrix", ", ".join(f"{kind} x{between.count(kind)}" for kind in kinds), source)
    adapters = [name for name in names if name not in cards]
    sheet.add("topo.nics", len(adapters), source)
    nearest = [
        min((cells[(card, adapter)] for adapter in adapters if (card, adapter) in cells), key=distance, default=None)
        for card in cards
    ]
    known = [link for link in nearest if link]
    if known:
        sheet.add("topo.gpu_nic", max(known, key=distance), source)


def peer_access(machine: Machine, sheet: Sheet) -> None:
    """What the driver says of peer-to-peer access. It may promise too much: only the active probe proves it."""
    refusals: dict[str, set[str]] = {}
    bad: set[str] = set()
    for letter, name in PEER_CAPABILITIES:
        output = smi(machine, sheet, "topo", "-p2p", letter)
        _names, cells = matrix(output or "")
        states = {pair: state for pair, state in cells.items() if pair[0] != pair[1]}
        if not states:
            continue
        refusals[name] = {state for state in states.values() if state != "OK"}
        sheet.add("topo.p2p_" + name, not refusals[name], "nvidia-smi topo -p2p " + letter)
        if name in ("read", "write"):
            bad.update("-".join(sorted(pair)) for pair, state in states.items() if state != "OK")
    decisive = [refusals[name] for name in ("read", "write") if name in refusals]
    if not decisive:
        return
    reasons = sorted(set().union(*decisive))
    sheet.add("topo.p2p_ok", not reasons, "nvidia-smi topo -p2p r, w")
    sheet.add("topo.p2p_reason", ",".join(reasons) or "OK", "nvidia-smi topo -p2p r, w")
    if bad:
        sheet.add("topo.p2p_bad_pairs", ", ".join(sorted(bad)), "nvidia-smi topo -p2p r, w")


def pci_isolation(machine: Machine, sheet: Sheet) -> None:
    """Access Control Services of the bridges above the GPUs, and IOMMU translation: both break bare-metal P2P."""
    devices = "/sys/bus/pci/devices"
    cards = [
        name
        for name in machine.names(devices)
        if machine.read(f"{devices}/{name}/vendor") == "0x10de"
        and (machine.read(f"{devices}/{name}/class") or "")[:6] in ("0x0300", "0x0302")
    ]
    above: set[str] = set()
    for card in cards:
        chain = machine.real(f"{devices}/{card}").split("/")
        above.update(part for part in chain if re.match(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.\d$", part))
    controls = [acs_control(machine.read_bytes(f"{devices}/{name}/config")) for name in sorted(above - set(cards))]
    read = [control for control in controls if control is not None]
    if read:
        redirecting = sum(bool(control & ACS_REDIRECT) for control in read)
        sheet.add("acs.enabled", redirecting > 0, "PCI configuration space of the bridges above the GPUs")
        sheet.add("acs.bridges", redirecting, "PCI configuration space of the bridges above the GPUs")
    elif above - set(cards):
        sheet.fail("PCI configuration space is only readable for root: whether ACS is on cannot be seen")
    iommu(machine, sheet, cards)
    near = [machine.number(f"{devices}/{card}/numa_node") for card in cards]
    if any(node is not None and node >= 0 for node in near):
        # -1 is the kernel's word for "not told by the firmware".
        told = ", ".join(f"{card} {node}" for card, node in zip(cards, near) if node is not None)  # noqa: B905
        sheet.add("topo.gpu_numa", told, "/sys/bus/pci/devices/*/numa_node")


def acs_control(config: bytes | None) -> int | None:
    """The ACS control register, 0 for a bridge without ACS; None when only the first 64 bytes may be read (no root)."""
    if config is None or len(config) < 0x104:
        return None
    offset, hops = 0x100, 0
    while 0x100 <= offset <= len(config) - 8 and hops < 64:
        header = struct.unpack_from("<I", config, offset)[0]
        if header & 0xFFFF == ACS_CAPABILITY:
            return int(struct.unpack_from("<H", config, offset + 6)[0])
        offset, hops = header >> 20, hops + 1
    return 0


def iommu(machine: Machine, sheet: Sheet, cards: list[str]) -> None:
    """Whether the IOMMU translates the GPUs' DMA; the type `identity` is passthrough and does no harm."""
    units = machine.names("/sys/class/iommu")
    source = "/sys/class/iommu, /sys/kernel/iommu_groups/*/type"
    sheet.add("iommu.present", bool(units), source)
    kinds = set()
    for card in cards:
        group = machine.link(f"/sys/bus/pci/devices/{card}/iommu_group").rsplit("/", 1)[-1]
        kind = machine.read(f"/sys/kernel/iommu_groups/{group}/type") if group else None
        kinds.update([kind] if kind else [])
    if not units:
        sheet.add("iommu.enabled", False, source)
    elif kinds:
        sheet.add("iommu.enabled", any(kind.startswith("DMA") for kind in kinds), source)
        sheet.add("iommu.type", ",".join(sorted(kinds)), source)
