"""Samples the GPUs' used memory while a command runs; keeps only the highest values and never slows the command."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from types import TracebackType

from logdoc.probes.collect.commands import run_command
from logdoc.probes.sheets import FactSheet
from logdoc.types.rule import FactValue

COMMAND = ("nvidia-smi", "--query-gpu=index,memory.used,memory.total", "--format=csv,noheader,nounits")
ROW = re.compile(r"^(\d+), (\d+), (\d+)$", re.MULTILINE)
Sample = dict[int, tuple[int, int]]


def read_memory() -> Sample:
    """Used and total bytes by card; empty where nvidia-smi is missing, fails or does not answer within 3 s."""
    answer = run_command(COMMAND, 3.0)
    return {int(card): (int(used) << 20, int(total) << 20) for card, used, total in ROW.findall(answer.out)}


class MemoryPeak:
    """`with MemoryPeak() as peak: run the command` and then `peak.sheet()`. Samples every `interval` seconds."""

    def __init__(self, read: Callable[[], Sample] = read_memory, interval: float = 0.5) -> None:
        self._read = read
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="gpu-memory-peak", daemon=True)
        self._peaks: Sample = {}
        self._samples = 0

    def __enter__(self) -> MemoryPeak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        # A read that hangs in the driver must not hold up the caller: the thread is a daemon.
        self._thread.join(timeout=1.0)

    def _sample(self) -> None:
        while True:
            found = self._read()
            self._samples += bool(found)
            for card, (used, total) in found.items():
                if used > self._peaks.get(card, (-1, 0))[0]:
                    self._peaks[card] = (used, total)
            if self._stop.wait(self._interval):
                return

    def sheet(self) -> FactSheet:
        """Facts gpu.peak_used, gpu.peak_total (bytes) and gpu.peak_fraction of the card that came nearest to full.

        A peak shorter than the interval may be missed: absence of a high value refutes nothing.
        """
        peaks, command = dict(self._peaks), " ".join(COMMAND)
        if not peaks:
            return FactSheet.live("gpu-memory-peak", {}, command, error="nvidia-smi gave no memory reading")
        card = max(peaks, key=lambda index: peaks[index][0] / max(1, peaks[index][1]))
        used, total = peaks[card]
        values: dict[str, FactValue] = {
            "gpu.peak_card": card,
            "gpu.peak_used": used,
            "gpu.peak_total": total,
            "gpu.peak_fraction": round(used / max(1, total), 4),
            "gpu.peak_samples": self._samples,
            **{f"gpu.{index}.peak_used": peaks[index][0] for index in sorted(peaks)},
        }
        return FactSheet.live("gpu-memory-peak", values, command)
