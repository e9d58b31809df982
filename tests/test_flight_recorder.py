"""The verdict over the dumps of whole jobs, built here rank by rank in the layout torch writes."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from logdoc.flight_recorder import Analysis, Dump, analyse, read_dump
from logdoc.flight_recorder.frames import user_frame
from logdoc.flight_recorder.model import Frame, Place

TORCH = "/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
WORLD = "default_pg"


class FakeJob:
    """Records what each rank calls and writes the dumps. Groups are numbered by creation, as torch names them."""

    def __init__(self, size: int, backend: str = "nccl", **groups: Sequence[int]) -> None:
        self.size = size
        self.backend = backend
        self.groups: dict[str, tuple[int, ...]] = {WORLD: tuple(range(size))}
        self.groups.update({name: tuple(ranks) for name, ranks in groups.items()})
        self.entries: dict[int, list[dict[str, Any]]] = {rank: [] for rank in range(size)}
        self.counts: dict[tuple[int, str, bool], int] = {}

    def own_groups(self, rank: int) -> list[str]:
        return [name for name, ranks in self.groups.items() if rank in ranks]

    def call(
        self,
        rank: int,
        group: str = WORLD,
        op: str = "all_reduce",
        *,
        state: str = "completed",
        size: Sequence[int] = (8,),
        out: Sequence[int] | None = None,
        dtype: str = "Float",
        line: int = 10,
        batch: bool = False,
        p2p: bool = False,
    ) -> None:
        """`batch`: in the coalesced batch of the call before, so with the same sequence number."""
        key = (rank, group, p2p)
        self.counts[key] = self.counts.get(key, 0) + (not batch)
        done = state == "completed"
        without_events = self.backend == "gloo"
        number = list(self.groups).index(group)
        self.entries[rank].append(
            {
                "frames": [
                    {"name": op, "filename": TORCH, "line": 3245},
                    {"name": "train_step", "filename": "/home/user/train.py", "line": line},
                    {"name": "<module>", "filename": "/home/user/main.py", "line": 1},
                ],
                "record_id": len(self.entries[rank]),
                "pg_id": self.own_groups(rank).index(group),
                "process_group": (str(number), group),
                "collective_seq_id": self.counts.get((rank, group, False), 0),
                "p2p_seq_id": self.counts.get((rank, group, True), 0),
                "op_id": len(self.entries[rank]),
                "profiling_name": f"{self.backend}:{op}",
                "time_created_ns": 10**18 + len(self.entries[rank]) * 10**6 + rank,
                "input_sizes": [list(size)],
                "input_dtypes": [dtype],
                "output_sizes": [list(size if out is None else out)],
                "output_dtypes": [dtype],
                "state": "scheduled" if without_events else state,
                "time_discovered_started_ns": 10**18 if state != "scheduled" and not without_events else None,
                "time_discovered_completed_ns": 10**18 if done and not without_events else None,
                "retired": done,
                "timeout_ms": 600000,
                "is_p2p": p2p,
            }
        )

    def everybody(self, group: str = WORLD, op: str = "all_reduce", *, but: Iterable[int] = (), **how: Any) -> None:
        for rank in self.groups[group]:
            if rank not in but:
                self.call(rank, group, op, **how)

    def send(self, rank: int, to: int, group: str = WORLD, **how: Any) -> None:
        ranks = self.groups[group]
        self.call(rank, group, f"send {ranks.index(rank)}->{ranks.index(to)}", p2p=True, **how)

    def recv(self, rank: int, source: int, group: str = WORLD, **how: Any) -> None:
        ranks = self.groups[group]
        self.call(rank, group, f"recv {ranks.index(rank)}<-{ranks.index(source)}", p2p=True, **how)

    def status(self, rank: int) -> dict[str, dict[str, int]]:
        """As ProcessGroupStatus counts: sends and receives in the same three numbers as collectives."""
        found: dict[str, dict[str, int]] = {}
        for entry in self.entries[rank]:
            number = entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"]
            status = found.setdefault(
                str(entry["pg_id"]), {f"last_{w}_collective": -1 for w in ("started", "completed")}
            )
            status["last_enqueued_collective"] = number
            if entry["retired"]:
                status["last_completed_collective"] = number
        return found

    def content(self, rank: int, *, only_active: bool = False, keep: int | None = None) -> dict[str, Any]:
        entries = [entry for entry in self.entries[rank] if not (only_active and entry["state"] == "completed")]
        config = {
            str(list(self.groups).index(name)): {"name": name, "desc": name, "ranks": str(list(self.groups[name]))}
            for name in self.own_groups(rank)
        }
        return {
            "version": "2.10",
            "comm_lib_version": "2.27.3",
            "pg_config": config,
            "pg_status": self.status(rank),
            "entries": entries[len(entries) - keep :] if keep is not None else entries,
        }

    def dumps(self, *, without: Iterable[int] = (), **how: Any) -> list[Dump]:
        return [
            read_dump(pickle.dumps(self.content(rank, **how), protocol=2), f"nccl_trace_rank_{rank}")
            for rank in range(self.size)
            if rank not in without
        ]

    def verdict(self, **how: Any) -> Analysis:
        return analyse(self.dumps(**how))


def place(analysis: Analysis, rank: int) -> Place:
    (found,) = [place for place in analysis.places if place.rank == rank]
    return found


def waits(analysis: Analysis) -> dict[int, tuple[int, ...]]:
    return {wait.rank: wait.on for wait in analysis.waits}


def lagging_job(size: int = 8, late: Iterable[int] = (5,)) -> FakeJob:
    """Everybody finishes three collectives; then all but the `late` ones wait in a fourth."""
    job = FakeJob(size)
    for line in (10, 11, 12):
        job.everybody(line=line)
    job.everybody(op="_all_gather_base", size=(8,), out=(8 * size,), but=late, state="scheduled", line=20)
    return job


def test_a_job_in_which_everything_completed_is_healthy() -> None:
    job = FakeJob(4, tp=(0, 1))
    job.everybody()
    job.everybody("tp", op="broadcast")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects, verdict.waits) == ("healthy", (), (), ())
    assert [report.seq for report in verdict.groups] == [None, None]


@pytest.mark.parametrize("form", [{}, {"only_active": True}, {"keep": 2}])
def test_the_rank_that_did_not_enqueue_what_others_wait_for_lags(form: dict[str, Any]) -> None:
    job = FakeJob(64)
    for line in range(30):
        job.everybody(line=line)
    job.everybody(op="barrier", but=(37,), state="started", line=99)
    verdict = job.verdict(**form)
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("lagging", (37,), ())
    (report,) = verdict.groups
    assert (report.seq, report.op, report.missing) == (31, "barrier", (37,))
    assert report.joined == report.unfinished == report.started == tuple(rank for rank in range(64) if rank != 37)
    assert place(verdict, 0).frame == Frame("train_step", "/home/user/train.py", 99)


def test_of_a_lagging_rank_the_last_thing_it_did_is_shown() -> None:
    last = place(lagging_job().verdict(), 5)
    assert (last.role, last.seq, last.op) == ("culprit", 3, "all_reduce")
    assert last.frame == Frame("train_step", "/home/user/train.py", 12)


def test_a_rank_that_never_used_the_group_is_missing() -> None:
    job = FakeJob(8, dp=(0, 2, 4, 6))
    job.everybody()
    job.everybody("dp", but=(4,), state="scheduled")
    for form in ({}, {"only_active": True}):
        verdict = job.verdict(**form)
        assert (verdict.kind, verdict.culprits) == ("missing-rank", (4,))
        assert waits(verdict) == {0: (4,), 2: (4,), 6: (4,)}


def test_two_lagging_ranks_are_both_named() -> None:
    verdict = lagging_job(16, late=(9, 14)).verdict(only_active=True)
    assert (verdict.kind, verdict.culprits) == ("lagging", (9, 14))


def test_who_calls_another_operation_than_most_is_the_culprit() -> None:
    job = FakeJob(4)
    job.everybody()
    job.everybody(but=(2,), state="scheduled", line=20)
    job.call(2, op="broadcast", state="scheduled", line=21)
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (2,), ())
    disagreement = verdict.groups[0].disagreement
    assert disagreement is not None
    assert disagreement.what == "op"
    assert [(variant.ranks, variant.op) for variant in disagreement.variants] == [
        ((0, 1, 3), "all_reduce"),
        ((2,), "broadcast"),
    ]
    assert place(verdict, 2).frame == Frame("train_step", "/home/user/train.py", 21)


def test_on_a_tie_nobody_is_accused() -> None:
    job = FakeJob(4)
    for rank in range(4):
        job.call(rank, op="all_reduce" if rank < 2 else "barrier", state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (), (0, 1, 2, 3))


@pytest.mark.parametrize(("odd", "what"), [({"size": (4, 3)}, "size"), ({"dtype": "BFloat16"}, "dtype")])
def test_another_size_or_type_is_a_mismatch(odd: dict[str, Any], what: str) -> None:
    job = FakeJob(4)
    job.everybody(but=(1,), size=(4, 4), state="started")
    job.call(1, **{"size": (4, 4), **odd}, state="started")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("mismatch", (1,))
    assert verdict.groups[0].disagreement is not None
    assert verdict.groups[0].disagreement.what == what


def test_another_shape_of_as_many_elements_is_no_mismatch() -> None:
    job = FakeJob(4)
    job.everybody(but=(1,), size=(4, 4))
    job.call(1, size=(16,))
    assert job.verdict().kind == "healthy"


def test_root_and_leaves_of_gather_and_scatter_may_differ() -> None:
    job = FakeJob(3)
    for rank in range(3):
        job.call(rank, op="gather", out=(24,) if rank == 0 else (), size=(8,))
        job.call(rank, op="scatter", size=(24,) if rank == 0 else (), out=(8,))
    assert job.verdict().kind == "healthy"


def test_uneven_all_to_all_is_fine_until_elements_get_lost() -> None:
    job = FakeJob(2)
    job.call(0, op="all_to_all", size=(10, 4), out=(7, 4))
    job.call(1, op="all_to_all", size=(10, 4), out=(13, 4))
    assert job.verdict().kind == "healthy"
    job.call(0, op="all_to_all", size=(10, 4), out=(7, 4), state="started")
    job.call(1, op="all_to_all", size=(10, 4), out=(12, 4), state="started")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (), (0, 1))


def test_a_mismatch_that_went_through_is_told_only_when_nothing_hangs() -> None:
    job = FakeJob(4, tp=(0, 1))
    job.everybody(but=(3,), dtype="Float")
    job.call(3, dtype="Int")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("mismatch", (3,))
    job.call(0, "tp", state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("missing-rank", (1,))


def test_after_a_mismatch_later_numbers_of_the_group_mean_nothing() -> None:
    job = FakeJob(4)
    job.everybody(but=(2,))  # rank 2 skips this one: from here its numbers are one behind
    for rank in range(4):
        job.call(rank, op="barrier", state="completed" if rank == 2 else "scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits) == ("mismatch", (2,))
    assert waits(verdict) == {0: (2,), 1: (2,), 3: (2,)}


def test_what_a_mismatched_rank_waits_for_elsewhere_excuses_it_not() -> None:
    """Rank 2 skipped the barrier of all and waits for rank 3 in the next group, where rank 3 cannot come."""
    job = FakeJob(4, tp=(2, 3))
    job.everybody()
    job.everybody(op="barrier", but=(2,), state="scheduled")
    job.call(2, state="scheduled")
    job.call(2, "tp", state="scheduled")
    verdict = job.verdict()
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("mismatch", (2,), ())


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


def test_a_rank_without_a_dump_that_others_wait_for_is_the_culprit() -> None:
    verdict = lagging_job().verdict(without=(5,))
    assert (verdict.kind, verdict.culprits, verdict.without_dump) == ("no-dump", (5,), (5,))
    assert verdict.groups[0].without_dump == (5,)
    assert place(verdict, 5) == Place(5, "culprit", "no-dump")


def test_a_lagging_rank_with_a_dump_explains_more_than_a_missing_dump() -> None:
    verdict = lagging_job().verdict(without=(2,))
    assert (verdict.kind, verdict.culprits, verdict.without_dump) == ("lagging", (5,), (2,))


def test_with_most_dumps_missing_a_missing_dump_accuses_nobody() -> None:
    verdict = lagging_job().verdict(without=(2, 3, 4, 5, 6, 7))
    assert (verdict.kind, verdict.culprits) == ("no-dump", ())
    assert verdict.suspects == (2, 3, 4, 5, 6, 7)


def test_missing_dumps_are_never_called_healthy() -> None:
    job = FakeJob(4)
    job.everybody()
    assert job.verdict(without=(3,)).kind == "no-dump"
    assert analyse([]).kind == "unknown"


def test_where_the_buffer_wrapped_the_oldest_calls_are_not_compared() -> None:
    """Each rank kept its last entries only, rank 3 fewer of this group: what it lost it had finished."""
    job = FakeJob(4, own=(3,))
    for _ in range(50):
        job.everybody()
    for _ in range(8):
        job.call(3, "own")
    assert job.verdict(keep=10).kind == "healthy"


def test_a_wrapped_buffer_without_the_group_and_without_status_says_nothing() -> None:
    job = FakeJob(3, own=(2,))
    job.everybody()
    for _ in range(9):
        job.call(2, "own")
    for rank in (0, 1):
        job.call(rank, state="scheduled")
    contents = [job.content(rank, keep=5) for rank in range(3)]
    contents[2]["pg_status"] = {}
    verdict = analyse([read_dump(pickle.dumps(one, 2), f"rank_{rank}") for rank, one in enumerate(contents)])
    assert (verdict.kind, verdict.culprits, verdict.suspects) == ("unknown", (), (2,))
    assert verdict.groups[0].unclear == (2,)


def test_the_status_of_a_group_that_also_sends_is_no_count_of_collectives() -> None:
    """Finished sends are not in the dump, yet they moved rank 1's number beyond any collective."""
    job = FakeJob(3)
    job.everybody()
    for _ in range(5):
        job.send(0, 1)
        job.recv(1, 0)
    job.send(0, 1, state="scheduled")
    job.everybody(but=(1,), state="scheduled")
    (report,) = job.verdict(only_active=True).groups
    assert (report.seq, report.joined, report.missing, report.unclear) == (2, (0, 2), (), (1,))


