"""The one sentence that matters: which rank, where, what."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.reporting.wording import phrase
from logdoc.types.report import Abnormal, Diagnosis, Ranks
from logdoc.types.spans import spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Outcome

LONGEST_QUOTE = 160


def headline(
    outcome: Outcome,
    diagnoses: Sequence[Diagnosis],
    ranks: Ranks,
    abnormal: Abnormal | None,
    culprits: Sequence[int],
    language: str,
) -> str:
    """Names rank and host where the log does; says `possibly` where we are not sure.

    `culprits` are ranks the flight recorder convicts, also where the cause of their fault is not in sight.
    """
    if outcome == "healthy":
        return phrase("headline.healthy", language)
    if outcome == "unrecognised":
        if abnormal is None:
            return phrase("headline.unrecognised_silent", language)
        return phrase("headline.unrecognised", language, text=abnormal.text.split("\n")[0][:LONGEST_QUOTE])
    top = diagnoses[0]
    if outcome == "symptoms-only":
        key = "headline.symptoms" if top.kind == "symptom" else "headline.possible"
        sentence = phrase(key, language, title=top.title)
        if len(culprits) == 1:
            return phrase("headline.rank", language, rank=culprits[0], title=sentence)
        return phrase("headline.ranks", language, ranks=spans(culprits), title=sentence) if culprits else sentence
    fallen = {row.rank for row in ranks.table if row.state in ("failed", "killed", "waiting")}
    others = len(fallen - {top.origin.rank, *top.ranks})
    sentence = _placed(top, language)
    if others and top.explains and top.origin.rank is not None:
        stop = "；" if language == "zh" else "; "
        key = "headline.other" if others == 1 else "headline.others"
        sentence += stop + phrase(key, language, n=others)
    return sentence


def _placed(top: Diagnosis, language: str) -> str:
    rank, host = top.origin.rank, top.origin.host
    if len(top.ranks) > 1 and rank in top.ranks:
        return phrase("headline.ranks", language, ranks=spans(top.ranks), title=top.title)
    if rank is not None and host is not None:
        return phrase("headline.rank_host", language, rank=rank, host=host, title=top.title)
    if rank is not None:
        return phrase("headline.rank", language, rank=rank, title=top.title)
    if host is not None:
        return phrase("headline.host", language, host=host, title=top.title)
    return phrase("headline.plain", language, title=top.title)
