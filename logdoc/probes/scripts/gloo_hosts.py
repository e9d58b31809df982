"""Plays one of several hosts that join over gloo: reaches every other one, then all-reduces, and tells what it saw.

Usage, on each host: python - --hosts A,B=10.0.0.2 [--port P] [--seconds S] [--rank N]. Prints facts as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import fcntl
import importlib
import ipaddress
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
import zlib

from logdoc.probes.collect.pieces import printed

if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]
PROBE = "gloo-hosts"
ELEMENTS = 1 << 16
LISTENING = "0A"
SIOCGIFADDR = 0x8915
PR_SET_PDEATHSIG = 1
PAUSE = 0.2
# A refused connection ends a group within a moment, and with it the socket that gloo listened on.
GLANCE = 0.02


class Peer:
    """Another host of the list and what became of it: who answered, from where, and whether it came here."""

    def __init__(self, rank: int, name: str, address: str) -> None:
        self.rank, self.name, self.address = rank, name, address
        self.reached = ""
        self.local = ""
        self.seconds = 0.0
        self.failure = "not tried"
        self.refused = False
        self.heard = ""


def hosts_of(text: str) -> list[tuple[str, str]]:
    """NAME or NAME=ADDRESS, comma separated."""
    parts = [entry.strip().partition("=") for entry in text.split(",")]
    return [(name, address or name) for name, _sign, address in parts]


def own_rank(hosts: list[tuple[str, str]]) -> int | None:
    """Which of the hosts this one is: by its name, else by the one address that is bound here."""
    short = socket.gethostname().split(".")[0].lower()
    named = [rank for rank, (name, _address) in enumerate(hosts) if name.split(".")[0].lower() == short]
    if len(named) == 1:
        return named[0]
    bound = [rank for rank, (_name, address) in enumerate(hosts) if is_here(address)]
    return bound[0] if len(bound) == 1 else None


def is_here(address: str) -> bool:
    try:
        for family, kind, _protocol, _name, place in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as trial:
                trial.bind(place)
                return True
    except OSError:
        return False
    return False


def reason_of(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "the name does not resolve: " + str(error.strerror)
    if isinstance(error, socket.timeout):
        return "no answer: packets are dropped (firewall) or the address is wrong"
    return str(error.strerror or error)


class Meeting:
    """Every host listens on a port of its own and greets every other one until all have met or the time is over."""

    def __init__(self, rank: int, peers: list[Peer], port: int, tag: str, deadline: float) -> None:
        self.rank, self.peers, self.port, self.deadline = rank, peers, port, deadline
        self.greeting = "logdoc " + tag + " "
        self.server = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
        if self.server.family == socket.AF_INET6:
            self.server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.server.bind(("", port + 1 + rank))
        self.server.listen(64)

    def hold(self) -> None:
        """Meet until the deadline; later calls of others are still answered afterwards."""
        threading.Thread(target=self.answer, daemon=True).start()
        for peer in self.peers:
            threading.Thread(target=self.greet, args=(peer,), daemon=True).start()
        while time.monotonic() < self.deadline and not all(peer.reached and peer.heard for peer in self.peers):
            time.sleep(0.02)

    def answer(self) -> None:
        while True:
            connection, caller = self.server.accept()
            with connection:
                try:
                    connection.settimeout(2.0)
                    said = connection.recv(200).decode("ascii", "replace")
                    number = said[len(self.greeting) :].strip()
                    known = [peer for peer in self.peers if said.startswith(self.greeting) and number == str(peer.rank)]
                    for peer in known:
                        connection.sendall((self.greeting + str(self.rank) + "\n").encode("ascii"))
                        peer.heard = plain(str(caller[0]))
                except OSError:
                    continue

    def greet(self, peer: Peer) -> None:
        while time.monotonic() < self.deadline:
            began = time.monotonic()
            limit = max(0.2, min(3.0, self.deadline - began))
            try:
                with socket.create_connection((peer.address, self.port + 1 + peer.rank), timeout=limit) as connection:
                    peer.seconds = time.monotonic() - began
                    connection.sendall((self.greeting + str(self.rank) + "\n").encode("ascii"))
                    if connection.recv(200).decode("ascii", "replace") == self.greeting + str(peer.rank) + "\n":
                        peer.local = plain(str(connection.getsockname()[0]))
                        peer.reached = plain(str(connection.getpeername()[0]))
                        return
                    peer.failure = "something else answers on that port, or another run of this probe"
            except OSError as error:
                peer.failure = reason_of(error)
                peer.refused = isinstance(error, ConnectionRefusedError)
            time.sleep(PAUSE)


def join_group(orders: int, out: int) -> None:
    """The child's whole life: import torch, wait for the word, join, reduce, compare."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # never left behind by a parent that was killed
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    # Inside a torchrun worker these would make the new group wait for the job's own store.
    for name in [name for name in os.environ if name.startswith("TORCHELASTIC_")]:
        del os.environ[name]

    def say(**what: object) -> None:
        os.write(out, (json.dumps(what) + "\n").encode("ascii"))

    try:
        torch = importlib.import_module("torch")
        dist = importlib.import_module("torch.distributed")
        say(step="torch imported", torch=str(torch.__version__))
        told = json.loads(os.read(orders, 4096).decode("ascii") or "null")
        if told is None:
            os._exit(0)
        began = time.monotonic()
        limit = datetime.timedelta(seconds=told.pop("seconds"))
        dist.init_process_group("gloo", timeout=limit, **told)
        say(step="group joined")
        tensor = torch.full((ELEMENTS,), float(told["rank"] + 1))
        dist.all_reduce(tensor)
        right = bool((tensor == told["world_size"] * (told["world_size"] + 1) / 2).all().item())
        error = "" if right else "wrong sum: data was corrupted on the way"
        say(step="all-reduce done", ok=right, error=error, seconds=round(time.monotonic() - began, 3))
    except BaseException as error:
        words = " | ".join(str(error).strip().splitlines())[:600]
        say(ok=False, error=type(error).__name__ + ": " + words)
    # The sockets stay open until the parent has looked at them and ends this process.
    time.sleep(5.0)
    os._exit(0)


