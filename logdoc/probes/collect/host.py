"""Limits of the host and of its control group: shared memory, ulimits, disks, memory.

Standard library only, Python 3.8."""

from __future__ import annotations

import os
import re

from logdoc.probes.collect.kernel_log import age, kernel_log
from logdoc.probes.collect.machine import HOST_IPC_NAMESPACE, Machine, Sheet

# What cgroup v1 writes for "no limit" is the largest page-aligned number.
NO_LIMIT = 1 << 60
LIMITS = (
    ("limit.memlock", "MEMLOCK", "bytes"),
    ("limit.nofile", "NOFILE", ""),
    ("limit.nproc", "NPROC", ""),
    ("limit.stack", "STACK", "bytes"),
    ("limit.fsize", "FSIZE", "bytes"),
    ("limit.core", "CORE", "bytes"),
)
KILLED = re.compile(r"(?:Out of memory|Memory cgroup out of memory): Killed process (\d+) \(([^)]*)\)")
REMOVE_IPC = re.compile(r"^\s*RemoveIPC\s*=\s*(\S+)", re.MULTILINE)


def shm(machine: Machine, sheet: Sheet) -> None:
    """Facts shm.*, ipc.*: NCCL's and the DataLoader's shared memory."""
    space = machine.space("/dev/shm")
    if space:
        sheet.add("shm.total", space[0], "statvfs /dev/shm", "bytes")
        sheet.add("shm.free", space[1], "statvfs /dev/shm", "bytes")
    names = machine.names("/dev/shm")
    sheet.add("shm.nccl_leftovers", sum(name.startswith("nccl-") for name in names), "/dev/shm/nccl-*")
    sheet.add("shm.torch_leftovers", sum(name.startswith("torch_") for name in names), "/dev/shm/torch_*")
    namespace = machine.link("/proc/self/ns/ipc")
    if namespace:
        sheet.add("ipc.private_namespace", namespace != HOST_IPC_NAMESPACE, "/proc/self/ns/ipc")
    folder = "/etc/systemd/logind.conf.d"
    files = ["/etc/systemd/logind.conf"] + [f"{folder}/{name}" for name in machine.names(folder)]
    told = [value for path in files for value in REMOVE_IPC.findall(machine.read(path) or "")]
    if told:
        sheet.add("ipc.remove_ipc", told[-1].lower() in ("yes", "true", "1", "on"), "/etc/systemd/logind.conf")


def limits(machine: Machine, sheet: Sheet) -> None:
    """Facts limit.*, proc.*: of this process; a daemon that starts jobs may have others."""
    for fact, name, unit in LIMITS:
        pair = machine.limit_of(name)
        if pair:
            sheet.add(fact, pair[0], f"getrlimit(RLIMIT_{name}), soft", unit)
            sheet.add(fact + "_hard", pair[1], f"getrlimit(RLIMIT_{name}), hard", unit)
    sheet.add("limit.threads_max", machine.number("/proc/sys/kernel/threads-max"), "/proc/sys/kernel/threads-max")
    running = re.search(r"\d+/(\d+)", machine.read("/proc/loadavg") or "")
    sheet.add("proc.threads", int(running.group(1)) if running else None, "/proc/loadavg")
    most = group_number(machine, "pids", "pids.max", "pids.max")
    sheet.add("limit.pids_max", most, "pids.max of the control group")
    sheet.add("proc.pids_used", group_number(machine, "pids", "pids.current", "pids.current"), "pids.current")
    stuck = blocked(machine)
    if stuck:
        # A moment in state D is ordinary (a read, a vfork); only what is still there later is stuck.
        machine.pause(0.3)
        stuck = sorted(set(stuck) & set(blocked(machine)))
    sheet.add("proc.uninterruptible", len(stuck), "/proc/*/stat")
    if stuck:
        sheet.add("proc.uninterruptible_list", ", ".join(stuck[:20]), "/proc/*/stat")


