"""The rules: where they lie, how they are read and checked, and which literals find them in a log."""

from logdoc.rulebase.index import LiteralIndex, build_index
from logdoc.rulebase.load import RuleSet, load_rules
from logdoc.rulebase.packs import rule_roots

__all__ = ["LiteralIndex", "RuleSet", "build_index", "load_rules", "rule_roots"]
