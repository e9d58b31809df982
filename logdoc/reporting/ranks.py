"""The rank table: what state each rank was left in, and which failed first."""

from __future__ import annotations

from collections.abc import Sequence

from logdoc.cascade import RankTrack, Survey
from logdoc.facts import FactSet
from logdoc.rulebase.observations import observations
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.record import Record
from logdoc.types.report import Place, RankRow, Ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    State = Literal["failed", "killed", "waiting", "silent", "finished", "unknown"]


def rank_table(
    survey: Survey,
    ranked: Sequence[Hypothesis],
    best: Hypothesis | None,
    facts: FactSet,
    watchdogs: Sequence[Match],
    language: str,
) -> Ranks:
    """One row a rank that was seen, named or missed; `first_failure` is the rank of the best one, if the log names it.

    A symptom of ranks that wait for another one says who did not fail first. `watchdogs` name the collectives that
    ranks hung in.
    """
    errors = _first_errors(ranked)
    tracks = dict(survey.tracks)
    for rank in errors:
        tracks.setdefault(rank, RankTrack(rank))
    world_size = facts.value("job.world_size")
    size = int(world_size) if isinstance(world_size, int) and world_size > max(tracks, default=0) else None
    silent = [rank for rank in _silent(survey, size) if rank not in errors]
    collectives = _collectives(watchdogs)
    rows = [_row(tracks[rank], errors.get(rank, []), collectives.get(rank), language) for rank in tracks]
    rows += [RankRow(rank=rank, host=None, state="silent", first_error=None, last_line=None) for rank in silent]
    return Ranks(
        world_size=size,
        seen=len(survey.tracks),
        first_failure=best.rank if best is not None and not _waits(best) else None,
        silent=tuple(silent),
        table=tuple(sorted(rows, key=lambda row: row.rank)),
    )


def _waits(one: Hypothesis) -> bool:
    return one.rule.kind == "symptom" and one.rule.rank_state == "waiting"


def _first_errors(ranked: Sequence[Hypothesis]) -> dict[int, list[Match]]:
    """Per rank its matches of causes and symptoms, in order."""
    errors: dict[int, list[Match]] = {}
    for one in ranked:
        for match in one.matches:
            if match.rank is not None:
                errors.setdefault(match.rank, []).append(match)
    for matches in errors.values():
        matches.sort(key=lambda match: match.record.seq)
    return errors


def _silent(survey: Survey, size: int | None) -> tuple[int, ...]:
    """Ranks of the world that printed nothing at all, if at least half of it did."""
    if size is None or len(survey.tracks) < max(2, size // 2) or size - len(survey.tracks) > 64:
        return ()
    return tuple(rank for rank in range(size) if rank not in survey.tracks)


def _collectives(watchdogs: Sequence[Match]) -> dict[int, str]:
    """`ALLREDUCE #12`, as the watchdog of each rank said last."""
    found: dict[int, str] = {}
    for match in watchdogs:
        if match.rank is not None and "op" in match.captures:
            number = match.captures.get("seq")
            found[match.rank] = match.captures["op"] + (f" #{number}" if number else "")
    return found


def _row(track: RankTrack, errors: Sequence[Match], collective: str | None, language: str) -> RankRow:
    first_error = errors[0] if errors else None
    milestone = observations().milestones.get(track.milestone or "")
    return RankRow(
        rank=track.rank,
        host=track.host or next((match.host for match in errors if match.host), None),
        state=_state(track, errors),
        first_error=_place(first_error.record, first_error.line) if first_error else None,
        last_line=_place(track.last, track.last.end_line) if track.last else None,
        last_collective=collective,
        milestone=milestone.title.in_language(language) if milestone else None,
    )


def _state(track: RankTrack, errors: Sequence[Match]) -> State:
    """Failed where a cause shows, else what the first symptom's rule says of a rank it is seen on."""
    if any(match.rule.kind == "cause" for match in errors):
        return "failed"
    if errors:
        return errors[0].rule.rank_state
    return "finished" if track.milestone == "finished" else "unknown"


def _place(record: Record, line: int) -> Place:
    return Place(line=line, time=record.time_text, source=record.source)