class Group:
    """The child that joins the group, watched from outside: how far it came and on which addresses it listens."""

    def __init__(self) -> None:
        order_end, self.orders = os.pipe()
        self.pipe, result_end = os.pipe()
        self.said: dict[str, object] = {}
        self.buffer = b""
        self.listening: set[str] = set()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.orders)
            os.close(self.pipe)
            join_group(order_end, result_end)
        os.close(order_end)
        os.close(result_end)

    def listen(self, until: float, wanted: tuple[str, ...], store: int = 0) -> None:
        """Take in what the child says until it says one of the wanted things, or the time is over."""
        while time.monotonic() < until and not self.said.keys() & set(wanted):
            if select.select([self.pipe], [], [], GLANCE)[0]:
                data = os.read(self.pipe, 1 << 16)
                if not data:
                    status = os.waitpid(self.pid, 0)[1]
                    fate = f"signal {status & 127}" if status & 127 else f"exit code {status >> 8}"
                    self.said.update(ok=False, error=f"its process died without a word ({fate})")
                    return
                lines = (self.buffer + data).split(b"\n")
                self.buffer = lines.pop()
                for line in lines:
                    self.said.update(json.loads(line.decode("ascii")))
            if store:
                self.listening |= listening_on(self.pid, store)

    def go(self, **what: object) -> None:
        try:
            os.write(self.orders, json.dumps(what).encode("ascii"))
        except BrokenPipeError:
            return  # it has died: `listen` will tell

    def end(self) -> None:
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(self.pid, signal.SIGKILL)


def listening_on(pid: int, store: int) -> set[str]:
    """Addresses on which a process waits for connections, other than the store's port: what gloo bound to."""
    own = set()
    found: set[str] = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
            own.update([link.group(1)] if link else [])
    except OSError:
        return found
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}") as stream:
                rows = [line.split() for line in stream][1:]
        except OSError:
            continue
        for row in rows:
            address, _colon, port = row[1].partition(":")
            if row[3] == LISTENING and row[9] in own and int(port, 16) != store:
                found.add(readable(address))
    return found


def readable(kernel: str) -> str:
    """The kernel's hexadecimal words, each in the byte order of the machine, as an address."""
    words = [struct.pack("=I", int(kernel[start : start + 8], 16)) for start in range(0, len(kernel), 8)]
    return plain(str(ipaddress.ip_address(b"".join(words))))


