"""Sameness first, then speed: logdoc against ripgrep on the same logs in the same run. Writes RESULTS.md.

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
from generate import write, write_folder

from logdoc.matcher import Matcher, Prefilter
from logdoc.reader import ReadState, read
from logdoc.rulebase import build_index, ready_rules, rule_roots

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


def measured(rows: Sequence[Row], rounds: int) -> None:
    """Each command once to warm up, then round by round, so that a busy moment of the machine hits all alike."""
    for turn in range(rounds + 1):
        for row in rows:
            row.run()
            if turn == 0:
                row.wall.clear()
                row.cpu.clear()


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


def sameness(slice_path: Path) -> str:
    """Every signature on every record against what the prefilter let through: no match may be lost."""
    rules = ready_rules(rule_roots()[:1])
    matcher = Matcher(Prefilter(build_index(rules.active())))
    compiled = [
        (rule.id, name, signature, regex.compile(signature.regex, regex.MULTILINE))
        for rule in rules.active()
        for name, signature in rule.match.items()
        if not signature.not_ and not signature.from_ and not rule.fallback and signature.strength != "weak"
    ]
    listed = {(rule_id, name) for rule_id, name, _, _ in compiled}
    found: set[tuple[int, str, str]] = set()
    brute: set[tuple[int, str, str]] = set()
    with slice_path.open("rb") as file:
        batches = list(read("slice", [file.read()], ReadState()))
    for batch in batches:
        found |= {(match.record.seq, match.rule.id, match.name) for match in matcher.find(batch)}
        for record in batch:
            for rule_id, name, signature, pattern in compiled:
                texts = record.body.split("\n") if signature.scope == "line" else [record.body]
                if any(pattern.search(text) for text in texts):
                    brute.add((record.seq, rule_id, name))
    cut = set(matcher.dropped)
    lost = {one for one in brute - found if one[1:] not in cut}
    extra = {one for one in found - brute if one[1:] in listed}
    if lost or extra:
        raise SystemExit(f"not the same: {len(lost)} lost {sorted(lost)[:3]}, {len(extra)} extra {sorted(extra)[:3]}")
    size = slice_path.stat().st_size
    return f"{len(brute)} (record, signature) pairs on {size / 1e6:.1f} MB, the same by prefilter and by brute force"


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
    parser.add_argument("--slice-kib", type=int, default=512, help="how much is compared with brute force")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report = benchmark(Path(name), chosen)
    text = "\n".join(report) + "\n"
    (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def benchmark(folder: Path, chosen: argparse.Namespace) -> list[str]:
    large, many, small, patterns = folder / "large.log", folder / "many", folder / "10k.log", folder / "patterns"
    # in a process of its own: a child's resident size counts what its parent had when it was forked
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        same = pool.submit(prepare, folder, chosen.mib, chosen.files, chosen.slice_kib).result()
    rg = shutil.which("rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "rg"
    count = ripgrep_patterns(rg, patterns)
    grep = (rg, "-a", "--no-unicode", "-c", "-f", str(patterns))
    one = {"LOGDOC_WORKERS": "1"}
    start = [
        Row("python -c pass", (sys.executable, "-c", "pass")),
        Row("logdoc --help", (sys.executable, "-m", "logdoc", "--help")),
        Row("logdoc explain, 10 KB, warm", (*LOGDOC, str(small))),
    ]
    single = [
        Row(f"rg -a --no-unicode -c -f, {count} patterns, -j1", (*grep, "-j1", str(large))),
        Row("logdoc explain, 1 process", (*LOGDOC, str(large)), environment=one),
        Row("logdoc explain, 2 workers", (*LOGDOC, str(large)), environment={"LOGDOC_WORKERS": "2"}),
    ]
    folder_rows = [
        Row("rg, the same, -j2", (*grep, "-j2", str(many))),
        Row("logdoc explain, 1 process", (*LOGDOC, str(many)), environment=one),
        Row("logdoc explain, 2 workers", (*LOGDOC, str(many)), environment={"LOGDOC_WORKERS": "2"}),
    ]
    for rows in (start, single, folder_rows):
        measured(rows, chosen.rounds)
    total = sum(path.stat().st_size for path in many.iterdir())
    return [*heading(rg, chosen, same), *tables(start, single, folder_rows, large.stat().st_size, total, chosen)]


def prepare(folder: Path, mib: int, files: int, slice_kib: int) -> str:
    """Write the logs, and see that a slice of them gives the same with and without the prefilter."""
    write(folder / "large.log", mib << 20)
    write_folder(folder / "many", files, 1_000_000)
    with (folder / "large.log").open("rb") as file:
        text = file.read(slice_kib << 10)
    (folder / "10k.log").write_bytes(text[:10_000])
    (folder / "slice.log").write_bytes(text)
    return sameness(folder / "slice.log")


def tables(
    start: list[Row], single: list[Row], many: list[Row], large: int, total: int, chosen: argparse.Namespace
) -> list[str]:
    return [
        table("Start-up", start, 10_000, 0),
        table(f"One log of {large / 1e6:.0f} MB", single, large, 0),
        table(f"{chosen.files} logs of 1 MB", many, total, 0),
    ]


def heading(rg: str, chosen: argparse.Namespace, same: str) -> list[str]:
    version = subprocess.run((rg, "--version"), capture_output=True, text=True, check=False).stdout.split("\n")[0]
    load = os.getloadavg()[0]
    return [
        "# Measured",
        "",
        f"Command: `python benchmarks/run.py {' '.join(sys.argv[1:])}`. Medians of {chosen.rounds} interleaved "
        "rounds, page cache warm.",
        f"logdoc {metadata.version('logdoc')}, rules {ready_rules(rule_roots()[:1]).digest}, Python "
        f"{platform.python_version()}, hyperscan {metadata.version('hyperscan')}, {version}; {os.cpu_count()} CPUs, "
        f"{platform.machine()}, load average {load:.1f} while measuring, {resource.getpagesize() >> 10} KiB pages.",
        f"Sameness: {same}.",
        "logdoc reads the opening, the windows round known messages, heads and tails; all bytes are scanned for the "
        "literals of evidence. ripgrep counts matching lines only: no captures, ids or line numbers.",
    ]


if __name__ == "__main__":
    main()
