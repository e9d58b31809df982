"""Interfaces, names and the master port as NCCL, Gloo and the store would find them.

Resolves two names and binds one port for a moment, no more. Standard library only, Python 3.8."""

from __future__ import annotations

import ipaddress
import re

from logdoc.probes.collect.machine import Machine, Sheet

NET = "/sys/class/net"
# NCCL's order of preference without NCCL_SOCKET_IFNAME (src/misc/socket.cc, ncclFindInterfaces).
NCCL_ORDER = ("ib", "^docker,lo,virbr", "docker", "lo", "virbr")
TORCHRUN_PORT = 29500


class Interface:
    """One network interface: its addresses, in the order the kernel lists them."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.name = name
        self.index = machine.number(f"{NET}/{name}/ifindex") or 0
        self.mtu = machine.number(f"{NET}/{name}/mtu")
        self.state = machine.read(f"{NET}/{name}/operstate") or "unknown"
        flags = machine.number(f"{NET}/{name}/flags") or 0
        # Loopback and tunnels say "unknown" while they work; bit 0 is IFF_UP.
        self.up = bool(flags & 1) and self.state in ("up", "unknown")
        address = machine.ipv4(name)
        self.addresses = [address] if address else []

    def told(self) -> str:
        return f"{self.name} {','.join(self.addresses) or 'no-address'} {'up' if self.up else self.state}"


def interfaces(machine: Machine) -> list[Interface]:
    found = [Interface(machine, name) for name in machine.names(NET) if machine.exists(f"{NET}/{name}/ifindex")]
    by_name = {entry.name: entry for entry in found}
    for line in (machine.read("/proc/net/if_inet6") or "").splitlines():
        parts = line.split()
        if len(parts) == 6 and parts[5] in by_name and re.match(r"^[0-9a-f]{32}$", parts[0]):
            by_name[parts[5]].addresses.append(str(ipaddress.IPv6Address(int(parts[0], 16))))
    return sorted(found, key=lambda entry: entry.index)


def chosen(pattern: str, names: list[str]) -> list[str]:
    """NCCL's reading of NCCL_SOCKET_IFNAME: a list of prefixes, `^` excludes them, `=` wants exact names."""
    exclude, exact = pattern.startswith("^"), pattern.lstrip("^").startswith("=")
    wanted = [part for part in pattern.lstrip("^=").split(",") if part]

    def fits(name: str) -> bool:
        return any(name == part if exact else name.startswith(part) for part in wanted)

    return [name for name in names if fits(name) != exclude]


def network(machine: Machine, sheet: Sheet) -> None:
    """Facts net.*."""
    found = interfaces(machine)
    usable = [entry for entry in found if entry.up and entry.addresses]
    sheet.add("net.interfaces", "; ".join(entry.told() for entry in found) or "none", NET)
    default = default_interface(machine)
    sheet.add("net.default_interface", default, "/proc/net/route")
    take = nccl_choice(machine, sheet, [entry.name for entry in usable])
    mtu = {entry.name: entry.mtu for entry in found}.get(take or default or "")
    sheet.add("net.mtu", mtu, NET + "/*/mtu", "bytes")
    hostname(machine, sheet, usable)
    master(machine, sheet, usable)


def default_interface(machine: Machine) -> str | None:
    """The interface of the default route with the lowest metric."""
    routes = []
    for line in (machine.read("/proc/net/route") or "").splitlines()[1:]:
        parts = line.split()
        if len(parts) > 7 and parts[1] == "00000000" and parts[7] == "00000000":
            routes.append((int(parts[6]), parts[0]))
    return min(routes)[1] if routes else None


def nccl_choice(machine: Machine, sheet: Sheet, names: list[str]) -> str | None:
    """The interface NCCL's bootstrap would take, and whether a demanded one exists."""
    for variable, fact in (
        ("NCCL_SOCKET_IFNAME", "net.ifname_matches"),
        ("GLOO_SOCKET_IFNAME", "net.gloo_ifname_matches"),
    ):
        asked = machine.environ.get(variable, "")
        if len(asked) > 1:
            # Gloo takes whole names, one for each device.
            hits = chosen(asked, names) if variable.startswith("NCCL") else [n for n in asked.split(",") if n in names]
            sheet.add(fact, bool(hits), f"{variable}={asked} against {NET}")
    asked = machine.environ.get("NCCL_SOCKET_IFNAME", "")
    for pattern in (asked,) if len(asked) > 1 else NCCL_ORDER:
        hits = chosen(pattern, names)
        if hits:
            sheet.add("net.nccl_would_take", hits[0], "NCCL's order over " + NET)
            sheet.add("net.nccl_candidates", ", ".join(hits), "NCCL's order over " + NET)
            return hits[0]
    sheet.add("net.nccl_would_take", "none", "NCCL's order over " + NET)
    return None


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False


def lookup(machine: Machine, sheet: Sheet, name: str) -> list[str]:
    """Addresses of a name; none when it has none."""
    sheet.doing("resolve " + name)
    try:
        return machine.resolve(name)
    except (OSError, UnicodeError):
        return []


def hostname(machine: Machine, sheet: Sheet, usable: list[Interface]) -> None:
    """What the machine's own name means: Gloo binds to it, and other ranks are told it."""
    name = machine.hostname()
    source = f"getaddrinfo({name})"
    addresses = lookup(machine, sheet, name)
    sheet.add("net.hostname", name, "gethostname()")
    sheet.add("net.hostname_resolves", bool(addresses), source)
    if not addresses:
        return
    owner = next((entry.name for entry in usable for address in addresses if address in entry.addresses), None)
    loopback = all(is_loopback(address) for address in addresses)
    sheet.add("net.hostname_address", ", ".join(addresses), source)
    sheet.add("net.hostname_is_loopback", loopback, source)
    sheet.add("net.hostname_is_local", loopback or owner is not None, source)
    sheet.add("net.gloo_would_take", owner or "lo", source)


def master(machine: Machine, sheet: Sheet, usable: list[Interface]) -> None:
    """The rendezvous address: does it resolve, is it this machine, is its port free (tried only if it is)."""
    text = machine.environ.get("MASTER_PORT", "")
    port = int(text) if re.match(r"^\d{1,5}$", text) and 0 < int(text) < 65536 else TORCHRUN_PORT
    source = "MASTER_PORT" if port != TORCHRUN_PORT or text else "torchrun's default"
    sheet.add("net.master_port", port, source)
    address = machine.environ.get("MASTER_ADDR")
    local = True
    if address:
        found = lookup(machine, sheet, address)
        own = {item for entry in usable for item in entry.addresses}
        local = any(item in own or is_loopback(item) for item in found)
        sheet.add("net.master_addr", address, "MASTER_ADDR")
        sheet.add("net.master_resolves", bool(found), "getaddrinfo(MASTER_ADDR)")
        if found:
            sheet.add("net.master_address", ", ".join(found), "getaddrinfo(MASTER_ADDR)")
            sheet.add("net.master_is_local", local, "getaddrinfo(MASTER_ADDR)")
    if local:
        sheet.add("net.master_port_in_use", machine.port_taken(port), f"bind to port {port}")
