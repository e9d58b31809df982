"""A rule set and its literals as lines of JSON, and back: what `load_rules` and `build_index` would make, without their
work. A rule becomes a Rule only when somebody looks at it."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from logdoc.rulebase.index import Entry, LiteralIndex
from logdoc.rulebase.rule_set import RuleSet
from logdoc.types import rule as rule_types
from logdoc.types.rule import Rule

_CLASS = "~"  # the key that makes a mapping a dataclass of logdoc.types.rule; no rule file uses it as a word


class CompiledRules(Mapping[str, Rule]):
    """Rules by id, each read from its line of JSON when it is first asked for."""

    def __init__(self, lines: Mapping[str, bytes], roots: list[str]) -> None:
        self._lines = lines
        self._roots = roots
        self._read: dict[str, Rule] = {}

    def __getitem__(self, rule_id: str) -> Rule:
        rule = self._read.get(rule_id)
        if rule is None:
            root, plain = json.loads(self._lines[rule_id])
            plain["path"] = self._roots[root] + plain["path"]
            rule = self._read[rule_id] = from_plain(plain)
        return rule

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def written(rule_set: RuleSet, roots: list[str]) -> bytes:
    """An indexed set as bytes: a line of what all runs need, then a line for each rule."""
    index = rule_set.index
    assert index is not None
    entries = list(dict.fromkeys(entry for row in (*index.exact_entries, *index.caseless_entries) for entry in row))
    number = {entry: position for position, entry in enumerate(entries)}
    head = {
        "digest": rule_set.digest,
        "overridden": rule_set.overridden,
        "ids": list(rule_set.rules),
        "entries": [[entry.rule_id, entry.name, entry.is_evidence] for entry in entries],
        "exact": [text.decode() for text in index.exact],
        "exact_entries": [[number[entry] for entry in row] for row in index.exact_entries],
        "caseless": [text.decode() for text in index.caseless],
        "caseless_entries": [[number[entry] for entry in row] for row in index.caseless_entries],
    }
    lines = [_line(head), *(_line(_placed(rule, roots)) for rule in rule_set.rules.values())]
    return b"\n".join(lines)


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _placed(rule: Rule, roots: list[str]) -> tuple[int, Any]:
    """The rule with its path relative to the root it came from: the last one that holds it."""
    root = max(number for number, root in enumerate(roots) if rule.path.startswith(root))
    return root, {**to_plain(rule), "path": rule.path.removeprefix(roots[root])}


def read_back(content: bytes, roots: list[str], others: Iterable[Rule]) -> RuleSet:
    """The set that `written` was given, with its index; `others` are the pseudo rules that share the index."""
    first, *lines = content.split(b"\n")
    head = json.loads(first)
    rules = CompiledRules(dict(zip(head["ids"], lines, strict=True)), roots)
    index = _read_index(head, ChainMap({rule.id: rule for rule in others}, rules))  # type: ignore[arg-type]
    return RuleSet(rules, head["digest"], tuple(head["overridden"]), index)


def _read_index(head: Any, rules: Mapping[str, Rule]) -> LiteralIndex:
    """The literal index of the head line, over rules that need not be read yet."""
    entries = [Entry(rules, rule_id, name, is_evidence) for rule_id, name, is_evidence in head["entries"]]
    return LiteralIndex(
        tuple(text.encode() for text in head["exact"]),
        tuple(tuple([entries[number] for number in row]) for row in head["exact_entries"]),
        tuple(text.encode() for text in head["caseless"]),
        tuple(tuple([entries[number] for number in row]) for row in head["caseless_entries"]),
    )


def to_plain(value: Any) -> Any:
    """A value of logdoc.types.rule as JSON can hold it. Raises ValueError where it could not be told from a class."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value) if not _is_default(field, value)}
        return {_CLASS: type(value).__name__, **{name: to_plain(item) for name, item in named.items()}}
    if isinstance(value, dict):
        if _CLASS in value:
            raise ValueError(f"{_CLASS!r} is no key")
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def _is_default(field: Any, value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    found = getattr(value, field.name)
    return type(found) is type(default) and bool(found == default)


def from_plain(plain: Any) -> Any:
    """What `to_plain` was given: mappings with a class name become that class, lists tuples."""
    if isinstance(plain, dict):
        values = {key: from_plain(item) for key, item in plain.items() if key != _CLASS}
        return _classes()[plain[_CLASS]](**values) if _CLASS in plain else values
    if isinstance(plain, list):
        return tuple([from_plain(item) for item in plain])
    return plain


@cache
def _classes() -> dict[str, Any]:
    return {name: value for name, value in vars(rule_types).items() if is_dataclass(value)}
