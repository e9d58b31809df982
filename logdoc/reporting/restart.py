"""Would a restart help? Follows the top cause's own advice and names the hosts its evidence names."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.reporting.wording import phrase
from logdoc.types.finding import Hypothesis
from logdoc.types.report import Diagnosis, Restart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Outcome


def restart_advice(
    outcome: Outcome, kept: Sequence[Hypothesis], diagnoses: Sequence[Diagnosis], language: str
) -> Restart:
    """`unknown` unless a cause was found and its rule has an opinion."""
    if outcome == "healthy":
        return Restart(advice="unknown", reason=phrase("restart.healthy", language))
    if outcome != "cause-found" or not kept or kept[0].rule.restart == "unknown":
        return Restart(advice="unknown", reason=phrase("restart.unknown", language))
    top = kept[0]
    title = diagnoses[0].title
    if top.rule.restart == "replace-node":
        named = (match.captures.get("node") or match.host for match in top.matches)  # the scheduler's word, or a prefix
        hosts = tuple(sorted({host for host in named if host}))
        key = "restart.replace_node" if hosts else "restart.replace_node_unknown"
        reason = phrase(key, language, title=title, hosts=", ".join(hosts))
        return Restart(advice="replace-node", reason=reason, exclude_hosts=hosts)
    key = "restart.retry" if top.rule.restart == "retry" else "restart.fix_first"
    return Restart(advice=top.rule.restart, reason=phrase(key, language, title=title))
