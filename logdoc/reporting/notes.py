"""What a report says beside its diagnoses: what to gather for the next one, and that a log ends while a job sets up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from logdoc.cascade import Survey
from logdoc.kept.patterns import lazily
from logdoc.reporting.wording import phrase
from logdoc.rulebase.observations import observations
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.report import FlightRecorder, Ranks, SourceInfo
from logdoc.types.spans import spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import Outcome

_GLOO = lazily(r"(?i)\bgloo/(?:transport|rendezvous)/|\bgloo::|ProcessGroupGloo|\[gloo\]|[\"']gloo[\"']")
_NCCL = lazily(r"(?i)nccl")
_LOOPBACK = lazily(r"\b127\.0\.0\.1\b|\[::1\]")
_OF_SLURM = "slurm-program"  # the dialect of what srun, sbatch and slurmstepd say themselves
_OF_A_POD = lazily(r"\[pod/|\S{20,40} (?:stdout|stderr) [FP] ")
_COLLECT: Mapping[str, tuple[str, ...]] = {
    "symptoms-only": ("all_ranks", "nccl_debug", "record", "dmesg", "flight_recorder"),
    "unrecognised": ("all_ranks", "nccl_debug"),
}
OF_NCCL = frozenset({"bootstrap", "nccl-init-start", "nccl-rings", "nccl-init-complete"})  # milestones
SET_UP = "nccl-init-complete"  # from this milestone on a job is no longer setting up
LAST_LINES = 3  # of a log: a milestone that no other one follows for certain counts there only


def collect_next(
    outcome: Outcome,
    told: Iterable[Match | None],
    survey: Survey,
    recorded: Sequence[FlightRecorder],
    ranks: Ranks,
    language: str,
) -> tuple[str, ...]:
    """What to gather so that the next report can say more: nothing that is here, and nothing of NCCL in a job of gloo.

    `told`: the matches that speak of the failure.
    """
    bodies = {match.record.seq: match.record.body for match in told if match is not None}.values()
    gloo = _is_gloo(bodies, survey)
    needless = {"flight_recorder"} if gloo or recorded else set()
    if _is_everyone_here(bodies, survey, recorded, ranks):
        needless.add("all_ranks")
    names = [name for name in _COLLECT.get(outcome, ()) if name not in needless]
    return tuple(
        phrase(f"collect.{'gloo_debug' if gloo and name == 'nccl_debug' else name}", language) for name in names
    )


def _is_gloo(bodies: Collection[str], survey: Survey) -> bool:
    """Whether gloo speaks of the failure and NCCL nowhere."""
    if any(OF_NCCL & track.passed for track in survey.tracks.values()):
        return False
    return any(map(_GLOO.search, bodies)) and not any(map(_NCCL.search, bodies))


def _is_everyone_here(
    bodies: Collection[str], survey: Survey, recorded: Sequence[FlightRecorder], ranks: Ranks
) -> bool:
    """Whether every rank of the world spoke, or left a dump. Where nothing tells the world's size, ranks without a gap
    that reach each other by the loopback are all there are."""
    if recorded and not any(dumps.without_dump for dumps in recorded):
        return True
    heard = survey.heard().keys()
    if ranks.world_size is not None:
        return heard >= set(range(ranks.world_size))
    return len(heard) > 1 and heard == set(range(len(heard))) and any(map(_LOOPBACK.search, bodies))


def setup_note(
    survey: Survey, milestones: Sequence[Match], sources: Iterable[SourceInfo], world_size: int | None, language: str
) -> list[str]:
    """For a log that no failure is in: how far the ranks came, if it ends while they set up. Else nothing.

    Most such logs are excerpts of a healthy start, so this is no failure; but so does a job look that hangs there.
    `milestones`: all that were seen, in order of the log.
    """
    stones = observations().milestones
    if not milestones or any(stones[match.name].order >= stones[SET_UP].order for match in milestones):
        return []
    last = max(milestones, key=lambda match: stones[match.name].order)
    if last.name not in OF_NCCL and not _is_at_end(milestones[-1], sources):
        return []
    title = stones[last.name].title.in_language(language)
    there = {rank for rank, track in survey.tracks.items() if track.milestone is not None}
    if not there:
        return [phrase("note.setup", language, milestone=title)]
    missing = set(range(world_size or 0)) - there
    if not missing:
        return [phrase("note.setup_ranks", language, ranks=spans(there), milestone=title)]
    return [phrase("note.setup_missing", language, ranks=spans(there), milestone=title, missing=spans(missing))]


def _is_at_end(match: Match, sources: Iterable[SourceInfo]) -> bool:
    lines = {source.name: source.lines for source in sources}
    return lines.get(match.record.source, 0) - match.record.end_line < LAST_LINES


def surroundings(ranked: Iterable[Hypothesis], facts: Iterable[str], settings: Iterable[str]) -> frozenset[str]:
    """Which scheduler runs the job, as the lines that matched, the machine's facts or the settings show it: `slurm`,
    `k8s`, as the commands of fixes have it."""
    records = [match.record for one in ranked for match in one.matches]
    areas = {fact.split(".", 1)[0] for fact in facts}
    found = areas & {"slurm", "k8s"}
    if any(_OF_SLURM in record.dialects for record in records) or any(name.startswith("SLURM_") for name in settings):
        found.add("slurm")
    if any(_OF_A_POD.match(record.raw) for record in records):
        found.add("k8s")
    return frozenset(found)
