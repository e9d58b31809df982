"""`logdoc completion`: the shell script that click's own completion needs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from logdoc.cli.common import said_plainly


@click.command(
    epilog="""\b
Examples:
  eval "$(logdoc completion bash)"
  logdoc completion zsh > ~/.zfunc/_logdoc
  logdoc completion fish > ~/.config/fish/completions/logdoc.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@said_plainly
def completion(shell: str) -> None:
    """Print the completion script for your shell."""
    from logdoc.cli.commands import commands

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(commands, {}, "logdoc", "_LOGDOC_COMPLETE").source())
