"""Ranks that left the program of their role: several at once, half against half, and those who merely ran ahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from logdoc.flight_recorder import analyse
from tests import flightjobs
from tests.flightdumps import Form, dumps
from tests.flightkit import Damage, Job
from tests.test_flight_recorder import WORLD, FakeJob
from tests.test_flight_recorder_simulated import JOBS, played, seen_apart

STEP = ("_all_gather_base", "_reduce_scatter_base", "all_reduce", "broadcast")
ACTIVE = Form(layout="2.9", only_active=True)


def stepped(steps: int, last: Mapping[int, Iterable[str]], size: int = 4) -> FakeJob:
    """All ranks finish `steps` steps alike; then each makes the calls of `last` and hangs in the first."""
    job = FakeJob(size)
    for _ in range(steps):
        for op in STEP:
            job.everybody(op=op)
    for rank in range(size):
        for op in last.get(rank, STEP):
            job.call(rank, op=op, state="scheduled")
    return job


def test_half_of_a_group_that_skips_a_call_is_told_by_what_all_did_before() -> None:
    verdict = stepped(3, {2: STEP[1:], 3: STEP[1:]}).verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (2, 3), ())


def test_half_against_half_without_any_history_accuses_nobody() -> None:
    verdict = stepped(0, {2: STEP[1:], 3: STEP[1:]}).verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (), (0, 1, 2, 3))


def test_two_ranks_that_skip_different_calls_are_both_named() -> None:
    gone = {1: STEP[1:], 6: (*STEP[:2], STEP[3])}
    assert stepped(2, gone, size=8).verdict().culprits == (1, 6)


def test_a_rank_that_exchanges_two_calls_is_named() -> None:
    order = (STEP[1], STEP[0], *STEP[2:])
    assert stepped(2, {3: order}).verdict().culprits == (3,)


def test_a_rank_that_repeats_its_last_call_where_the_others_wait_is_named_beside_the_first() -> None:
    """Rank 1 leaves out a call and holds all up; rank 5 makes the last call of the step twice, the others wait there."""
    job = stepped(3, {1: STEP[1:], 5: (*STEP, STEP[3])}, size=8)
    assert job.verdict().culprits == (1, 5)


def test_who_came_further_than_the_others_and_calls_something_new_is_not_accused() -> None:
    """Rank 4 hangs; rank 0 alone had come to the checkpoint, which nobody has seen before."""
    job = stepped(3, {0: (*STEP, "barrier"), 4: ()}, size=8)
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("lagging", (4,))


def test_stages_of_a_pipeline_need_not_make_the_same_calls() -> None:
    """The first stage calls what the last one does not; a rank of the last one hangs."""
    job = FakeJob(4, first=(0, 1), last=(2, 3))
    for _ in range(3):
        job.everybody("first", op="broadcast")
        job.everybody("first")
        for rank in (0, 1):
            job.send(rank, rank + 2)
            job.recv(rank + 2, rank)
        job.everybody("last", op="_all_gather_base")
        job.everybody()
    job.call(2, "last", op="_all_gather_base", state="scheduled")
    job.everybody(but=(2, 3), state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("lagging", (3,))


def test_what_was_skipped_before_the_dump_begins_shows_in_the_numbers() -> None:
    """Rank 2 left out a finished call of `a`: it is one call early, and one behind in `a` only."""
    job = FakeJob(4, a=(0, 1, 2, 3))
    job.everybody("a", but=(2,))
    for _ in range(3):
        job.everybody(op="all_reduce", state="scheduled")
        job.everybody("a", op="broadcast", state="scheduled")
    assert job.verdict(only_active=True).culprits == (2,)


@pytest.mark.parametrize("damage", ["skips", "repeats", "swaps"])
def test_several_ranks_that_leave_the_program_are_named_and_nobody_else(damage: Damage) -> None:
    exact = 0
    jobs: list[Job] = [JOBS["hybrid-shard"], JOBS["experts"], JOBS["mesh"], flightjobs.megatron(4, 2, 2, moe=False)]
    for seed, job in enumerate(jobs * 2):
        play = played(job, damage, 2, seed + 20)
        said = set(analyse(dumps(play, ACTIVE if seed % 2 else Form())).culprits)
        assert said <= set(play.faults), (damage, seed)
        exact += seen_apart(play, job, seed + 20) <= said
    assert exact >= 2 * len(jobs) - 1


def test_one_of_four_stages_that_skips_a_collective_of_all_is_named() -> None:
    """Its neighbour waits in the collective, which it has called behind sends and receives that the neighbour lacks."""
    for seed in range(4):
        play = played(flightjobs.pipeline(4), "skips", 1, seed)
        for form in (Form(), ACTIVE):
            assert analyse(dumps(play, form)).culprits == tuple(play.faults), (seed, form)


def test_the_world_of_a_small_job_is_judged_too() -> None:
    for size in (2, 3, 5, 7):
        for late in (0, size - 1):
            job = FakeJob(size)
            for line in range(3):
                job.everybody(WORLD, line=line)
            job.everybody(but=(late,), state="scheduled")
            assert job.verdict().culprits == (late,)
