"""`logdoc decode`: what a number or name in a log means, from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from logdoc import catalog
from logdoc.cli.common import language_option, said_plainly
from logdoc.types.errors import InputError

_NUMBER = re.compile(r"-?\d{1,18}")


def _number(look_up: Callable[[int], Any]) -> Callable[[str], Any]:
    """A table that is asked by number only; other words are in none of its rows."""
    return lambda code: look_up(int(code)) if _NUMBER.fullmatch(code) else None


def _number_or_name(look_up: Callable[[int | str], Any]) -> Callable[[str], Any]:
    return lambda code: look_up(int(code) if _NUMBER.fullmatch(code) else code)


# kind → how to ask its table; the answer has a `meaning`, and further fields that are shown as they are
_TABLES: dict[str, Callable[[str], Any]] = {
    "cuda": _number_or_name(catalog.cuda_error),
    "nccl": _number(catalog.nccl_result),
    "library": catalog.library_status,
    "xid": _number(catalog.xid),
    "ib": _number(catalog.ib_completion),
    "errno": _number_or_name(catalog.linux_errno),
    "exit": catalog.exit_status,
    "slurm": catalog.slurm_state,
    "k8s": catalog.kubernetes_reason,
}
_SHOWN = ("code", "number", "name", "mnemonic", "signal", "text", "library", "fault", "role", "action", "class_")


@click.command(
    epilog="""\b
Examples:
  logdoc decode xid 79
  logdoc decode exit 137 --lang zh
  logdoc decode cuda cudaErrorIllegalAddress""",
)
@click.argument("kind", type=click.Choice(list(_TABLES)))
@click.argument("code")
@language_option
@said_plainly
def decode(kind: str, code: str, language: str) -> None:
    """Say what a code means: CUDA, NCCL, cuBLAS, Xid, InfiniBand, errno, exit codes, Slurm, Kubernetes."""
    row = _TABLES[kind](code)
    if row is None:
        raise InputError(f"{kind} {code}: not in the table")
    fields = {name.rstrip("_"): getattr(row, name, None) for name in _SHOWN}
    click.echo("  ".join(f"{name}={value}" for name, value in fields.items() if value not in (None, "", ())))
    click.echo(row.meaning.in_language(language))
