"""`logdoc rules`: browse, search, test and start rules."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import click

from logdoc.cli.common import EXIT_RULES_INVALID, counted, echo, language_option, note, rules_option, said_plainly
from logdoc.cli.completing import files, folders, rule_ids, rule_ids_and_areas, rule_ids_or_files
from logdoc.render.cells import cell_len
from logdoc.reporting.wording import phrase, title
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from logdoc.types.errors import InputError, RulesError
from logdoc.types.rule import Rule

SCHEMA_NAME = "rule.v1.json"
KIND_CELLS = 7  # of a terminal, that a rule's kind takes


@click.group(
    epilog="""\b
Examples:
  logdoc rules list memory
  logdoc rules show install.torch-cpu-build --lang zh
  logdoc rules test my-rules/""",
)
def rules() -> None:
    """The knowledge: list, show, search, test, new."""


@rules.command(
    "list",
    epilog="""\b
Examples:
  logdoc rules list
  logdoc rules list gpu
  logdoc rules list 'network.*' --lang zh""",
)
@click.argument("pattern", required=False, shell_complete=rule_ids_and_areas)
@language_option
@rules_option
@said_plainly
def list_rules(pattern: str | None, language: str, rule_dirs: tuple[str, ...]) -> None:
    """All rules, or those of an area or pattern: id, kind, title."""
    chosen = _chosen(load_rules(rule_roots(rule_dirs)), (pattern,) if pattern else ())
    width = max(len(rule.id) for rule in chosen)
    for rule in chosen:
        kind = phrase(f"word.{rule.kind}", language)
        blanks = " " * (KIND_CELLS - cell_len(kind))
        echo(f"{rule.id:<{width}}  {kind}{blanks}  {title(rule.title, language, {})}")


@rules.command(
    epilog="""\b
Examples:
  logdoc rules show memory.gpu-oom
  logdoc rules show network.ib-link-fault --lang zh
  logdoc rules show process.segfault | less""",
)
@click.argument("rule_id", shell_complete=rule_ids)
@language_option
@rules_option
@said_plainly
def show(rule_id: str, language: str, rule_dirs: tuple[str, ...]) -> None:
    """One rule as a page: what it means, what shows it, how to check and fix it."""
    from logdoc.render.rule_page import rule_page

    rule = _one(load_rules(rule_roots(rule_dirs)), rule_id)
    echo(rule_page(rule, language).removesuffix("\n"))


@rules.command(
    epilog="""\b
Examples:
  logdoc rules search 'out of memory'
  logdoc rules search Xid
  logdoc rules search 'Connection closed by peer'""",
)
@click.argument("text")
@language_option
@rules_option
@said_plainly
def search(text: str, language: str, rule_dirs: tuple[str, ...]) -> None:
    """Rules whose texts hold these words or whose examples look like them, the best fit first."""
    from logdoc.reporting.similar import rules_about

    found = rules_about(text, load_rules(rule_roots(rule_dirs)).active())
    if not found:
        raise InputError(f"no rule speaks of {text!r}")
    for rule, _ in found:
        echo(f"{rule.id}  {title(rule.title, language, {})}")


@rules.command(
    epilog="""\b
Examples:
  logdoc rules browse
  logdoc rules browse --lang zh
  logdoc rules browse --rules my-rules/""",
)
@language_option
@rules_option
@said_plainly
def browse(language: str, rule_dirs: tuple[str, ...]) -> None:
    """Read the rules in a full-screen terminal UI, and try lines of a log on them."""
    from logdoc.cli.tui import open_ui

    open_ui((), language, rule_dirs)


@rules.command(
    epilog="""\b
