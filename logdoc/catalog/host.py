"""What the machine and its scheduler say in codes: exit statuses, signals, errno, InfiniBand, Slurm, Kubernetes.

Numbers are Linux's whatever system logdoc runs on: the log comes from the cluster, not from the reader's laptop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from logdoc.kept.data import rows
from logdoc.kept.sentences import meaning
from logdoc.types.rule import Text
from logdoc.types.value import dataclass

_BEYOND_SIGNALS = 128  # a shell reports death by signal n as 128+n


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended. `role`: ok, own-fault, outside (something else ended it) or consequence."""

    code: int
    signal: str | None
    role: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class Errno:
    """A Linux error number; `meaning` is empty for the ones jobs rarely meet."""

    number: int
    name: str
    text: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class CompletionStatus:
    """An InfiniBand work-completion status. `role`: cause, consequence or none."""

    code: int
    name: str
    role: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """A word of Slurm or Kubernetes for why a job is where it is.

    `class_`: ok, running, waiting, application, limit, node, scheduler, user, image or consequence.
    """

    name: str
    class_: str
    meaning: Text


def exit_status(code: int | str) -> ExitStatus | None:
    """Decode an exit code: 137, -9 (Python's way), Slurm's `exit:signal` pair such as `0:9`, or a signal's name."""
    if isinstance(code, str):
        read = _status_of(code.strip())
        if read is None:
            return None
        code = read
    special = _exit_codes().get(code)
    if special is not None:
        return special
    number = -code if code < 0 else code - _BEYOND_SIGNALS
    row = _signals().get(number)
    if row is not None:
        return ExitStatus(code, row["name"], row["role"], meaning(row))
    return ExitStatus(code, None, *_by_itself()) if 0 <= code <= 255 else None


def _status_of(text: str) -> int | None:
    """An exit code as it is written, as a number; a death by signal is negative."""
    pair = re.fullmatch(r"(-?\d{1,4})(?::(\d{1,3}))?", text)
    if pair is None:
        name = f"SIG{text.upper().removeprefix('SIG')}"
        return next((-number for number, row in _signals().items() if row["name"] == name), None)
    return -int(pair[2]) if pair[2] and int(pair[2]) else int(pair[1])


@cache
def _exit_codes() -> Mapping[int, ExitStatus]:
    return {
        int(row["code"]): ExitStatus(int(row["code"]), None, row["role"], meaning(row))
        for row in rows("exit_codes.tsv")
    }


@cache
def _signals() -> Mapping[int, Mapping[str, str]]:
    return {int(row["number"]): row for row in rows("signals.tsv")}


def _by_itself() -> tuple[str, Text]:
    plain = _exit_codes()[1]
    return plain.role, plain.meaning


def linux_errno(number_or_name: int | str) -> Errno | None:
    """By number, name (`ECONNREFUSED`) or the text a log shows (`Connection refused`)."""
    return _errnos().get(str(number_or_name).strip().casefold())


@cache
def _errnos() -> Mapping[str, Errno]:
    table: dict[str, Errno] = {}
    for row in rows("errno.tsv"):
        entry = Errno(int(row["number"]), row["name"], row["text"], meaning(row))
        for key in (row["number"], row["name"], row["text"]):
            table.setdefault(key.casefold(), entry)
    return table


def ib_completion(code: int) -> CompletionStatus | None:
    """An InfiniBand work-completion status by number, as in NCCL's `Got completion … status 12`."""
    return _completions().get(code)


@cache
def _completions() -> Mapping[int, CompletionStatus]:
    return {
        int(row["code"]): CompletionStatus(int(row["code"]), row["name"], row["role"], meaning(row))
        for row in rows("ib_wc_status.tsv")
    }


def slurm_state(name: str) -> SchedulerState | None:
    """A Slurm job state (`OUT_OF_MEMORY`, `OOM`, `CANCELLED by 1000`) or pending/ending reason."""
    first = name.strip().split(" by ")[0].rstrip("+")
    return _slurm().get(first.casefold())


@cache
def _slurm() -> Mapping[str, SchedulerState]:
    table: dict[str, SchedulerState] = {}
    for row in rows("slurm_states.tsv"):
        state = SchedulerState(row["name"], row["class"], meaning(row))
        for key in filter(None, (row["name"], row["code"])):
            table.setdefault(key.casefold(), state)
    return table


def kubernetes_reason(name: str) -> SchedulerState | None:
    """A Kubernetes reason (`OOMKilled`, in any case) of a container, pod, job, node or event."""
    return _kubernetes().get(name.strip().casefold())


@cache
def _kubernetes() -> Mapping[str, SchedulerState]:
    return {
        row["name"].casefold(): SchedulerState(row["name"], row["class"], meaning(row))
        for row in rows("k8s_reasons.tsv")
    }
