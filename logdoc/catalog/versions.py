"""Which versions go together: drivers and CUDA, GPUs and CUDA, PyTorch and what it bundles, known bad releases.

Every row of the tables names its source; what could not be supported is left out, so None means "not known".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from logdoc.kept.data import rows
from logdoc.kept.patterns import lazily
from logdoc.kept.sentences import meaning
from logdoc.types.rule import Text
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from packaging.version import Version  # imported where it is used: it takes long, and few logs need it

_LEADING_NUMBERS = lazily(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class DriverRequirement:
    """Drivers for a CUDA version on Linux: the oldest that runs it, and the one shipped with it."""

    cuda: str
    minimum: str
    shipped: str
    source: str


@dataclass(frozen=True, slots=True)
class ArchSupport:
    """The CUDA toolkits that compile for an architecture; `last_cuda` is '' while none has dropped it."""

    sm: str
    architecture: str
    first_cuda: str
    last_cuda: str
    source: str


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU by its marketing name, and its compute capability."""

    fragment: str
    sm: str
    source: str


@dataclass(frozen=True, slots=True)
class TorchBundle:
    """What a PyTorch release ships: CUDA builds, the default one, its NCCL, and the matching libraries."""

    torch: str
    cuda: tuple[str, ...]
    default_cuda: str
    nccl: str | None
    torchvision: str
    torchaudio: str
    source: str


@dataclass(frozen=True, slots=True)
class KnownBad:
    """A release with a defect that another release cures; `where` limits it to some hardware or set-up."""

    id: str
    component: str
    versions: str
    where: str
    symptom: Text
    fix: str
    source: str


def release(version: str) -> Version | None:
    """The numbers of a version text: `2.21.5+cuda12.4`, `2.1.0a0+29c30b1` and `2.29U1` count as their release."""
    from packaging.version import InvalidVersion, Version

    found = _LEADING_NUMBERS.search(version)
    try:
        return Version(found.group()) if found else None
    except InvalidVersion:
        return None


def within(version: str, ranges: str) -> bool | None:
    """Whether a version lies in a range such as `>=2.19,<2.21`; None if either cannot be read."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    number = release(version)
    try:
        return None if number is None else SpecifierSet(ranges).contains(number, prereleases=True)
    except InvalidSpecifier:
        return None


def cuda_min_driver(cuda: str) -> DriverRequirement | None:
    """What driver a CUDA version needs; a version without an update number means its first release."""
    from packaging.version import Version

    wanted = release(cuda)
    if wanted is None:
        return None
    table = {Version(row["cuda"]): row for row in rows("cuda_drivers.tsv")}
    known = [version for version in table if version.release[: len(wanted.release)] == wanted.release]
    exact = wanted if wanted in table else min(known, default=None)
    if exact is None:
        return None
    row = table[exact]
    return DriverRequirement(row["cuda"], row["minimum_linux"], row["shipped_linux"], row["source"])


def arch_support(sm: str) -> ArchSupport | None:
    """The toolkits for an architecture, written `sm_90`, `sm_90a`, `compute_90`, `9.0` or `90`."""
    found = re.search(r"(\d+)\.(\d)|(\d+)(\d)", sm)
    if found is None:
        return None
    number = f"{found[1]}.{found[2]}" if found[1] else f"{found[3]}.{found[4]}"
    return _architectures().get(number)


@cache
def _architectures() -> Mapping[str, ArchSupport]:
    names = ("sm", "architecture", "first_cuda", "last_cuda", "source")
    return {row["sm"]: ArchSupport(*(row[name] for name in names)) for row in rows("gpu_arch_cuda.tsv")}


def gpu_model(name: str) -> GpuModel | None:
    """The model a device name contains (`NVIDIA A100-SXM4-80GB` is an A100); the longest fragment wins."""
    for row, pattern in _gpu_patterns():
        if pattern.search(name):
            return GpuModel(row["fragment"], row["sm"], row["source"])
    return None


@cache
def _gpu_patterns() -> tuple[tuple[Mapping[str, str], re.Pattern[str]], ...]:
    table = sorted(rows("gpu_names.tsv"), key=lambda row: -len(row["fragment"]))
    return tuple(
        (row, re.compile(rf"(?<![A-Za-z0-9]){re.escape(row['fragment'])}(?![0-9A-Za-z])", re.I)) for row in table
    )


def torch_bundles(torch_version: str) -> TorchBundle | None:
    """What a PyTorch version ships; an unlisted patch release is None, a minor version means its newest patch."""
    from packaging.version import Version

    wanted = release(torch_version)
    if wanted is None:
        return None
    fitting = [
        bundle for bundle in _bundles() if Version(bundle.torch).release[: len(wanted.release)] == wanted.release
    ]
    return max(fitting, key=lambda bundle: Version(bundle.torch), default=None)


@cache
def _bundles() -> tuple[TorchBundle, ...]:
    return tuple(
        TorchBundle(
            torch=row["torch"],
            cuda=tuple(row["cuda"].split()),
            default_cuda=row["default_cuda"],
            nccl=row["nccl"] or None,
            torchvision=row["torchvision"],
            torchaudio=row["torchaudio"],
            source=row["source"],
        )
        for row in rows("torch_bundles.tsv")
    )


def known_bad(component: str, version: str) -> tuple[KnownBad, ...]:
    """Defects of one version of nccl or cublas; check `where` before you say that one applies."""
    return tuple(
        KnownBad(
            id=row["id"],
            component=component,
            versions=row["versions"],
            where=row["where"],
            symptom=meaning(row, "symptom"),
            fix=row["fix"],
            source=row["source"],
        )
        for row in rows("known_bad.tsv")
        if row["component"] == component and within(version, row["versions"])
    )
