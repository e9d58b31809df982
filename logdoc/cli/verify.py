"""`logdoc verify`: has the fault that a rule is about been repaired?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from logdoc.cli.common import EXIT_FAILURE_FOUND, EXIT_HEALTHY, echo, language_option, note, rules_option, said_plainly
from logdoc.cli.completing import files, rule_ids
from logdoc.cli.looking import acted, budget_option, looked, python_option, told_errors
from logdoc.probes.collecting import job_python
from logdoc.probes.sheets import FactSheet
from logdoc.probes.specs import passive_ids
from logdoc.reporting.wording import fill_command, phrase
from logdoc.types.errors import InputError
from logdoc.types.rule import Rule


@click.command(
    epilog="""\b
Examples:
  logdoc verify install.torch-cpu-build
  logdoc verify memory.shm-exhausted --python ./venv/bin/python
  logdoc verify topology.p2p-broken --active
  logdoc verify gpu.none-visible || echo 'not fixed yet'""",
)
@click.argument("rule_id", shell_complete=rule_ids)
@click.option("--active", is_flag=True, help="Also run its probes that do something; each says what first.")
@click.option("--facts", metavar="FILE", shell_complete=files, help="Judge these facts instead of this machine.")
@budget_option
@python_option
@language_option
@rules_option
@said_plainly
def verify(
    rule_id: str,
    active: bool,
    facts: str | None,
    budget: float,
    python: str | None,
    language: str,
    rule_dirs: tuple[str, ...],
) -> None:
    """Run again what would confirm a cause, and say fixed or not fixed. Exit 0 fixed, 1 not fixed or cannot tell."""
    from logdoc.probes.sheets import load_fact_sheet
    from logdoc.rulebase import load_rules, rule_roots

    rules = load_rules(rule_roots(rule_dirs))
    if rule_id not in rules.rules:
        raise InputError(f"no rule is called {rule_id!r}")
    rule = rules.rules[rule_id]
    sheets = [load_fact_sheet(facts)] if facts else list(_asked(rule, active, python, budget, language))
    verdict, lines = _verdict(rule, sheets, language)
    said = phrase({True: "verify.not_fixed", False: "verify.fixed", None: "verify.unknown"}[verdict], language)
    echo(phrase("text.labelled", language, label=rule_id, text=said))
    for line in lines if verdict is not None else [*lines, *_by_hand(rule, active, python, language)]:
        echo(f"  {line}")
    sys.exit(EXIT_HEALTHY if verdict is False else EXIT_FAILURE_FOUND)


def _asked(rule: Rule, active: bool, python: str | None, budget: float, language: str) -> Iterator[FactSheet]:
    """The rule's own probes, on this machine."""
    ids = dict.fromkeys(use.use for use in rule.probes)
    passive = [id for id in ids if id in passive_ids()]
    if passive:
        yield looked(passive, python, budget, language)
    for id in ids:
        if active and id not in passive:
            try:
                yield from acted(id, python, language, {"hosts": None})
            except InputError as needs:
                note(f"logdoc: {needs}")


def _verdict(rule: Rule, sheets: Sequence[FactSheet], language: str) -> tuple[bool | None, list[str]]:
    """Whether the fault is still there: its probes confirm it (True), refute it (False) or cannot tell."""
    from logdoc.conditions import Scene, holds

    known = {fact.id: fact.value for sheet in sheets for fact in sheet.facts}
    scene = Scene({}, known.get)
    asked = [condition for use in rule.probes for condition in (use.confirms, use.refutes)]
    named = {id for condition in asked if condition is not None for id in condition.fact_ids()}
    lines = [f"{id} = {value}" for id, value in known.items() if id in named]
    lines += [line for sheet in sheets for line in told_errors(sheet, language)]
    confirming = [holds(use.confirms, scene) for use in rule.probes if use.confirms is not None]
    refuted = any(use.refutes is not None and holds(use.refutes, scene) is True for use in rule.probes)
    if any(answer is True for answer in confirming):
        return True, lines
    # An active probe that was not run says nothing; the others speak for themselves.
    told = [answer for answer in confirming if answer is not None]
    return (False if refuted or (told and len(told) == len(confirming)) else None), lines


def _by_hand(rule: Rule, active: bool, python: str | None, language: str) -> Iterator[str]:
    """Why nobody can tell, and what to type instead."""
    if rule.no_probe:
        yield rule.no_probe
    acting = [use.use for use in rule.probes if use.use not in passive_ids()]
    if acting and not active:
        yield f"{', '.join(acting)}: --active"
    for fix in rule.fixes:
        if fix.verify.run:
            see = f"   # {fix.verify.see.in_language(language)}" if fix.verify.see else ""
            yield f"$ {fill_command(fix.verify.run, {'python': job_python(python)})}{see}"