def blocked(machine: Machine) -> list[str]:
    """User processes in state D: they wait inside the kernel and do not react to SIGKILL."""
    found = []
    for pid in machine.names("/proc"):
        stat = machine.read(f"/proc/{pid}/stat") if pid.isdigit() else None
        parts = re.match(r"^\d+ \((.*)\) ([A-Za-z]) (\d+)", stat or "", re.DOTALL)
        # Children of kthreadd (pid 2) are the kernel's own threads.
        if parts and parts.group(2) == "D" and parts.group(3) not in ("0", "2"):
            found.append(f"pid {pid} ({parts.group(1)})")
    return found


def disk(machine: Machine, sheet: Sheet) -> None:
    """Facts disk.*: of the working directory, the temporary folder and the Hugging Face cache."""
    home = machine.environ.get("HOME") or "/root"
    cache = machine.environ.get("XDG_CACHE_HOME") or home + "/.cache"
    places = (
        ("cwd", machine.cwd()),
        ("tmp", machine.environ.get("TMPDIR") or "/tmp"),
        ("hf", machine.environ.get("HF_HOME") or cache + "/huggingface"),
    )
    mounts = mount_points(machine)
    tightest: list[tuple[int, str]] = []
    inodes: list[int] = []
    read_only = []
    for name, place in places:
        path = nearest(machine, place)
        sheet.doing("statvfs " + path)
        space = machine.space(path)
        if not space:
            sheet.fail(f"statvfs {path} failed: the file system does not answer")
            continue
        sheet.add(f"disk.{name}_free", space[1], "statvfs " + path, "bytes")
        tightest.append((space[1], path))
        if space[2]:
            sheet.add(f"disk.{name}_inodes_free", space[3], "statvfs " + path)
            inodes.append(space[3])
        kind, options = mounts_of(mounts, path)
        sheet.add(f"disk.{name}_type", kind, "/proc/mounts")
        read_only.extend([path] if "ro" in options else [])
    quota(machine, sheet)
    if tightest:
        sheet.add("disk.free", min(tightest)[0], "statvfs", "bytes")
        sheet.add("disk.fullest", min(tightest)[1], "statvfs")
        sheet.add("disk.inodes_free", min(inodes, default=None), "statvfs")
        sheet.add("disk.read_only", ", ".join(read_only) or "none", "/proc/mounts")


def quota(machine: Machine, sheet: Sheet) -> None:
    """What this user's disk quota leaves, where `quota` can tell; Lustre and GPFS have tools of their own."""
    if machine.which("quota") is None:
        return
    source = "quota -w -p"
    left: list[tuple[int, str]] = []
    files: list[int] = []
    for line in machine.ask(sheet, source.split(), 2.0).out.splitlines():
        parts = [part.rstrip("*") for part in line.split()]
        # Filesystem, blocks of 1 KiB used, soft, hard, grace; files used, soft, hard, grace. 0 is no limit.
        if len(parts) < 9 or not all(part.isdigit() for part in parts[1:9]):
            continue
        used, soft, hard, _grace, count, soft_count, hard_count = map(int, parts[1:8])
        if soft or hard:
            left.append((max(0, (hard or soft) - used) * 1024, parts[0]))
        if soft_count or hard_count:
            files.append(max(0, (hard_count or soft_count) - count))
    if left:
        sheet.add("disk.quota_free", min(left)[0], source, "bytes")
        sheet.add("disk.quota_filesystem", min(left)[1], source)
    sheet.add("disk.quota_inodes_free", min(files, default=None), source)


def nearest(machine: Machine, path: str) -> str:
    """The path, or the closest folder above it that exists."""
    path = os.path.abspath(path)
    while path != "/" and not machine.exists(path):
        path = os.path.dirname(path)
    return path


def mount_points(machine: Machine) -> list[tuple[str, str, list[str]]]:
    rows = [line.split() for line in (machine.read("/proc/mounts") or "").splitlines()]
    return [(row[1], row[2], row[3].split(",")) for row in rows if len(row) >= 4]