Examples:
  logdoc rules test
  logdoc rules test 'memory.*'
  logdoc rules test my-rules/""",
)
@click.argument("targets", nargs=-1, metavar="[ID|PATH]...", shell_complete=rule_ids_or_files)
@language_option
@rules_option
@said_plainly
def test(targets: tuple[str, ...], language: str, rule_dirs: tuple[str, ...]) -> None:
    """Lint rules and run their examples through the whole engine. Exit code 3 if one fails."""
    from logdoc.engine import Engine
    from logdoc.rulebase.check import lint, run_examples

    paths = tuple(target for target in targets if Path(target).exists())
    patterns = tuple(target for target in targets if target not in paths)
    rule_set = load_rules(rule_roots((*rule_dirs, *paths)))
    chosen = _chosen(rule_set, patterns) if patterns or not paths else []
    chosen += [rule for rule in rule_set.active() if _lies_in(rule, paths) and rule not in chosen]
    if not chosen:
        raise InputError(f"no rule (.yaml) in {', '.join(paths)}")
    ids = {rule.path for rule in chosen}
    problems = [problem for problem in lint(rule_set) if problem.path in ids]
    try:
        problems += run_examples(chosen, Engine(rule_set).explain_text)
    except RulesError:  # a pattern that nothing can be searched for with: the lint has said so
        if not problems:
            raise
    for problem in sorted(problems, key=lambda one: (one.path, one.line, one.column)):
        note(str(problem))
    examples = sum(len(rule.examples.must_match) + len(rule.examples.must_not_match) for rule in chosen)
    counts = {"rule": len(chosen), "example": examples, "problem": len(problems)}
    said = {f"{what}s": counted(what, number, language) for what, number in counts.items()}
    echo(phrase("rules.tested", language, **said))
    sys.exit(EXIT_RULES_INVALID if problems else 0)


def _lies_in(rule: Rule, paths: tuple[str, ...]) -> bool:
    return any(Path(rule.path).resolve().is_relative_to(Path(path).resolve()) for path in paths)


@rules.command(
    epilog="""\b
Examples:
  logdoc rules new memory.my-case --from crash.log:812
  logdoc rules new site.lustre-down --dir my-rules
  logdoc rules new data.our-loader --from - < line.txt""",
)
@click.argument("rule_id")
@click.option("--from", "origin", metavar="FILE:LINE", shell_complete=files, help="Start from this line of a log.")
@click.option(
    "--dir",
    "directory",
    default="rules",
    show_default=True,
    shell_complete=folders,
    help="Where the rule goes.",
)
@language_option
@said_plainly
def new(rule_id: str, origin: str | None, directory: str, language: str) -> None:
    """Write the skeleton of a rule, with a signature made from a log line if one is given, and a schema beside it."""
    from logdoc.rulebase.skeleton import skeleton

    if not re.fullmatch(r"[\w-]+(?:\.[\w-]+)+", rule_id, re.ASCII):
        raise InputError(f"{rule_id!r}: a rule's id is <area>.<slug>, of letters, digits, - and _")
    area, _, slug = rule_id.partition(".")
    path = Path(directory) / area / f"{slug}.yaml"
    if path.exists():
        raise InputError(f"{path}: exists already")
    schema = _schema_for(Path(directory))
    text = skeleton(rule_id, _line_at(origin) if origin else None, os.path.relpath(schema, path.parent))
    _write(path, text)
    echo(str(path))
    if not schema.exists():
        _write(schema, _schema_text())
        echo(phrase("rules.schema", language, path=str(schema)))
    echo(phrase("rules.new", language, command=f"logdoc rules test {shlex.quote(directory)}"))


def _schema_for(directory: Path) -> Path:
    """The JSON Schema of the rules in a folder: the one that logdoc's own repository has beside it, else one in it."""
    beside = directory.parent / "schema" / SCHEMA_NAME
    return beside if beside.exists() else directory / SCHEMA_NAME


