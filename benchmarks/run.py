"""Sameness first, then speed: logdoc against ripgrep on the same logs in the same run. With --keep writes RESULTS.md.

python benchmarks/run.py --mib 256 --files 256 --rounds 3
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

import regex
from generate import log, storm, write, write_folder
from sameness import on_every_line, on_records
from tenfold import write_pack

from logdoc.rulebase import ready_rules, rule_roots

IDLE = 0.9  # of all processors' time
HERE = Path(__file__).resolve().parent
LOGDOC = (sys.executable, "-m", "logdoc", "explain", "--no-probes", "--exit-zero", "--format", "json", "-q")


@dataclass(slots=True)
class Row:
    """A command and what its rounds took: wall and CPU seconds, and the largest resident size in MiB."""

    name: str
    command: Sequence[str]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    mib: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        started = time.perf_counter()
        child = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **self.environment}
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            raise SystemExit(f"{self.name} ended with {child.returncode}")
        self.wall.append(time.perf_counter() - started)
        self.cpu.append(used.ru_utime + used.ru_stime)
        self.mib = max(self.mib, used.ru_maxrss / 1024)


def measured(rows: Sequence[Row], rounds: int, patience: float) -> None:
    """Each command once to warm up, then round by round, so that a busy moment of the machine hits all alike.

    Before each, up to `patience` seconds are waited for a machine that is idle.
    """
    for turn in range(rounds + 1):
        for row in rows:
            if turn:
                _wait_until_idle(patience)
            row.run()
            if turn == 0:
                row.wall.clear()
                row.cpu.clear()
                row.mib = 0.0


def _wait_until_idle(patience: float) -> None:
    until = time.monotonic() + patience
    while time.monotonic() < until and _idle_share(0.3) < IDLE:
        continue


def _idle_share(seconds: float) -> float:
    """How much of all processors' time went unused in this moment; 1 where the system does not tell."""
    before = _processor_times()
    time.sleep(seconds)
    spent = [after - first for after, first in zip(_processor_times(), before, strict=True)]
    return spent[3] / sum(spent) if any(spent) else 1.0


def _processor_times() -> list[int]:
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return [int(field) for field in file.readline().split()[1:]]
    except OSError:
        return []


