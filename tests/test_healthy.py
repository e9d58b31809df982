"""Healthy logs lead to nothing: real runs and lines of frameworks, machines and tools that look alarming and are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.sources import discover

LOGS = sorted((Path(__file__).parent / "data" / "healthy").glob("*.log"))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_healthy_log_leads_to_nothing(log: Path, engine: Engine) -> None:
    report = engine.explain(discover([str(log)]).sources)
    assert ([one.rule for one in report.diagnoses], report.first_abnormal, report.outcome) == ([], None, "healthy")


def test_the_corpus_is_large_and_varied() -> None:
    lines = [line for log in LOGS for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(LOGS) >= 30
    assert len(set(lines)) >= 2000


@pytest.mark.parametrize(
    "last",
    [
        "acme.WidgetError: the widget is gone",
        "worker 3: SprocketException: tooth 14 is missing",
        "Segmentation fault",
        "python: double free or corruption (out)",
        "fatal: the gearbox broke",
        "error: cannot find the flange",
        "gpu-a03:20110:20450 [0] enqueue.cc:99 NCCL WARN a message of a later release",
        "make[2]: *** [Makefile:40: kernels.o] Error 1",
        "ninja: build stopped: subcommand failed.",
        "The command '/bin/sh -c make install' returned a non-zero code: 2",
        "=================== 2 failed, 31 passed in 9.41s ===================",
        "tests/test_widget.py:31: AssertionError",
        "Warning  BackoffLimitExceeded  2m  job-controller  Job has reached the specified backoff limit",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python3:811]",
        "Detected KeyboardInterrupt, attempting graceful shutdown ...",
        "EI0006: Getting socket times out. Reason: no data came.",
        "训练失败：卷不可写",
        "错误: 打不开配置",
        "train_widget.py exited with status 3",
        "2025-02-03 04:05:06,007 sagemaker-training-toolkit ERROR    Reporting training FAILURE",
        "ERROR conda.cli.main_run:execute(125): `conda run python train_widget.py` failed. (See above for error)",
        "Training aborted: the widget is gone",
        "##[error]Process completed with exit code 3.",
        "ResolvePackageNotFound: ",
        "disk quota exceeded while writing the widget",
        "CANCELLED by the operator",
        "User defined signal 1",
        "thread 'main' panicked at src/widget.rs:7:13:",
        "Lost connection to node gpu-a03",
    ],
)
def test_an_unknown_failure_after_healthy_lines_is_still_seen(last: str, engine: Engine) -> None:
    healthy = (LOGS[0].parent / "nccl_2_18_sockets.log").read_text(encoding="utf-8")
    report = engine.explain_text(healthy + last + "\n")
    assert report.outcome != "healthy"
