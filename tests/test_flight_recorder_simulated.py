"""Played jobs with injected faults: every injected rank is named and no other, whatever the job, the fault, the dump."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from logdoc.flight_recorder import Analysis, analyse
from logdoc.types.errors import InputError
from tests import flightjobs
from tests.flightdumps import Form, Layout, dumps
from tests.flightkit import Damage, Fault, Job, Play

JOBS = {
    "ddp": flightjobs.ddp(8),
    "hybrid-shard": flightjobs.fsdp(16, 4),
    "experts": flightjobs.megatron(2, 2, 4),
    "tensor": flightjobs.megatron(4, 2, 2),
    "dense": flightjobs.megatron(2, 2, 4, moe=False),
    "mesh": flightjobs.mesh(4, 4),
}
MOE = ("experts", "tensor")
SINGLE: tuple[Damage, ...] = (
    "host-stops", "device-stops", "never-calls", "killed", "wrong-op", "wrong-size", "wrong-dtype",
)  # fmt: skip
ACTIVE = Form(layout="2.9", only_active=True)


def played(job: Job, damage: Damage, count: int, seed: int) -> Play:
    """`count` ranks are hit within milliseconds of each other."""
    dice = random.Random(seed)
    begin = dice.uniform(0.06, 0.1)
    ranks = dice.sample(range(job.world), count)
    return Play(
        job, [Fault(rank, damage, begin + dice.uniform(0, 0.001), dice.uniform(0.01, 0.1)) for rank in ranks], seed
    )


def seen_apart(play: Play, job: Job, seed: int) -> set[int]:
    """The faults without which the dumps would look different."""
    faults = list(play.faults.values())
    others = {fault.rank: [one for one in faults if one is not fault] for fault in faults}
    return {rank for rank, rest in others.items() if not rest or Play(job, rest, seed).shown() != play.shown()}


def verdicts(
    names: Sequence[str], damage: Damage, count: int, seeds: Sequence[int], form: Form
) -> list[tuple[Analysis, set[int], set[int]]]:
    """For each play what is said, whom the dumps can show, and all that were hit."""
    found = []
    for name in names:
        for seed in seeds:
            play = played(JOBS[name], damage, count, seed)
            found.append((analyse(dumps(play, form)), seen_apart(play, JOBS[name], seed), set(play.faults)))
    return found


@pytest.mark.parametrize("damage", SINGLE)
def test_one_fault_is_named_and_nobody_else(damage: Damage) -> None:
    for seed, (name, job) in enumerate(JOBS.items()):
        form = ACTIVE if seed % 2 else Form(keep=300, timing=True)
        play = played(job, damage, 1, seed)
        assert analyse(dumps(play, form)).culprits == tuple(play.faults), (name, seed, form)


@pytest.mark.parametrize("damage", ["host-stops", "device-stops"])
def test_two_simultaneous_faults_are_both_named(damage: Damage) -> None:
    found = verdicts(MOE, damage, 2, range(3), ACTIVE)
    assert all(set(said.culprits) <= hit for said, _, hit in found)
    exact = [visible <= set(said.culprits) for said, visible, _ in found]
    assert sum(exact) >= len(exact) - 1


def test_three_simultaneous_faults_accuse_no_bystander() -> None:
    for said, _, hit in verdicts(("ddp", "mesh", "hybrid-shard"), "host-stops", 3, range(1), Form()):
        assert said.culprits
        assert set(said.culprits) <= hit


def test_a_host_that_stopped_is_told_from_one_that_waits() -> None:
    """Both stand behind the same unfinished call; that the others went on past it tells them apart."""
    for seed in range(4):
        play = Play(JOBS["ddp"], [Fault(5, "host-stops", 0.05), Fault(2, "host-stops", 0.0502)], seed)
        assert set(analyse(dumps(play, Form())).culprits) == seen_apart(play, JOBS["ddp"], seed), seed


def test_a_skipped_collective_of_all_shows_in_the_order_of_the_groups() -> None:
    """Rank 4 leaves out a collective of all and waits in its pipeline for ranks that wait for it there."""
    play = Play(JOBS["dense"], [Fault(4, "skips", 0.1)], 0)
    said = analyse(dumps(play, Form()))
    assert (said.kind, said.culprits) == ("mismatch", (4,))


@pytest.mark.parametrize("layout", ["1.4", "1.5", "2.2", "2.4", "2.9", "2.10"])
@pytest.mark.parametrize("damage", ["host-stops", "device-stops", "wrong-op"])
def test_every_layout_since_torch_2_3_tells_the_same(layout: Layout, damage: Damage) -> None:
    play = played(JOBS["tensor"], damage, 1, 4)
    assert analyse(dumps(play, Form(layout=layout, keep=400))).culprits == tuple(play.faults)


@pytest.mark.parametrize("form", [Form(as_json=True), Form(layout="2.4", as_json=True)])
def test_json_dumps_name_the_same_rank(form: Form) -> None:
    play = played(JOBS["experts"], "device-stops", 1, 5)
    assert analyse(dumps(play, form)).culprits == tuple(play.faults)


def test_torch_2_2_knows_the_default_group_only() -> None:
    play = played(JOBS["ddp"], "host-stops", 1, 1)
    assert analyse(dumps(play, Form(layout="1.1"))).culprits == tuple(play.faults)
    with pytest.raises(InputError, match="which ranks share a process group"):
        dumps(played(JOBS["mesh"], "host-stops", 1, 1), Form(layout="1.1"))


@pytest.mark.parametrize(
    ("job", "hit"), [(flightjobs.ddp(4), 3), (flightjobs.mesh(8, 4), 17), (flightjobs.megatron(4, 4, 8), 77)]
)
def test_four_to_128_ranks(job: Job, hit: int) -> None:
    play = Play(job, [Fault(hit, "device-stops", 0.05)], 1)
    assert analyse(dumps(play, ACTIVE)).culprits == (hit,)


def test_a_missing_file_of_a_bystander_changes_nothing() -> None:
    for damage in ("host-stops", "device-stops"):
        play = Play(JOBS["experts"], [Fault(10, damage, 0.08)], 2)
        for lost in ((0,), (11,), (3, 8, 9)):
            assert analyse(dumps(play, Form(lost=lost))).culprits == (10,), (damage, lost)


def test_a_buffer_too_small_for_all_that_waits_accuses_no_bystander() -> None:
    """What a full buffer lost need not have finished, and old formats have no other count."""
    for seed in range(4):
        for damage in ("device-stops", "never-calls"):
            play = played(JOBS["ddp"], damage, 1, seed)
            for layout in ("1.5", "2.10"):
                assert set(analyse(dumps(play, Form(layout=layout, keep=15))).culprits) <= set(play.faults)


def test_half_against_half_accuses_nobody() -> None:
    play = Play(JOBS["tensor"], [Fault(0, "wrong-size", 0.08), Fault(1, "wrong-size", 0.08)], 0)
    said = analyse(dumps(play, ACTIVE))
    assert not said.culprits or set(said.culprits) <= {0, 1}
