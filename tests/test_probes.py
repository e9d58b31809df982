"""The collector for real on this machine: one script, any Python from 3.8, never over its budget, never a secret."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata, resources, util
from pathlib import Path
from typing import Any

import pytest

from logdoc.probes.collect.main import SECTIONS
from logdoc.probes.collecting import run_collector
from logdoc.probes.collector import FOOTER, PARTS, probe_script, script_text
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import PROBES, passive_ids, spec

NAMES = (path.name for path in resources.files("logdoc.probes.scripts").iterdir())
SCRIPTS = sorted(name[:-3] for name in NAMES if name.endswith(".py") and name != "__init__.py")


def run_script(
    *arguments: str, change: str = "", flags: tuple[str, ...] = ("-I", "-S"), **options: Any
) -> dict[str, Any]:
    """The joined script's output; `change` is put before its last lines, to plant a section or a fault."""
    script = script_text().replace(FOOTER, f"\n{change}\n{FOOTER}")
    done = subprocess.run(
        [sys.executable, *flags, "-", *arguments], input=script, capture_output=True, text=True, timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    result: dict[str, Any] = json.loads(lines[0])
    return result


def old_python() -> str | None:
    """A Python 3.8, if this machine has one."""
    found = [shutil.which("python3.8") or ""]
    root = os.environ.get("PYENV_ROOT") or str(Path.home() / ".pyenv")
    found += [str(path) for path in Path(root).glob("versions/3.8.*/bin/python")]
    for path in filter(None, found):
        if subprocess.run([path, "--version"], capture_output=True, text=True).stdout.startswith("Python 3.8"):
            return path
    return None


@pytest.fixture(scope="module")
def live() -> FactSheet:
    """Everything about this very machine and interpreter, collected once."""
    return run_collector(python=sys.executable, budget=30.0)


def test_the_script_is_python_3_8() -> None:
    ast.parse(script_text(), feature_version=(3, 8))
    for name in SCRIPTS:
        ast.parse(probe_script(name), feature_version=(3, 8))


# What later Pythons added and 3.8 would only miss when the line is reached.
NEWER = {
    "removeprefix", "removesuffix", "is_relative_to", "with_stem", "bit_count", "pairwise", "batched", "lcm", "cache",
    "waitstatus_to_exitcode", "pidfd_open", "to_thread", "randbytes", "UTC", "file_digest", "hardlink_to",
}  # fmt: skip


def test_the_scripts_call_nothing_that_python_3_8_lacks() -> None:
    texts = [script_text(), *map(probe_script, SCRIPTS)]
    for node in (node for text in texts for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER, node.attr
        if isinstance(node, ast.Call):
            words = {word.arg for word in node.keywords}
            assert not words & {"slots", "kw_only", "process_group"}
            assert not (isinstance(node.func, ast.Name) and node.func.id == "zip" and "strict" in words)


def test_the_script_imports_only_the_standard_library() -> None:
    texts = [script_text(), *map(probe_script, SCRIPTS)]
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(module.split(".")[0] in sys.stdlib_module_names for module in modules), modules


def test_no_part_of_the_script_hides_a_name_of_another() -> None:
    owner: dict[str, str] = {}
    for part in PARTS:
        source = (resources.files("logdoc.probes.collect") / f"{part}.py").read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names += [target.id for target in targets if isinstance(target, ast.Name)]
            for name in names:
                assert owner.setdefault(name, part) == part, f"{name} is in {owner[name]} and {part}"


def test_the_script_runs_alone() -> None:
    result = run_script("--only", "torch-build,shm,limits")
    facts = {fact["id"]: fact for fact in result["facts"]}
    assert result["schema"] == "logdoc.facts/v1"
    assert result["host"] == socket.gethostname()
    assert facts["torch.installed"]["value"] is False
    assert facts["shm.total"] == {**facts["shm.total"], "unit": "bytes", "source": "statvfs /dev/shm", "probe": "shm"}
    assert {fact["probe"] for fact in result["facts"]} == {"torch-build", "shm", "limits"}
    assert result["errors"] == []


@pytest.mark.skipif(old_python() is None, reason="no Python 3.8 on this machine")
def test_the_script_runs_on_the_oldest_python() -> None:
    sheet = run_collector(python=old_python(), budget=30.0)
    assert sheet.errors == ()
    assert sheet.value("shm.total")
    assert sheet.value("torch.installed") is not None


def test_an_unknown_section_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-", "--only", "shm,moon"], input=script_text(), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no section moon" in done.stderr
    assert done.stdout == ""


def test_a_file_beside_the_script_does_not_replace_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "torch.py").write_text("raise SystemExit('the wrong torch')")
    (tmp_path / "facts.py").write_text(script_text())
    done = subprocess.run(
        [sys.executable, "facts.py", "--only", "torch-build"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "wrong" not in done.stdout


def test_nothing_is_written_and_nothing_is_sent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    library = home / "pynvml.py"
    home.mkdir()
    library.write_text("raise ImportError")
    # Any attempt to open a connection or send a packet would appear as an error of its section.
    guard = """
def forbidden(*arguments):
    raise RuntimeError("something was sent")

class Guarded(socket.socket):
    connect = connect_ex = send = sendall = sendto = forbidden

socket.socket = Guarded
"""
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home), "PYTHONPATH": str(home)}
    result = run_script(change=guard, flags=(), cwd=home, env=environ)
    assert len(result["facts"]) > 50
    assert [error for error in result["errors"] if "sent" in error["error"]] == []
    # Not even the bytecode of what it imports.
    assert list(home.rglob("*")) == [library]


def test_secrets_stay_where_they_are() -> None:
    secrets = {
        "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQr", "NCCL_API_KEY": "swordfish-1", "TORCH_PASSWORD": "swordfish-2",
        "VLLM_HOST": "http://user:swordfish-3@proxy:80", "RAY_NOTE": "token ghp_swordfish4567890123",
    }  # fmt: skip
    result = run_script("--only", "env", env={**secrets, "NCCL_DEBUG": "INFO", "OTHER": "swordfish-5"})
    text = json.dumps(result)
    assert "swordfish" not in text
    assert "hf_AbC" not in text
    values = {fact["id"]: fact["value"] for fact in result["facts"]}
    assert values["env.NCCL_DEBUG"] == "INFO"
    assert values["env.VLLM_HOST"] == "http://***@proxy:80"
    assert "env.OTHER" not in values


@pytest.mark.torch
@pytest.mark.skipif(util.find_spec("torch") is None, reason="torch is not installed")
def test_the_torch_of_this_interpreter_is_told_as_it_is(live: FactSheet) -> None:
    version = metadata.version("torch")
    assert live.value("torch.version") == version
    assert live.value("torch.import_ok") is True
    assert live.value("torch.has_gloo") is True
    if version.endswith("+cpu"):
        assert live.value("torch.cpu_wheel") is True
        assert live.value("torch.has_nccl") is False
        assert live.value("torch.cuda") == "none"
        assert live.value("torch.cuda_available") is False
    assert str(live.value("torch.wheel")).startswith(f"torch-{version}")
    assert live.value("torch.duplicates") == 0


def test_limits_memory_and_disks_are_this_machines(live: FactSheet) -> None:
    assert live.value("limit.nofile") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert live.value("limit.memlock") == (2**63 - 1 if soft == resource.RLIM_INFINITY else soft)
    found = os.statvfs("/dev/shm")
    assert live.value("shm.total") == found.f_blocks * found.f_frsize
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert live.value("mem.total") == total
    limit = live.value("cgroup.limit")
    assert (limit is not None) == live.value("cgroup.limited")
    free = live.value("disk.free")
    assert isinstance(free, int)
    assert 0 < free <= shutil.disk_usage(os.getcwd()).total


def test_names_and_interfaces_are_this_machines(live: FactSheet) -> None:
    name = socket.gethostname()
    try:
        addresses = sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
    except OSError:
        addresses = []
    assert live.value("net.hostname") == name
    assert live.value("net.hostname_resolves") is bool(addresses)
    assert live.value("net.hostname_address") == (", ".join(addresses) or None)
    assert "lo 127.0.0.1" in str(live.value("net.interfaces"))
    assert live.value("net.nccl_would_take") in {*os.listdir("/sys/class/net"), "none"}


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_master_port_is_seen(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", str(listening))
    sheet = run_collector(["network"], sys.executable, budget=10.0)
    assert sheet.value("net.master_port") == listening
    assert sheet.value("net.master_is_local") is True
    assert sheet.value("net.master_port_in_use") is True


def test_a_free_master_port_is_free_and_another_hosts_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    assert run_collector(["network"], sys.executable).value("net.master_port_in_use") is False
    monkeypatch.setenv("MASTER_ADDR", "192.0.2.250")
    sheet = run_collector(["network"], sys.executable)
    assert sheet.value("net.master_is_local") is False
    assert sheet.value("net.master_port_in_use") is None


def test_the_specs_and_the_script_know_the_same_probes(live: FactSheet) -> None:
    ids = [entry.id for entry in PROBES]
    assert len(ids) == len(set(ids))
    assert {entry.id: entry.seconds for entry in PROBES if not entry.active} == {
        probe: seconds for probe, (_section, seconds) in SECTIONS.items()
    }
    assert passive_ids() == tuple(SECTIONS)
    for entry in PROBES:
        assert entry.does.en.endswith(".")
        assert entry.does.zh.endswith("。")
        assert entry.facts
    assert {fact.origin for fact in live.facts} <= {f"{probe}@{live.host}" for probe in passive_ids()}
    assert spec("gloo-pair") is not None
    assert spec("no-such-probe") is None
