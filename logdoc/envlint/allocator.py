"""Judges PYTORCH_CUDA_ALLOC_CONF, whose value holds options of its own: `key:value,key:[16:1,32:2]`."""

from __future__ import annotations

import re

from logdoc.catalog.environment import AllocatorKey, allocator_keys
from logdoc.catalog.versions import release
from logdoc.envlint.finding import Finding, command, nearest, quoted, wording
from logdoc.envlint.grammar import in_range
from logdoc.envlint.versions import is_before, is_beyond
from logdoc.kept.patterns import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from packaging.version import Version

_OPTION = lazily(r"([^,:\[\]]*+)(?::\s*+(\[[^\]]*+\]|[^,\[\]]*+)\s*+)?+(?:,|$)")
_ALIKE = 0.75  # from this likeness on, an unknown option is a misspelt one


def judge_allocator_options(name: str, value: str, torch: str | None) -> list[Finding]:
    """Every option PyTorch would refuse; it raises at the first use of the GPU, so all of them break the job."""
    installed = release(torch) if torch else None
    found = []
    for key, setting in _options(value):
        finding = _judge(name, key, setting, installed)
        if finding is not None:
            found.append(finding)
    return found


def _options(value: str) -> list[tuple[str, str | None]]:
    options = ((found[1].strip(), found[2]) for found in _OPTION.finditer(value))
    return [(key, None if setting is None else setting.strip()) for key, setting in options if key or setting]


def _judge(name: str, key: str, setting: str | None, installed: Version | None) -> Finding | None:
    if "=" in key:
        fixed = f"{name}={key.replace('=', ':', 1)}"
        return Finding(name, "breaks", wording("allocator-equals", key=quoted(key)), command(fixed))
    option = allocator_keys().get(key)
    if option is None:
        return _unknown(name, key, setting)
    slots = {"key": key, "version": str(installed), "since": option.since, "until": option.until}
    unset = command(f"unset {name}")
    if installed is not None and is_before(installed, option.since, "torch"):
        return Finding(name, "breaks", wording("allocator-key-too-new", **slots), unset)
    if installed is not None and option.until and is_beyond(installed, option.until):
        return Finding(name, "breaks", wording("allocator-key-removed", **slots), unset)
    if setting is not None and not _allowed(option, setting):
        problem = wording("allocator-value", value=quoted(setting), key=key, values=option.values)
        return Finding(name, "breaks", problem, unset)
    return None


def _unknown(name: str, key: str, setting: str | None) -> Finding:
    meant = nearest(key, list(allocator_keys()), likeness=_ALIKE)
    if meant is None:
        return Finding(name, "breaks", wording("allocator-key", key=quoted(key)), command(f"unset {name}"))
    problem = wording("allocator-key-misspelt", key=quoted(key), name=meant)
    return Finding(name, "breaks", problem, command(f"{name}={meant}:{setting or ''}"))


def _allowed(option: AllocatorKey, setting: str) -> bool:
    alternatives = option.values.split("|")
    if not option.values or setting in alternatives:
        return True
    number = re.fullmatch(r"\d+(\.\d+)?", setting)
    return (
        number is not None and any(one[0].isdigit() for one in alternatives) and in_range(float(setting), option.values)
    )
