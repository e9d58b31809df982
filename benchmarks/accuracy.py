"""How often logdoc names the first rank and the cause of simulated jobs (tests/simulate.py), by kind, size and damage.

    python benchmarks/accuracy.py [--seeds 4] [--largest 1024] [--recorder]

`--recorder` adds the flight recorder: played jobs with injected faults (tests/flightkit.py), exact when all visible
faults and nobody else are named. The figures say how the program does on jobs of its own making, no more.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from logdoc.engine import Engine
from logdoc.flight_recorder import analyse
from logdoc.rulebase import load_rules, rule_roots
from logdoc.sources import discover
from tests import flightjobs
from tests.flightdumps import Form, dumps
from tests.flightkit import Damage, Fault, Play
from tests.simulate import KINDS, Plan, simulate

SIZES = (2, 8, 16, 64, 256, 1024)
SMALLEST_WATCHED = 8  # ranks; of fewer, a watchdog's silence says too little
WATCHED = ("straggler", "busy-loading", "group-straggler", "mismatch")
PLAIN = Plan(seed=0, world=0, layout="interleaved", clocks="iso", skew_seconds=20)
VARIANTS = {
    "one file, clocks skewed by 20 s": PLAIN,
    "one file, no clocks": replace(PLAIN, clocks="none"),
    "a file each, clocks skewed by 20 s": replace(PLAIN, layout="files"),
    "a file each, no clocks": replace(PLAIN, layout="files", clocks="none"),
    "a file each, time zones, no years": replace(PLAIN, layout="files", clocks="glog", zones=True),
    "a file each, clocks hours apart": replace(PLAIN, layout="files", skew_seconds=7200),
    "harmless noise, broken lines": replace(PLAIN, noise=True, halves=True),
    "torchrun --tee": replace(PLAIN, prefix="tee"),
    "srun -l": replace(PLAIN, prefix="srun"),
    "kubectl --prefix": replace(PLAIN, prefix="kubectl"),
    "mpirun -tag-output": replace(PLAIN, prefix="mpirun"),
    "no prefix": replace(PLAIN, prefix="none"),
    "prefix with local ranks": replace(PLAIN, prefix="local"),
    "Ray": replace(PLAIN, prefix="ray"),
    "victims hang until the watchdog": replace(PLAIN, hangs=True),
    "errors caught before, no clocks": replace(PLAIN, decoys=True, clocks="none"),
    "head lost (30 %)": replace(PLAIN, cut_head=0.3),
    "middle lost (30 %)": replace(PLAIN, cut_middle=0.3),
    "tail lost (2 %)": replace(PLAIN, cut=0.02),
    "30 % of the ranks lost": replace(PLAIN, layout="files", missing=0.3),
    "two restarts, one file": replace(PLAIN, retries=2),
    "a restart, a file each": replace(PLAIN, layout="files", retries=1),
}
DAMAGES: tuple[Damage, ...] = (
    "host-stops",
    "device-stops",
    "killed",
    "never-calls",
    "skips",
    "repeats",
    "wrong-op",
    "wrong-size",
    "wrong-dtype",
)


@dataclass(slots=True)
class Score:
    jobs: int = 0
    causes: int = 0
    ranks: int = 0

    def row(self, name: str) -> str:
        return f"| {name} | {self.jobs} | {self.causes / self.jobs:.1%} | {self.ranks / self.jobs:.1%} |"


def judge(engine: Engine, plans: Iterable[Plan]) -> Score:
    """Explain each simulated job and compare the top answer with the truth."""
    score = Score()
    for plan in plans:
        with tempfile.TemporaryDirectory() as folder:
            job = simulate(plan)
            report = engine.explain(discover(job.write(Path(folder))).sources)
        top = report.diagnoses[0] if report.diagnoses else None
        score.jobs += 1
        score.causes += top is not None and top.rule in job.causes
        score.ranks += top is not None and top.origin.rank == job.first_rank
    return score


def told(kind: str, world: int) -> bool:
    return kind not in WATCHED or world >= SMALLEST_WATCHED


def simulated(engine: Engine, seeds: int, sizes: Sequence[int]) -> Iterator[str]:
    head = ["| what | jobs | cause | first rank |", "|---|---|---|---|"]
    usual = [VARIANTS[name] for name in list(VARIANTS)[:4]]
    yield from ("### By kind of failure: up to 64 ranks, with and without clocks, one file or many", "", *head)
    for kind in KINDS:
        worlds = [world for world in sizes if world <= 64 and told(kind, world)]
        plans = [
            replace(plan, seed=seed, world=n, kind=kind) for plan in usual for seed in range(seeds) for n in worlds
        ]
        yield judge(engine, plans).row(kind)
    yield from ("", "### By size, every kind, one file with clocks and many without", "", *head)
    for world in sizes:
        few = range(seeds if world <= 64 else 1)
        kinds = [kind for kind in KINDS if told(kind, world)]
        plans = [
            replace(plan, seed=seed, world=world, kind=kind)
            for plan in (usual[0], usual[3]) for seed in few for kind in kinds
        ]  # fmt: skip
        yield judge(engine, plans).row(f"{world} ranks")
    yield from ("", "### By what happened to the log: 8 and 64 ranks, every kind", "", *head)
    for name, plan in VARIANTS.items():
        kinds = [kind for kind in KINDS if kind not in WATCHED or plan.prefix not in ("none", "local")]
        plans = [
            replace(plan, seed=seed, world=world, kind=kind)
            for seed in range(seeds) for world in (8, 64) for kind in kinds
        ]  # fmt: skip
        yield judge(engine, plans).row(name)


RECORDED = {
    "ddp 8": flightjobs.ddp(8),
    "fsdp 16": flightjobs.fsdp(16, 4),
    "experts 16": flightjobs.megatron(2, 2, 4),
    "tensor 16": flightjobs.megatron(4, 2, 2),
    "dense 16": flightjobs.megatron(2, 2, 4, moe=False),
    "mesh 16": flightjobs.mesh(4, 4),
    "pipeline 4": flightjobs.pipeline(4),
}


@dataclass(slots=True)
class Recall:
    """`visible`: faults without which the dumps would look different; `right`: named ranks that were hit."""

    sets: int = 0
    exact: int = 0
    visible: int = 0
    found: int = 0
    named: int = 0
    right: int = 0

    def add(self, play: Play, said: set[int], visible: set[int]) -> None:
        hit = set(play.faults)
        self.sets += 1
        self.exact += visible <= said <= hit and bool(said)
        self.visible += len(visible)
        self.found += len(said & visible)
        self.named += len(said)
        self.right += len(said & hit)

    def row(self, damage: str, count: int) -> str:
        shares = (self.exact / self.sets, self.found / max(1, self.visible), self.right / max(1, self.named))
        return f"| {damage} | {count} | {self.sets} | " + " | ".join(f"{share:.0%}" for share in shares) + " |"


def recorded(seeds: int) -> Iterator[str]:
    """`seeds` sets of each job, fault and number of ranks hit within 10 ms; exact: those that show, and none else."""
    yield from ("### Flight recorder: played jobs of 4, 8 and 16 ranks", "")
    yield "| fault | ranks hit | sets | exact | visible ones named | named ones hit |"
    yield "|---|---|---|---|---|---|"
    for damage in DAMAGES:
        for count in (1, 2, 3):
            recall = Recall()
            for name, job in RECORDED.items():
                for seed in range(seeds):
                    dice = random.Random(f"{name}{damage}{count}{seed}")
                    begin = dice.uniform(0.06, 0.1)
                    ranks = dice.sample(range(job.world), count)
                    faults = [
                        Fault(rank, damage, begin + dice.uniform(0, 0.01), dice.uniform(0, 0.1)) for rank in ranks
                    ]
                    play = Play(job, faults, seed)
                    visible = {one.rank for one in faults if count == 1 or _shows(play, one, seed)}
                    form = dice.choice((Form(), Form("2.9", only_active=True)))
                    recall.add(play, set(analyse(dumps(play, form)).culprits), visible)
            yield recall.row(damage, count)


def _shows(play: Play, fault: Fault, seed: int) -> bool:
    """Whether the dumps would look different without this fault."""
    others = [one for one in play.faults.values() if one is not fault]
    return Play(play.job, others, seed).shown() != play.shown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--largest", type=int, default=1024)
    parser.add_argument("--recorder", action="store_true")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.largest]
    lines = chain(simulated(Engine(load_rules(rule_roots())), options.seeds, sizes), [""])
    for line in chain(lines, recorded(options.seeds)) if options.recorder else lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
