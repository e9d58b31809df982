"""Judges a variable's name: who reads it, and from which version to which. Looks at no value."""

from __future__ import annotations

from functools import cache

from logdoc.catalog.environment import EnvVariable, env_family, env_variable, env_variables
from logdoc.catalog.versions import release
from logdoc.envlint.finding import Finding, command, nearest, wording
from logdoc.envlint.versions import is_before, is_beyond
from logdoc.types.rule import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from packaging.version import Version

_OWNER_NAMES = {"nccl": "NCCL", "torch": "PyTorch"}
_FEW_LETTERS, _MORE_LETTERS = 1, 2  # edits that still are a slip, in a short and in a long name
_LONG_NAME, _LONGEST_NAME = 20, 100
_ALIKE = 0.84  # in a family whose names are all known, this likeness is enough (3 letters in 20)


def judge_name(name: str, versions: dict[str, str]) -> Finding | None:
    """What is wrong with setting this name at all; None if nothing is, or nobody can know."""
    entry = env_variable(name)
    if entry is None:
        return _uncatalogued(name)
    if entry.instead:
        return Finding(name, "ineffective", wording("never-existed", meaning=entry.meaning), command(entry.instead))
    installed = _installed(entry, versions)
    if entry.status == "renamed":
        return _renamed(entry, installed)
    if entry.status == "removed":
        return _removed(entry, installed)
    return _too_new(entry, installed)


def _uncatalogued(name: str) -> Finding | None:
    family = env_family(name)
    if family is None or len(name) > _LONGEST_NAME:
        return None
    other = f"TORCH_{name}" if name.startswith("NCCL_") else name.removeprefix("TORCH_")
    if other != name and (entry := env_variables().get(other)) and entry.status in ("current", "undocumented"):
        return Finding(name, "ineffective", wording("missing-prefix", variable=name, name=other), command(other))
    meant = _nearest(name, family.closed) if family.spelling else None
    if meant is not None:
        return Finding(name, "ineffective", wording("misspelt", variable=name, name=meant), command(meant))
    if family.closed:
        return Finding(name, "note", wording("unknown", variable=name), Text(en="", zh=""))
    return None


@cache
def _readable() -> tuple[str, ...]:
    """Names somebody reads: what a misspelt one can have meant."""
    return tuple(
        sorted(n for n, v in env_variables().items() if v.status in ("current", "undocumented") and n[-1] != "*")
    )


def _nearest(name: str, closed: bool) -> str | None:
    slips = _MORE_LETTERS if len(name) >= _LONG_NAME else _FEW_LETTERS
    return nearest(name, _readable(), slips=slips, likeness=_ALIKE if closed else None)


def _installed(entry: EnvVariable, versions: dict[str, str]) -> Version | None:
    known = versions.get(entry.owner)
    return release(known) if known else None


def _renamed(entry: EnvVariable, installed: Version | None) -> Finding | None:
    new = env_variables()[entry.renamed_to]
    if entry.until:
        return _gone(entry, installed, wording("renamed-gone", **_slots(entry)), new.name)
    if installed is not None and new.since and is_before(installed, new.since, new.owner):
        return None  # the new name is not there yet
    owner = _OWNER_NAMES.get(new.owner, new.owner)
    since = wording("since-version", owner=owner, number=new.since) if new.since else Text(en="", zh="")
    problem = wording("renamed", variable=entry.name, name=new.name, since=since)
    return Finding(entry.name, "deprecated", problem, command(new.name))


def _removed(entry: EnvVariable, installed: Version | None) -> Finding | None:
    return _gone(entry, installed, wording("removed", **_slots(entry)), entry.renamed_to or f"unset {entry.name}")


def _gone(entry: EnvVariable, installed: Version | None, problem: Text, fix: str) -> Finding | None:
    if installed is None:
        return Finding(entry.name, "note", problem, command(fix))
    if not is_beyond(installed, entry.until):
        return None
    return Finding(entry.name, "ineffective", problem, command(fix))


def _too_new(entry: EnvVariable, installed: Version | None) -> Finding | None:
    if installed is None or not entry.since or not is_before(installed, entry.since, entry.owner):
        return None
    problem = wording("too-new", **_slots(entry), since=entry.since, version=str(installed))
    return Finding(entry.name, "ineffective", problem, command(f"unset {entry.name}"))


def _slots(entry: EnvVariable) -> dict[str, str | Text]:
    owner = _OWNER_NAMES.get(entry.owner, entry.owner)
    return {"variable": entry.name, "name": entry.renamed_to, "owner": owner, "until": entry.until}
