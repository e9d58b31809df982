"""Interfaces, names and the master port as NCCL, Gloo and the store would find them.

Resolves two names and binds one port for a moment, no more. Standard library only, Python 3.8."""

from __future__ import annotations

import ipaddress
import re
import sys

from logdoc.probes.collect.machine import Machine, Sheet

NET = "/sys/class/net"
ROUTES = "/proc/net/route"
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
    table = routes(machine)
    default = next((route for route in table if route.network.prefixlen == 0), None)
    if default is not None:
        sheet.add("net.default_interface", default.interface, ROUTES)
        sheet.add("net.gateway", default.gateway or None, ROUTES)
    sheet.add("net.routes", "; ".join(route.told() for route in table[:40]) or "none", ROUTES)
    take = nccl_choice(machine, sheet, [entry.name for entry in usable])
    carrier = take or (default.interface if default is not None else "")
    sheet.add("net.mtu", {entry.name: entry.mtu for entry in found}.get(carrier), NET + "/*/mtu", "bytes")
    sheet.add("net.mtus", ", ".join(f"{one.name} {one.mtu}" for one in usable if one.mtu) or None, NET + "/*/mtu")
    speed = machine.number(f"{NET}/{carrier}/speed") if carrier else None
    # -1: a virtual interface, or one without a link.
    sheet.add("net.speed", speed if speed and speed > 0 else None, f"{NET}/{carrier}/speed", "Mbit/s")
    hostname(machine, sheet)
    gloo_choice(machine, sheet, usable)
    master(machine, sheet, usable, table)


class Route:
    """A row of the kernel's IPv4 table."""

    def __init__(self, parts: list[str]) -> None:
        self.interface = parts[0]
        # The kernel prints each address as a number in the machine's byte order.
        net, gateway, mask = (int(parts[place], 16).to_bytes(4, sys.byteorder) for place in (1, 2, 7))
        self.network = ipaddress.IPv4Network((net, str(ipaddress.IPv4Address(mask))), strict=False)
        self.gateway = "" if not any(gateway) else str(ipaddress.IPv4Address(gateway))
        self.metric = int(parts[6])

    def told(self) -> str:
        return f"{self.network}{' via ' + self.gateway if self.gateway else ''} dev {self.interface}"


def routes(machine: Machine) -> list[Route]:
    """The most specific first, of equal ones that with the lowest metric: the kernel's order of preference."""
    found = []
    for line in (machine.read("/proc/net/route") or "").splitlines()[1:]:
        parts = line.split()
        try:
            found.append(Route(parts))
        except (ValueError, IndexError, OverflowError):
            continue
    return sorted(found, key=lambda route: (-route.network.prefixlen, route.metric))


def route_to(table: list[Route], address: str) -> Route | None:
    try:
        wanted = ipaddress.IPv4Address(address)
    except ValueError:
        return None
    return next((route for route in table if wanted in route.network), None)


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


def hostname(machine: Machine, sheet: Sheet) -> None:
    """What the machine's own name means: Gloo binds to it, and other ranks are told it."""
    name = machine.hostname()
    source = f"getaddrinfo({name})"
    addresses = lookup(machine, sheet, name)
    sheet.add("net.hostname", name, "gethostname()")
    sheet.add("net.hostname_resolves", bool(addresses), source)
    if addresses:
        sheet.add("net.hostname_address", ", ".join(addresses), source)
        sheet.add("net.hostname_is_loopback", all(is_loopback(address) for address in addresses), source)


def gloo_choice(machine: Machine, sheet: Sheet, usable: list[Interface]) -> None:
    """The interface torch's Gloo binds to: a demanded one, else that of the host's name, else the loopback."""
    asked = [name for name in machine.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    addresses = [part for part in str(sheet.value("net.hostname_address") or "").split(", ") if part]
    owner = next((entry.name for entry in usable for address in addresses if address in entry.addresses), None)
    if addresses:
        local = bool(sheet.value("net.hostname_is_loopback")) or owner is not None
        sheet.add("net.hostname_is_local", local, f"getaddrinfo({machine.hostname()}) against {NET}")
    if asked:
        named = [entry.name for entry in usable if entry.name in asked]
        sheet.add("net.gloo_would_take", ", ".join(named) or "none", "GLOO_SOCKET_IFNAME against " + NET)
    else:
        sheet.add("net.gloo_would_take", owner or "lo", f"getaddrinfo({machine.hostname()})")


def master(machine: Machine, sheet: Sheet, usable: list[Interface], table: list[Route]) -> None:
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
            way = next((route for route in (route_to(table, one) for one in found) if route), None)
            over = "lo" if local else way.interface if way else None
            sheet.add("net.master_interface", over, ROUTES)
    if local:
        sheet.add("net.master_port_in_use", machine.port_taken(port), f"bind to port {port}")
