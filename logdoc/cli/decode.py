"""`logdoc decode`: what a number or name in a log means, from the tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import click

from logdoc.catalog import gpu, host
from logdoc.cli.common import language_option, said_plainly
from logdoc.kept.data import rows
from logdoc.types.errors import InputError

MOST_NEAR = 3
_NUMBER = re.compile(r"-?\d{1,18}")


def _number(look_up: Callable[[int], Any], file: str, column: str) -> Callable[[str], Any]:
    """A table that is asked by number only; a name stands for the number in its row."""

    def asked(code: str) -> Any:
        if _NUMBER.fullmatch(code):
            return look_up(int(code))
        named = (row["code"] for row in rows(file) if row[column].casefold() == code.casefold())
        number = next(named, None)
        return None if number is None else look_up(int(number))

    return asked


def _number_or_name(look_up: Callable[[int | str], Any]) -> Callable[[str], Any]:
    return lambda code: look_up(int(code) if _NUMBER.fullmatch(code) else code)


def _slurm(code: str) -> Any:
    """A state or reason, or the `exit:signal` pair that sacct gives as ExitCode."""
    return host.slurm_state(code) or (host.exit_status(code) if ":" in code else None)


# kind → how to ask its table; the answer has a `meaning`, and further fields that are shown as they are
_TABLES: dict[str, Callable[[str], Any]] = {
    "cuda": _number_or_name(gpu.cuda_error),
    "nccl": _number(gpu.nccl_result, "nccl_results.tsv", "name"),
    "library": gpu.library_status,
    "xid": _number(gpu.xid, "xid.tsv", "mnemonic"),
    "ib": _number(host.ib_completion, "ib_wc_status.tsv", "name"),
    "errno": _number_or_name(host.linux_errno),
    "exit": host.exit_status,
    "slurm": _slurm,
    "k8s": host.kubernetes_reason,
}
# kind → where its codes and names stand, for saying which are near
_KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cuda": ("cuda_errors.tsv", ("code", "name")),
    "nccl": ("nccl_results.tsv", ("code", "name")),
    "library": ("library_status.tsv", ("name",)),
    "xid": ("xid.tsv", ("code", "mnemonic")),
    "ib": ("ib_wc_status.tsv", ("code", "name")),
    "errno": ("errno.tsv", ("number", "name")),
    "exit": ("signals.tsv", ("name",)),
    "slurm": ("slurm_states.tsv", ("name",)),
    "k8s": ("k8s_reasons.tsv", ("name",)),
}
_SHOWN = ("code", "number", "name", "mnemonic", "signal", "text", "library", "fault", "role", "action", "class_")


@click.command(
    context_settings={"ignore_unknown_options": True},  # -9 is a code
    epilog="""\b
Examples:
  logdoc decode xid 79
  logdoc decode exit -9 --lang zh
  logdoc decode slurm 0:9
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
        near = ", ".join(_near(kind, code))
        raise InputError(f"{kind} {code}: not in the table" + (f"; near it: {near}" if near else ""))
    fields = {name.rstrip("_"): getattr(row, name, None) for name in _SHOWN}
    click.echo("  ".join(f"{name}={value}" for name, value in fields.items() if value not in (None, "", ())))
    click.echo(row.meaning.in_language(language))


def _near(kind: str, code: str) -> list[str]:
    """The codes of the table next to a number, or its names that look most like a word."""
    file, columns = _KEYS[kind]
    known = [row[column] for row in rows(file) for column in columns if row[column]]
    if _NUMBER.fullmatch(code):
        numbers = sorted({int(one) for one in known if _NUMBER.fullmatch(one)}, key=lambda one: abs(one - int(code)))
        return [str(one) for one in numbers[: MOST_NEAR - 1]]
    names = {one.casefold(): one for one in known}
    return [names[one] for one in get_close_matches(code.casefold(), names, MOST_NEAR)]
