"""`logdoc mcp`: serve chat agents on standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from logdoc.cli.common import rules_option, said_plainly
from logdoc.cli.completing import folders
from logdoc.types.errors import InputError


@click.command(
    epilog="""\b
Examples:
  logdoc mcp --allow /scratch/logs
  logdoc mcp --allow . --rules my-rules
  claude mcp add logdoc -- logdoc mcp --allow "$PWD"   (or any other client)""",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="DIR",
    shell_complete=folders,
    help="Folders whose logs may be read [default: this one].",
)
@rules_option
@said_plainly
def mcp(allow: tuple[str, ...], rule_dirs: tuple[str, ...]) -> None:
    """Serve explain_log, search_rules, show_rule, run_probes and lint_env over MCP (stdio); read-only, redacted."""
    try:
        from logdoc.mcp_server import build_server
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise InputError("the MCP server needs an extra: pip install 'logdoc[mcp]'") from None
    from logdoc.engine import load_engine

    roots = [Path(name) for name in allow or (".",)]
    missing = next((root for root in roots if not root.is_dir()), None)
    if missing is not None:
        raise InputError(f"--allow {missing}: no such folder")
    build_server(load_engine(rule_dirs), roots).run("stdio")
