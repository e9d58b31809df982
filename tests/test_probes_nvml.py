"""NVML through its real binding and a driver library of two cards, compiled here: no recording stands between."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logdoc.probes.collecting import run_collector
from logdoc.probes.sheets import FactSheet

SOURCE = Path(__file__).with_name("data") / "probes" / "nvml.c"
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs a C compiler and Linux")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    made = folder / "libnvidia-ml.so.1"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(made), str(SOURCE)], check=True)
    return folder


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A host whose only word on GPUs is that library: no nvidia-smi, nothing hidden from this process."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return monkeypatch


def collected(*probes: str) -> FactSheet:
    return run_collector(list(probes), sys.executable, budget=30.0)


def test_what_the_driver_library_says_arrives_as_facts(driver: pytest.MonkeyPatch) -> None:
    sheet = collected("gpu-list", "gpu-memory", "gpu-processes", "gpu-health", "fabric")
    told = {fact: sheet.value(fact) for fact in (
        "gpu.count", "gpu.driver", "gpu.cuda_driver", "gpu.compute_mode", "gpu.1.bus_id", "gpu.sm", "gpu.visible",
        "gpu.total", "gpu.used", "gpu.fullest", "gpu.other_process_bytes", "gpu.unattributed_bytes",
        "gpu.ecc_uncorrected", "gpu.remapped_rows_pending", "gpu.throttle", "gpu.pcie_width", "gpu.pcie_gen",
        "fabric.state",
    )}  # fmt: skip
    assert told == {
        "gpu.count": 2, "gpu.driver": "580.95.05", "gpu.cuda_driver": "13.0", "gpu.compute_mode": "Exclusive_Process",
        "gpu.1.bus_id": "00000000:19:00.0", "gpu.sm": "9.0", "gpu.visible": 2,
        "gpu.total": 80 << 30, "gpu.used": 2 << 30, "gpu.fullest": "1", "gpu.other_process_bytes": 3 << 29,
        "gpu.unattributed_bytes": 1 << 30,
        "gpu.ecc_uncorrected": 4, "gpu.remapped_rows_pending": True, "gpu.throttle": "hw-thermal",
        "gpu.pcie_width": 8, "gpu.pcie_gen": 3, "fabric.state": "Completed",
    }  # fmt: skip
    assert sheet.commands["gpu.count"] == "NVML"
    assert [error.error for error in sheet.errors if "kernel log" not in error.error] == []


def test_a_lost_card_hides_nothing_of_the_other(driver: pytest.MonkeyPatch) -> None:
    driver.setenv("STUB_LOST", "1")
    sheet = collected("gpu-list", "gpu-memory", "gpu-processes")
    assert (sheet.value("gpu.count"), sheet.value("gpu.lost")) == (1, True)
    assert sheet.value("gpu.driver_error") == "GPU 1: GPU is lost"
    assert (sheet.value("gpu.total"), sheet.value("gpu.processes")) == (80 << 30, 0)


@pytest.mark.parametrize(
    ("code", "said", "fact", "value"),
    [
        ("18", "RM has detected an NVML/RM version mismatch.", "gpu.driver_mismatch", True),
        ("9", "Driver Not Loaded", "gpu.driver_usable", False),
    ],
)
def test_why_nvml_cannot_start_is_told_where_nvidia_smi_is_missing(
    driver: pytest.MonkeyPatch, code: str, said: str, fact: str, value: bool
) -> None:
    driver.setenv("STUB_NVML", code)
    sheet = collected("gpu-list")
    assert (sheet.value("gpu.driver_error"), sheet.value(fact)) == (said, value)
    assert sheet.commands[fact] == "NVML"
