"""Start-up of the installed wheel: `logdoc explain` of a small log, warm and cold, and `logdoc --help`, against
`python -c pass` of the same environment in the same rounds. Prints a table.

python benchmarks/startup.py --rounds 20
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generate import write

ROOT = Path(__file__).resolve().parents[1]
LOG_BYTES = 10_000
FAILURE = """[rank3]: Traceback (most recent call last):
[rank3]:   File "train.py", line 88, in <module>
[rank3]:     loss = model(batch)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB
"""


@dataclass(slots=True)
class Row:
    """A command, whether its runs find an empty cache, and the wall and CPU seconds they took."""

    name: str
    command: Sequence[str]
    cold: bool = False
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, environment: dict[str, str], folder: Path) -> None:
        cache = folder / ("cold" if self.cold else "warm")
        if self.cold:
            shutil.rmtree(cache, ignore_errors=True)
        environment = {**environment, "XDG_CACHE_HOME": str(cache)}
        started = time.perf_counter()
        child = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder
        )
        assert child.stdout is not None
        child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        self.wall.append(time.perf_counter() - started)
        self.cpu.append(used.ru_utime + used.ru_stime)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            raise SystemExit(f"{self.name} ended with {child.returncode}")


def installed(folder: Path, wheel: Path | None) -> Path:
    """A fresh environment with logdoc's wheel (built here unless given); its folder of programs."""
    if wheel is None:
        subprocess.run((sys.executable, "-m", "build", "-w", "-o", folder, ROOT), check=True, stdout=subprocess.DEVNULL)
        wheel = next(folder.glob("logdoc-*.whl"))
    subprocess.run((sys.executable, "-m", "venv", folder / "venv"), check=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run((programs / "python", "-m", "pip", "install", "-q", wheel), check=True)
    return programs


def small_logs(folder: Path) -> tuple[Path, Path]:
    """A healthy log of LOG_BYTES, and one that ends in a failure."""
    healthy, failed = folder / "healthy.log", folder / "failed.log"
    write(healthy, 1 << 20)
    text = healthy.read_bytes()
    healthy.write_bytes(text[:LOG_BYTES])
    failed.write_bytes(text[: LOG_BYTES - len(FAILURE)].rsplit(b"\n", 1)[0] + b"\n" + FAILURE.encode())
    return healthy, failed


def rows_of(programs: Path, healthy: Path, failed: Path) -> list[Row]:
    python, logdoc = str(programs / "python"), str(programs / "logdoc")
    explain = (logdoc, "explain", "--no-probes")
    return [
        Row("python -c pass", (python, "-c", "pass")),
        Row("logdoc --help", (logdoc, "--help")),
        Row("logdoc explain, healthy, warm", (*explain, str(healthy))),
        Row("logdoc explain, failed, warm", (*explain, str(failed))),
        Row("logdoc explain --format json, failed, warm", (*explain, "--format", "json", str(failed))),
        Row("python -m logdoc explain, failed, warm", (python, "-m", "logdoc", "explain", "--no-probes", str(failed))),
        Row("logdoc explain, failed, cold", (*explain, str(failed)), cold=True),
    ]


def table(rows: Sequence[Row]) -> str:
    """Medians, and their ratio to the first row's; the least of each too, for a machine that is not idle."""
    base = rows[0]
    lines = [
        "| command | wall ms | x pass | CPU ms | x pass | least wall ms | x pass |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row.name]
        for values, others in ((row.wall, base.wall), (row.cpu, base.cpu)):
            cells += [
                f"{statistics.median(values) * 1e3:.1f}",
                f"{statistics.median(values) / statistics.median(others):.1f}",
            ]
        cells += [f"{min(row.wall) * 1e3:.1f}", f"{min(row.wall) / min(base.wall):.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--wheel", type=Path, help="install this wheel instead of building one")
    parser.add_argument("--programs", type=Path, help="measure the programs of this folder instead of a fresh install")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = chosen.programs or installed(folder, chosen.wheel)
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
        rows = rows_of(programs, *small_logs(folder))
        for turn in range(chosen.rounds + 1):
            for row in rows:
                row.run(kept, folder)
            if turn == 0:  # it filled the caches
                for row in rows:
                    row.wall.clear()
                    row.cpu.clear()
        sys.stdout.write(f"{table(rows)}\n\nMedians of {chosen.rounds} interleaved rounds; {os.cpu_count()} CPUs, ")
        sys.stdout.write(f"load average {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}.\n")


if __name__ == "__main__":
    main()