def test_an_old_send_does_not_show_how_many_collectives_followed_and_finished() -> None:
    job = FakeJob(3)
    job.everybody()
    job.send(1, 2, state="scheduled")
    job.call(1, op="broadcast")  # the root has finished, so this dump leaves the call out
    for rank in (0, 2):
        job.call(rank, op="broadcast", state="scheduled")
    (report,) = job.verdict(only_active=True).groups
    assert (report.seq, report.missing, report.unclear) == (2, (), (1,))


def test_the_wait_that_is_told_is_one_the_other_side_must_end() -> None:
    """Rank 0's old send is taken, only not yet served; what it truly waits for is rank 2."""
    job = FakeJob(4, tp=(1, 3))
    job.call(1, "tp", state="scheduled")
    job.send(0, 1, state="scheduled")
    job.recv(1, 0, state="scheduled")
    job.everybody(but=(2, 3), state="scheduled")
    assert waits(job.verdict())[0] == (2, 3)


def test_groups_of_one_name_and_different_ranks_are_different_groups() -> None:
    """split_group gives one name to all parts."""
    job = FakeJob(4, left=(0, 1), right=(2, 3))
    for _ in range(3):
        job.everybody("left")
    job.everybody("right")
    job.call(2, "right", state="scheduled")
    contents = [job.content(rank) for rank in range(4)]
    for content in contents:
        renamed = {"1": "5", "2": "5", "0": "0"}
        content["pg_config"] = {renamed[name]: group for name, group in content["pg_config"].items()}
        for entry in content["entries"]:
            entry["process_group"] = (renamed[entry["process_group"][0]], "part")
    verdict = analyse([read_dump(pickle.dumps(one, 2), f"rank_{rank}") for rank, one in enumerate(contents)])
    assert (verdict.kind, verdict.culprits) == ("lagging", (3,))


