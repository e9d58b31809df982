"""The rules: where they lie, how they are read and checked, and which literals find them in a log."""

from __future__ import annotations

import os
from collections.abc import Iterable

from logdoc.rulebase.cache import ready_rules
from logdoc.rulebase.index import LiteralIndex, build_index
from logdoc.rulebase.packs import rule_roots
from logdoc.rulebase.rule_set import RuleSet

__all__ = ["LiteralIndex", "RuleSet", "build_index", "load_rules", "ready_rules", "rule_roots"]


def load_rules(roots: Iterable[str | os.PathLike[str]]) -> RuleSet:
    """Read every rule below `roots`; a later root replaces rules of the same id. Raises RulesError with all faults."""
    from pathlib import Path

    from logdoc.rulebase.load import load_rules as read  # brings YAML and, later, pydantic

    return read(map(Path, roots))
