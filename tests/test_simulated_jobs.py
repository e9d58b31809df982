"""Many ranks: the first failure and its cause are found whatever the layout, the clocks, and the size of the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.sources import discover
from tests.simulate import KINDS, Clocks, Layout, Plan, Prefix, simulate

SIZES = (2, 3, 8, 16, 64)
SEEDS = range(8)
WATCHED = ("straggler", "busy-loading", "group-straggler", "mismatch")
KERNELS = ("oom-killer", "xid-79", "killed")  # whose rank says nothing, or not why


def score(engine: Engine, folder: Path, plans: list[Plan]) -> tuple[float, float, list[str]]:
    """The share of jobs whose cause, and whose first rank, the top answer names; and what went wrong."""
    causes = ranks = 0
    wrong = []
    for number, plan in enumerate(plans):
        home = folder / str(number)
        home.mkdir(parents=True)
        job = simulate(plan)
        report = engine.explain(discover(job.write(home)).sources)
        top = report.diagnoses[0] if report.diagnoses else None
        causes += top is not None and top.rule in job.causes
        ranks += top is not None and top.origin.rank == job.first_rank
        if top is None or (top.rule, top.origin.rank) != (job.cause, job.first_rank):
            wrong.append(f"{plan}: {job.cause} on {job.first_rank}, got {top and (top.rule, top.origin.rank)}")
    return causes / len(plans), ranks / len(plans), wrong


def plans(layout: Layout, clocks: Clocks, **more: object) -> list[Plan]:
    return [Plan(seed=seed, world=world, layout=layout, clocks=clocks, **more) for seed in SEEDS for world in SIZES]  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["interleaved", "files"])
@pytest.mark.parametrize("clocks", ["iso", "glog"])
def test_with_clocks(engine: Engine, tmp_path: Path, layout: Layout, clocks: Clocks) -> None:
    causes, ranks, wrong = score(engine, tmp_path, plans(layout, clocks, skew_seconds=20.0))
    assert causes >= 0.99, wrong
    assert ranks >= 0.99, wrong


@pytest.mark.parametrize("layout", ["interleaved", "files"])
def test_without_clocks(engine: Engine, tmp_path: Path, layout: Layout) -> None:
    causes, ranks, wrong = score(engine, tmp_path, plans(layout, "none"))
    assert causes >= 0.95, wrong
    assert ranks >= 0.95, wrong


def test_the_last_of_several_attempts_is_explained(engine: Engine, tmp_path: Path) -> None:
    causes, ranks, wrong = score(engine, tmp_path, plans("interleaved", "iso", retries=1))
    assert min(causes, ranks) >= 0.95, wrong


def test_stragglers_are_named_by_their_silence(engine: Engine, tmp_path: Path) -> None:
    several = [plan for plan in plans("interleaved", "iso", straggler=True) if plan.world >= 8]
    _, ranks, wrong = score(engine, tmp_path, several)
    assert ranks >= 0.95, wrong


def test_a_log_cut_short_still_names_the_first_rank(engine: Engine, tmp_path: Path) -> None:
    _, ranks, wrong = score(engine, tmp_path, plans("interleaved", "iso", cut=0.02))
    assert ranks >= 0.9, wrong


def test_a_thousand_ranks(engine: Engine, tmp_path: Path) -> None:
    several = [Plan(seed=seed, world=1024, layout="interleaved", clocks="iso", skew_seconds=5) for seed in range(2)]
    causes, ranks, wrong = score(engine, tmp_path, several)
    assert (causes, ranks) == (1.0, 1.0), wrong


def of_every_kind(seed: int, *sizes: int, **more: object) -> list[Plan]:
    """A plan for each kind of failure and size. A watchdog's silence says too little among fewer than 8 ranks."""
    base: dict[str, object] = {"layout": "interleaved", "clocks": "iso", "skew_seconds": 20.0, **more}
    return [Plan(seed=seed, world=world, kind=kind, **base) for kind in KINDS for world in sizes]  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["interleaved", "files"])
@pytest.mark.parametrize("clocks", ["iso", "none"])
def test_every_kind_of_failure(engine: Engine, tmp_path: Path, layout: Layout, clocks: Clocks) -> None:
    causes, ranks, wrong = score(engine, tmp_path, of_every_kind(3, 8, 32, layout=layout, clocks=clocks))
    assert (causes, ranks) == (1.0, 1.0), wrong