def gloo(job: FakeJob, ranks: str = "[]", without: Iterable[int] = ()) -> Analysis:
    """As torch 2.13 writes it: all groups' ranks under the name '', so only those of the last one created are left."""
    contents = {rank: job.content(rank) for rank in range(job.size) if rank not in without}
    for content in contents.values():
        content["pg_config"] = {"": {"name": "", "desc": "", "ranks": ranks}}
    return analyse([read_dump(pickle.dumps(one, 2), f"rank_{rank}") for rank, one in contents.items()])


def test_gloo_calls_that_returned_count_as_finished_only_while_everybody_joined() -> None:
    job = FakeJob(3, backend="gloo", sub=(0, 2))
    job.everybody()
    job.everybody("sub")
    assert gloo(job).kind == "healthy"
    job.everybody(but=(1,))  # timed out, and yet retired
    verdict = gloo(job)
    assert (verdict.kind, verdict.culprits) == ("lagging", (1,))
    assert waits(verdict) == {0: (1,), 2: (1,)}


def test_gloo_calls_that_differ_are_a_mismatch() -> None:
    job = FakeJob(3, backend="gloo")
    job.everybody(but=(2,))
    job.call(2, op="barrier")
    verdict = gloo(job)
    assert (verdict.kind, verdict.culprits) == ("mismatch", (2,))
    assert waits(verdict) == {0: (2,), 1: (2,)}


