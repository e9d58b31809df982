"""Judges PYTORCH_CUDA_ALLOC_CONF, whose value holds options of its own: `key:value,key:[16:1,32:2]`."""

from __future__ import annotations

import re

from logdoc.catalog import AllocatorKey, allocator_keys, release
from logdoc.envlint.finding import Finding, command, quoted, wording
from logdoc.envlint.grammar import in_range
from logdoc.kept.patterns import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from packaging.version import Version

_OPTION = lazily(r"\s*([^,:\[\]]*)(?::\s*(\[[^\]]*\]|[^,\[\]]*))?\s*(?:,|$)")
_NEAR = 0.75


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
    from packaging.version import Version

    if "=" in key:
        fixed = f"{name}={key.replace('=', ':', 1)}"
        return Finding(name, "breaks", wording("allocator-equals", key=quoted(key)), command(fixed))
    option = allocator_keys().get(key)
    if option is None:
        return _unknown(name, key, setting)
    slots = {"key": key, "version": str(installed), "since": option.since, "until": option.until}
    unset = command(f"unset {name}")
    if installed is not None and _before(installed, option.since):
        return Finding(name, "breaks", wording("allocator-key-too-new", **slots), unset)
    if installed is not None and option.until and _minor(installed) > _minor(Version(option.until)):
        return Finding(name, "breaks", wording("allocator-key-removed", **slots), unset)
    if setting is not None and not _allowed(option, setting):
        problem = wording("allocator-value", value=quoted(setting), key=key, values=option.values)
        return Finding(name, "breaks", problem, unset)
    return None


def _unknown(name: str, key: str, setting: str | None) -> Finding:
    from rapidfuzz import process  # here: few names are misspelt
    from rapidfuzz.distance import OSA

    best = process.extractOne(key, list(allocator_keys()), scorer=OSA.normalized_similarity, score_cutoff=_NEAR)
    if best is None:
        return Finding(name, "breaks", wording("allocator-key", key=quoted(key)), command(f"unset {name}"))
    meant = str(best[0])
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


def _minor(version: Version) -> tuple[int, int]:
    return version.major, version.minor


def _before(installed: Version, since: str) -> bool:
    """`since` was read off inspected wheels and may be one minor release late, so allow for one."""
    from packaging.version import Version

    first = Version(since)
    return (installed.major, installed.minor + 1) < (first.major, first.minor)
