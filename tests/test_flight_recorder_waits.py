"""Who is at fault when everybody joined, when groups or pipeline stages wait for each other, and in batches."""

from __future__ import annotations

from typing import Any

import pytest

from logdoc.flight_recorder import Analysis
from logdoc.flight_recorder.model import Frame
from tests.test_flight_recorder import WORLD, FakeJob, lagging_job, place, waits


def test_a_kernel_that_runs_on_all_ranks_and_ends_on_none_accuses_nobody() -> None:
    job = FakeJob(4)
    job.everybody()
    job.everybody(state="started")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (), (0, 1, 2, 3))
    assert verdict.groups[0].started == (0, 1, 2, 3)


@pytest.mark.parametrize("form", [{}, {"only_active": True}])
def test_who_does_not_finish_what_its_peers_finished_is_stuck(form: dict[str, Any]) -> None:
    job = FakeJob(4)
    job.everybody(but=(2,))
    job.call(2, state="scheduled", line=20)
    job.everybody(but=(2,), state="scheduled")  # now all wait for the device of rank 2
    job.call(2, state="scheduled")
    verdict = job.verdict(**form)
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (2,), ())
    assert (place(verdict, 2).seq, place(verdict, 2).frame) == (1, Frame("train_step", "/home/user/train.py", 20))


def test_who_finishes_alone_of_many_accuses_nobody() -> None:
    job = FakeJob(4)
    job.call(0)
    for rank in (1, 2, 3):
        job.call(rank, state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (), (1, 2, 3))


def test_a_rank_stuck_in_a_group_of_its_own_has_nobody_else_to_blame() -> None:
    job = FakeJob(2, alone=(1,))
    job.call(1, "alone", state="scheduled")
    job.call(0, state="scheduled")
    job.call(1, state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (1,), ())


def test_two_broken_devices_are_both_named_though_one_also_waits_for_the_other() -> None:
    """Ranks 2 and 3 saw nothing end any more; rank 2 stopped enqueuing too, so rank 3 waits for it like the rest."""
    job = FakeJob(4, left=(0, 2), right=(1, 3))
    for group in ("left", "right", WORLD):
        for rank in job.groups[group]:
            job.call(rank, group, state="scheduled" if rank in (2, 3) else "completed")
    job.everybody(but=(2,), state="scheduled")
    for form in ({}, {"only_active": True}):
        verdict = job.verdict(**form)
        assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (2, 3), ())
        assert waits(verdict) == {0: (2,), 1: (2,)}


def test_the_root_of_a_broadcast_and_early_receivers_may_finish_first() -> None:
    job = FakeJob(4)
    for rank in range(4):
        job.call(rank, op="broadcast", state="started" if rank == 3 else "completed")
    assert job.verdict().culprits == ()