@pytest.mark.parametrize("prefix", ["tee", "srun", "kubectl", "mpirun", "ray"])
def test_whoever_collects_the_lines(engine: Engine, tmp_path: Path, prefix: Prefix) -> None:
    causes, ranks, wrong = score(engine, tmp_path, of_every_kind(4, 16, prefix=prefix, noise=True))
    assert min(causes, ranks) >= 0.93, wrong


@pytest.mark.parametrize("prefix", ["local", "none"])
def test_a_rank_that_only_the_launchers_report_names(engine: Engine, tmp_path: Path, prefix: Prefix) -> None:
    several = [plan for plan in of_every_kind(5, 8, 16, prefix=prefix) if plan.kind not in WATCHED]
    causes, ranks, wrong = score(engine, tmp_path, several)
    assert (causes, ranks) == (1.0, 1.0), wrong


@pytest.mark.parametrize(
    "damage",
    [{"cut_head": 0.3}, {"cut_middle": 0.3}, {"noise": True, "halves": True}, {"layout": "files", "missing": 0.2}],
)
def test_damaged_logs(engine: Engine, tmp_path: Path, damage: dict[str, object]) -> None:
    causes, ranks, wrong = score(engine, tmp_path, of_every_kind(6, 32, **damage))
    assert min(causes, ranks) >= 0.93, wrong


@pytest.mark.parametrize("clocks", ["iso", "glog"])
def test_hosts_in_several_time_zones(engine: Engine, tmp_path: Path, clocks: Clocks) -> None:
    causes, ranks, wrong = score(engine, tmp_path, of_every_kind(7, 32, layout="files", clocks=clocks, zones=True))
    assert (causes, ranks) == (1.0, 1.0), wrong


@pytest.mark.parametrize("clocks", ["iso", "none"])
def test_the_last_attempt_of_every_kind(engine: Engine, tmp_path: Path, clocks: Clocks) -> None:
    """Also of files that hold all attempts and no mark between them."""
    one_file = of_every_kind(8, 16, retries=2, clocks=clocks)
    plans = [*one_file, *of_every_kind(0, 8, 64, retries=1, layout="files", clocks=clocks)]
    causes, ranks, wrong = score(engine, tmp_path, plans)
    assert (causes, ranks) == (1.0, 1.0), wrong


def test_a_straggler_among_ranks_whose_files_are_lost(engine: Engine, tmp_path: Path) -> None:
    plans = [plan for plan in of_every_kind(0, 8, layout="files", missing=0.3) if plan.kind in WATCHED]
    plans += [plan for plan in of_every_kind(3, 64, layout="files", missing=0.3) if plan.kind in WATCHED]
    causes, ranks, wrong = score(engine, tmp_path, plans)
    assert (causes, ranks) == (1.0, 1.0), wrong


def test_where_the_report_is_cut_away_no_wrong_rank_is_named(engine: Engine, tmp_path: Path) -> None:
    """The agent's last words name a local rank; of which node, other ranks may tell or not."""
    right = 0
    cut = [plan for seed in (0, 1, 2) for plan in of_every_kind(seed, 64, cut=0.02) if plan.kind in KERNELS]
    for number, plan in enumerate(cut):
        home = tmp_path / str(number)
        home.mkdir()
        job = simulate(plan)
        top = engine.explain(discover(job.write(home)).sources).diagnoses[0]
        assert top.rule in job.causes, plan
        assert top.origin.rank in (job.first_rank, None), plan
        right += top.origin.rank == job.first_rank
    assert right >= 7


@pytest.mark.parametrize(
    "more", [{"hangs": True}, {"late": True, "clocks": "none"}, {"hangs": True, "layout": "files"}]
)
def test_victims_that_hang_or_speak_first(engine: Engine, tmp_path: Path, more: dict[str, object]) -> None:
    causes, ranks, wrong = score(engine, tmp_path, of_every_kind(10, 16, **more))
    assert (causes, ranks) == (1.0, 1.0), wrong


@pytest.mark.parametrize("clocks", ["iso", "none"])
def test_an_error_that_was_caught_and_outlived_is_no_cause(engine: Engine, tmp_path: Path, clocks: Clocks) -> None:
    """Also without clocks, where nothing but the steps that follow tells that the program went on."""
    several = [plan for plan in of_every_kind(11, 16, decoys=True, clocks=clocks) if plan.kind not in WATCHED]
    causes, _, wrong = score(engine, tmp_path, several)
    assert causes >= 0.9, wrong
