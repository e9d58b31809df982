"""What many tests share: the built-in rules and an engine over them, made once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from tests.clikit import CRASH


@pytest.fixture(scope="session", autouse=True)
def _hangups_as_usual() -> None:
    """Under nohup every child would inherit an ignored SIGHUP, and no test of it could pass."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def rule_set() -> RuleSet:
    return load_rules(rule_roots()[:1])


@pytest.fixture(scope="session")
def engine(rule_set: RuleSet) -> Engine:
    return Engine(rule_set)


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    """The log of a rank that raised an exception."""
    path = tmp_path / "crash.log"
    path.write_text(CRASH)
    return path
