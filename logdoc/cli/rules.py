"""`logdoc rules`: browse, search, test and start rules."""

from __future__ import annotations

import re
import shlex
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import click

from logdoc.cli.common import EXIT_RULES_INVALID, echo, language_option, note, rules_option, said_plainly
from logdoc.rulebase import RuleSet, load_rules, rule_roots
from logdoc.rulebase.search import rules_with
from logdoc.types.errors import InputError
from logdoc.types.rule import Rule


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
@click.argument("pattern", required=False)
@language_option
@rules_option
@said_plainly
def list_rules(pattern: str | None, language: str, rule_dirs: tuple[str, ...]) -> None:
    """All rules, or those of an area or pattern: id, kind, title."""
    chosen = _chosen(load_rules(rule_roots(rule_dirs)), (pattern,) if pattern else ())
    width = max(len(rule.id) for rule in chosen)
    for rule in chosen:
        echo(f"{rule.id:<{width}}  {rule.kind:<7}  {rule.title.in_language(language)}")


@rules.command(
    epilog="""\b
Examples:
  logdoc rules show memory.gpu-oom
  logdoc rules show network.ib-link-fault --lang zh
  logdoc rules show process.segfault | less""",
)
@click.argument("rule_id")
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
    """Rules whose texts hold these words, then those whose examples look most like them."""
    from logdoc.reporting.similar import similar

    rule_set = load_rules(rule_roots(rule_dirs))
    found = [rule.id for rule in rules_with(text, rule_set.active())]
    found += [near.rule for near in similar(text, rule_set.active(), 0, "") if near.rule not in found]
    if not found:
        raise InputError(f"no rule speaks of {text!r}")
    for rule_id in found:
        echo(f"{rule_id}  {rule_set[rule_id].title.in_language(language)}")


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
@click.argument("targets", nargs=-1, metavar="[ID|PATH]...")
@rules_option
@said_plainly
def test(targets: tuple[str, ...], rule_dirs: tuple[str, ...]) -> None:
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
    problems += run_examples(chosen, Engine(rule_set).explain_text)
    for problem in problems:
        note(str(problem))
    examples = sum(len(rule.examples.must_match) + len(rule.examples.must_not_match) for rule in chosen)
    click.echo(f"{len(chosen)} rules, {examples} examples, {len(problems)} problems")
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
@click.option("--from", "origin", metavar="FILE:LINE", help="Start from this line of a log.")
@click.option("--dir", "directory", default="rules", show_default=True, help="Where the rule goes.")
@said_plainly
def new(rule_id: str, origin: str | None, directory: str) -> None:
    """Write the skeleton of a rule, with a signature made from a log line if one is given."""
    from logdoc.rulebase.skeleton import skeleton

    if not re.fullmatch(r"[\w-]+(?:\.[\w-]+)+", rule_id, re.ASCII):
        raise InputError(f"{rule_id!r}: a rule's id is <area>.<slug>, of letters, digits, - and _")
    area, _, slug = rule_id.partition(".")
    path = Path(directory) / area / f"{slug}.yaml"
    if path.exists():
        raise InputError(f"{path}: exists already")
    text = skeleton(rule_id, _line_at(origin) if origin else None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    echo(f"{path}\nFill in what is marked, then: logdoc rules test {shlex.quote(directory)}")


def _line_at(origin: str) -> str:
    """The line that FILE:LINE names, or the first line of standard input for `-`."""
    from itertools import islice

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
    for found, text in islice(physical_lines(source.open_blocks()), None):
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
@rules_option
@said_plainly
def coverage(table: str, every: bool, least: float, rule_dirs: tuple[str, ...]) -> None:
    """Which messages of a catalogue (TSV with columns format/message and tag/cause) no rule recognises."""
    from logdoc.engine import Engine
    from logdoc.rulebase.coverage import coverage as measured
    from logdoc.rulebase.coverage import read_table

    result = measured(read_table(Path(table)), Engine(load_rules(rule_roots(rule_dirs))).recognise)
    for message in result.unknown:
        echo(f"{table}:{message.line}: {message.label}: {message.template}")
    for message, found in result.elsewhere if every else ():
        echo(f"{table}:{message.line}: {message.label}, found {', '.join(found)}: {message.template}")
    own = result.rows - len(result.unknown) - len(result.elsewhere)
    click.echo(
        f"{result.rows} messages: {own} lead to the table's rule, {len(result.elsewhere)} to another, "
        f"{len(result.unknown)} to none ({100 * result.share:.1f} % recognised)"
    )
    sys.exit(0 if 100 * result.share >= least else 1)


@rules.command(
    epilog="""\b
Examples:
  logdoc rules docs docs/rules
  logdoc rules docs /tmp/pages --rules my-rules
  logdoc rules docs docs/rules && git diff --stat docs/rules""",
)
@click.argument("directory", type=click.Path(file_okay=False))
@rules_option
@said_plainly
def docs(directory: str, rule_dirs: tuple[str, ...]) -> None:
    """Write a Markdown page for every rule in both languages, with an index by area and by message."""
    from logdoc.render.rule_index import page_path, rule_index
    from logdoc.render.rule_page import rule_page

    chosen = list(load_rules(rule_roots(rule_dirs)).rules.values())
    for language in ("en", "zh"):
        root = Path(directory) / language
        pages = {root / page_path(rule): rule_page(rule, language) for rule in chosen}
        pages[root / "index.md"] = rule_index(chosen, language)
        for path, text in pages.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from None
    click.echo(f"{len(chosen)} rules, 2 languages: {directory}")


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
    import json

    from logdoc.schemas import rule_schema

    click.echo(json.dumps(rule_schema(), indent=2, ensure_ascii=False))


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
