"""The gloo probe between given hosts: this host's part, the script for the others, and their start through ssh or the
like. Every host runs the same one file and tells its own facts; nothing is judged here."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from logdoc.probes.active import Run, run_script
from logdoc.probes.collect.commands import Answer
from logdoc.probes.collecting import job_python
from logdoc.probes.collector import probe_script
from logdoc.probes.launchers import Launchers, ended_by_signals, started_on
from logdoc.probes.sheets import FactSheet, ProbeError, printed_sheet
from logdoc.types.errors import InputError

PROBE = "gloo-hosts"
SCRIPT = "gloo_hosts"
PORT = 29610
SECONDS = 60.0
MOST_HOSTS = 64
# Beyond the script's own limit: the interpreter's start, or that of ssh.
GRACE_SECONDS = 15.0
OLD_PYTHON = "SyntaxError: "
NOT_LISTED = 2  # argparse's exit code: this host is none of the list
# A host that has this fact took part: it listened and called the others.
MET = "gloo.unreached_count"
OF_THE_OTHERS = {MET, "gloo.unreached", "gloo.not_heard", "gloo.hosts_ok", "gloo.hosts_error", "gloo.hosts_step"}
LOOPBACK_TOLD = re.compile(r"remote=\[(?:127\.|::1\b)")
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
    return probe_script(SCRIPT).replace("main(sys.argv[1:])", f"main([{told}, *sys.argv[1:]])")


def gloo_here(meeting: Meeting, python: str | None = None, rank: int | None = None, run: Run = run_script) -> FactSheet:
    """This host's part. `rank`: which of the hosts it is, where neither its name nor its address tells.

    Raises InputError when it is none of them.
    """
    chosen = () if rank is None else ("--rank", str(rank))
    interpreter = job_python(python)
    argv = [interpreter, "-", *meeting.arguments, *chosen]
    with ended_by_signals():
        answer = run(argv, meeting.seconds + GRACE_SECONDS, probe_script(SCRIPT), os.environ)
    if answer.state == "ok" and answer.code == NOT_LISTED:
        raise InputError(
            f"{socket.gethostname()} is none of {','.join(meeting.hosts)}: run this on each of them, or let logdoc "
            "start it there with --launch ssh; --rank says which of them this is"
        )
    return _sheet(socket.gethostname(), [interpreter], answer)


def launch(meeting: Meeting, command: str, python: str | None = None, run: Run | None = None) -> tuple[FactSheet, ...]:
    """Every host's part at once, each started by `command` (ssh, `srun -w {host} -N1`, `kubectl exec -i {host} --`),
    which is given the script through its standard input; the sheets in the order of the hosts.

    Where a host's part did not run, no other host's failure is told as one of the network.
    """
    names = [host.partition("=")[0] for host in meeting.hosts]
    words = [python or "python3", "-", *meeting.arguments, "--rank"]
    argvs = [started_on(name, command, [*words, str(rank)]) for rank, name in enumerate(names)]
    answers = Launchers().all_at_once(argvs, meeting.seconds + GRACE_SECONDS, probe_script(SCRIPT), run)
    # The launcher and the interpreter, without the script's arguments.
    launchers = [argv[: -len(words)] for argv in argvs]
    sheets = [_sheet(*one) for one in zip(names, launchers, answers, strict=True)]
    absent = [name for name, sheet in zip(names, sheets, strict=True) if sheet.value(MET) is None]
    told = (_without_blame(sheet, absent) for sheet in sheets)
    return tuple(_named(sheet, name) for sheet, name in zip(told, names, strict=True))


def _without_blame(sheet: FactSheet, absent: Sequence[str]) -> FactSheet:
    """A host's sheet without the failure that is no wonder: it waited for hosts that never took part."""
    if not absent or sheet.value("gloo.hosts_ok") is not False:
        return sheet
    error = ProbeError(probe=PROBE, error=f"no verdict: {', '.join(absent)} never took part")
    facts = tuple(fact for fact in sheet.facts if fact.id not in OF_THE_OTHERS)
    return replace(sheet, facts=facts, errors=(*sheet.errors, error))


def _named(sheet: FactSheet, host: str) -> FactSheet:
    """The sheet whose errors say of which host they are."""
    return replace(sheet, errors=tuple(replace(error, error=f"{host}: {error.error}") for error in sheet.errors))


def _name(sheet: FactSheet) -> str:
    """What --hosts calls a host, else its own name."""
    return str(sheet.value("gloo.host") or sheet.host)


def _sheet(host: str, started: Sequence[str], answer: Answer) -> FactSheet:
    command = shlex.join(started)
    try:
        sheet = printed_sheet(answer.out, f"the probe on {host}")
    except InputError:
        sheet = None  # something else that its start printed
    if sheet is not None:
        return sheet
    fate = answer.fate(f"`{command}`", started[0])
    old = "; the probe needs Python 3.8 or newer" if answer.state == "ok" and OLD_PYTHON in answer.last_words() else ""
    return FactSheet.unanswered([PROBE], answer, fate + old, command, host)


def told_in_words(sheet: FactSheet) -> str:
    """One line of what a host saw, for a reader at a terminal."""
    host, missed, silent = _name(sheet), sheet.value("gloo.unreached"), sheet.value("gloo.not_heard")
    ok, address = sheet.value("gloo.hosts_ok"), sheet.value("gloo.address")
    if ok is None:
        return f"{host}: no verdict"
    over = f" over {sheet.value('gloo.interface')} ({address})" if address else ""
    beside = (f"; not reached from here: {missed}" if missed else "") + (f"; not heard: {silent}" if silent else "")
    if ok:
        return f"{host}: all-reduce right after {sheet.value('gloo.hosts_seconds')} s{over}{beside}"
    error = str(sheet.value("gloo.hosts_error"))
    if sheet.value("gloo.loopback") or LOOPBACK_TOLD.search(error):
        beside += (
            "; a host told the others its loopback address: its name resolves to it (/etc/hosts), or "
            "GLOO_SOCKET_IFNAME names it"
        )
    elif not missed and not silent and "no result within" in error:
        beside += "; the probe's own ports are open: does a firewall drop gloo's, any of ip_local_port_range?"
    return f"{host}: all-reduce failed{over}: {error}{beside}"
