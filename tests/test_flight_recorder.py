"""The verdict over the dumps of whole jobs, built here rank by rank in the layout torch writes."""

from __future__ import annotations

import pickle
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


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([TORCH, "/home/user/train.py", "/home/user/main.py"], "/home/user/train.py"),
        (["/src/pytorch/torch/distributed/c10d_logger.py", "/data/torch/train.py"], "/data/torch/train.py"),
        (["??", "ProcessGroupNCCL.cpp", "/usr/lib/python3.11/contextlib.py", "/home/user/a.py"], "/home/user/a.py"),
        ([TORCH, "/env/lib/python3.11/site-packages/megatron/p2p.py", "/home/u/pretrain.py"], "/home/u/pretrain.py"),
        ([TORCH, "/env/lib/python3.11/site-packages/deepspeed/comm.py", "<string>"], "deepspeed/comm.py"),
        ([TORCH, "/usr/lib/python3.11/threading.py", "<frozen runpy>"], None),
        ([TORCH, "/usr/lib64/python3.9/threading.py", "/home/user/train.py"], "/home/user/train.py"),
        ([r"C:\env\Lib\site-packages\torch\functional.py", r"C:\env\Lib\threading.py", r"D:\a\train.py"], "train.py"),
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