def mounts_of(mounts: list[tuple[str, str, list[str]]], path: str) -> tuple[str | None, list[str]]:
    """File system type and options of the mount that holds a path."""
    holding = [row for row in mounts if path == row[0] or path.startswith(row[0].rstrip("/") + "/")]
    if not holding:
        return None, []
    best = max(holding, key=lambda row: len(row[0]))
    return best[1], best[2]


def host_memory(machine: Machine, sheet: Sheet) -> None:
    """Facts mem.*, cgroup.*, kernel.*: memory, its limit here, and whether the kernel has killed for it."""
    for key, value in re.findall(r"^(\w+):\s+(\d+) kB", machine.read("/proc/meminfo") or "", re.MULTILINE):
        fact = {"MemTotal": "mem.total", "MemAvailable": "mem.available", "SwapFree": "mem.swap_free"}.get(key)
        if fact:
            sheet.add(fact, int(value) * 1024, "/proc/meminfo", "bytes")
    most = group_number(machine, "memory", "memory.max", "memory.limit_in_bytes")
    limited = most is not None and most < NO_LIMIT
    sheet.add("cgroup.limited", limited, "memory.max of the control group")
    if limited:
        sheet.add("cgroup.limit", most, "memory.max of the control group", "bytes")
    usage = group_number(machine, "memory", "memory.current", "memory.usage_in_bytes")
    sheet.add("cgroup.usage", usage, "memory.current of the control group", "bytes")
    folder = (group_folders(machine, "memory") or [""])[0]
    events = [machine.read(f"{folder}/{name}") or "" for name in ("memory.events", "memory.oom_control")]
    kills = re.search(r"^oom_kill (\d+)", "\n".join(events), re.MULTILINE)
    sheet.add("cgroup.oom_kills", int(kills.group(1)) if kills else None, "memory.events of the control group")
    total = re.search(r"^oom_kill (\d+)", machine.read("/proc/vmstat") or "", re.MULTILINE)
    sheet.add("kernel.oom_kills", int(total.group(1)) if total else None, "/proc/vmstat")
    killed(machine, sheet)


def killed(machine: Machine, sheet: Sheet) -> None:
    """The last process the kernel killed for memory, from its log."""
    log = kernel_log(machine, sheet)
    sheet.add("kernel.log_readable", log is not None, "dmesg, journalctl -k")
    if log is None:
        return
    hits = [(match, line) for line in log[0] for match in [KILLED.search(line)] if match]
    if hits:
        last, line = hits[-1]
        sheet.add("kernel.last_oom_process", "pid {} ({})".format(*last.groups()), log[1])
        sheet.add("kernel.last_oom_pid", int(last.group(1)), log[1])
        since = age(machine, line)
        sheet.add("kernel.last_oom_age", None if since is None else round(since, 1), log[1], "s")


def group_folders(machine: Machine, controller: str) -> list[str]:
    """This process's control group and all above it, innermost first, for cgroup v2 or the v1 controller."""
    paths: dict[str, str] = {}
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for name in parts[1].split(","):
                paths[name] = parts[2]
    if controller in paths:
        base, path = "/sys/fs/cgroup/" + controller, paths[controller]
    elif machine.exists("/sys/fs/cgroup/cgroup.controllers"):
        base, path = "/sys/fs/cgroup", paths.get("", "/")
    else:
        return []
    # Inside a container the path is the host's, while the mount shows the container's own group at its top.
    parts = [part for part in path.split("/") if part and part != ".."]
    folders = ["/".join([base, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return [folder for folder in folders if machine.exists(folder)]


def group_number(machine: Machine, controller: str, new: str, old: str) -> int | None:
    """The smallest number along the groups above this process for a limit; the innermost for a usage counter."""
    values = []
    for folder in group_folders(machine, controller):
        for name in (new, old):
            text = machine.read(f"{folder}/{name}")
            if text and text.isdigit():
                values.append(int(text))
                break
    if not values:
        return None
    return min(values) if new.endswith(".max") else values[0]
