"""The MCP server through the official client: tools, hints, allow-list, redaction, and over real pipes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from logdoc.engine import Engine
from tests.clikit import run

mcp = pytest.importorskip("mcp")

CRASH = '[rank1]: Traceback (most recent call last):\n[rank1]:   File "t.py", line 3\n[rank1]: ValueError: key hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n'


async def call(server: Any, tool: str, **arguments: object) -> tuple[bool, dict[str, Any], str]:
    async with mcp.Client(server) as client:
        result = await client.call_tool(tool, arguments)
        text = " ".join(getattr(part, "text", "") for part in result.content)
        return bool(result.is_error), result.structured_content or {}, text


@pytest.fixture
def server(engine: Engine, tmp_path: Path) -> Any:
    from logdoc.mcp_server import build_server

    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "crash.log").write_text(CRASH)
    (tmp_path / "secret.log").write_text(CRASH)
    return build_server(engine, [tmp_path / "logs"])


async def test_tools_are_read_only_and_described(server: Any) -> None:
    async with mcp.Client(server) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == {"explain_log", "search_rules", "show_rule", "run_probes", "lint_env"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


async def test_a_log_below_the_allowed_folder_is_explained_and_redacted(server: Any, tmp_path: Path) -> None:
    failed, report, text = await call(server, "explain_log", path=str(tmp_path / "logs" / "crash.log"))
    assert not failed, text
    assert (report["schema"], report["outcome"]) == ("logdoc.report/v1", "cause-found")
    assert "hf_abcdef" not in str(report)


@pytest.mark.parametrize("path", ["secret.log", "logs/../secret.log", "/etc/passwd"])
async def test_nothing_outside_is_read(server: Any, tmp_path: Path, path: str) -> None:
    failed, _, text = await call(server, "explain_log", path=str(tmp_path / path))
    assert failed
    assert "outside" in text


async def test_text_search_page_probes_and_lint(server: Any) -> None:
    _, report, _ = await call(server, "explain_log", text="step 1\nstep 2\n", language="zh")
    assert (report["outcome"], report["language"]) == ("healthy", "zh")
    _, found, _ = await call(server, "search_rules", query="NCCL built in")
    assert "install.torch-cpu-build" in {one["rule"] for one in found["rules"]}
    _, page, _ = await call(server, "show_rule", rule_id="install.torch-cpu-build")
    assert page["page"].startswith("# ")
    assert (await call(server, "show_rule", rule_id="no.such"))[0]
    _, sheet, _ = await call(server, "run_probes", probes=["limits"])
    assert sheet["schema"] == "logdoc.facts/v1"
    assert (await call(server, "run_probes", probes=["rm -rf"]))[0]
    _, lint, _ = await call(server, "lint_env", settings={"NCCL_ALGO": "simple"})
    assert lint["problems"][0]["variable"] == "NCCL_ALGO"


@pytest.mark.parametrize("words", ["Connection closed by peer", "无法", "Xid"])
async def test_a_search_finds_what_the_command_line_finds(server: Any, words: str) -> None:
    _, found, _ = await call(server, "search_rules", query=words)
    listed = [line.split()[0] for line in run("rules", "search", words)[1].splitlines()]
    assert [one["rule"] for one in found["rules"]] == listed
    scores = [one["score"] for one in found["rules"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


async def test_a_search_orders_by_fit_and_shows_no_hole(server: Any) -> None:
    _, found, _ = await call(server, "search_rules", query="out of memory")
    first, *others = found["rules"]
    assert first["rule"] == "memory.gpu-oom"
    assert first["score"] > max(one["score"] for one in others)
    _, found, _ = await call(server, "search_rules", query="launch failure")
    assert "gpu.launch-failure" in {one["rule"] for one in found["rules"]}
    assert not [one for one in found["rules"] if "{" in one["title"]]


async def test_an_empty_log_is_no_pass(server: Any, tmp_path: Path) -> None:
    (tmp_path / "logs" / "none.log").touch()
    for asked in ({"text": ""}, {"path": str(tmp_path / "logs" / "none.log")}):
        failed, _, text = await call(server, "explain_log", **asked)
        assert failed
        assert "nothing to read" in text


async def test_what_was_not_read_is_told(server: Any, tmp_path: Path) -> None:
    (tmp_path / "logs" / "weights.log").write_bytes(bytes(range(256)) * 20)
    _, report, _ = await call(server, "explain_log", path=str(tmp_path / "logs"))
    assert ["1 binary file" in warning for warning in report["warnings"]] == [True]


async def test_over_real_pipes(tmp_path: Path) -> None:
    (tmp_path / "crash.log").write_text(CRASH)
    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "logdoc", "mcp", "--allow", str(tmp_path)]
    )
    failed, report, text = await call(mcp.stdio_client(parameters), "explain_log", path=str(tmp_path / "crash.log"))
    assert not failed, text
    assert report["outcome"] == "cause-found"
