"""`logdoc run`: start a job, pass its output on untouched, and explain it when it fails."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from contextlib import suppress
from typing import Any

import click

from logdoc.cli.common import language_option, rules_option, said_plainly
from logdoc.cli.completing import files
from logdoc.runner.child import StartError
from logdoc.runner.phrases import stall_text
from logdoc.runner.pump import write_all
from logdoc.runner.run import Plan, run
from logdoc.runner.stall import Stall
from logdoc.runner.verdict import Question, rank_hints
from logdoc.types.errors import InputError
from logdoc.types.quantity import duration_in_seconds, size_in_bytes
from logdoc.types.report import Report
from logdoc.types.value import asdict, dataclass

MOST_WIDTH = 120
OUTPUT_NAME = "<output>"


def size_option(context: click.Context, option: click.Parameter, value: str) -> int:
    """`64MiB`, `1G`; bytes without a unit."""
    size = size_in_bytes(value)
    if size is None or size < 1:
        raise click.BadParameter(f"{value!r} is no size; say 64MiB or 1GiB")
    return int(size)


def duration_option(context: click.Context, option: click.Parameter, value: str) -> float | None:
    """`10m`, `90s`; seconds without a unit; 0 or `off` is None."""
    seconds = 0.0 if value == "off" else duration_in_seconds(value)
    if seconds is None or seconds < 0:
        raise click.BadParameter(f"{value!r} is no duration; say 10m, 90s or off")
    return seconds or None


def format_option(context: click.Context, option: click.Parameter, value: str) -> str:
    """A name of logdoc.render.FORMATS, which is asked only for what is not the default: the command starts sooner."""
    if value == "text":
        return value
    from logdoc.render import format_of

    try:
        return format_of(value).name
    except InputError as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  logdoc run -- torchrun --nproc-per-node 8 train.py
  torchrun --nproc-per-node 8 --no-python logdoc run -- python train.py
  logdoc run --termination /dev/termination-log --stall 30m -- python train.py""",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...", shell_complete=files)
@click.option(
    "--keep", default="64MiB", show_default=True, callback=size_option, help="How much of the output's end to keep."
)
@click.option(
    "--log",
    "log_file",
    metavar="FILE",
    shell_complete=files,
    help="Append all output to FILE; %r rank, %h host, %p process id.",
)
@click.option(
    "--stall", default="10m", show_default=True, callback=duration_option, help="Silence worth a word, or off."
)
@click.option("--no-env", is_flag=True, help="Set no helpful variables for the command.")
@click.option("--sample-memory", is_flag=True, help="Note the highest GPU memory use while it runs (nvidia-smi).")
@click.option("--always", is_flag=True, help="Look for failures also when it exits with 0.")
@click.option("--format", "form", default="text", callback=format_option, help="What the report looks like.")
@click.option("--redact/--no-redact", "redacted", default=None, help="Hide secrets and names, as explain does.")
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    shell_complete=files,
    help="Where the report goes [default: stderr]; % as --log.",
)
@click.option(
    "--termination", metavar="FILE", shell_complete=files, help="Also write a Kubernetes termination message there."
)
@click.option(
    "--also",
    multiple=True,
    metavar="PATH",
    shell_complete=files,
    help="Further logs to explain with it, such as --log-dir's.",
)
@click.option("--no-probes", is_flag=True, help="Look at nothing on this machine.")
@click.option(
    "--python",
    metavar="EXE",
    shell_complete=files,
    help="The job's Python, for probes [default: the active environment's].",
)
@click.option("--long", is_flag=True, help="The whole report in text.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the report.")
@language_option
@rules_option
@said_plainly
def run_command(
    command: tuple[str, ...],
    form: str,
    redacted: bool | None,
    report_file: str | None,
    termination: str | None,
    long: bool,
    **options: Any,
) -> None:
    """Run a command with its output untouched; when it fails, say what broke first.

    Exits as the command does (128 + N for signal N; 127 not found, 126 not executable). Terminal, signals and stdin
    are passed on. The report comes on stderr after a failure. A command that falls silent is told of, never killed.
    """
    if redacted and form == "jsonl":
        raise click.UsageError("--redact hides nothing in the events of --format jsonl; leave one out")
    plan = _plan(command, options)
    language = plan.question.language
    surface = _Surface(form, redacted, long, _placed(report_file), _placed(termination))
    try:
        ending = run(plan, to_stderr, lambda stall: surface.stall(stall, language), surface.show)
    except StartError as error:
        to_stderr(f"logdoc: {error}\n")
        surface.terminate(f"logdoc: {error}\n")
        sys.exit(error.code)
    sys.exit(ending.code)