def plain(address: str) -> str:
    found = ipaddress.ip_address(address.split("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def interface_of(address: str) -> str:
    """The interface that has an address; empty when none is found."""
    if ipaddress.ip_address(address).is_loopback:
        return "lo"
    if ":" in address and os.path.exists("/proc/net/if_inet6"):
        with open("/proc/net/if_inet6") as stream:
            rows = [line.split() for line in stream]
        return next((row[5] for row in rows if str(ipaddress.IPv6Address(int(row[0], 16))) == address), "")
    for _index, name in socket.if_nameindex():
        packed = struct.pack("256s", name[:15].encode("ascii", "replace"))
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                if socket.inet_ntoa(fcntl.ioctl(asking.fileno(), SIOCGIFADDR, packed)[20:24]) == address:
                    return name
        except OSError:
            continue
    return ""


class Facts:
    """What this host saw, in the form of logdoc's fact files."""

    def __init__(self) -> None:
        self.facts: list[dict[str, object]] = []
        self.errors: list[dict[str, str]] = []

    def add(self, fact: str, value: object, source: str, unit: str = "") -> None:
        if value is not None and value != "":
            self.facts.append({"id": "gloo." + fact, "value": value, "unit": unit, "source": source, "probe": PROBE})

    def fail(self, error: str) -> None:
        self.errors.append({"probe": PROBE, "error": error, "kind": "failed"})


def tell_peers(facts: Facts, peers: list[Peer], port: int) -> None:
    missed = [peer for peer in peers if not peer.reached]
    source = f"connect to ports {port + 1}.. of the other hosts"
    told = [
        f"{peer.name} {peer.reached} in {peer.seconds * 1000:.1f} ms over {interface_of(peer.local) or peer.local}"
        for peer in peers
        if peer.reached
    ]
    facts.add("reached", "; ".join(told), source)
    facts.add("unreached_count", len(missed), source)
    facts.add("unreached", "; ".join(f"{peer.name}: {peer.failure}" for peer in missed), source)
    silent = ", ".join(peer.name for peer in peers if not peer.heard)
    facts.add("not_heard", silent, f"listening on port {port + 1}..")


def tell_group(facts: Facts, group: Group, peers: list[Peer], limit: float) -> None:
    source = "all_reduce of torch.distributed over gloo"
    said = group.said
    facts.add("hosts_step", said.get("step"), source)
    if "ok" not in said:
        facts.add("hosts_error", f"no result within {limit:.0f} s (last step: {said['step']})", source)
    facts.add("hosts_ok", bool(said.get("ok")), source)
    facts.add("hosts_error", said.get("error"), source)
    facts.add("hosts_seconds", said.get("seconds") if said.get("ok") else None, source, "s")
    bound = sorted(group.listening)
    facts.add("address", ", ".join(bound), "/proc/PID/net/tcp while it joined")
    facts.add("interface", ", ".join(sorted({interface_of(address) for address in bound} - {""})), "SIOCGIFADDR")
    if bound:
        here = all(ipaddress.ip_address(address).is_loopback for address in bound)
        away = any(not ipaddress.ip_address(peer.reached).is_loopback for peer in peers if peer.reached)
        facts.add("loopback", here and away, "/proc/PID/net/tcp while it joined")


def probe(hosts: list[tuple[str, str]], rank: int, port: int, seconds: float) -> Facts:
    """Import torch, meet, join and reduce; all within `seconds`, of which the last two fifths are kept for gloo.

    Torch is imported first: a host that cannot join never shows itself, so that nobody blames the network for it.
    """
    facts, began = Facts(), time.monotonic()
    name = ",".join(name for name, _address in hosts)
    facts.add("hosts", name, "--hosts")
    facts.add("host", hosts[rank][0], "--hosts")
    facts.add("rank", rank, "--hosts")
    peers = [Peer(other, *pair) for other, pair in enumerate(hosts) if other != rank]
    group = Group()
    try:
        group.listen(began + seconds / 2, ("step", "ok"))
        if "step" not in group.said:
            why = str(group.said.get("error") or f"not finished within {seconds / 2:.0f} s")
            facts.fail("torch cannot be imported here: " + why)
            return facts
        try:
            meeting = Meeting(rank, peers, port, str(zlib.crc32(name.encode("utf-8"))), began + seconds * 0.6)
        except OSError as error:
            facts.fail(f"port {port + 1 + rank} cannot be listened on: {reason_of(error)}")
            return facts
        meeting.hold()
        tell_peers(facts, peers, port)
        absent = [peer.name for peer in peers if not peer.reached and not peer.heard and peer.refused]
        if absent:
            facts.fail(f"nobody answers on {', '.join(absent)}: start the probe there too (or its firewall rejects)")
            return facts
        left = max(1.0, began + seconds - time.monotonic() - 0.5)
        first = hosts[0][1]
        address = "[" + first + "]" if ":" in first else first
        group.go(init_method=f"tcp://{address}:{port}", rank=rank, world_size=len(hosts), seconds=left)
        group.listen(time.monotonic() + left, ("ok",), port)
        tell_group(facts, group, peers, left)
        # The store lives in the first host's child: the others' last words to it must not break off.
        time.sleep(PAUSE * 2 if rank == 0 else 0.0)
    finally:
        group.end()
    return facts


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="One host's part of a gloo all-reduce between given hosts.")
    parser.add_argument("--hosts", required=True, help="NAME or NAME=ADDRESS, comma separated; the first has the store")
    parser.add_argument("--port", type=int, default=29610, help="first of the ports used: this one and one a host")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for everything together")
    parser.add_argument("--rank", type=int, help="which of the hosts this is, from 0; else found by name or address")
    options = parser.parse_args(arguments)
    hosts = hosts_of(options.hosts)
    rank = own_rank(hosts) if options.rank is None else options.rank
    if rank is None or not 0 <= rank < len(hosts):
        parser.error(f"{socket.gethostname()} is none of {options.hosts}: say which with --rank")
    if not 0 < options.port < 65535 - len(hosts):
        parser.error(f"port {options.port} and the {len(hosts)} after it are no ports")
    sys.stderr.write(
        f"gloo-hosts: {hosts[rank][0]} (rank {rank} of {len(hosts)}) listens on TCP {options.port + 1 + rank}, "
        f"connects to the other hosts and joins one gloo all-reduce through {hosts[0][0]}:{options.port}; at most "
        f"{options.seconds:.0f} s.\n"
    )
    sys.stderr.flush()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts = probe(hosts, rank, options.port, options.seconds)
    head = {"schema": "logdoc.facts/v1", "host": socket.gethostname(), "time": stamp, "executable": sys.executable}
    sys.stdout.write(printed({**head, "facts": facts.facts, "errors": facts.errors}, os.environ))
    sys.stdout.flush()
    os._exit(0)


main(sys.argv[1:])
