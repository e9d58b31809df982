"""Who said what, when, in which attempt, and what all ranks say together. Corrects matches in place; judges no rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from logdoc.cascade.attempts import number_attempts
from logdoc.cascade.clocks import set_clocks
from logdoc.cascade.collectives import telling_silence, verdicts, waiting_ranks
from logdoc.cascade.order import in_order
from logdoc.cascade.ranks import Survey
from logdoc.cascade.stalls import stall_verdict
from logdoc.rulebase.observations import ATTEMPTS, COLLECTIVES, FACTS, MILESTONES, STACKS
from logdoc.types.finding import Match
from logdoc.types.record import Record

LEFT = "left"  # the traceback of a rank whose peer went away: of use beside one that gave up waiting

Find = Callable[[Sequence[Record]], Sequence[Match]]


def settle(
    survey: Survey,
    matches: Sequence[Match],
    observed: Mapping[str, Sequence[Match]],
    world_size: int | None,
    find: Find,
) -> list[Match]:
    """The rules' matches, with those in the verdicts of all ranks (`find` looks there), in the order they happened.

    `observed`: the matches of each observation, by its id. On the way `rank` of the matches, `near_time` and `attempt`
    of their records are put right, here alone and in this order, for each step needs the one before:

    1. ranks: only all records together tell whether local ranks or tasks are the ranks, and whom a process id names;
    2. clocks, which are told apart by host or rank;
    3. attempts, of files without marks by their clocks, of processes by their ranks; with them the job's progress ends;
    4. the verdicts, which hold the ranks of the last attempt against each other, and speak at their witnesses' places.

    What only the relations of hypotheses tell of a rank is added later, by `relate`.
    """
    watchdogs, stacks, marks, milestones = (observed[kind] for kind in (COLLECTIVES, STACKS, ATTEMPTS, MILESTONES))
    told = [*matches, *watchdogs, *stacks]
    survey.settle(_several_nodes(survey, observed[FACTS]))
    survey.name_ranks(told)
    set_clocks([*told, *marks], milestones)
    number_attempts(told, marks, milestones)
    survey.progress.restart(marks)
    said = _verdicts(survey, matches, watchdogs, stacks, world_size)
    found = [match for match in find(said) if match.rule.id not in observed] if said else []
    return in_order([*matches, *found])


def _several_nodes(survey: Survey, facts: Sequence[Match]) -> bool:
    nodes = [match.captures["value"] for match in facts if match.name == "job.nodes"]
    return len(survey.hosts) > 1 or any(node not in ("0", "1") for node in nodes)


def _verdicts(
    survey: Survey,
    matches: Sequence[Match],
    watchdogs: Sequence[Match],
    stacks: Sequence[Match],
    world_size: int | None,
) -> list[Record]:
    heard, waiting = survey.heard(), waiting_ranks(watchdogs)
    said = verdicts(waiting, heard, world_size, telling_silence(waiting, survey.tracks, matches))
    said += stall_verdict(heard, world_size)
    if any(match.name != LEFT for match in stacks):
        from logdoc.stacks import stack_verdict  # few logs hold stacks

        said += stack_verdict(stacks, world_size, survey.rank_of, survey.hosts, hung=bool(watchdogs))
    return said
