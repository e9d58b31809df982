"""The joint verdict of stack dumps as Records of dialect `stacks`, which rules judge like any line of a log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from logdoc.stacks.parse import stacks_of
from logdoc.stacks.processes import processes_of
from logdoc.stacks.verdict import Saying, at_odds, sayings
from logdoc.types.finding import Match
from logdoc.types.record import STACKS, Identity, Record


def stack_verdict(
    matches: Sequence[Match],
    world_size: int | None,
    rank_of: Callable[[Identity], int | None] = lambda who: None,
    hosts: Collection[str] = (),
    hung: bool = False,
) -> list[Record]:
    """What the dumps say of the last attempt of the job; empty where they tell nothing.

    `matches` are of the observation `~stacks`, their ranks named; one record may have several. Where nothing was dumped
    the tracebacks of ranks that waited are compared. `rank_of` knows the rank
    of a process by its host and id, `hosts` are those the log names: a dump names none. `hung`: in the log somebody
    gave up waiting for a collective.
    """
    ranks = {id(match.record): match.rank for match in matches}
    records = {id(match.record): match.record for match in matches}
    last = max((record.attempt for record in records.values()), default=0)
    found = [
        (stacks, ranks[key])
        for key, record in records.items()
        if record.attempt == last and (stacks := stacks_of(record)) is not None
    ]

    def anywhere(who: Identity) -> int | None:
        places = [who.host] if who.host is not None else [None, *hosts]
        ranks = {rank_of(Identity(host=host, pid=who.pid)) for host in places} - {None}
        return next(iter(ranks)) if len(ranks) == 1 else None

    dumped = [(stacks, rank) for stacks, rank in found if not stacks.is_end]
    if dumped:
        return [_record(saying) for saying in sayings(processes_of(dumped, anywhere), world_size, hung)]
    return [_record(saying) for saying in at_odds(processes_of(found, anywhere))]


def _record(saying: Saying) -> Record:
    """At the dump it speaks of, by the process it names."""
    about, who = saying.about, Identity()
    if about is not None:
        who = Identity(rank=about.rank, local_rank=about.local_rank, host=about.host, pid=about.stacks.pid)
    return saying.witness.record.verdict(f"stack dumps: {saying.text}", STACKS, who)
