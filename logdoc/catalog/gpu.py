"""What the GPU, its driver and its libraries say in codes: CUDA errors, Xids, NCCL, cuBLAS, cuDNN.

Decodes; does not judge. Sources: CUDA 13.0's error texts, NVIDIA's public Xid catalogue (2025-10), NCCL's init.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from logdoc.kept.data import rows
from logdoc.kept.sentences import meaning
from logdoc.types.rule import Text
from logdoc.types.value import dataclass

Fault = Literal["application", "hardware", "driver", "fabric"]
Action = Literal["restart-job", "reset-gpu", "drain-node", "ignore", "contact-support"]


@dataclass(frozen=True, slots=True)
class CudaError:
    """A CUDA runtime error; `fault` names the part to look at ('' where the code alone does not say)."""

    code: int
    name: str
    text: str
    aliases: tuple[str, ...]
    fault: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class Xid:
    """An Xid of the kernel log. `in_use`: current drivers emit it. None where NVIDIA's catalogue gives nothing."""

    code: int
    mnemonic: str
    in_use: bool
    fault: Fault | None
    action: Action | None
    meaning: Text


@dataclass(frozen=True, slots=True)
class NcclResult:
    """An ncclResult_t. `secondary`: says that another rank failed, so the cause is elsewhere."""

    code: int
    name: str
    text: str
    old_text: str
    since: str
    secondary: bool
    meaning: Text


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """A cuBLAS or cuDNN status. `hint`: what usually lies behind it (gpu-memory, earlier-error, gpu-arch, …)."""

    library: str
    name: str
    codes: tuple[int, ...]
    hint: str
    meaning: Text


def cuda_error(code_or_text: int | str) -> CudaError | None:
    """By number, name (`cudaErrorAssert`, `CUDA_ERROR_ASSERT`) or the text a log shows, in any case."""
    key = str(code_or_text).strip().rstrip(".").casefold()
    return _cuda_errors().get(key)


@cache
def _cuda_errors() -> Mapping[str, CudaError]:
    table: dict[str, CudaError] = {}
    for row in rows("cuda_errors.tsv"):
        aliases = tuple(filter(None, row["aliases"].split("|")))
        error = CudaError(int(row["code"]), row["name"], row["text"], aliases, row["fault"], meaning(row))
        for key in (row["code"], row["name"], row["text"], *aliases):
            # Two codes share "device kernel image is invalid": the first, common one keeps the text.
            table.setdefault(key.rstrip(".").casefold(), error)
    return table


def xid(code: int) -> Xid | None:
    """What an Xid number means."""
    return _xids().get(code)


@cache
def _xids() -> Mapping[int, Xid]:
    table = {}
    for row in rows("xid.tsv"):
        fault: Any = row["fault"] or None
        action: Any = row["action"] or None
        code = int(row["code"])
        table[code] = Xid(code, row["mnemonic"], row["in_use"] == "yes", fault, action, meaning(row))
    return table


def nccl_result(code: int) -> NcclResult | None:
    """An ncclResult_t by number, as in NCCL's `file:line -> N` back-trace."""
    return _nccl_results().get(code)


@cache
def _nccl_results() -> Mapping[int, NcclResult]:
    table = {}
    for row in rows("nccl_results.tsv"):
        code = int(row["code"])
        secondary = row["secondary"] == "yes"
        table[code] = NcclResult(code, row["name"], row["text"], row["old_text"], row["since"], secondary, meaning(row))
    return table


def library_status(name: str) -> LibraryStatus | None:
    """A cuBLAS or cuDNN status by its name, such as CUBLAS_STATUS_ALLOC_FAILED."""
    found = [row for row in rows("library_status.tsv") if row["name"] == name.strip().upper()]
    if not found:
        return None
    newest = found[-1]
    codes = tuple(int(row["code"]) for row in found)
    return LibraryStatus(newest["library"], newest["name"], codes, newest["hint"], meaning(newest))