def _plan(command: tuple[str, ...], options: dict[str, Any]) -> Plan:
    log_file = _placed(options["log_file"])
    question = Question(
        language=options["language"],
        name=log_file or OUTPUT_NAME,
        hints=rank_hints(os.environ),
        rule_dirs=options["rule_dirs"],
        also=options["also"],
        probes=not options["no_probes"],
        python=options["python"],
    )
    return Plan(
        command=command,
        question=question,
        keep_bytes=options["keep"],
        log_file=log_file,
        stall_seconds=options["stall"],
        settings=not options["no_env"],
        sample_memory=options["sample_memory"],
        always=options["always"],
        quiet=options["quiet"],
    )


def _placed(path: str | None) -> str | None:
    """A path with %r, %h and %p filled in, for one logdoc a rank."""
    if path is None:
        return None
    filled = {
        "r": os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")),
        "h": socket.gethostname(),
        "p": str(os.getpid()),
        "%": "%",
    }
    return re.sub("%([rhp%])", lambda found: filled[found[1]], path)


@dataclass(slots=True)
class _Surface:
    """Where the report goes and what it looks like. A file that cannot be written is told of; stderr stands in."""

    form: str
    redacted: bool | None
    long: bool
    report_file: str | None
    termination: str | None
    _begun: bool = False

    def show(self, report: Report) -> None:
        """The report, the headline beside a report in a file, and the termination message."""
        if self.termination is not None:
            from logdoc.render import rendered

            self.terminate(rendered(report, "termination", self.redacted))
        self._give(self._rendered(report))
        if self.report_file is not None:
            to_stderr(f"logdoc: {report.headline} ({self.report_file})\n")

    def terminate(self, text: str) -> None:
        """Write a Kubernetes termination message, if one was asked for."""
        if self.termination is not None:
            _write(self.termination, "w", text)

    def stall(self, stall: Stall, language: str) -> str:
        """What is to be said of a silent command; with jsonl, an event that goes where the report will."""
        if self.form != "jsonl":
            return stall_text(stall, language)
        from logdoc.render.jsonl import event

        self._give(event("stall", **asdict(stall)))
        return ""

    def _give(self, text: str) -> None:
        if self.report_file is None or not _write(self.report_file, "a" if self._begun else "w", text):
            to_stderr(text)
        self._begun = True

    def _rendered(self, report: Report) -> str:
        from logdoc.render import rendered, shown
        from logdoc.render.text import TextOptions, render_text

        if self.form != "text":
            return rendered(report, self.form, self.redacted)
        width = min(shutil.get_terminal_size((100, 24)).columns, MOST_WIDTH)
        color = self.report_file is None and _stderr_wants_color()
        shape = TextOptions(width=width, long=self.long, color=color)
        return render_text(shown(report, self.form, self.redacted), shape)


def _stderr_wants_color() -> bool:
    if "NO_COLOR" in os.environ:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or os.isatty(2)


def _write(path: str, mode: str, text: str) -> bool:
    """Whether the file took it; if not, that is said."""
    try:
        with open(path, mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        to_stderr(f"logdoc: {path}: {error.strerror}\n")
        return False
    return True


def to_stderr(text: str) -> None:
    """Straight to the descriptor, in one piece, beside what the command says; a reader that is gone is no fault."""
    with suppress(OSError):
        write_all(2, text.encode("utf-8", "replace"))
