"""What a path says about who wrote the file; a plain date, job id or bare number never becomes a rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from logdoc.kept.patterns import lazily
from logdoc.sources.names import TEXT_SUFFIXES, without_compression_suffix
from logdoc.types.record import Identity
from logdoc.types.value import dataclass, replace


@dataclass(frozen=True, slots=True)
class PathHints:
    """Who a path names; None where it does not say, or could mean two things.

    `rank` is the global rank, `local_rank` the rank on its node, `task` a launcher's own number (Slurm %t, a
    Kubernetes worker index) whose meaning depends on how the job was started. `attempt` counts torchrun's restarts.
    """

    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    host: str | None = None
    pid: int | None = None
    attempt: int | None = None

    def identity(self) -> Identity:
        """The same, as the reader wants it."""
        return Identity(rank=self.rank, local_rank=self.local_rank, task=self.task, host=self.host, pid=self.pid)


# A date, with the clock time that may follow it: `2024-11-30`, `20241130_153012`, `2024-11-30T15-30-12`, `2024-11`.
_DATE = lazily(
    r"(?<!\d)(?:(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])"
    r"(?:[-_.T ]?(?:[01]\d|2[0-3])[-_.:h]?[0-5]\d(?:[-_.:m]?[0-5]\d)?)?"
    r"|(?:19|20)\d\d[-_.](?:0[1-9]|1[0-2]))(?!\d)"
)
_DATE_MARK = "@"

# torchrun --log-dir: <run_id>_<random>/attempt_<restart>/<local_rank>/{stdout.log,stderr.log,error.json}, and
# attempt_<restart>/filtered_stdout.log beside the folders since 2.10. The folder is the LOCAL rank: the global one
# would need the node's rank, which no part of the path tells.
_TORCHRUN_ATTEMPT = lazily(r"attempt_(\d{1,6})")
_TORCHRUN_FILES = lazily(r"(?:filtered_)?(?:stdout|stderr)\.log|error\.json")

# The word before the number decides what it counts. `tp_rank_1` or `node_rank_0` are not global ranks, and
# `dataloader_worker_2` is no launcher's worker. The last number must end the name, but for a date, a stream or
# `of 8`: `kill_rank1_late.log` tells what was tried, and `rank_0-7.log` holds eight of them.
_COUNTED = lazily(
    r"(?<![a-z0-9])(?:(?P<of>[a-z]+)[-_.])?(?P<what>rank|local_?rank|worker|task)[-_.=]?(?P<number>\d+)(?![a-z0-9])"
)
_AFTER_COUNTED = lazily(rf"(?:[-_.]?(?:{_DATE_MARK}|stdout|stderr|out|err|log|of[-_]?\d+))*")
_OTHER_GROUPS = (
    "node machine host agent group role replica dp tp pp ep cp sp mp fsdp ddp zero data tensor pipeline expert context "
    "model sequence shard dataloader loader"
)
# A worker's number of five digits or more is far likelier a job id (`worker-12345.log` is Slurm's %x-%j).
_MOST_DIGITS = {"rank": 6, "localrank": 3, "worker": 4, "task": 5}

# Slurm %x-%j-%t, %x-%A_%a-%t, and %J (a job with its step). Only `-` before the task: `_` is Slurm's own mark of an
# array index (slurm-%A_%a.out) and `.` of a step (slurm-%j.%s). A job id is taken to have 4 to 8 digits (MaxJobId
# is 67043328) and no leading zero, so `epoch-100-3.log`, a Unix time or Ray's `-01000000-4242` stays unread.
_SLURM_TASK = lazily(r"(?:^|[-_.])(?P<job>[1-9]\d{3,7})(?:_\d+)?(?:\.\d+)?-(?P<task>\d{1,5})$")
_YEAR_OR_SHORT_DATE = lazily(r"(?:19|20)\d\d|[1-3]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")

# NCCL_DEBUG_FILE=nccl.%h.%p[.log] (or NCCL's documented example name debugfile.%h.%p): NCCL cuts %h at its first
# dot, so host and pid are exactly two fields. A number is no host, and `nccl.log.1` is a rotated file.
_NCCL_FILE = lazily(r"(?:nccl[\w-]*|debugfile)\.(?P<host>[a-z][\w-]*)\.(?P<pid>\d{1,7})", re.IGNORECASE)
_NO_HOST = "log txt out err stdout stderr rank local worker task node pid debug trace info dump part"

_ROTATION = lazily(rf"(\.(?:{'|'.join(suffix[1:] for suffix in TEXT_SUFFIXES)}))[-.]\d+$")
_STREAM_TASK = lazily(r"(?:stdout|stderr)\.(\d{1,5})")  # stderr.3: one file a task, as MPI launchers name them

# /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart>.log
_POD_FOLDER = lazily(r"[^_]+_(?P<pod>[^_]+)_[0-9a-f-]{32,36}")
# /var/log/containers/<pod>_<namespace>_<container>-<container id>.log
_POD_FILE = lazily(r"(?P<pod>[^_]+)_[^_]+_.+-[0-9a-f]{64}")
_KIND_FOLDER = lazily(r"(?:(?:global|local)[-_.]?)?(?:rank|task|worker)[-_.=]?\d+")
_PARENTS_READ = 2


def path_hints(path: str) -> PathHints:
    """What `path` alone says; its file name first, then the two folders above it. Pure: the disk is not looked at."""
    name = without_compression_suffix(os.path.basename(path))
    hints = _torchrun_tree(path, name) or _file_name(name)
    for parent in _parents(path)[:_PARENTS_READ]:
        hints = _filled(hints, _folder(os.path.basename(parent)))
    return hints


def _parents(path: str) -> list[str]:
    """The folders above, the nearest first. (`pathlib`, which has this, takes long to import.)"""
    found = []
    above = os.path.dirname(path)
    while above and above != path:
        found.append(above)
        path, above = above, os.path.dirname(above)
    return found


def dump_rank(name: str) -> int | None:
    """The global rank a flight-recorder dump was written by: PyTorch puts it last, straight after the prefix."""
    found = re.search(r"(\d{1,6})(?:\.(?:pkl|pickle|json))?$", without_compression_suffix(name))
    return int(found[1]) if found else None


def hosts_of(paths: Iterable[str]) -> dict[str, str]:
    """The folders among the parents of `paths` that stand for a host, and the host's name.

    Decided: one folder called `node-b` may be anything, so it counts only where a sibling of the same pattern
    (`node-a`, `node-17`, `10.0.0.5`) holds logs too. `run-1`, `exp-a`, `gpu0`, `attempt_0` are never hosts.
    """
    siblings: dict[tuple[str, str], set[str]] = {}
    for folder in {folder for path in paths for folder in _parents(path)}:
        shape = _host_shape(os.path.basename(folder))
        if shape:
            siblings.setdefault((os.path.dirname(folder), shape), set()).add(folder)
    groups = (group for group in siblings.values() if len(group) > 1)
    return {folder: os.path.basename(folder) for group in groups for folder in group}


def with_hosts(paths: Sequence[str], hints: Sequence[PathHints]) -> list[PathHints]:
    """The hints of all paths of one job, with the host of the nearest host folder where a path named none."""
    hosts = hosts_of(paths)
    completed = []
    for path, hint in zip(paths, hints, strict=True):
        host = next((hosts[folder] for folder in _parents(path) if folder in hosts), None)
        completed.append(replace(hint, host=host) if hint.host is None and host else hint)
    return completed


_HOST_WORD = lazily(
    r"(?:[a-z0-9]+[-_.])*?(?:node|host|server|machine|compute|nid|cn|dgx|hgx|ip)[-_]?"
    r"(?:[a-z]?\d[\w-]*(?:\.[a-z][\w-]*)*|(?<=[-_])[a-z])"
)
_ADDRESS = lazily(r"\d{1,3}(?:\.\d{1,3}){3}")


def _host_shape(name: str) -> str | None:
    """What names of hosts of one cluster have in common: `node-#` for `node-17` and `node-b`; None: no host's name."""
    lowered = name.lower()
    if not (_HOST_WORD.fullmatch(lowered) or _ADDRESS.fullmatch(lowered)):
        return None
    return re.sub(r"\d+|(?<=[-_])[a-z]$", "#", lowered)


