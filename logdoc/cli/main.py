"""The front door: `logdoc PATH` explains, everything else is a command of its own."""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from pathlib import Path

import click

# command → module and attribute; a command's module is imported when it is used, so that `explain` starts fast
_COMMANDS = {
    "explain": ("logdoc.cli.explain", "explain"),
    "run": ("logdoc.cli.run", "run_command"),
    "tui": ("logdoc.cli.tui", "tui"),
    "rules": ("logdoc.cli.rules", "rules"),
    "triage": ("logdoc.cli.triage", "triage"),
    "env": ("logdoc.cli.env", "env"),
    "decode": ("logdoc.cli.decode", "decode"),
    "probe": ("logdoc.cli.probe", "probe"),
    "doctor": ("logdoc.cli.probe", "doctor"),
    "verify": ("logdoc.cli.probe", "verify"),
    "mcp": ("logdoc.cli.mcp", "mcp"),
    "schema": ("logdoc.cli.schema", "schema"),
    "completion": ("logdoc.cli.completion", "completion"),
}


class _Front(click.Group):
    """Commands by name; a path, a pattern or `-` in their place means `explain`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and _names_input(args[0]):
            args = ["explain", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # the shell asks for completions: nothing has been typed yet
            return super().parse_args(ctx, args)
        if not args and not sys.stdin.isatty():
            args = ["explain", "-"]
        elif not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        elif args[0].startswith("-") and args[0] not in ("--help", "-h", "--version") and _names_any_input(args):
            args = ["explain", *args]
        return super().parse_args(ctx, args)


def _names_input(argument: str) -> bool:
    return (
        argument == "-" or "://" in argument or any(sign in argument for sign in "*?[/\\.") or Path(argument).exists()
    )


def _names_any_input(args: list[str]) -> bool:
    return any(argument == "-" or Path(argument).exists() for argument in args)


@click.group(
    cls=_Front,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  logdoc crash.log                          what broke first, and what to type next
  torchrun train.py 2>&1 | logdoc explain - the same from a pipe
  logdoc explain logs/ --format json        a folder of per-rank logs, for a bot""",
)
@click.version_option(metadata.version("logdoc"), prog_name="logdoc")
def main() -> None:
    """Says what broke first in a failed or hung distributed PyTorch job, why, and what to type next.

    Exit codes: 0 nothing failed, 1 a failure was found, 2 wrong usage or unreadable input, 3 invalid rules.
    """