def test_a_gloo_rank_that_never_called_anything_belongs_to_the_default_group() -> None:
    job = FakeJob(3, backend="gloo")
    job.everybody(but=(1,))
    verdict = gloo(job)
    assert (verdict.kind, verdict.culprits) == ("missing-rank", (1,))


def test_the_ranks_of_an_only_gloo_group_show_whose_dump_is_missing() -> None:
    job = FakeJob(3, backend="gloo")
    job.everybody()
    assert gloo(job, ranks="[0, 1, 2]", without=(2,)).without_dump == (2,)


def test_json_says_what_the_pickle_says_but_for_the_stacks() -> None:
    job = lagging_job()
    dumps = []
    for rank in range(job.size):
        content = job.content(rank)
        for entry in content["entries"]:
            del entry["frames"]
            for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                entry[key] = entry[key] or 0
        for status in content["pg_status"].values():
            status.update({key: str(value) for key, value in status.items()})
        dumps.append(read_dump(json.dumps(content).encode(), f"rank_{rank}.json"))
    expected = job.verdict()
    verdict = analyse(dumps)
    assert (verdict.kind, verdict.culprits, verdict.waits) == (expected.kind, expected.culprits, expected.waits)
    assert {one.frame for one in verdict.places} == {None}


def test_of_two_dumps_of_one_rank_the_later_counts() -> None:
    early, job = lagging_job(late=(5,)), lagging_job(late=(5,))
    job.call(5, op="_all_gather_base", size=(8,), out=(64,), state="scheduled")
    dumps = [*job.dumps(), *early.dumps()]
    for order in (dumps, dumps[::-1]):
        assert analyse(order).kind == "stuck-in-collective"