def _torchrun_tree(path: str, name: str) -> PathHints | None:
    if not _TORCHRUN_FILES.fullmatch(name):
        return None
    folder, above = [*map(os.path.basename, _parents(path)), "", ""][:2]
    if attempt := _TORCHRUN_ATTEMPT.fullmatch(folder):
        return PathHints(attempt=int(attempt[1]))
    attempt = _TORCHRUN_ATTEMPT.fullmatch(above)
    if attempt and re.fullmatch(r"\d{1,4}", folder):
        return PathHints(local_rank=int(folder), attempt=int(attempt[1]))
    return None


def _file_name(name: str) -> PathHints:
    """The first of the naming schemes that fits."""
    bare = _without_text_suffix(_ROTATION.sub(r"\1", name))
    if (nccl := _NCCL_FILE.fullmatch(bare)) and nccl["host"].lower() not in _NO_HOST.split():
        return PathHints(host=nccl["host"], pid=int(nccl["pid"]))
    pod = _POD_FILE.fullmatch(bare.lower())
    text = _DATE.sub(_DATE_MARK, pod["pod"] if pod else bare.lower())
    counted = _counted(text)
    if counted != PathHints():
        return counted
    slurm = _SLURM_TASK.search(text)
    if slurm and not _YEAR_OR_SHORT_DATE.fullmatch(slurm["job"]):
        return PathHints(task=int(slurm["task"]))
    numbered = _STREAM_TASK.fullmatch(text)
    return PathHints(task=int(numbered[1]) if numbered else None)


