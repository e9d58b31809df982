"""YAML as rule and data files have it: no duplicate keys, `on`/`yes` stay words, and a position for every fault."""

from __future__ import annotations

import re
from typing import Any

import yaml

from logdoc.types.errors import RuleProblem, RulesError

MOST_VALUES = 100_000

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]
    """YAML 1.2's booleans only (editors check against 1.2), and no key twice."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
    ]
    for first, resolvers in _BASE.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


def _mapping(loader: Any, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, dict | list):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands here twice", key_node.start_mark
            )
        seen.add(key)
    return {
        loader.construct_object(key, deep=True): loader.construct_object(value, deep=True) for key, value in node.value
    }


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def parse_yaml(text: str, path: str) -> Any:
    """The value of a YAML text. Raises RulesError with file:line:col where it is broken."""
    try:
        value = yaml.load(text, Loader=_Loader)
        if not _is_bounded(value):
            raise ValueError(f"with its aliases written out it holds more than {MOST_VALUES} values")
        return value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise RulesError([RuleProblem(path, line, column, f"not YAML: {error.problem or error.context}")]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RulesError([RuleProblem(path, 1, 1, f"not YAML: {str(error).splitlines()[0]}")]) from None


def _is_bounded(value: Any) -> bool:
    """Whether whoever walks the value comes to an end: an alias may stand for itself, or for a billion words."""
    pending, seen = [value], 0
    while pending and seen <= MOST_VALUES:
        seen += 1
        node = pending.pop()
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return not pending


def locate(text: str, where: tuple[str | int, ...]) -> tuple[int, int]:
    """Line and column (from 1) of the node that a path of keys and indices leads to, or of its nearest ancestor."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError):
        return 1, 1
    line, column = 1, 1
    for step in where:
        following = _child(node, step)
        if following is None:
            break
        mark, node = following
        line, column = mark.line + 1, mark.column + 1
    return line, column


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark of the key (or item) and the node behind one step of a path."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None