def test_the_order_of_the_dumps_changes_nothing() -> None:
    dumps = lagging_job(16, late=(3, 9)).dumps()
    expected = analyse(dumps)
    random.Random(1).shuffle(dumps)
    assert analyse(dumps) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([TORCH, "/home/user/train.py", "/home/user/main.py"], "/home/user/train.py"),
        (["/src/pytorch/torch/distributed/c10d_logger.py", "/data/torch/train.py"], "/data/torch/train.py"),
        (["??", "ProcessGroupNCCL.cpp", "/usr/lib/python3.11/contextlib.py", "/home/user/a.py"], "/home/user/a.py"),
        ([TORCH, "/env/lib/python3.11/site-packages/megatron/p2p.py", "/home/u/pretrain.py"], "/home/u/pretrain.py"),
        ([TORCH, "/env/lib/python3.11/site-packages/deepspeed/comm.py", "<string>"], "deepspeed/comm.py"),
        ([TORCH, "/usr/lib/python3.11/threading.py", "<frozen runpy>"], None),
        ([], None),
    ],
)
def test_the_innermost_frame_of_user_code(files: list[str], expected: str | None) -> None:
    frame = user_frame([Frame("f", file, 1) for file in files])
    if expected is None:
        assert frame is None
    else:
        assert frame is not None
        assert frame.file.endswith(expected)
