"""`logdoc schema`: the JSON Schemas of the report and of a rule file, made from the code."""

from __future__ import annotations

import json

import click

from logdoc.cli.common import said_plainly


@click.command(
    epilog="""\b
Examples:
  logdoc schema report > report.v1.json
  logdoc schema rule > rule.v1.json
  logdoc explain crash.log --format json | check-jsonschema --schemafile report.v1.json -""",
)
@click.argument("what", type=click.Choice(["report", "rule"]))
@said_plainly
def schema(what: str) -> None:
    """Print the JSON Schema of the report (2020-12) or of rule files (draft 7, for editors)."""
    from logdoc.schemas import report_schema, rule_schema

    click.echo(json.dumps(report_schema() if what == "report" else rule_schema(), indent=2, ensure_ascii=False))
