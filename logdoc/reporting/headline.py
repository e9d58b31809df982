"""The one sentence that matters: which rank, where, what."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.reporting.wording import phrase
from logdoc.types.report import Abnormal, Diagnosis, Outcome, Ranks

LONGEST_QUOTE = 160


def headline(
    outcome: Outcome, diagnoses: Sequence[Diagnosis], ranks: Ranks, abnormal: Abnormal | None, language: str
) -> str:
    """Names rank and host where the log does; says `possibly` where we are not sure."""
    if outcome == "healthy":
        return phrase("headline.healthy", language)
    if outcome == "unrecognised":
        if abnormal is None:
            return phrase("headline.unrecognised_silent", language)
        return phrase("headline.unrecognised", language, text=abnormal.text.split("\n")[0][:LONGEST_QUOTE])
    top = diagnoses[0]
    if outcome == "symptoms-only":
        key = "headline.symptoms" if top.kind == "symptom" else "headline.possible"
        return phrase(key, language, title=top.title)
    others = len({row.rank for row in ranks.table if row.state in ("failed", "killed", "waiting")} - {top.origin.rank})
    sentence = _placed(top, language)
    if others and top.explains and top.origin.rank is not None:
        stop = "；" if language == "zh" else "; "
        sentence += stop + phrase("headline.others", language, n=others)
    return sentence


def _placed(top: Diagnosis, language: str) -> str:
    rank, host = top.origin.rank, top.origin.host
    if rank is not None and host is not None:
        return phrase("headline.rank_host", language, rank=rank, host=host, title=top.title)
    if rank is not None:
        return phrase("headline.rank", language, rank=rank, title=top.title)
    if host is not None:
        return phrase("headline.host", language, host=host, title=top.title)
    return phrase("headline.plain", language, title=top.title)
