"""The command line as a user or a bot meets it: exit codes, streams, languages, pipes, abuse."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from logdoc.cli.commands import commands
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


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_to_read_is_no_pass(tmp_path: Path, form: str) -> None:
    """`kubectl logs` of a pod that is not there prints nothing into the pipe."""
    for argument in ("-", "--follow"):
        code, out, err = run("explain", "-", argument, "--format", form, stdin="")
        assert (code, out, err) == (2, "", "logdoc: nothing to read: <stdin>: empty\n")
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b""))
    code, out, err = run("explain", str(tmp_path), "--format", form)
    assert (code, out) == (2, "")
    assert err == f"logdoc: nothing to read: {tmp_path}/a.log: empty; {tmp_path}/b.log.gz: empty\n"
    (tmp_path / "c.log").write_text("step 1\n")
    assert run("explain", str(tmp_path))[0] == 0


def test_what_was_named_and_could_not_be_read_is_no_pass(tmp_path: Path, crash: Path) -> None:
    (tmp_path / "fine.log").write_text("step 1\n")
    (tmp_path / "none.log").touch()
    fine, missing = str(tmp_path / "fine.log"), str(tmp_path / "missing.log")
    for unread in (missing, str(tmp_path / "*.nothing"), f"file://{missing}"):
        code, out, _ = run("explain", fine, unread)
        assert (code, "Nothing failed" in out, unread in "".join(out.split())) == (2, True, True)
        assert run("explain", "--exit-zero", fine, unread)[0] == 2
        assert run("explain", str(crash), unread)[0] == 1
    for read in (fine, str(tmp_path / "none.log"), str(tmp_path / "*.log")):
        assert run("explain", "--exit-zero", fine, read)[0] == 0


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
    assert run("rules", "search", "out of memory")[1].startswith("memory.gpu-oom  ")
    code, _, err = run("rules", "show", "install.torch-cpu-bild")
    assert code == 2
    assert "did you mean install.torch-cpu-build?" in err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_listed_title_has_no_hole(language: str) -> None:
    for command in ("list",), ("search", "GPU"):
        listed = run("rules", *command, "--lang", language)[1]
        assert "gpu.launch-failure" in listed
        assert [line for line in listed.splitlines() if "{" in line] == []


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
    assert out.startswith("1 rule, 2 examples, ")
    assert "mine.yaml" in err
    assert "does not match" in err


def test_a_new_rule_names_a_schema_that_is_there(tmp_path: Path) -> None:
    for name in ("site.mine", "site.other.case"):
        code, out, _ = run("rules", "new", name, "--dir", str(tmp_path / "own"))
        path = Path(out.splitlines()[0])
        schema = path.parent / path.read_text().splitlines()[0].partition("$schema=")[2]
        assert (code, json.loads(schema.read_text())) == (0, json.loads(run("schema", "rule")[1]))
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "rule.v1.json").write_text("{}")
    run("rules", "new", "site.mine", "--dir", str(tmp_path / "rules"))
    assert "$schema=../../schema/rule.v1.json\n" in (tmp_path / "rules" / "site" / "mine.yaml").read_text()
    assert not (tmp_path / "rules" / "rule.v1.json").exists()


def test_what_a_new_rule_leaves_to_its_author_is_refused(tmp_path: Path) -> None:
    run("rules", "new", "site.mine", "--dir", str(tmp_path))
    code, out, err = run("rules", "test", str(tmp_path))
    assert (code, out.startswith("1 rule, 2 examples, ")) == (3, True)
    marked = [line for line in (tmp_path / "site" / "mine.yaml").read_text().splitlines() if "FILL IN" in line]
    told = {line.split(":")[1] for line in err.splitlines() if "still to be filled in" in line}
    assert len(told) == len(marked) + 1  # and the Chinese summary, on a line of its own


def test_a_pattern_that_does_not_compile_is_told_in_the_same_go(tmp_path: Path) -> None:
    run("rules", "new", "site.mine", "--dir", str(tmp_path))
    path = tmp_path / "site" / "mine.yaml"
    path.write_text(path.read_text().replace('"FILL IN: a regex with', '"A rack (is on fire').replace("FILL IN", "x"))
    code, out, err = run("rules", "test", str(tmp_path))
    assert (code, "the regex does not compile" in err, "待填写" in err) == (3, True, True)
    assert out.startswith("1 rule, 2 examples, ")
    path.write_text(path.read_text().replace("kind: cause ", "kind: caus "))
    code, _, err = run("rules", "test", str(tmp_path))
    assert [line.split(": ")[1] for line in err.splitlines()] == ["kind", "match.seen.regex"]


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


@pytest.mark.parametrize(
    ("setting", "code"),
    [("NCCL_ALGO=simple", 1), ("NCCL_DEBGU=INFO", 1), ("NCCL_BLOCKING_WAIT=1", 0), ("NCCL_DEBUG=INFO", 0)],
)
def test_only_what_breaks_the_job_or_does_nothing_fails_a_check(setting: str, code: int, tmp_path: Path) -> None:
    """A variable under its old name, which is still read, must not stop a job that checks itself first."""
    script = tmp_path / "job.sh"
    script.write_text(f"export {setting}\n")
    assert run("env", str(script))[0] == code


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def sheet(folder: Path, probes: int, **facts: object) -> str:
    """A file of facts, and of probes that all failed in the same way."""
    known = [{"id": name.replace("__", "."), "value": value, "probe": "torch-build"} for name, value in facts.items()]
    failed = [{"probe": f"p{number}", "error": "hung", "kind": "timeout"} for number in range(probes)]
    document = {"schema": "logdoc.facts/v1", "host": "n1", "facts": known, "errors": failed}
    return written(folder, "facts.json", json.dumps(document))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("env {good}", "共 1 个变量，没有发现问题\n"),
        ("env {none}", "没有设置相关变量\n"),
        ("env {bad}", "会导致失败：NCCL_ALGO=simple："),
        ("triage {crash}", "共 1 个作业，1 个失败\n"),
        (
            "doctor --facts {facts}",
            "? p0 等 8 项: hung\n? 延长时间也许能看到更多：--budget 30\n✓ 没有发现妨碍 NCCL 工作的问题\n",
        ),
        ("verify install.torch-cpu-build --facts {facts}", "install.torch-cpu-build：已修复\n"),
        ("rules list install.torch-cpu-build", "  原因     "),
        ("rules show install.torch-cpu-build", "`install.torch-cpu-build` · 原因 · "),
        ("rules test install.torch-cpu-build", " 个示例，0 个问题\n"),
        ("rules new site.mine --dir {folder}", "补全标出的部分，然后执行：logdoc rules test "),
        ("rules coverage {table}", "共 1 条消息：0 条命中表中所列规则，0 条命中其他规则，1 条未命中（识别率 0.0 %）\n"),
    ],
)
def test_what_logdoc_says_by_itself_is_said_in_chinese(command: str, said: str, tmp_path: Path) -> None:
    files = {
        "good": written(tmp_path, "good.sh", "export NCCL_DEBUG=INFO\n"),
        "none": written(tmp_path, "none.sh", "true\n"),
        "bad": written(tmp_path, "bad.sh", "export NCCL_ALGO=simple\n"),
        "crash": written(tmp_path, "crash.log", CRASH),
        "facts": sheet(tmp_path, 9, torch__has_nccl=True),
        "folder": str(tmp_path / "own"),
        "table": written(tmp_path, "messages.tsv", "message\tcause\nnothing knows this line\tsite.own\n"),
    }
    assert said in run(*command.format(**files).split(), "--lang", "zh")[1]


def offered(*words: str) -> list[str]:
    """What a shell is given for the last word."""
    env = {"_LOGDOC_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(commands, prog_name="logdoc", env=env).stdout.split()


@pytest.mark.parametrize(
    "words",
    [
        "explain cra", "cra", "crash.log cra", "explain crash.log --facts cra", "--facts cra", "x.log --baseline cra",
        "explain --rules cra", "tui cra", "run --log cra", "run -- cra", "triage cra", "env cra", "doctor --facts cra",
        "verify --facts cra", "rules test cra", "rules new a.b --from cra", "nosuch cra", "probe --python cra",
    ],
)  # fmt: skip
def test_files_are_completed_by_the_shell(words: str) -> None:
    assert offered("logdoc", *words.split()) == ["file,cra"]


def test_ids_are_completed() -> None:
    assert offered("logdoc", "expl") == ["plain,explain"]
    ooms = ["plain,memory.gpu-oom", "plain,memory.gpu-oom-disguised"]
    for command in ("rules show", "rules list", "rules test", "verify"):
        assert offered("logdoc", *command.split(), "memory.gpu-oo") == ooms
    assert offered("logdoc", "rules", "list", "memor")[0] == "plain,memory"
    assert offered("logdoc", "probe", "gpu-l") == ["plain,gpu-list"]
    assert offered("logdoc", "mcp", "--allow", "x") == ["dir,x"]


def test_own_rules_are_completed_and_broken_ones_offer_nothing(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    path = tmp_path / "site" / "mine.yaml"
    run("rules", "new", "site.mine", "--from", "-", "--dir", str(tmp_path), stdin="A rack is on fire\n")
    words = ("logdoc", "rules", "show", "--rules", str(tmp_path), "site.m")
    assert offered(*words) == ["plain,site.mine"]
    path.write_text("id: [")
    assert offered(*words) == []


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_a_completion_script_for_each_shell(shell_name: str) -> None:
    assert "_LOGDOC_COMPLETE" in run("completion", shell_name)[1]


def test_version() -> None:
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
