"""What this process runs in: system, container, scheduler, clock, environment variables.

Standard library only, Python 3.8."""

from __future__ import annotations

import re
import time

from logdoc.probes.collect.host import group_folders, mount_points
from logdoc.probes.collect.machine import Machine, Sheet

# Capabilities that RDMA, NUMA pinning and MNNVL ask for (bit numbers of include/uapi/linux/capability.h).
CAPABILITIES = (("ipc_lock", 14), ("sys_admin", 21), ("sys_nice", 23), ("sys_ptrace", 19))
CGROUP_KINDS = (("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"))
CLOCK_SERVICES = ("chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys")
# Slurm counts memory in MiB.
SLURM_LIMITS: tuple[tuple[str, tuple[str, ...], str, int], ...] = (
    ("slurm.cpus", ("SLURM_CPUS_ON_NODE",), "processors", 1),
    ("slurm.gpus", ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), "", 1),
    ("slurm.tasks", ("SLURM_NTASKS", "SLURM_NPROCS"), "", 1),
    ("slurm.memory", ("SLURM_MEM_PER_NODE",), "bytes", 1 << 20),
    ("slurm.memory_per_cpu", ("SLURM_MEM_PER_CPU",), "bytes", 1 << 20),
)
SHARED_PREFIXES = [
    "NCCL_",
    "TORCH_",
    "TORCHELASTIC_",
    "PYTORCH_",
    "CUDA_",
    "GLOO_",
    "UCX_",
    "UCC_",
    "FI_",
    "OFI_",
    "RDMAV_",
    "MLX5_",
    "OMP_",
    "MKL_",
    "KMP_",
    "OMPI_COMM_WORLD_",
    "PMI_",
    "PMIX_RANK",
    "NVIDIA_VISIBLE_",
    "NVIDIA_DRIVER_",
    "VLLM_",
    "ACCELERATE_",
    "DEEPSPEED_",
    "FSDP_",
    "RAY_",
    "HF_HUB_",
    "HSA_",
    "HIP_",
    "ROCR_",
    "RCCL_",
    "SLURM_JOB_",
    "SLURM_NNODES",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_GPUS",
    "SLURM_STEP_",
]
SHARED_NAMES = [
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "HF_HOME",
    "HF_DATASETS_CACHE",
    "TRANSFORMERS_OFFLINE",
    "TRANSFORMERS_CACHE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "TMPDIR",
    "TOKENIZERS_PARALLELISM",
]
SECRET = re.compile(
    r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|PRIVATE|COOKIE|SIGNATURE|(?:^|_)(?:API_?|ACCESS_?)?KEYS?(?:_|$)"
)
SECRET_VALUE = re.compile(r"\b(?:hf_|gh[pousr]_|sk-|xox[abp]-|AKIA|eyJ)[\w.-]{8,}")
USERINFO = re.compile(r"(\w+://)[^/\s@]+@")
CONF_LINE = re.compile(r"^\s*(NCCL_\w+)\s*=\s*(\S.*?)\s*$", re.MULTILINE)
VALUE_LIMIT = 500


def container(machine: Machine, sheet: Sheet) -> None:
    """Facts os.*, container.*: operating system, kind of container, its rights."""
    system, release, processor = machine.system()
    sheet.add("os.system", system, "uname")
    sheet.add("os.kernel", release, "uname")
    sheet.add("os.arch", processor, "uname")
    count, usable = machine.cpus()
    sheet.add("cpu.count", count, "cpu_count()", "processors")
    sheet.add("cpu.usable", usable, "sched_getaffinity()", "processors")
    sheet.add("cpu.quota", cpu_quota(machine), "cpu.max of the control group", "processors")
    kind, source = container_kind(machine)
    sheet.add("container.kind", kind, source)
    sheet.add("container.wsl", "microsoft" in (machine.read("/proc/version") or "").lower(), "/proc/version")
    cpu = machine.read("/proc/cpuinfo") or ""
    maker = machine.read("/sys/class/dmi/id/sys_vendor")
    model = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", cpu, re.MULTILINE)
    sheet.add("cpu.model", model.group(1) if model else None, "/proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", cpu, re.MULTILINE)
    if flags:
        sheet.add("container.vm", "hypervisor" in flags.group(1).split(), "/proc/cpuinfo")
    sheet.add("os.machine_maker", maker, "/sys/class/dmi/id/sys_vendor")
    status = machine.read("/proc/self/status") or ""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    last = machine.number("/proc/sys/kernel/cap_last_cap")
    if effective:
        mask = int(effective.group(1), 16)
        full = (1 << ((last if last is not None else 40) + 1)) - 1
        sheet.add("container.privileged", mask & full == full, "CapEff of /proc/self/status")
        for name, bit in CAPABILITIES:
            sheet.add("container.cap_" + name, bool(mask >> bit & 1), "CapEff of /proc/self/status")
    seccomp = re.search(r"^Seccomp:\s*(\d)", status, re.MULTILINE)
    if seccomp:
        sheet.add("container.seccomp", seccomp.group(1) == "2", "Seccomp of /proc/self/status")


