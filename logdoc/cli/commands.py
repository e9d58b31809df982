"""The commands: `logdoc PATH` explains, everything else is a command of its own."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from logdoc import __version__
from logdoc.cli.arguments import COMMANDS, explain_arguments, names_input
from logdoc.cli.common import said_plainly
from logdoc.cli.main import HELP_COLUMNS

# a command's module is imported when it is used; it and the function have its name, but for these functions
_FUNCTIONS = {"run": "run_command"}


class _Front(click.Group):
    """Commands by name; a path, a pattern or `-` in their place means `explain`."""

    @said_plainly
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """What the library itself prints, such as help, may meet a full disk too."""
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"logdoc.cli.{cmd_name}"), _FUNCTIONS.get(cmd_name, cmd_name))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and names_input(args[0]):
            args = ["explain", *args]
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command and no file {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # the shell asks for completions: nothing has been typed yet
            return super().parse_args(ctx, args)
        words = explain_arguments(args)
        if words is None and not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args if words is None else ["explain", *words])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """A command's name or, as a path alone is explained, a file's."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]

    def get_help(self, ctx: click.Context) -> str:
        """No wider than the page that is kept for the usual case."""
        formatter = ctx.make_formatter()
        formatter.width = min(formatter.width, HELP_COLUMNS - 2)
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")


@click.group(
    cls=_Front,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  logdoc crash.log                          what broke first, and what to type next
  torchrun train.py 2>&1 | logdoc explain - the same from a pipe
  logdoc explain logs/ --format json        a folder of per-rank logs, for a bot""",
)
@click.version_option(__version__, prog_name="logdoc")
def commands() -> None:
    """Says what broke first in a failed or hung distributed PyTorch job, why, and what to type next.

    Exit codes: 0 nothing failed, 1 a failure was found, 2 wrong usage or unreadable input, 3 invalid rules.
    """
