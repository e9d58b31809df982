"""Makes the sample logs with `origin: run`: really runs the jobs of runs.yaml, breaks them, and writes log and label.

Needs Linux, torch and psutil; never the network or root. It touches no other logs: those with `origin: written`, and those
with `origin: stand-in`, which real torchrun of a CUDA build (torch 2.14.1, CUDA 13) printed on a machine without GPU, where
a libcuda.so.1 of our own answered cuInit with the error that the label names.
"""

from __future__ import annotations

import argparse
import ctypes
import getpass
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

HERE = Path(__file__).resolve().parent
TABLE = HERE / "runs.yaml"
STAND_IN_PORT = "29500"
STAND_IN_HOST = "node-a"
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
# Symptoms are facts of one run (which victim died of what is a race), so they are read off the log by their plain text.
SYMPTOMS = {
    "collective.remote-error": r"pair\.cc:\d+\] (Connection closed by peer|Read error)",
    "collective.timeout-unexplained": r"Timed out waiting \d+ms for (recv|send) operation",
    "process.aborted": r"Signal 6 \(SIGABRT\) received",
    "process.launcher-exit-only": r"To enable traceback see:",
    "process.sigterm-cascade": r"closing signal SIGTERM",
    "rendezvous.store-lost": r"Failed to (send|recv)",
}
# The evaluator's keys, in its order.
LABEL_KEYS = ("cause", "accept", "symptoms_present", "failing_rank", "why", "fix", "env_claims", "difficulty", "tags")


@dataclass(frozen=True)
class Sample:
    """One run: what to start, what its log must show, and the label that a person gave it.

    `setup` runs before and is no part of the log; `wrap` is a shell line round the {command}. `shows` is a text without
    which the run did not break as meant, `timeout` is in seconds. `logs` is true where the job itself writes a tree
    below logs/. `needs` names what the machine must permit, `tries` how often a race may be tried.
    """

    folder: str
    case: str
    command: str
    shows: str
    timeout: float
    setup: str
    wrap: str
    logs: bool
    needs: str
    tries: int
    label: dict[str, Any] = field(repr=False)


class LabelDumper(yaml.SafeDumper):
    """Plain YAML, but a command of several lines stays readable."""


def _as_block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


LabelDumper.add_representer(str, _as_block)


class NotAsMeantError(Exception):
    """The run ended otherwise than its table entry says."""


def read_table(path: Path = TABLE) -> list[Sample]:
    """All runs, in the order of the table."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Sample(
            folder="healthy" if entry["cause"] == "none" else entry["cause"],
            case=entry["case"],
            command=entry["command"].strip(),
            shows=entry["shows"],
            timeout=float(entry.get("timeout", 120)),
            setup=entry.get("setup", ""),
            wrap=entry.get("wrap", "{command}"),
            logs=entry.get("logs", False),
            needs=entry.get("needs", ""),
            tries=entry.get("tries", 1),
            label={key: entry.get(key) for key in LABEL_KEYS},
        )
        for entry in entries
    ]


def may_unshare() -> bool:
    """Whether this user may make a mount namespace of their own."""
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


def adopt_orphans() -> None:
    """Workers outlive a killed torchrun; as their subreaper this process can still find and end them."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children() -> None:
    """Kills and reaps every process started by this one, whatever session it moved to."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(children, timeout=5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def job_folder() -> Iterator[Path]:
    """A throw-away copy of jobs/, so that what a job writes never lands here."""
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        folder = Path(name).resolve() / "jobs"
        shutil.copytree(HERE / "jobs", folder, ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def job_environment(folder: Path) -> dict[str, str]:
    """A plain user's environment: nothing of this machine's own variables reaches the job or its log."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder.parent),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_job(sample: Sample, folder: Path, port: int) -> bytes:
    """Runs setup and command; gives what the terminal would have shown."""
    console = folder.parent / "console"
    env = job_environment(folder)
    line = sample.wrap.replace("{command}", sample.command)
    subprocess.run(["bash", "-ec", sample.setup], cwd=folder, env=env, check=True, timeout=60)
    with console.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-c", line.replace(STAND_IN_PORT, str(port))],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(sample.timeout)
        except subprocess.TimeoutExpired as error:
            raise NotAsMeantError(f"did not end within {sample.timeout:g} s:\n{console.read_text()[-1500:]}") from error
        finally:
            end_children()
    return console.read_bytes()