def container_kind(machine: Machine) -> tuple[str, str]:
    """Kubernetes before docker: a pod's container has the marks of both."""
    if machine.environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes", "KUBERNETES_SERVICE_HOST"
    if machine.environ.get("APPTAINER_NAME") or machine.environ.get("SINGULARITY_NAME"):
        return "singularity", "APPTAINER_NAME, SINGULARITY_NAME"
    if machine.exists("/.dockerenv"):
        return "docker", "/.dockerenv"
    if machine.exists("/run/.containerenv"):
        return "podman", "/run/.containerenv"
    groups = machine.read("/proc/1/cgroup") or ""
    for mark, kind in CGROUP_KINDS:
        if mark in groups:
            return kind, "/proc/1/cgroup"
    declared = machine.read("/run/systemd/container")
    if declared:
        return declared, "/run/systemd/container"
    # Enroot and others leave no mark; nor would a diskless node that lays its root together in the same way.
    if ("/", "overlay") in {(place, kind) for place, kind, _options in mount_points(machine)}:
        return "unknown", "the root file system is an overlay"
    return "none", "no mark of a container"


def cpu_quota(machine: Machine) -> float | None:
    """Processors' worth of time that the control groups leave; None without a limit."""
    shares: list[float] = []
    for folder in group_folders(machine, "cpu"):
        new = (machine.read(folder + "/cpu.max") or "").split()
        old = [machine.read(f"{folder}/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        pairs = [pair for pair in (new, old) if len(pair) == 2 and pair[0].isdigit() and pair[1].isdigit()]
        shares.extend(int(quota) / int(period) for quota, period in pairs if int(period))
    return round(min(shares), 2) if shares else None


def scheduler(machine: Machine, sheet: Sheet) -> None:
    """Facts scheduler.*, slurm.*, k8s.*. Asks only the scheduler's own client, and only inside its job."""
    env = machine.environ
    namespace = machine.read("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    marks = (
        ("slurm", env.get("SLURM_JOB_ID")),
        ("kubernetes", env.get("KUBERNETES_SERVICE_HOST")),
        ("pbs", env.get("PBS_JOBID")),
        ("lsf", env.get("LSB_JOBID")),
    )
    sheet.add("scheduler.kind", next((kind for kind, mark in marks if mark), "none"), "environment")
    if env.get("KUBERNETES_SERVICE_HOST"):
        sheet.add("k8s.namespace", namespace or env.get("POD_NAMESPACE"), "service account")
        sheet.add("k8s.pod", env.get("POD_NAME") or machine.hostname(), "POD_NAME, hostname")
        sheet.add("k8s.node", env.get("NODE_NAME"), "NODE_NAME")
    if env.get("SLURM_JOB_ID"):
        slurm(machine, sheet)


def slurm(machine: Machine, sheet: Sheet) -> None:
    job = machine.environ["SLURM_JOB_ID"]
    sheet.add("slurm.job_id", job, "SLURM_JOB_ID")
    sheet.add("slurm.nodes", machine.environ.get("SLURM_JOB_NODELIST"), "SLURM_JOB_NODELIST")
    slurm_limits(machine, sheet)
    end = machine.environ.get("SLURM_JOB_END_TIME", "")
    if end.isdigit():
        sheet.add("slurm.time_left", max(0, int(end) - int(time.time())), "SLURM_JOB_END_TIME", "s")
    if not job.isdigit():
        return
    answer = machine.ask(sheet, ["squeue", "-h", "-j", job, "-o", "%T|%L|%l"], 3.0)
    state, left, limit = [*answer.out.strip().split("|"), "", ""][:3]
    if state:
        sheet.add("slurm.job_state", state, "squeue")
        sheet.add("slurm.time_limit", seconds(limit), "squeue", "s")
        if not end.isdigit():
            sheet.add("slurm.time_left", seconds(left), "squeue", "s")
    node = machine.environ.get("SLURMD_NODENAME", "")
    if re.match(r"^[\w.-]+$", node):
        told = machine.ask(sheet, ["scontrol", "show", "node", node, "-o"], 3.0).out
        for fact, key in (("slurm.node_state", "State"), ("slurm.node_reason", "Reason")):
            found = re.search(rf"\b{key}=(\S.*?)(?= \w+=|$)", told, re.MULTILINE)
            sheet.add(fact, found.group(1) if found else None, "scontrol show node")


def slurm_limits(machine: Machine, sheet: Sheet) -> None:
    """What the job was given on this node, as Slurm tells its processes."""
    env = machine.environ
    for fact, names, unit, factor in SLURM_LIMITS:
        name = next((name for name in names if env.get(name, "").isdigit()), None)
        if name and int(env[name]):
            sheet.add(fact, int(env[name]) * factor, name, unit)
    sheet.add("slurm.partition", env.get("SLURM_JOB_PARTITION"), "SLURM_JOB_PARTITION")
    sheet.add("slurm.job_gpus", env.get("SLURM_JOB_GPUS") or env.get("SLURM_STEP_GPUS"), "SLURM_JOB_GPUS")


def seconds(left: str) -> int | None:
    """Slurm's days-hours:minutes:seconds; UNLIMITED, INVALID and NOT_SET are no number."""
    match = re.match(r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$", left.strip())
    if not match:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def clock(machine: Machine, sheet: Sheet) -> None:
    """Facts clock.*: unsynchronised clocks make timelines of several hosts misleading; NCCL does not need them."""
    state = machine.clock()
    if state:
        sheet.add("clock.synchronised", state[0], "adjtimex")
        sheet.add("clock.max_error", round(state[1], 6), "adjtimex", "s")
    sheet.add("clock.time", round(time.time(), 3), "time()", "s")
    sheet.add("clock.utc_offset", time.localtime().tm_gmtoff, "localtime()", "s")
    processes = {machine.read(f"/proc/{name}/comm") for name in machine.names("/proc") if name.isdigit()}
    # The kernel cuts a process's name at 15 characters. A container does not see the host's.
    keepers = [name for name in CLOCK_SERVICES if name in processes]
    sheet.add("clock.service", ", ".join(keepers) or None, "/proc/*/comm")


def environment(machine: Machine, sheet: Sheet) -> None:
    """Facts env.*: an allow-list of names; anything that looks like a secret is never read out."""
    for name in sorted(machine.environ):
        if shareable(name):
            sheet.add("env." + name, masked(machine.environ[name]), "environment")
    home = machine.environ.get("HOME", "")
    named = machine.environ.get("NCCL_CONF_FILE")
    # NCCL's precedence: the environment, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf.
    files = [named or home + "/.nccl.conf", "/etc/nccl.conf"]
    read = [(path, machine.read(path)) for path in files]
    sheet.add("nccl.conf_files", ", ".join(path for path, text in read if text is not None) or "none", "nccl.conf")
    for path, text in read:
        for name, value in CONF_LINE.findall(text or ""):
            if sheet.value("env." + name) is None and shareable(name):
                sheet.add("env." + name, masked(value), path)


def shareable(name: str) -> bool:
    known = name in SHARED_NAMES or name.startswith(tuple(SHARED_PREFIXES))
    return known and not SECRET.search(name)


def masked(value: str) -> str:
    """A value without credentials, cut to a readable length."""
    value = USERINFO.sub(r"\1***@", SECRET_VALUE.sub("***", value))
    return value if len(value) <= VALUE_LIMIT else value[:VALUE_LIMIT] + "..."
