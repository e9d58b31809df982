"""JSON Schemas made from the types, so that they cannot drift: the report's for bots, the rule's for editors."""

from __future__ import annotations

from typing import Any

from logdoc.types.report import Report
from logdoc.types.rule import Rule

_RESERVED = ("from_", "not_", "as_", "in_")


def report_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of logdoc.report/v1, as printed by `--format json`."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(Report).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "logdoc.report/v1",
        **schema,
    }


def rule_schema() -> dict[str, Any]:
    """JSON Schema (the draft-07 subset that yaml-language-server reads) of a rule file."""
    from pydantic import TypeAdapter

    schema = _yaml_names(TypeAdapter(Rule).json_schema())
    schema["properties"].pop("path", None)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "logdoc.rule/v1", **schema}


def _yaml_names(node: Any) -> Any:
    """Python's `from_` is YAML's `from`; `$defs` is draft-07's `definitions`."""
    if isinstance(node, dict):
        return {
            ("definitions" if key == "$defs" else key.removesuffix("_") if key in _RESERVED else key): _yaml_names(
                value
            )
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [item.removesuffix("_") if item in _RESERVED else _yaml_names(item) for item in node]
    return node.replace("#/$defs/", "#/definitions/") if isinstance(node, str) else node
