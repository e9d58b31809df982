"""Joins the parts of the collector into one self-contained script, for `logdoc probe` and `logdoc probe --script`."""

from __future__ import annotations

import ast
import re
from importlib import resources

# In the order of their imports: each part may use those before it.
PARTS = (
    "commands",
    "machine",
    "pieces",
    "kernel_log",
    "gpu_reader",
    "gpu",
    "gpu_health",
    "topology",
    "torch_build",
    "libraries",
    "rdma",
    "network",
    "host",
    "surroundings",
    "main",
)
PACKAGE = "logdoc.probes.collect"
SCRIPTS = "logdoc.probes.scripts"
_PART_IMPORT = re.compile(rf"^from {re.escape(PACKAGE)}\.(\w+) import .*\n", re.MULTILINE)

HEADER = '''#!/usr/bin/env python3
"""logdoc's collector: prints facts about this machine as JSON (logdoc.facts/v1), one line.

Reads only, needs no root, changes nothing, sends nothing. Python 3.8 or newer, standard library only. By hand:
    python3 collector.py > facts.json             # on one machine
    srun -N4 --ntasks-per-node=1 python3 collector.py > facts.jsonl    # short lines, so that srun does not mix them
    kubectl exec -i POD -- python3 - < collector.py > facts.json
    ssh HOST python3 - < collector.py > facts.json
Then: logdoc explain LOG --facts facts.json
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # The folder of the script or the shell: a json.py or torch.py lying there must not stand in for the real one.
    del sys.path[0]
'''

FOOTER = """
if __name__ == "__main__":
    sys.exit(main())
"""


def script_text() -> str:
    """The whole collector as one script: the parts without their imports of each other."""
    return "\n".join([HEADER, *(part_body(_source(PACKAGE, part)) for part in PARTS), FOOTER])


def probe_script(name: str) -> str:
    """An active probe's script as one file: a part of the collector that it uses stands where it is imported."""
    return _PART_IMPORT.sub(lambda found: part_body(_source(PACKAGE, found[1])), _source(SCRIPTS, name))


def _source(package: str, name: str) -> str:
    return resources.files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")


def part_body(source: str) -> str:
    """A part without its docstring, its `__future__` import and its imports from the other parts."""
    dropped: set[int] = set()
    tree = ast.parse(source)
    for position, node in enumerate(tree.body):
        own = isinstance(node, ast.ImportFrom) and (node.module == "__future__" or str(node.module).startswith(PACKAGE))
        documentation = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if own or documentation:
            dropped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    kept = [line for number, line in enumerate(source.splitlines(), start=1) if number not in dropped]
    return "\n".join(kept).strip("\n") + "\n"
