"""The recipes of docs/recipes.md: run where their tools are here, with stand-ins for the cluster's, parsed in any case."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.runnerkit import ROOT, environment

TEXT = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"<!-- recipe: ([\w-]+) -->\n```\w+\n(.*?)```", TEXT, re.DOTALL))
IN_YAML = {name for name, language in re.findall(r"<!-- recipe: ([\w-]+) -->\n```(\w+)", TEXT) if language == "yaml"}
NEEDS_TORCH = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs the torch extra"),
]
ENTRY = 'from logdoc.cli import main; main(prog_name="logdoc")'
FAILING_RANK = """
import os, sys
import torch.distributed as dist

dist.init_process_group("gloo")
os.write(1, f"rank {dist.get_rank()} is up\\n".encode())  # in one piece: both ranks share the output
dist.barrier()
if dist.get_rank() == 1:
    raise ValueError("bad shard 7")
dist.barrier()
"""
CRASH = 'rank 1 is up\\n[rank1]: Traceback (most recent call last):\\n[rank1]:   File "t.py", line 3\\n[rank1]: ValueError: bad lr\\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a `bin` in which `logdoc` and `python` are those of this test run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    executable(folder / "logdoc", f"#!/bin/sh\nexec {sys.executable} -c '{ENTRY}' \"$@\"\n")
    executable(folder / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    executable(folder / "torchrun", f'#!/bin/sh\nexec {sys.executable} -m torch.distributed.run "$@"\n')
    return tmp_path


def executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def shell(script: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a recipe in `place`, without probes of this machine where it does not forbid them itself."""
    path = os.pathsep.join([str(place / "bin"), "/usr/bin", "/bin"])
    env = environment(PATH=path, OMP_NUM_THREADS="1", TMPDIR=str(place), **variables)
    script = script.replace("logdoc run ", "logdoc run --no-probes ")
    return subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_every_block_is_a_recipe() -> None:
    assert len(RECIPES) == TEXT.count("\n```") // 2


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_parses(name: str) -> None:
    if name in IN_YAML:
        assert yaml.safe_load(RECIPES[name])
        return
    checked = subprocess.run(["bash", "-n"], input=RECIPES[name], text=True, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


class TestTorchrun:
    pytestmark = NEEDS_TORCH

    def test_around_it_the_rank_that_broke_first_is_named(self, place: Path) -> None:
        (place / "train.py").write_text(FAILING_RANK)
        done = shell(RECIPES["torchrun-around"], place)
        assert done.returncode == 1
        assert "rank 0 is up" in done.stdout
        assert "bad shard 7" in done.stderr.rpartition("✗ Rank 1: ")[2]

    def test_with_a_folder_of_logs(self, place: Path) -> None:
        (place / "train.py").write_text(FAILING_RANK)
        done = shell(RECIPES["torchrun-folder"], place)
        report = json.loads((place / "report.json").read_text())
        assert done.returncode == 1
        assert report["diagnoses"][0]["origin"]["rank"] == 1
        assert "bad shard 7" in report["diagnoses"][0]["summary"]

    def test_under_it_each_rank_has_a_report(self, place: Path) -> None:
        (place / "train.py").write_text(FAILING_RANK)
        done = shell(RECIPES["torchrun-under"], place)
        assert done.returncode == 1
        assert "✗ Rank 1: " in (place / "report-1.txt").read_text()

    def test_a_job_that_ends_well_leaves_no_trace(self, place: Path) -> None:
        (place / "train.py").write_text("print('fine')\n")
        done = shell(RECIPES["torchrun-around"], place)
        assert (done.returncode, done.stdout.count("fine")) == (0, 2)
        assert "✗" not in done.stderr
        assert not list(place.glob("logdoc-run-*"))


def test_follow(place: Path) -> None:
    (place / "train.py").write_text("print('step 1', flush=True)\nraise ValueError('bad lr')\n")
    done = shell(RECIPES["follow"], place)
    events = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    assert done.returncode == 1
    assert [event["event"] for event in events] == ["diagnosis", "end"]
    assert "ValueError: bad lr" in (place / "train.log").read_text()


SRUN = f"""#!/bin/bash
# Two tasks, of which the second fails: what the real srun does with --output and the exit code.
for argument in "$@"; do case $argument in --output=*) output=${{argument#--output=}};; esac; done
output=${{output//%x/train}}; output=${{output//%j/$SLURM_JOB_ID}}
echo 'rank 0 is up' > "${{output//%t/0}}"
printf '{CRASH}' > "${{output//%t/1}}"
exit 13
"""


def test_slurm_batch_script(place: Path) -> None:
    executable(place / "bin" / "srun", SRUN)
    executable(place / "bin" / "scontrol", "#!/bin/sh\nprintf 'node1\\nnode2\\n'\n")
    done = shell(
        RECIPES["slurm-batch"],
        place,
        SLURM_JOB_ID="12345",
        SLURM_SUBMIT_DIR=str(place),
        SLURM_NNODES="2",
        SLURM_JOB_NODELIST="node[1-2]",
    )
    assert done.returncode == 13
    assert "✗ Rank 1: " in done.stdout
    assert "train-12345-1.log" in done.stdout


@pytest.mark.parametrize(("code", "reported"), [("1:0", True), ("0:9", True), ("0:0", False)])
def test_slurm_epilog(place: Path, code: str, reported: bool) -> None:
    log = place / "slurm-7.out"
    log.write_text(CRASH.replace("\\n", "\n"))
    done = subprocess.run(
        ["bash", "-c", RECIPES["slurm-epilog"]],
        env={
            "LOGDOC": str(place / "bin" / "logdoc"),
            "LOGDOC_REPORTS": str(place),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_STDOUT": str(log),
            "SLURM_JOB_EXIT_CODE2": code,
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert (place / "7.json").exists() == reported
    if reported:
        assert json.loads((place / "7.json").read_text())["outcome"] == "cause-found"


def test_kubernetes_entrypoint(place: Path) -> None:
    """The pod's command, with a job and a message file that are here."""
    (container,) = yaml.safe_load(RECIPES["kubernetes-entrypoint"])["spec"]["containers"]
    command = container["command"]
    assert command[-1] == "--"
    assert container["terminationMessagePath"] == command[command.index("--termination") + 1]
    message = place / "message"
    typed = shlex.join([str(message) if word == container["terminationMessagePath"] else word for word in command])
    done = shell(f"{typed} python -c 'raise ValueError(7)'", place)
    assert done.returncode == 1
    assert "ValueError" in message.read_text()
    assert all(isinstance(word, str) for word in command + container["args"])


def test_kubernetes_sidecar(place: Path) -> None:
    """The sidecar's command on a log that another container writes; SIGTERM ends it, as the kubelet does."""
    spec = yaml.safe_load(RECIPES["kubernetes-sidecar"])["spec"]
    (sidecar,) = spec["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    *_, script = sidecar["command"]
    path = os.pathsep.join([str(place / "bin"), os.environ["PATH"]])
    command = ["sh", "-c", script.replace("/logs/", f"{place}/")]
    with subprocess.Popen(command, env=environment(PATH=path), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        (place / "train.log").write_text(CRASH.replace("\\n", "\n"))
        assert json.loads(process.stdout.readline())["event"] == "diagnosis"
        process.terminate()
        assert json.loads(process.stdout.readline())["event"] == "end"
        assert process.wait(timeout=60) == 1


def test_github_actions(place: Path) -> None:
    steps = yaml.safe_load(RECIPES["github-actions"])["jobs"]["smoke"]["steps"]
    train, summary = (step["run"] for step in steps if step.get("name"))
    executable(place / "bin" / "torchrun", "#!/bin/sh\nexec python -c 'raise ValueError(7)'\n")
    variables = {"RUNNER_TEMP": str(place), "GITHUB_STEP_SUMMARY": str(place / "summary.md")}
    assert shell(train, place, **variables).returncode == 1
    assert shell(summary, place, **variables).returncode == 0
    assert "ValueError" in (place / "summary.md").read_text()


class Webhook(http.server.BaseHTTPRequestHandler):
    """Takes what an incoming webhook of Slack would be sent."""

    received: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append({"type": self.headers["Content-Type"], "body": json.loads(body)})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: Any) -> None:
        """Not into the test's output."""


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    received: list[dict[str, Any]] = []
    handler = type("Handler", (Webhook,), {"received": received})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/services/x", received
        server.shutdown()
        thread.join()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_slack(place: Path, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    url, received = webhook
    (place / "train.log").write_text(CRASH.replace("\\n", "\n"))
    done = shell(RECIPES["slack"], place, SLACK_WEBHOOK_URL=url, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok", "")
    (message,) = received
    assert message["type"] == "application/json"
    assert "ValueError" in message["body"]["text"]


def test_the_pre_commit_hook_tests_the_rules_that_are_committed(place: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    used = yaml.safe_load(RECIPES["pre-commit"])["repos"][0]["hooks"]
    assert [one["id"] for one in used] == [hook["id"]] == ["logdoc-rules-test"]
    assert re.search(hook["files"], "rules/site/disk.yaml")
    assert not re.search(hook["files"], "docs/x.yaml")
    good = ROOT / "rules" / "memory" / "gpu-oom.yaml"
    (place / "bad.yaml").write_text("id: [")
    assert shell(f"{hook['entry']} {good}", place).returncode == 0
    refused = shell(f"{hook['entry']} {place / 'bad.yaml'}", place)
    assert refused.returncode == 3
    assert "bad.yaml:" in refused.stderr


def test_completion_completes(place: Path) -> None:
    asks = 'COMP_WORDS=(logdoc ru); COMP_CWORD=1; _logdoc_completion logdoc; echo "${COMPREPLY[@]}"'
    done = shell(RECIPES["completion"] + asks, place)
    assert (done.returncode, done.stdout.split()) == (0, ["run", "rules"]), done.stderr