def _counted(text: str) -> PathHints:
    """`rank_3`, `local_rank_1`, `worker-3`, `task.3`; nothing for a kind that is named with two numbers."""
    found: dict[str, set[int]] = {"rank": set(), "localrank": set(), "worker": set(), "task": set()}
    end = len(text)
    for match in _COUNTED.finditer(text):
        end = match.end()
        what, owner, digits = match["what"].replace("_", ""), match["of"] or "", match["number"]
        if owner == "local" and what == "rank":
            what = "localrank"
        if owner not in _OTHER_GROUPS.split() and len(digits) <= _MOST_DIGITS[what]:
            found[what].add(int(digits))
    if not _AFTER_COUNTED.fullmatch(text, end):
        return PathHints()
    return PathHints(
        rank=_only(found["rank"]),
        local_rank=_only(found["localrank"]),
        task=_only(found["task"] or found["worker"]),
    )


def _only(numbers: set[int]) -> int | None:
    return next(iter(numbers)) if len(numbers) == 1 else None


def _without_text_suffix(name: str) -> str:
    for suffix in TEXT_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def _folder(name: str) -> PathHints:
    """A folder speaks only if its whole name is the form (`rank_3/`), or if it is a Kubernetes pod's log folder."""
    lowered = name.lower()
    if _KIND_FOLDER.fullmatch(lowered):
        return _counted(lowered)
    if pod := _POD_FOLDER.fullmatch(lowered):
        return _counted(pod["pod"])
    return PathHints()


def _filled(hints: PathHints, more: PathHints) -> PathHints:
    """`hints`, with what only `more` knows; nothing if both speak of a rank but differ, since the file is nearer."""
    if hints.rank is not None or hints.local_rank is not None or hints.task is not None:
        return hints
    return replace(hints, rank=more.rank, local_rank=more.local_rank, task=more.task)
