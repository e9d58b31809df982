"""Fact files: what was collected elsewhere counts like what was collected here; junk is refused in one line."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdoc.probes.collecting import run_collector
from logdoc.probes.sheets import load_fact_sheet, load_fact_sheets, sheet_json
from logdoc.types.errors import InputError

GOOD: dict[str, Any] = {
    "schema": "logdoc.facts/v1",
    "host": "node-3",
    "time": "2025-11-03T09:41:27Z",
    "python": "3.10.12",
    "facts": [
        {"id": "torch.has_nccl", "value": True, "unit": "", "source": "import torch", "probe": "torch-build"},
        {"id": "gpu.count", "value": 8, "unit": "", "source": "NVML", "probe": "gpu-list"},
        {"id": "shm.free", "value": 1.5, "unit": "bytes", "source": "statvfs"},
    ],
    "errors": [{"probe": "gpu-health", "error": "dmesg: not permitted", "kind": "failed"}],
}


def write(path: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_file_gives_facts_with_their_host_and_probe(tmp_path: Path) -> None:
    sheet = load_fact_sheet(write(tmp_path / "facts.json", GOOD))
    assert sheet.host == "node-3"
    assert [fact.origin for fact in sheet.facts] == ["torch-build@node-3", "gpu-list@node-3", "facts@node-3"]
    assert all(fact.host == "node-3" for fact in sheet.facts)
    assert sheet.value("torch.has_nccl") is True
    assert sheet.value("gpu.count") == 8
    assert sheet.value("no.such.fact") is None
    assert sheet.commands["gpu.count"] == "NVML"
    assert [(error.probe, error.kind) for error in sheet.errors] == [("gpu-health", "failed")]
    assert [fact.id for fact in sheet.of_probe("gpu-list")] == ["gpu.count"]


def test_facts_from_a_file_equal_facts_live(tmp_path: Path) -> None:
    live = run_collector(["shm", "limits", "container"], sys.executable, budget=10.0)
    saved = load_fact_sheet(write(tmp_path / "facts.json", sheet_json(live)))
    assert live.facts
    assert saved.facts == live.facts
    assert saved.errors == live.errors
    assert (saved.host, saved.time, saved.python, saved.commands) == (live.host, live.time, live.python, live.commands)


@pytest.mark.parametrize("between", ["\n", "", "  \r\n\n"])
def test_a_file_may_hold_the_sheets_of_several_hosts(between: str, tmp_path: Path) -> None:
    text = between.join(json.dumps({**GOOD, "host": host}) for host in ("node-1", "node-2", "node-3")) + "\n"
    path = write(tmp_path / "facts.jsonl", "\ufeff" + text)
    assert [sheet.host for sheet in load_fact_sheets(path)] == ["node-1", "node-2", "node-3"]
    with pytest.raises(InputError, match="3 hosts"):
        load_fact_sheet(path)


def test_what_launchers_print_round_the_facts_does_not_matter(tmp_path: Path) -> None:
    one, two = (json.dumps({**GOOD, "host": host}) for host in ("node-1", "node-2"))
    text = f"srun: job 7 queued\nLoading cuda/12.4 {{default}}\n0: {one}\n12: {two}\nsrun: step done\n"
    sheets = load_fact_sheets(write(tmp_path / "facts.jsonl", text))
    assert [sheet.host for sheet in sheets] == ["node-1", "node-2"]
    pretty = json.dumps(GOOD, indent=2) + "\nbye\n"
    assert load_fact_sheet(write(tmp_path / "pretty.json", "welcome\n" + pretty)).host == "node-3"


@pytest.mark.parametrize("version", ["v0", "v2", "v10"])
def test_facts_of_another_version_say_which(version: str, tmp_path: Path) -> None:
    path = write(tmp_path / "facts.json", {**GOOD, "schema": f"logdoc.facts/{version}"})
    with pytest.raises(InputError, match=rf"holds logdoc\.facts/{version}, this logdoc reads logdoc\.facts/v1"):
        load_fact_sheets(path)


def changed(**values: Any) -> dict[str, Any]:
    return {**GOOD, **values}


JUNK: dict[str, Any] = {
    "empty": "",
    "blank": "  \n",
    "binary": bytes(range(256)) * 8,
    "a log": "[rank0]: RuntimeError: {oops}\n",
    "cut": json.dumps(GOOD)[:200],
    "second cut": json.dumps(GOOD) + "\n" + json.dumps(GOOD)[:80],
    "a list": [GOOD],
    "no schema": {"host": "a", "facts": []},
    "another schema": changed(schema="logdoc.report/v1"),
    "no host": changed(host=""),
    "host a number": changed(host=3),
    "facts no list": changed(facts={"gpu.count": 8}),
    "facts of text": changed(facts=["gpu.count"]),
    "errors no list": changed(errors="none"),
    "no id": changed(facts=[{"value": 1}]),
    "id with blanks": changed(facts=[{"id": "gpu count", "value": 1}]),
    "value null": changed(facts=[{"id": "gpu.count", "value": None}]),
    "value a list": changed(facts=[{"id": "gpu.count", "value": [8]}]),
    "not a number": json.dumps(GOOD).replace("1.5", "NaN"),
    "infinite": json.dumps(GOOD).replace("1.5", "1e999"),
    "too many": changed(facts=[{"id": "a.b", "value": 1}] * 20_001),
    "deep": '{"schema":' + "[" * 100_000,
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_junk_is_refused_in_one_line(junk: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "facts.json", junk)
    with pytest.raises(InputError) as refused:
        load_fact_sheets(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    with path.open("wb") as stream:
        stream.write(json.dumps(GOOD).encode())
        stream.write(b" " * (16 << 20))
    with pytest.raises(InputError, match="larger than 16 MiB"):
        load_fact_sheet(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path, Path("a\0b")):
        with pytest.raises(InputError, match="cannot be read"):
            load_fact_sheet(path)


def test_fields_of_a_wrong_kind_beside_the_facts_are_left_out(tmp_path: Path) -> None:
    entry = {"id": "gpu.count", "value": 8, "unit": 3, "source": None, "probe": ["x"]}
    sheet = load_fact_sheet(write(tmp_path / "facts.json", changed(facts=[entry], errors=[{"error": 1}], time=7)))
    assert (sheet.facts[0].unit, sheet.facts[0].origin, sheet.time) == ("", "facts@node-3", "")
    assert sheet.errors[0].error == ""


@given(st.binary(max_size=400))
def test_any_bytes_are_facts_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    with pytest.raises(InputError):
        load_fact_sheets(path)
    path.write_bytes(json.dumps(GOOD).encode() + data)
    with contextlib.suppress(InputError):
        assert load_fact_sheets(path)[0].host == "node-3"
