"""README keeps its word: the commands it shows exist, and its picture is what logdoc prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from logdoc.cli.arguments import COMMANDS
from logdoc.cli.commands import commands as main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(marker: str) -> str:
    found = re.search(rf"<!-- {marker} -->\n```sh\n(.*?)\n```", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_both_commands_are_one_line_that_sets_up_by_itself() -> None:
    for marker in ("explain", "test"):
        assert block(marker).startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
        assert "\n" not in block(marker)


def test_the_sample_log_exists_and_the_picture_is_real(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = shlex.split(block("explain"))[-1]
    assert (ROOT / sample).is_file()
    picture = re.search(r"\n```\n(✗.*?)\n```", README, re.DOTALL)
    assert picture is not None
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(main, ["explain", "--no-probes", sample], env={"COLUMNS": "100", "LC_ALL": "C.UTF-8"})
    assert result.stdout.rstrip("\n") == picture.group(1)


def test_every_command_readme_names_exists() -> None:
    named = set(re.findall(r"logdoc ([a-z]+)\b(?! crash)", " ".join(re.findall(r"`([^`]*)`", README))))
    commands = named & {"explain", "run", "tui", "rules", "probe", "doctor", "env", "mcp", "schema", "verify"}
    assert commands <= set(COMMANDS)


def test_every_command_ends_with_three_examples() -> None:
    def leaves(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            names = command.list_commands(context)
            found = [leaves(sub, f"{path} {name}") for name in names if (sub := command.get_command(context, name))]
            return [leaf for group in found for leaf in group]
        return [(path, command)]

    for path, command in leaves(main, "logdoc"):
        assert command.epilog, path
        examples = [
            line
            for line in command.epilog.splitlines()
            if line.strip().startswith(("logdoc", "eval", "torchrun", "kubectl", "claude"))
        ]
        assert len(examples) >= 3, path
