"""What may be concluded from dumps that are missing, filtered, overwritten, doubled, or written by gloo or as JSON."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterable

from logdoc.flight_recorder import Analysis, analyse, read_dump
from logdoc.flight_recorder.model import Place
from tests.test_flight_recorder import FakeJob, lagging_job, place, waits


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
