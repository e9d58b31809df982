"""What the collector may ask of a machine (files under a root, commands with a time limit) and where it notes facts.

Standard library only, Python 3.8: these parts are joined into the one script that `logdoc probe --script` prints.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import math
import os
import shutil
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from logdoc.probes.collect.commands import Answer, run_command

READ_LIMIT = 1 << 20
TEXT_LIMIT = 4000
# Seconds a section keeps back for stopping a command and saying so.
STOPPING = 0.5
# The kernel fixes the inode of its first IPC namespace (include/linux/proc_ns.h, PROC_IPC_INIT_INO).
HOST_IPC_NAMESPACE = "ipc:[4026531839]"


class Sheet:
    """Facts and errors of one section. `emit` takes each entry at once, so that a section cut short loses nothing."""

    def __init__(self, probe: str, emit: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.probe = probe
        self.facts: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.emit = emit

    def add(self, fact: str, value: Any, source: str, unit: str = "") -> None:
        """Note a fact; None and not-a-number mean "unknown" and are left out."""
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return
        if isinstance(value, str):
            value = value[:TEXT_LIMIT]
        entry = {"id": fact, "value": value, "unit": unit, "source": source[:200], "probe": self.probe}
        self.facts.append(entry)
        if self.emit:
            self.emit({"fact": entry})

    def fail(self, error: str, kind: str = "failed") -> None:
        """Note what could not be seen, and why. `kind`: failed, timeout, abandoned."""
        entry = {"probe": self.probe, "error": error[:TEXT_LIMIT], "kind": kind}
        self.errors.append(entry)
        if self.emit:
            self.emit({"error": entry})

    def doing(self, what: str) -> None:
        """Say what starts now, so that a section that never returns can be told from its last words."""
        if self.emit:
            self.emit({"doing": what})

    def value(self, fact: str) -> Any:
        for entry in self.facts:
            if entry["id"] == fact:
                return entry["value"]
        return None


class Machine:
    """The real machine. Tests give another `root`, `run` and `environ`, and override the calls below."""

    def __init__(
        self,
        root: str = "/",
        run: Callable[[Sequence[str], float], Answer] = run_command,
        environ: dict[str, str] | None = None,
        deadline: float | None = None,
    ) -> None:
        self.root = root
        self.run = run
        self.environ = dict(os.environ) if environ is None else environ
        self.deadline = deadline

    def at(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read_bytes(self, path: str) -> bytes | None:
        try:
            with open(self.at(path), "rb") as stream:
                return stream.read(READ_LIMIT)
        except (OSError, ValueError):
            return None

    def read(self, path: str) -> str | None:
        """The text of a file without surrounding blanks; None when it cannot be read."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace").strip()

    def number(self, path: str) -> int | None:
        try:
            return int(self.read(path) or "", 0)
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.at(path)))
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        return os.path.exists(self.at(path))

    def link(self, path: str) -> str:
        try:
            return os.readlink(self.at(path))
        except (OSError, ValueError):
            return ""

    def real(self, path: str) -> str:
        """The path with its links resolved, still seen from the root."""
        full = os.path.realpath(self.at(path))
        base = os.path.realpath(self.root)
        return full if base == os.sep else full[len(base) :] or "/"

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def remaining(self) -> float:
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def ask(self, sheet: Sheet, argv: Sequence[str], limit: float = 3.0) -> Answer:
        """Run a command within its limit and the section's; a command that did not answer is noted as an error."""
        words = " ".join(argv)
        words = words if len(words) <= 90 else words[:87] + "..."
        limit = min(limit, self.remaining() - STOPPING)
        if limit <= 0:
            sheet.fail(f"no time left for `{words}`", "timeout")
            return Answer("late", -1, "", "")
        sheet.doing(words)
        answer = self.run(argv, limit)
        if answer.state == "timeout":
            sheet.fail(f"`{words}` did not answer within {limit:.1f} s and was killed", "timeout")
        elif answer.state == "abandoned":
            sheet.fail(f"`{words}` hangs in the kernel and does not react to SIGKILL; it was left behind", "abandoned")
        elif answer.state == "refused":
            sheet.fail(f"`{words}` could not be started: {answer.err}")
        return answer

    def which(self, name: str) -> str | None:
        return shutil.which(name, path=self.environ.get("PATH"))

    def import_module(self, name: str) -> Any:
        return importlib.import_module(name)

    def module_path(self, name: str) -> str | None:
        """Where an import would find a top-level package; it is not imported."""
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        return spec.origin if spec else None

    def search_path(self) -> list[str]:
        return [entry for entry in sys.path if entry]

    def prefix(self) -> str:
        return sys.prefix

    def cwd(self) -> str:
        """The working directory; / where it has been deleted."""
        try:
            return os.getcwd()
        except OSError:
            return "/"

    def cpus(self) -> tuple[int, int]:
        """Processors of the machine, and those this process may use."""
        count = os.cpu_count() or 1
        affinity = getattr(os, "sched_getaffinity", None)
        return (count, len(affinity(0)) if affinity else count)

    def hostname(self) -> str:
        return socket.gethostname()

    def system(self) -> tuple[str, str, str]:
        """Name of the operating system, its release, and the processor architecture."""
        if not hasattr(os, "uname"):
            return ("Windows", "", os.environ.get("PROCESSOR_ARCHITECTURE", ""))
        found = os.uname()
        return (found.sysname, found.release, found.machine)

    def limit_of(self, name: str) -> tuple[int, int] | None:
        """Soft and hard limit of this process; unlimited is 2**63 - 1, as the kernel counts it."""
        try:
            resource = importlib.import_module("resource")
            pair = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
        except (ImportError, AttributeError, OSError, ValueError):
            return None
        soft, hard = (2**63 - 1 if value in (-1, resource.RLIM_INFINITY) else int(value) for value in pair)
        return (soft, hard)

    def space(self, path: str) -> tuple[int, int, int, int] | None:
        """Total bytes, free bytes, inodes and free inodes that a plain user has there."""
        try:
            found = os.statvfs(self.at(path))
        except (OSError, AttributeError, ValueError):
            return None
        unit = found.f_frsize or found.f_bsize
        return (found.f_blocks * unit, found.f_bavail * unit, found.f_files, found.f_favail)

    def ipv4(self, interface: str) -> str | None:
        """The first IPv4 address of an interface, by ioctl SIOCGIFADDR."""
        try:
            fcntl = importlib.import_module("fcntl")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                packed = struct.pack("256s", interface[:15].encode("ascii", "replace"))
                return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, packed)[20:24])
        except (ImportError, OSError):
            return None

    def resolve(self, name: str) -> list[str]:
        """The addresses of a name; raises OSError when it has none."""
        return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})

    def port_taken(self, port: int) -> bool | None:
        """Whether a server could not listen on this port: tried by binding it for a moment, nothing is sent."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(("", port))
        except PermissionError:
            return None
        except OSError as error:
            return getattr(error, "errno", None) == 98 or None
        return False

    def clock(self) -> tuple[bool, float] | None:
        """Whether the kernel calls its clock synchronised, and its error bound in seconds: adjtimex, read only."""
        buffer = ctypes.create_string_buffer(512)
        try:
            state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
        except (OSError, AttributeError, TypeError):
            return None
        if state < 0 or ctypes.sizeof(ctypes.c_long) != 8:
            return None
        # struct timex on 64 bits: modes, offset, freq, maxerror (microseconds) at byte 24; TIME_ERROR is 5.
        return (state != 5, struct.unpack_from("q", buffer.raw, 24)[0] / 1e6)
