"""What a shell offers in an option's or argument's place: files, folders, ids of rules and probes. Called when a shell
asks, and imports what it needs no sooner."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders, as the shell finds them."""
    return [CompletionItem(incomplete, type="file")]


def folders(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def rule_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of all rules, those of `--rules` included."""
    return _beginning(incomplete, _rule_ids(context))


def rule_ids_and_areas(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    ids = _rule_ids(context)
    return _beginning(incomplete, [*dict.fromkeys(id.partition(".")[0] for id in ids), *ids])


def rule_ids_or_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids where some begin so, else files: bash cannot offer both."""
    return rule_ids(context, parameter, incomplete) or files(context, parameter, incomplete)


def probe_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from logdoc.probes.specs import PROBES

    return _beginning(incomplete, [spec.id for spec in PROBES])


def _rule_ids(context: click.Context) -> list[str]:
    from logdoc.rulebase import rule_roots
    from logdoc.rulebase.cache import ready_rules
    from logdoc.types.errors import LogdocError

    try:
        return list(ready_rules(rule_roots(context.params.get("rule_dirs") or ())).rules)
    except LogdocError:  # the command itself will say what is wrong with them
        return []


def _beginning(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
