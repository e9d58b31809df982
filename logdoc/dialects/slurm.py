"""Slurm: srun's `--label` prefix and the lines of srun, slurmstepd and sbatch themselves."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

# Lines of Slurm's own programs: they keep their name, and never continue what another program said.
SLURM_PROGRAM = Dialect(
    "slurm-program",
    frozenset("s"),
    (lazily(r"(?:srun|sbatch|slurmstepd(?:-[\w.-]+)?): (?=\S)"),),
    keeps_prefix=True,
)

SLURM = Dialect(
    "slurm",
    frozenset(" 0123456789"),
    # srun -l pads the task number to equal width: ` 3: message`, `13: message`; frames of stacks are indented,
    # and so are the fields of torchrun's report and exception groups
    (
        lazily(
            r" {0,5}(?P<task>\d{1,5}): (?=\S|$| {2}File \"| {4,8}\S"
            r"| {2}(?:time|host|rank|exitcode|error_file|traceback|msg) {0,6}: | {2}(?:[A-Z<]\w|[|+] ))"
        ),
    ),
    outer=True,
)
