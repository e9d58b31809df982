"""What many tests share: the built-in rules and an engine over them, made once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from tests.clikit import CRASH


@pytest.fixture(scope="session", autouse=True)
def _signals_as_usual() -> None:
    """Under nohup, or behind a shell's `&`, every child would inherit signals that are ignored, and no test of them
    could pass."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


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