class Normaliser:
    """Puts stand-ins in the place of this machine's paths, host, user, addresses and of the port that was free."""

    def __init__(self, folder: Path, port: int) -> None:
        self.paths = sorted(
            {
                str(folder): "/home/trainer/jobs",
                str(folder.parent): "/home/trainer",
                sys.prefix: "/home/trainer/venv",
                sys.base_prefix: "/usr",
                str(HERE): "/home/trainer/jobs",
            }.items(),
            key=lambda item: -len(item[0]),
        )
        self.names = {socket.gethostname(), socket.getfqdn()} - {"localhost", "localhost.localdomain"}
        self.user = getpass.getuser()
        self.port = str(port)
        self.addresses = sorted(
            address.address.split("%")[0]
            for addresses in psutil.net_if_addrs().values()
            for address in addresses
            if address.family in (socket.AF_INET, socket.AF_INET6) and address.address not in ("127.0.0.1", "::1")
        )

    def __call__(self, raw: bytes, host: str = STAND_IN_HOST) -> bytes:
        text = raw.decode("utf-8", "surrogateescape")
        for path, stand_in in self.paths:
            text = text.replace(path, stand_in)
        for name in self.names:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![a-zA-Z0-9.-])", host, text)
        for address in self.addresses:
            text = text.replace(address, "fd00::a:11" if ":" in address else "10.0.0.11")
        if self.user != "root":  # "root" is a word of its own in these logs
            text = re.sub(rf"\b{re.escape(self.user)}\b", "trainer", text)
        text = re.sub(rf"\b{self.port}\b", STAND_IN_PORT, text)
        text = re.sub(r"^((?:\[[^\]\n]*\]:)?\s+host +: ).*$", rf"\g<1>{host}", text, flags=re.MULTILINE)
        return text.encode("utf-8", "surrogateescape")


def collect(sample: Sample, folder: Path, console: bytes, port: int) -> dict[str, bytes]:
    """The files of the case by relative path: log.txt, or the tree below logs/ with one host name a node's file."""
    normalise = Normaliser(folder, port)
    if not sample.logs:
        return {"log.txt": normalise(console)}
    files = sorted(path for path in (folder / "logs").rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): normalise(
            path.read_bytes(), path.stem if path.stem.startswith("node-") else STAND_IN_HOST
        )
        for path in files
    }


def label_text(sample: Sample, log: bytes) -> str:
    """case.yaml: the evaluator's keys, then where the log came from."""
    label = {"id": sample.case, **sample.label, "origin": "run", "command": sample.command}
    text = log.decode(errors="replace")
    label["symptoms_present"] = [n for n, shown in SYMPTOMS.items() if n != label["cause"] and re.search(shown, text)]
    label["accept"] = label["accept"] or []
    label["env_claims"] = label["env_claims"] or {}
    return str(yaml.dump(label, Dumper=LabelDumper, sort_keys=False, allow_unicode=True, width=110))


def write_case(sample: Sample, files: dict[str, bytes], out: Path) -> None:
    """Replaces what an earlier run left; a path that torchrun made unique each time must not pile up."""
    target = out / sample.folder / sample.case
    shutil.rmtree(target, ignore_errors=True)
    for name, content in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    (target / "case.yaml").write_text(label_text(sample, b"\n".join(files.values())), encoding="utf-8")


def make(sample: Sample, out: Path) -> None:
    """One case from start to files. Raises NotAsMeantError and writes nothing if the fault did not show."""
    port = free_port()
    with job_folder() as folder:
        console = run_job(sample, folder, port)
        files = collect(sample, folder, console, port)
    if not any(sample.shows.encode() in content for content in files.values()):
        raise NotAsMeantError(f"the log lacks {sample.shows!r}:\n{console.decode(errors='replace')[-1500:]}")
    write_case(sample, files, out)


def make_or_report(sample: Sample, out: Path) -> bool:
    """Makes a case, trying again where its table entry says that it is a race; tells the terminal how it went."""
    name = f"{sample.folder}/{sample.case}"
    if sample.needs == "unshare" and not may_unshare():
        print(f"skipped  {name}: this machine permits no mount namespace")
        return True
    for left in reversed(range(sample.tries)):
        started = time.monotonic()
        try:
            make(sample, out)
        except (NotAsMeantError, subprocess.SubprocessError) as error:
            print(f"{'retrying' if left else 'FAILED  '} {name}: {error}", flush=True)
        else:
            print(f"made     {name} ({time.monotonic() - started:.1f} s)", flush=True)
            return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of runs.yaml, or cause/name (default: all)")
    parser.add_argument("--out", type=Path, default=HERE, help="where the cases go (default: beside this script)")
    args = parser.parse_args()
    wanted = set(args.cases)
    samples = [s for s in read_table() if not wanted or {s.case, s.folder, f"{s.folder}/{s.case}"} & wanted]
    if not samples:
        parser.error(f"no such case: {' '.join(args.cases)}")
    adopt_orphans()
    made = [make_or_report(sample, args.out) for sample in samples]
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
