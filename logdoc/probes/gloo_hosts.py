"""The gloo probe between given hosts: this host's part, the script for the others, and their start through ssh or the
like. Every host runs the same one file and tells its own facts; nothing is judged here."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources

from logdoc.probes.active import Run, run_script
from logdoc.probes.base import FactSheet, ProbeError, job_python, printed_sheet
from logdoc.probes.collect.machine import Answer
from logdoc.types.errors import InputError

PROBE = "gloo-hosts"
PORT = 29610
SECONDS = 60.0
MOST_HOSTS = 64
# Beyond the script's own limit: the interpreter's start, or that of ssh.
GRACE_SECONDS = 15.0
NOT_LISTED = 2  # argparse's exit code: this host is none of the list
_HOST = re.compile(r"\w[\w.-]*(?:=\w[\w.:%-]*|=::[\w.:%]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The hosts, NAME or NAME=ADDRESS, the first of which holds the store; the first of the ports used; and the seconds
    that each host's part may take. Raises InputError for what no host or port can be."""

    hosts: tuple[str, ...]
    port: int = PORT
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        wrong = [host for host in self.hosts if not _HOST.fullmatch(host)]
        if wrong:
            raise InputError(f"--hosts: {wrong[0]!r} is no NAME or NAME=ADDRESS")
        if not 2 <= len(self.hosts) <= MOST_HOSTS or len(set(self.hosts)) < len(self.hosts):
            raise InputError(f"--hosts wants 2 to {MOST_HOSTS} different hosts, comma separated")
        if not 0 < self.port < 65535 - len(self.hosts):
            raise InputError(f"--port {self.port}: it and the {len(self.hosts)} after it must be ports")

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("--hosts", ",".join(self.hosts), "--port", str(self.port), "--seconds", f"{self.seconds:g}")


def hosts_script(meeting: Meeting) -> str:
    """The one file that plays any of the hosts, with this meeting written into its last line."""
    told = ", ".join(repr(argument) for argument in meeting.arguments)
    return _script().replace("main(sys.argv[1:])", f"main([{told}, *sys.argv[1:]])")


def _script() -> str:
    return (resources.files("logdoc.probes.scripts") / "gloo_hosts.py").read_text(encoding="utf-8")


def gloo_here(meeting: Meeting, python: str | None = None, rank: int | None = None, run: Run = run_script) -> FactSheet:
    """This host's part. `rank`: which of the hosts it is, where neither its name nor its address tells.

    Raises InputError when it is none of them.
    """
    chosen = () if rank is None else ("--rank", str(rank))
    interpreter = job_python(python)
    answer = run(
        [interpreter, "-", *meeting.arguments, *chosen], meeting.seconds + GRACE_SECONDS, _script(), os.environ
    )
    if answer.state == "ok" and answer.code == NOT_LISTED:
        raise InputError(
            f"{socket.gethostname()} is none of {','.join(meeting.hosts)}: run this on each of them, or let logdoc "
            "start it there with --launch ssh; --rank says which of them this is"
        )
    return _sheet(socket.gethostname(), interpreter, answer)


def launch(meeting: Meeting, command: str, python: str | None = None, run: Run = run_script) -> tuple[FactSheet, ...]:
    """Every host's part at once, each started by `command` (ssh, `srun -w {host} -N1`, `kubectl exec -i {host} --`),
    which is given the script through its standard input; the sheets in the order of the hosts."""
    interpreter = python or "python3"
    argvs = [_argv(command, meeting, rank, interpreter) for rank in range(len(meeting.hosts))]

    def start(argv: Sequence[str], env: Mapping[str, str] = os.environ) -> Answer:
        return run(argv, meeting.seconds + GRACE_SECONDS, _script(), env)

    with ThreadPoolExecutor(max_workers=len(argvs)) as pool:
        answers = list(pool.map(start, argvs))
    names = [host.partition("=")[0] for host in meeting.hosts]
    return tuple(
        _sheet(name, shlex.join(argv[:3]), answer) for name, argv, answer in zip(names, argvs, answers, strict=True)
    )


def _argv(command: str, meeting: Meeting, rank: int, interpreter: str) -> list[str]:
    name = meeting.hosts[rank].partition("=")[0]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--launch {command}: {error}") from error
    if not words:
        raise InputError("--launch names the command that starts Python on a host, such as ssh")
    asked = any("{host}" in word for word in words)
    words = [word.replace("{host}", name) for word in words] + ([] if asked else [name])
    return [*words, interpreter, "-", *meeting.arguments, "--rank", str(rank)]


def _sheet(host: str, python: str, answer: Answer) -> FactSheet:
    sheet = printed_sheet(answer.out, f"the probe on {host}")
    if sheet is not None:
        return sheet
    reasons = {
        "missing": f"{python} does not exist",
        "timeout": "no result within the time limit; stopped",
        "abandoned": "hangs in the kernel and does not react to SIGKILL; left behind",
    }
    last = (answer.err.strip().splitlines() or [f"ended with code {answer.code}"])[-1][:300]
    kind = answer.state if answer.state in ("timeout", "abandoned") else "failed"
    error = ProbeError(probe=PROBE, error=f"{host}: {reasons.get(answer.state, last)}", kind=kind)
    return FactSheet(host=host, facts=(), errors=(error,), python=python or sys.executable, source="live")


def told_in_words(sheet: FactSheet) -> str:
    """One line of what a host saw, for a reader at a terminal."""
    host = sheet.value("gloo.host") or sheet.host
    ok = sheet.value("gloo.hosts_ok")
    if ok is None:
        return f"{host}: no verdict"
    over = (
        f" over {sheet.value('gloo.interface')} ({sheet.value('gloo.address')})" if sheet.value("gloo.address") else ""
    )
    if ok:
        return f"{host}: all-reduce right after {sheet.value('gloo.hosts_seconds')} s{over}"
    return f"{host}: all-reduce failed{over}: {sheet.value('gloo.hosts_error')}"