def test_where_others_have_started_the_rank_that_has_not_holds_them_up() -> None:
    job = FakeJob(4)
    job.everybody(but=(1,), state="started")
    job.call(1, state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("stuck-in-collective", (1,))


def test_late_in_one_group_makes_late_in_the_next() -> None:
    """Rank 7 hangs in front of its tensor-parallel group; the pipeline and data groups pass the wait on."""
    job = FakeJob(8, tp0=(0, 1), tp1=(2, 3), tp2=(4, 5), tp3=(6, 7), even=(0, 2, 4, 6), odd=(1, 3, 5, 7))
    job.everybody()
    for group in ("tp0", "tp1", "tp2"):
        job.everybody(group)
    job.call(6, "tp3", state="scheduled")
    for rank in (0, 2, 4):
        job.call(rank, "even", state="scheduled")
    for rank in (1, 3, 5):
        job.call(rank, "odd", state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("missing-rank", (7,), ())
    assert waits(verdict) == {0: (6,), 2: (6,), 4: (6,), 6: (7,), 1: (7,), 3: (7,), 5: (7,)}


def test_a_rank_that_only_waits_for_its_own_device_to_be_served_is_not_accused() -> None:
    """Rank 0 reads the loss after the hanging collective, the others run ahead of it: it is late, yet a victim."""
    job = lagging_job(8, late=(5,))
    job.everybody(but=(0, 5), state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("lagging", (5,), ())


def pipeline(**how: Any) -> Analysis:
    """Four stages; stage 1 hangs after the first micro-batch, before it takes the second."""
    job = FakeJob(4, pp=(0, 1, 2, 3))
    for rank in range(3):
        job.send(rank, rank + 1, "pp")
        job.recv(rank + 1, rank, "pp")
    job.send(0, 1, "pp", state="scheduled", line=40)
    job.recv(2, 1, "pp", state="scheduled")
    job.recv(3, 2, "pp", state="scheduled")
    return job.verdict(**how)


@pytest.mark.parametrize("form", [{}, {"only_active": True}, {"keep": 2}])
def test_a_pipeline_stalls_at_the_stage_nobody_feeds_and_that_waits_for_nobody(form: dict[str, Any]) -> None:
    verdict = pipeline(**form)
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("lagging", (1,), ())
    assert waits(verdict) == {0: (1,), 2: (1,), 3: (2,)}
    assert place(verdict, 0).is_p2p
    assert place(verdict, 0).frame == Frame("train_step", "/home/user/train.py", 40)


def test_a_small_send_finished_early_is_not_waited_for() -> None:
    """The receiver's own older collective holds the receive up, not the sender."""
    job = FakeJob(3, tp=(1, 2))
    job.send(0, 1)
    job.call(1, "tp", state="scheduled")
    job.recv(1, 0, state="scheduled")
    assert job.verdict().culprits == (2,)


def test_a_send_and_receive_that_meet_and_do_not_end_accuse_nobody() -> None:
    job = FakeJob(2)
    job.send(0, 1, state="started")
    job.recv(1, 0, state="started")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("stuck-in-collective", (), (0, 1))


def test_a_rank_with_an_answered_send_of_its_own_is_still_the_culprit() -> None:
    """Rank 1 hangs right after it posted a send that rank 0 will take, but only after rank 1 takes what it sent."""
    job = FakeJob(2)
    job.send(0, 1, state="scheduled")
    job.recv(0, 1, state="scheduled")
    job.send(1, 0, state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("lagging", (1,), ())


def test_two_groups_entered_in_opposite_order_are_a_mismatch_without_a_culprit() -> None:
    job = FakeJob(4, a=(0, 1), b=(0, 1))
    job.everybody()
    job.call(0, "a", state="scheduled")
    job.call(1, "b", state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (), (0, 1))


def gather_twice(job: FakeJob, rank: int, end: str | None) -> None:
    """A coalesced batch. torch gives its parts no events, so they stay "scheduled"; `end` is the state of the whole."""
    job.call(rank, op="_all_gather_base", state="scheduled", out=(24,))
    job.call(rank, op="_all_gather_base", state="scheduled", out=(24,), batch=True)
    if end:
        job.call(rank, op="coalesced", state=end, batch=True)


@pytest.mark.parametrize("form", [{}, {"only_active": True}])
def test_a_batch_is_one_call_whose_end_alone_tells_its_state(form: dict[str, Any]) -> None:
    job = FakeJob(3)
    for rank in range(3):
        gather_twice(job, rank, "completed")
    job.everybody()
    assert job.verdict(**form).kind == "healthy"
    for rank in range(3):
        gather_twice(job, rank, None if rank == 1 else "started")
    verdict = job.verdict(**form)
    assert (verdict.kind, verdict.culprits) == ("stuck-in-collective", (1,))
    assert verdict.groups[0].seq == 3


def test_finished_sends_do_not_finish_a_batch_of_collectives() -> None:
    job = FakeJob(3)
    for _ in range(5):
        job.send(0, 1)
        job.recv(1, 0)
    for rank in range(3):
        gather_twice(job, rank, None if rank == 1 else "started")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("stuck-in-collective", (1,))
