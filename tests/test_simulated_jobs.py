"""Many ranks: the first failure and its cause are found whatever the layout, the clocks, and the size of the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.sources import discover
from tests.simulate import Clocks, Layout, Plan, simulate

SIZES = (2, 3, 8, 16, 64)
SEEDS = range(8)


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
        causes += top is not None and top.rule == job.cause
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
