"""YAML files to Rules. Every fault of every file is reported with its place; nothing is half loaded."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logdoc.kept.yaml_source import locate, parse_yaml
from logdoc.rulebase.rule_set import RuleSet
from logdoc.types import rule as rule_types
from logdoc.types.errors import RuleProblem, RulesError
from logdoc.types.rule import Rule

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["RuleSet", "load_rules"]

LARGEST_RULE = 1 << 20  # bytes; the largest of logdoc's own has a fiftieth of it

# YAML keys that Python reserves carry an underscore in the dataclasses.
_RESERVED = {"from": "from_", "not": "not_", "as": "as_", "in": "in_"}


def load_rules(roots: Iterable[Path]) -> RuleSet:
    """Read every rule below `roots`; a later root replaces rules of the same id. Raises RulesError with all faults."""
    problems: list[RuleProblem] = []
    rules: dict[str, Rule] = {}
    overridden: list[str] = []
    digest = hashlib.sha256()
    areas: set[str] = set()  # of the first root, the rules that logdoc ships
    for root in roots:
        for path in sorted(root.rglob("*.yaml")) if root.is_dir() else [root]:
            text = _read(path, problems)
            if text is None or _is_data(root, path):
                continue
            digest.update(text.encode())
            rule = _load_one(text, path, root, problems)
            if rule is not None:
                if rule.id in rules:
                    overridden.append(rule.id)
                rules[rule.id] = rule
        areas = areas or {rule.area for rule in rules.values()}
    if problems:
        raise RulesError(problems)
    _let_own_areas_explain(rules, areas)
    return RuleSet(dict(sorted(rules.items())), digest.hexdigest()[:16], tuple(overridden))


def _let_own_areas_explain(rules: dict[str, Rule], shipped: set[str]) -> None:
    """A cause of an area that a site adds (`site.lustre-full`) accounts for every symptom that has an explanation: the
    lists of the shipped symptoms cannot name it."""
    own = sorted({rule.area for rule in rules.values() if rule.kind == "cause"} - shipped)
    for rule in list(rules.values()) if own else ():
        if rule.explained_by and rule.area in shipped:
            more = tuple(f"{area}.*" for area in own)
            rules[rule.id] = dataclasses.replace(rule, explained_by=(*rule.explained_by, *more))


def _is_data(root: Path, path: Path) -> bool:
    """`rules/catalog/` holds the message tables, not rules."""
    return root.is_dir() and path.relative_to(root).parts[0] == "catalog"


def _read(path: Path, problems: list[RuleProblem]) -> str | None:
    try:
        if not path.is_file() and path.exists():
            raise OSError(0, "a folder" if path.is_dir() else "not a file")  # a device or pipe may never end
        if path.stat().st_size > LARGEST_RULE:
            raise OSError(0, "too large for a rule")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        problems.append(RuleProblem(str(path), 1, 1, f"cannot be read: {reason}"))
        return None


def _load_one(text: str, path: Path, root: Path, problems: list[RuleProblem]) -> Rule | None:
    try:
        value = parse_yaml(text, str(path))
    except RulesError as error:
        problems.extend(error.problems)
        return None
    if not isinstance(value, dict):
        problems.append(RuleProblem(str(path), 1, 1, "a rule file is a mapping of keys to values"))
        return None
    value["path"] = str(path)
    rule = _validated(_python_keys(value), text, path, problems)
    if rule is None:
        return None
    if root.is_dir():
        expected = ".".join(path.relative_to(root).with_suffix("").parts)
        if rule.id != expected:
            line, column = locate(text, ("id",))
            problems.append(
                RuleProblem(str(path), line, column, f"id {rule.id!r} does not fit the path", f"expected {expected}")
            )
    return rule


def _validated(value: dict[str, Any], text: str, path: Path, problems: list[RuleProblem]) -> Rule | None:
    from pydantic import ValidationError

    try:
        return _adapter().validate_python(value)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            where = tuple(_yaml_key(step) for step in fault["loc"])
            line, column = locate(text, where)
            name = ".".join(str(step) for step in where)
            problems.append(RuleProblem(str(path), line, column, f"{name}: {_said(fault)}", _hint(fault, where)))
        problems += [RuleProblem(str(path), *locate(text, where), said) for where, said in _broken_patterns(value)]
        return None


def _broken_patterns(value: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What the index would say of regexes, were the rest of the file valid."""
    match = value.get("match")
    for name, signature in match.items() if isinstance(match, dict) else ():
        pattern = signature.get("regex") if isinstance(signature, dict) else None
        try:
            re.compile(pattern if isinstance(pattern, str) else "")
        except (re.error, RecursionError, OverflowError) as error:
            yield ("match", str(name), "regex"), f"match.{name}.regex: {error}"


@cache
def _adapter() -> TypeAdapter[Rule]:
    """Pydantic's validator of a rule; building it takes longer than using it on a thousand rules."""
    from pydantic import TypeAdapter

    return TypeAdapter(Rule)


def _said(fault: Any) -> str:
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return "no such key"
    if fault["type"] in ("missing", "missing_argument"):
        return "this key is required"
    return str(fault["msg"]).replace("Input should be", "must be")


def _hint(fault: Any, where: tuple[str | int, ...]) -> str:
    if fault["type"] not in ("extra_forbidden", "unexpected_keyword_argument") or not where:
        return ""
    close = get_close_matches(str(where[-1]), _known_keys(), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _known_keys() -> list[str]:
    """Every key that some part of a rule may have."""
    classes = [value for value in vars(rule_types).values() if dataclasses.is_dataclass(value)]
    return sorted({str(_yaml_key(field.name)) for cls in classes for field in dataclasses.fields(cls)})


def _yaml_key(step: str | int) -> str | int:
    if isinstance(step, str) and step.removesuffix("_") in _RESERVED:
        return step.removesuffix("_")
    return step


def _python_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_RESERVED.get(key, key): _python_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_python_keys(item) for item in value)
    return value