def _schema_text() -> str:
    from logdoc.schemas import rule_schema

    return json.dumps(rule_schema(), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _line_at(origin: str) -> str:
    """The line that FILE:LINE names, or the first line of standard input for `-`."""
    from logdoc.reader.lines import physical_lines
    from logdoc.reader.peel import peel
    from logdoc.sources import discover

    name, _, number = origin.rpartition(":")
    if origin == "-":
        name, number = "-", "1"
    if not number.isdecimal():
        raise InputError(f"{origin}: say FILE:LINE")
    source = discover([name]).sources[0]
    wanted = int(number)
    for found, text in physical_lines(source.open_blocks()):
        if found == wanted:
            return peel(found, text).text
    raise InputError(f"{name} has no line {number}")


@rules.command(
    epilog="""\b
Examples:
  logdoc rules coverage messages.tsv
  logdoc rules coverage messages.tsv --all
  logdoc rules coverage messages.tsv --least 98""",
)
@click.argument("table", type=click.Path(dir_okay=False))
@click.option(
    "--all", "every", is_flag=True, help="Also list messages that only other rules than the table's recognise."
)
@click.option("--least", type=float, default=0.0, help="Exit 1 if fewer per cent are recognised.")
@language_option
@rules_option
@said_plainly
def coverage(table: str, every: bool, least: float, language: str, rule_dirs: tuple[str, ...]) -> None:
    """Which messages of a catalogue (TSV with columns format/message and tag/cause) no rule recognises."""
    from logdoc.engine import Engine
    from logdoc.rulebase.coverage import coverage as measured
    from logdoc.rulebase.coverage import read_table

    result = measured(read_table(Path(table)), Engine(load_rules(rule_roots(rule_dirs))).recognise)
    for message in result.unknown:
        echo(f"{table}:{message.line}: {message.label}: {message.template}")
    for message, found in result.elsewhere if every else ():
        told = phrase("rules.found_by", language, message=message.label, rules=", ".join(found))
        echo(f"{table}:{message.line}: {told}: {message.template}")
    own = result.rows - len(result.unknown) - len(result.elsewhere)
    share, none = f"{100 * result.share:.1f}", len(result.unknown)
    other = len(result.elsewhere)
    echo(phrase("rules.covered", language, rows=result.rows, own=own, other=other, none=none, share=share))
    sys.exit(0 if 100 * result.share >= least else 1)


@rules.command(
    epilog="""\b
Examples:
  logdoc rules docs docs/rules
  logdoc rules docs /tmp/pages --rules my-rules
  logdoc rules docs docs/rules && git diff --stat docs/rules""",
)
@click.argument("directory", type=click.Path(file_okay=False))
@language_option
@rules_option
@said_plainly
def docs(directory: str, language: str, rule_dirs: tuple[str, ...]) -> None:
    """Write a Markdown page for every rule in both languages, with an index by area and by message."""
    from logdoc.render.rule_index import page_path, rule_index
    from logdoc.render.rule_page import rule_page

    chosen = list(load_rules(rule_roots(rule_dirs)).rules.values())
    for written in ("en", "zh"):
        root = Path(directory) / written
        pages = {root / page_path(rule): rule_page(rule, written) for rule in chosen}
        pages[root / "index.md"] = rule_index(chosen, written)
        for path, text in pages.items():
            _write(path, text)
    echo(phrase("rules.written", language, rules=counted("rule", len(chosen), language), folder=directory))


@rules.command(
    "schema",
    epilog="""\b
Examples:
  logdoc rules schema > schema/rule.v1.json
  logdoc rules schema | python -m json.tool
  logdoc schema rule""",
)
@said_plainly
def rules_schema() -> None:
    """The JSON Schema of rule files, for editors."""
    click.echo(_schema_text(), nl=False)


def _chosen(rule_set: RuleSet, patterns: tuple[str, ...]) -> list[Rule]:
    """The rules whose id or area fits one of the patterns; all without any. An unknown name is an error."""
    chosen: dict[str, Rule] = {}
    for pattern in patterns or ("*",):
        fitting = [rule for rule in rule_set.active() if fnmatchcase(rule.id, pattern) or rule.area == pattern]
        if not fitting:
            raise InputError(_unknown(rule_set, pattern))
        chosen.update({rule.id: rule for rule in fitting})
    return list(chosen.values())


def _one(rule_set: RuleSet, rule_id: str) -> Rule:
    if rule_id not in rule_set.rules:
        raise InputError(_unknown(rule_set, rule_id))
    return rule_set[rule_id]


def _unknown(rule_set: RuleSet, name: str) -> str:
    from rapidfuzz import process

    near = process.extractOne(name, list(rule_set.rules), score_cutoff=60)
    return f"no rule is called {name!r}" + (f"; did you mean {near[0]}?" if near else "")
