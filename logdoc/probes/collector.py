"""Joins the parts of the collector into one self-contained script, for `logdoc probe` and `logdoc probe --script`."""

from __future__ import annotations

import ast
from importlib import resources

# In the order of their imports: each part may use those before it.
PARTS = (
    "machine",
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

HEADER = '''#!/usr/bin/env python3
"""logdoc's collector: prints facts about this machine as one line of JSON (logdoc.facts/v1).

Reads only, needs no root, changes nothing, sends nothing. Python 3.8 or newer, standard library only. By hand:
    python3 collector.py > facts.json             # on one machine
    srun python3 collector.py > facts.jsonl       # a line for each node
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
    sources = [resources.files(PACKAGE).joinpath(f"{part}.py").read_text(encoding="utf-8") for part in PARTS]
    return "\n".join([HEADER, *(part_body(source) for source in sources), FOOTER])


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
