"""`logdoc tui` in a real terminal, tmux's: from a file and after a pipe; and its refusals where there is none."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tuikit import LOG, OOM_LINE, small_rules

PATIENCE = 60.0  # seconds until a screen must show what is waited for, on a busy machine
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A tmux server of its own with one window of 80 × 24."""

    def __init__(self, directory: Path) -> None:
        self.name = f"logdoc-{uuid.uuid4().hex[:8]}"
        self.directory = directory

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self.name, "-f", os.devnull, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    def start(self, command: str) -> None:
        shell = f"cd {shlex.quote(str(self.directory))}; {command}; echo LEFT-$?; exec sleep 300"
        environment = [
            f"-e{name}={value}"
            for name, value in {"PYTHONPATH": str(Path(__file__).parents[1]), "LANG": "C.UTF-8"}.items()
        ]
        self.tmux("-u", "new-session", "-d", "-x", "80", "-y", "24", *environment, "sh", "-c", shell)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, text: str) -> str:
        """Wait until the screen shows `text`."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            shown = self.screen()
            if text in shown:
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{text!r} never came:\n{self.screen()}")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    small_rules(tmp_path / "rules")
    (tmp_path / "train.log").write_text(LOG)
    terminal = Terminal(tmp_path)
    yield terminal
    subprocess.run(["tmux", "-L", terminal.name, "kill-server"], capture_output=True, check=False)


LOGDOC = f"{shlex.quote(sys.executable)} -m logdoc"


@needs_tmux
@pytest.mark.parametrize(
    "command", ["{logdoc} tui train.log --rules rules", "cat train.log | {logdoc} tui - --rules rules"]
)
def test_in_a_real_terminal(terminal: Terminal, command: str) -> None:
    terminal.start(command.format(logdoc=LOGDOC))
    screen = terminal.until(f"line {OOM_LINE} of 41")
    assert "✗" in screen
    assert len(screen.rstrip("\n").split("\n")) == 24
    terminal.keys("g999", "Enter")  # in one go, as the search below
    terminal.until("line 41 of 41")
    terminal.keys("/watchdog")  # at once: the search must take what is typed right behind its key
    terminal.until("line 9 of 41")
    terminal.keys("Enter")
    terminal.keys("l")
    terminal.until("第 9 行，共 41 行")
    terminal.keys("q")
    assert "LEFT-0" in terminal.until("LEFT-")


@needs_tmux
def test_ctrl_c_ends_the_job_and_shows_what_it_had_said(terminal: Terminal) -> None:
    terminal.start(f"trap : INT; (trap - INT; cat train.log; exec sleep 300) | {LOGDOC} tui - --rules rules")
    terminal.until("Ctrl-C ends the job")
    terminal.keys("C-c")
    terminal.until(f"line {OOM_LINE} of 41")
    terminal.keys("q")
    assert "LEFT-0" in terminal.until("LEFT-")


@needs_tmux
def test_rules_browse_in_a_real_terminal(terminal: Terminal) -> None:
    terminal.start(f"{LOGDOC} rules browse --rules rules")
    terminal.until("Search ")
    terminal.keys("/test-oom")
    terminal.until("memory (1)")
    terminal.keys("Enter")
    terminal.until("Title of memory.test-oom")
    terminal.keys("q")
    assert "LEFT-0" in terminal.until("LEFT-")


@pytest.mark.parametrize("command", [["tui", "train.log"], ["tui", "-"], ["rules", "browse"]])
def test_without_a_terminal_it_is_refused_in_one_line(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "train.log").write_text(LOG)
    done = subprocess.run(
        [sys.executable, "-m", "logdoc", *command],
        cwd=tmp_path, input="", capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "needs a terminal" in done.stderr


def test_explain_never_imports_textual(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("hello\n")
    script = (
        "import sys; from logdoc.cli import main\n"
        "try: main(['explain', 'train.log', '--no-probes'])\n"
        "except SystemExit: pass\n"
        "print('textual' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout.strip().endswith("False")
