"""`logdoc explain` as the command line's library declares it: options, help, and what is wrong with a command line."""

from __future__ import annotations

import sys
from typing import Any

import click

from logdoc.cli.arguments import Request
from logdoc.cli.common import facts_option, language_option, rules_option, said_plainly
from logdoc.cli.completing import files
from logdoc.render import FORMATS


@click.command(
    epilog="""\b
Examples:
  logdoc explain crash.log
  logdoc explain logs/ 'slurm-*.out' --long
  kubectl logs job/train --all-containers | logdoc explain - --format slack --no-probes""",
)
@click.argument("paths", nargs=-1, metavar="[PATH|-]...", shell_complete=files)
@click.option(
    "--format", "form", type=click.Choice([one.name for one in FORMATS]), default="text", help="What to print."
)
@click.option(
    "--redact/--no-redact",
    "redacted",
    default=None,
    help="Hide secrets, people, machines and addresses [default: where others read it: markdown, slack, teams, html].",
)
@click.option("--follow", is_flag=True, help="Read on as the log grows; tell when another cause leads.")
@language_option
@rules_option
@click.option("--long", is_flag=True, help="Everything: all hypotheses, fixes, ranks, timeline.")
@click.option("--why", is_flag=True, help="Print every term of every score.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 also when a failure was found.")
@click.option("--no-probes", is_flag=True, help="Judge by the log alone; look at nothing on this machine.")
@facts_option
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="GOOD",
    shell_complete=files,
    help="Logs of a good run: what is new stands out.",
)
@click.option(
    "--engine",
    "where",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Who scans large inputs: processes here, or Ray (RAY_ADDRESS, else a local cluster).",
)
@click.option(
    "--python",
    metavar="EXE",
    shell_complete=files,
    help="The job's Python, for probes [default: the active environment's].",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours in text.")
@click.option("--ascii", "ascii_only", is_flag=True, help="No signs beyond ASCII round the texts.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
@said_plainly
def explain(**asked: Any) -> None:
    """Say what broke first in these logs: files, folders, patterns, URLs, or - for a pipe.

    Reads torchrun --log-dir trees, Slurm and Kubernetes logs, dmesg, and gz, bz2, xz and zst files.
    """
    request = Request(**asked)
    if not request.paths and sys.stdin.isatty():
        raise click.UsageError("name a file or folder, or pipe a log in")
    from logdoc.cli.explanation import explained

    sys.exit(explained(request))
