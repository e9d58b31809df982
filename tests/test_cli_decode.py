"""Codes are decoded from the tables, in both languages; what is in no table is said so."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from logdoc.cli.commands import commands as main


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("xid", "79", "drain-node"), ("cuda", "700", "cudaErrorIllegalAddress"), ("cuda", "cudaErrorIllegalAddress", "code=700"),
        ("nccl", "2", "ncclSystemError"), ("ib", "12", "IBV_WC_RETRY_EXC_ERR"), ("errno", "110", "ETIMEDOUT"),
        ("errno", "ETIMEDOUT", "number=110"), ("exit", "137", "SIGKILL"), ("exit", "-9", "SIGKILL"),
        ("slurm", "OUT_OF_MEMORY", "limit"), ("k8s", "OOMKilled", "limit"), ("library", "CUBLAS_STATUS_ALLOC_FAILED", "cublas"),
    ],
)  # fmt: skip
def test_codes(kind: str, code: str, said: str) -> None:
    result = CliRunner().invoke(main, ["decode", kind, "--lang", "en", "--", code])
    assert result.exit_code == 0
    assert said in result.stdout
    assert CliRunner().invoke(main, ["decode", kind, "--lang", "zh", "--", code]).stdout != result.stdout


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("exit", "-9", "SIGKILL"), ("exit", "-11", "SIGSEGV"), ("exit", "SIGSEGV", "code=-11"), ("exit", "kill", "code=-9"),
        ("exit", "0:9", "SIGKILL"), ("slurm", "0:9", "SIGKILL"), ("slurm", "1:0", "code=1"), ("k8s", "oomkilled", "name=OOMKilled"),
        ("nccl", "ncclsystemerror", "code=2"), ("ib", "IBV_WC_RETRY_EXC_ERR", "code=12"),
    ],
)  # fmt: skip
def test_codes_as_the_tools_write_them(kind: str, code: str, said: str) -> None:
    result = CliRunner().invoke(main, ["decode", kind, code, "--lang", "en"])
    assert (result.exit_code, said in result.stdout) == (0, True), result.output


@pytest.mark.parametrize(
    ("kind", "code", "near"),
    [
        ("k8s", "OOMKiled", "OOMKilled"), ("exit", "SIGKIL", "SIGKILL, "), ("errno", "ECONREFUSED", "ECONNREFUSED, "),
        ("slurm", "OUT_OF_MEM", "OUT_OF_MEMORY, "), ("cuda", "cudaErrorIlegalAddress", "cudaErrorIllegalAddress"),
        ("xid", "9999", "172, 171"), ("nccl", "99", "8, 7"), ("library", "ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED, "),
    ],
)  # fmt: skip
def test_an_unknown_code_names_near_ones(kind: str, code: str, near: str) -> None:
    result = CliRunner().invoke(main, ["decode", kind, code])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"logdoc: {kind} {code}: not in the table; near it: {near}")


@pytest.mark.parametrize(("kind", "code"), [("xid", "9999"), ("xid", "many"), ("k8s", "Nonsense"), ("exit", "x")])
def test_unknown_codes(kind: str, code: str) -> None:
    result = CliRunner().invoke(main, ["decode", kind, code])
    assert result.exit_code == 2
    assert "not in the table" in result.stderr
