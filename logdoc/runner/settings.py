"""Which variables help to explain a failure and are nowhere set yet, and the files that came of them.

The variables are data/runner_settings.tsv, where PyTorch puts flight-recorder dumps is data/runner_dumps.tsv.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from logdoc.catalog.environment import env_variable, env_variables
from logdoc.kept.data import rows

LARGEST_FILE = 1 << 20  # bytes of an nccl.conf that are read


def helpful_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What to add for a job whose versions nobody knows yet.

    Left out: a name that some version does not read (any more), and one that is set already, under whichever of its
    names, or in one of NCCL's own files, over which the environment would win.
    """
    in_files = set(_names_in_files(environment))
    added = {}
    for row in rows("runner_settings.tsv"):
        names = _names_of(row["name"])
        if names and not any(name in environment or name in in_files for name in names):
            added[row["name"]] = row["value"]
    return added


def _names_of(name: str) -> set[str]:
    """A variable's own name and the older or newer ones; empty if it is not known to be read by every version."""
    variable = env_variable(name)
    if variable is None or variable.name != name or variable.until or variable.status in ("removed", "never-existed"):
        return set()
    older = {other.name for other in env_variables().values() if other.renamed_to == name}
    return {name, *older, *([variable.renamed_to] if variable.renamed_to else [])}


def _names_in_files(environment: Mapping[str, str]) -> Iterator[str]:
    """The variables that NCCL reads from NCCL_CONF_FILE or ~/.nccl.conf, and from /etc/nccl.conf."""
    own = environment.get("NCCL_CONF_FILE") or str(Path(environment.get("HOME", "/")) / ".nccl.conf")
    for path in (own, "/etc/nccl.conf"):
        try:
            with open(path, "rb") as file:
                text = file.read(LARGEST_FILE).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        yield from (line.partition("=")[0].strip() for line in text.splitlines() if "=" in line and line[0] != "#")


def fresh_dumps(environment: Mapping[str, str], since: float) -> list[str]:
    """The flight-recorder dumps written after `since` (seconds since 1970) where the environment puts them."""
    found: dict[str, None] = {}
    for row in rows("runner_dumps.tsv"):
        try:
            prefix = Path(Template(row["prefix"]).substitute(environment))
            names = [path for path in prefix.parent.iterdir() if _is_rank(path.name, prefix.name)]
            found.update((str(path), None) for path in names if path.stat().st_mtime >= since)
        except (KeyError, OSError):  # a variable that is not set, no such folder
            continue
    return sorted(found)


def _is_rank(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :].isdecimal()
