"""`logdoc env`: the NCCL and PyTorch variables of this environment or of a job script, checked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from logdoc import envlint
from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, counted, echo, language_option, said_plainly
from logdoc.cli.completing import files
from logdoc.render import parts
from logdoc.reporting.wording import phrase
from logdoc.types.errors import InputError
from logdoc.types.report import EnvironmentProblem

LONGEST_SCRIPT = 4 << 20  # bytes; a job script is no larger


@click.command(
    epilog="""\b
Examples:
  logdoc env                       the variables of this shell
  logdoc env train.sbatch pod.yaml the ones that job scripts set
  logdoc env -- NCCL_ALGO=simple torchrun train.py""",
)
@click.argument("scripts", nargs=-1, metavar="[SCRIPT]... [-- CMD]", shell_complete=files)
@language_option
@said_plainly
def env(scripts: tuple[str, ...], language: str) -> None:
    """Check NCCL_*, TORCH_*, CUDA_* and related variables: unknown, misspelt, renamed, out of range, dangerous.

    Exit code 1 if something breaks the job or does nothing.
    """
    seen = _settings(scripts)
    problems = envlint.lint(seen, language=language)
    for problem in problems:
        echo(_line(problem, language))
    if not problems:
        echo(
            phrase("env.well", language, variables=counted("variable", len(seen), language))
            if seen
            else phrase("env.none", language)
        )
    fails = any(problem.severity in ("breaks", "ineffective") for problem in problems)
    sys.exit(EXIT_FAILURE_FOUND if fails else EXIT_HEALTHY)


def _settings(scripts: tuple[str, ...]) -> dict[str, str | None]:
    if not scripts:
        return dict(os.environ)
    existing = [Path(name) for name in scripts if Path(name).is_file()]
    if len(existing) < len(scripts) and "=" not in " ".join(scripts):
        missing = next(name for name in scripts if not Path(name).is_file())
        raise InputError(f"{missing}: no such file")
    text = "\n".join([*map(_read, existing), " ".join(scripts)])
    return {name: value for name, (value, _) in envlint.read_job_script(text).items()}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as script:
            return script.read(LONGEST_SCRIPT).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _line(problem: EnvironmentProblem, language: str) -> str:
    grave = phrase(f"severity.{problem.severity}", language)
    return phrase("text.labelled", language, label=grave, text=parts.problem_line(problem, language))
