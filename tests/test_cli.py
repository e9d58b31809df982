"""The command line as a user or a bot meets it: exit codes, streams, languages, pipes, abuse."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.clikit import CRASH, run


def test_a_path_alone_is_explained(crash: Path) -> None:
    code, out, _ = run(str(crash))
    assert code == 1
    assert "Rank 1" in out
    assert "ValueError" in out


def test_json_from_a_pipe(crash: Path) -> None:
    code, out, err = run("explain", "-", "--format", "json", "--no-probes", stdin=CRASH)
    report = json.loads(out)
    assert (code, err) == (1, "")
    assert (report["schema"], report["outcome"]) == ("logdoc.report/v1", "cause-found")
    assert report["input"]["sources"][0]["name"] == "<stdin>"


def test_exit_codes(tmp_path: Path, crash: Path) -> None:
    (tmp_path / "fine.log").write_text("step 1\n")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rule.yaml").write_text("id: [")
    assert run(str(tmp_path / "fine.log"))[0] == 0
    assert run("explain", "--exit-zero", str(crash))[0] == 0
    assert run("explain", str(tmp_path / "missing.log"))[0] == 2
    assert run("explain", "--rules", str(tmp_path / "bad"), str(crash))[0] == 3
    assert run("explain", "--no-such-option", str(crash))[0] == 2


def test_an_error_is_one_line_on_stderr(tmp_path: Path) -> None:
    code, out, err = run("explain", str(tmp_path / "missing.log"))
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert "missing.log" in err


def test_chinese(crash: Path) -> None:
    assert "这样做" in run(str(crash), "--lang", "zh")[1]


def test_compressed_folders_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank_1.log.gz").write_bytes(gzip.compress(CRASH.encode()))
    for argument in (str(tmp_path / "logs"), str(tmp_path / "logs" / "*.gz")):
        assert run("explain", argument)[0] == 1


def test_no_log_text_becomes_markup_or_colour(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("ValueError: [bold]x[/bold] [/usr/lib/x.py] \x1b[31mred\n")
    out = run(str(path), "--color", "never")[1]
    assert "[bold]x[/bold] [/usr/lib/x.py]" in out
    assert "\x1b" not in out
    assert "[bold]x" in run(str(path), "--color", "always")[1]


def test_the_rules_commands(tmp_path: Path) -> None:
    assert "install.torch-cpu-build" in run("rules", "list")[1]
    assert "memory.gpu-oom-disguised" in run("rules", "list", "memory")[1]
    page = run("rules", "show", "install.torch-cpu-build", "--lang", "zh")[1]
    assert page.startswith("# ")
    assert "## 如何处理" in page
    assert "install.torch-cpu-build" in run("rules", "search", "NCCL built in")[1]
    code, _, err = run("rules", "show", "install.torch-cpu-bild")
    assert code == 2
    assert "did you mean install.torch-cpu-build?" in err


def test_a_new_rule_from_a_log_line_is_valid_yaml_and_its_signature_fits(tmp_path: Path, crash: Path) -> None:
    code, out, _ = run("rules", "new", "site.bad-lr", "--from", f"{crash}:3", "--dir", str(tmp_path / "own"))
    assert code == 0, out
    from logdoc.rulebase import load_rules

    rule = load_rules([tmp_path / "own"])["site.bad-lr"]
    assert rule.match["seen"].regex == r"ValueError: bad lr"
    assert run("rules", "new", "site.bad-lr", "--dir", str(tmp_path / "own"))[0] == 2


def test_rules_test_names_the_place_of_a_failing_example(tmp_path: Path) -> None:
    run("rules", "new", "site.mine", "--dir", str(tmp_path))
    path = tmp_path / "site" / "mine.yaml"
    text = path.read_text().replace(
        '"FILL IN: a regex with a rare literal of at least 8 characters"', "'never matches this'"
    )
    path.write_text(text)
    code, out, err = run("rules", "test", str(tmp_path))
    assert code == 3
    assert "1 rules" in out
    assert "mine.yaml" in err
    assert "does not match" in err


def test_schemas_are_the_committed_ones() -> None:
    root = Path(__file__).resolve().parents[1]
    for what in ("report", "rule"):
        committed = json.loads((root / "schema" / f"{what}.v1.json").read_text(encoding="utf-8"))
        assert json.loads(run("schema", what)[1]) == committed


def test_environment_lint_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\nexport NCCL_ALGO=simple\nexport NCCL_DEBUG=INFO\ntorchrun t.py\n")
    code, out, _ = run("env", str(script))
    assert code == 1
    assert "NCCL_ALGO=simple" in out
    assert "NCCL_DEBUG" not in out


def test_completion_and_version() -> None:
    assert "_LOGDOC_COMPLETE" in run("completion", "bash")[1]
    assert "logdoc" in run("--version")[1]


def shell(command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """A real shell, for what only real pipes and files show."""
    full = f"set -o pipefail; logdoc() {{ '{sys.executable}' -m logdoc \"$@\"; }}; {command}"
    return subprocess.run(
        ["bash", "-c", full], capture_output=True, timeout=120, env={**os.environ, **env}, check=False
    )


def test_a_reader_that_goes_away_is_no_traceback(crash: Path) -> None:
    done = shell(f"logdoc explain --long '{crash}' | true")
    assert b"Traceback" not in done.stderr
    done = shell("head -c 3000000 /dev/urandom | logdoc explain - | head -1")
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1)


def test_bare_logdoc_on_a_terminal_helps_and_never_waits() -> None:
    import pty

    parent, child = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "logdoc"], stdin=child, capture_output=True, timeout=60, check=False
        )
    finally:
        os.close(parent)
        os.close(child)
    assert done.returncode == 2
    assert b"Usage" in done.stderr