def table(title: str, rows: Sequence[Row], size: int, baseline: int) -> str:
    base_wall, base_cpu = (statistics.median(values) for values in (rows[baseline].wall, rows[baseline].cpu))
    lines = [
        f"\n### {title}\n",
        "| command | wall s | MB/s | CPU s | RSS MiB | times as fast | CPU ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        wall, cpu = statistics.median(row.wall), statistics.median(row.cpu)
        lines.append(
            f"| {row.name} | {wall:.2f} | {size / 1e6 / wall:.0f} | {cpu:.2f} | {row.mib:.0f} "
            f"| {base_wall / wall:.2f} | {cpu / base_cpu if base_cpu else 0:.2f} |"
        )
    return "\n".join(lines)


def ripgrep_patterns(rg: str, path: Path) -> int:
    """All signatures as ripgrep can read them, without names of groups; what it lacks (look-around) is left out."""
    signatures = [one.regex for rule in ready_rules(rule_roots()[:1]).active() for one in rule.match.values()]
    patterns = [regex.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in signatures]
    accepted = _accepted(rg, patterns, path)
    path.write_text("\n".join(accepted) + "\n", encoding="utf-8")
    return len(accepted)


def _accepted(rg: str, patterns: list[str], path: Path) -> list[str]:
    """The patterns that ripgrep compiles, found by halving."""
    path.write_text("\n".join(patterns) + "\n", encoding="utf-8")
    command = (rg, "--no-config", "--no-unicode", "-f", str(path), os.devnull)
    if subprocess.run(command, capture_output=True, check=False).returncode < 2:
        return patterns
    if len(patterns) == 1:
        return []
    half = len(patterns) // 2
    return _accepted(rg, patterns[:half], path) + _accepted(rg, patterns[half:], path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the one large log")
    parser.add_argument("--files", type=int, default=1024, help="how many logs of 1 MB")
    parser.add_argument("--storm-mib", type=int, default=128, help="size of the log in which every line is a failure")
    parser.add_argument("--gate-mb", type=int, default=100, help="how much is compared with brute force, line by line")
    parser.add_argument("--slice-kib", type=int, default=512, help="and how much of whole records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--patience", type=float, default=10, help="seconds to wait for an idle machine before a command"
    )
    parser.add_argument("--keep", action="store_true", help="put the tables into RESULTS.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report = benchmark(Path(name), chosen)
    text = "\n".join(report) + "\n"
    if chosen.keep:
        results = HERE / "RESULTS.md"
        _, mark, kept = results.read_text(encoding="utf-8").partition(KEPT)  # what other commands measured
        results.write_text(text + "\n" + mark + kept, encoding="utf-8")
    sys.stdout.write(text)


def benchmark(folder: Path, chosen: argparse.Namespace) -> list[str]:
    large, many, patterns = folder / "large.log", folder / "many", folder / "patterns"
    # in a process of its own: a child's resident size counts what its parent had when it was forked
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        same = pool.submit(prepare, folder, chosen).result()
    rg = shutil.which("rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "rg"
    grep = (rg, "-a", "--no-unicode", "-c", "-f", str(patterns))
    count = ripgrep_patterns(rg, patterns)
    single = [
        Row(f"rg -a --no-unicode -c -f, {count} patterns, -j1", (*grep, "-j1", str(large))),
        *_explained(large),
        Row("1 process, ten times the rules", (*LOGDOC, "--rules", str(folder / "pack"), str(large)), environment=ONE),
    ]
    folder_rows = [Row("rg, the same, -j2", (*grep, "-j2", str(many))), *_explained(many)]
    stormy = [Row("rg, the same, -j1", (*grep, "-j1", str(folder / "storm.log"))), *_explained(folder / "storm.log")]
    for rows in (single, folder_rows, stormy):
        measured(rows, chosen.rounds, chosen.patience)
    total = sum(path.stat().st_size for path in many.iterdir())
    return [
        *heading(rg, chosen, same),
        table(f"One log of {large.stat().st_size / 1e6:.0f} MB", single, large.stat().st_size, 0),
        table(f"{chosen.files} logs of 1 MB", folder_rows, total, 0),
        table("A storm: every line is a failure", stormy, (folder / "storm.log").stat().st_size, 0),
    ]


KEPT = "<!-- measured by other commands -->"
ONE, TWO = {"LOGDOC_WORKERS": "1"}, {"LOGDOC_WORKERS": "2"}


def _explained(path: Path) -> list[Row]:
    command = (*LOGDOC, str(path))
    return [
        Row("logdoc explain, 1 process", command, environment=ONE),
        Row("logdoc explain, 2 workers", command, environment=TWO),
    ]


def prepare(folder: Path, chosen: argparse.Namespace) -> list[str]:
    """Write the logs, and see that the engine finds on two of them what brute force finds."""
    write(folder / "large.log", chosen.mib << 20)
    write_folder(folder / "many", chosen.files, 1_000_000)
    with (folder / "storm.log").open("wb") as file:
        file.writelines(storm(chosen.storm_mib << 20))
    write_pack(folder / "pack")
    text = b"".join(log(chosen.slice_kib << 10))[: chosen.slice_kib << 10]
    (folder / "slice.log").write_bytes(text)
    write(folder / "gate.log", chosen.gate_mb * 1_000_000)
    return [on_every_line(folder / "gate.log"), on_records(folder / "slice.log")]


def heading(rg: str, chosen: argparse.Namespace, same: list[str]) -> list[str]:
    version = subprocess.run((rg, "--version"), capture_output=True, text=True, check=False).stdout.split("\n")[0]
    load = os.getloadavg()[0]
    return [
        "# Measured",
        "",
        f"Command: `python benchmarks/run.py {' '.join(sys.argv[1:])}`. Medians of {chosen.rounds} interleaved "
        f"rounds, page cache warm; each command waited up to {chosen.patience:.0f} s for an idle machine.",
        f"logdoc {metadata.version('logdoc')}, rules {ready_rules(rule_roots()[:1]).digest}, Python "
        f"{platform.python_version()}, hyperscan {metadata.version('hyperscan')}, {version}; {os.cpu_count()} CPUs, "
        f"{platform.machine()}, load average {load:.1f} while measuring, {resource.getpagesize() >> 10} KiB pages.",
        f"Sameness: {'; '.join(same)}.",
        "logdoc reads the opening, the windows round known messages, heads and tails; all bytes are scanned for the "
        "literals of evidence. ripgrep counts matching lines only: no captures, ids or line numbers.",
    ]


if __name__ == "__main__":
    main()
