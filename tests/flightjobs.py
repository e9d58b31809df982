"""Programs of parallel training jobs for `flightkit`: who calls which collective of which process group, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.flightkit import WORLD, Job, Op

Groups = dict[str, tuple[tuple[int, ...], ...]]


def _everybody(world: int) -> Groups:
    return {WORLD: (tuple(range(world)),)}


def ddp(world: int, logs: bool = True) -> Job:
    """Buckets reduced while backward runs; rank 0 reads the loss each step, all of them every fifth."""

    def program(rank: int) -> Iterator[Op]:
        yield Op(WORLD, "broadcast", (1024,), sync=True)
        for step in range(10**6):
            for bucket in range(4):
                yield Op(WORLD, "all_reduce", (1 << 20, bucket + 1), waits=bucket == 3)
            yield Op(WORLD, "all_reduce", (1,), "Float", sync=step % 5 == 4 or (logs and rank == 0))

    return Job(world, _everybody(world), program)


def fsdp(world: int, shard: int) -> Job:
    """Hybrid sharding: gather and scatter within `shard` ranks, reduce between them, one norm a step that all read."""
    shards = tuple(tuple(range(first, first + shard)) for first in range(0, world, shard))
    copies = tuple(tuple(range(first, world, shard)) for first in range(shard))

    def program(rank: int) -> Iterator[Op]:
        yield Op(WORLD, "broadcast", (1024,), sync=True)
        while True:
            for layer in range(6):
                yield Op("shard", "_all_gather_base", (4096, 512 + layer), batch=2 if layer == 3 else 1)
            for layer in reversed(range(6)):
                yield Op("shard", "_all_gather_base", (4096, 512 + layer))
                yield Op("shard", "_reduce_scatter_base", (4096, 512 + layer), waits=layer == 0)
                if world > shard:
                    yield Op("replicate", "all_reduce", (512, 512 + layer), waits=layer == 0)
            yield Op(WORLD, "all_reduce", (1,), "Float", sync=True)

    groups = _everybody(world) | {"shard": shards}
    return Job(world, groups | ({"replicate": copies} if world > shard else {}), program)


def megatron(tp: int, dp: int, pp: int, moe: bool = True, micro: int = 4) -> Job:
    """Tensor × data × pipeline parallel; with `moe` also expert parallel over tensor and data.

    A stage takes its micro-batches in turn, forward then backward; a router's token counts are read by the host.
    """
    world = tp * dp * pp
    stage = tp * dp
    tensor = tuple(tuple(range(first, first + tp)) for first in range(0, world, tp))
    data = tuple(tuple(range(s * stage + t, (s + 1) * stage, tp)) for s in range(pp) for t in range(tp))
    pipes = tuple(tuple(range(first, world, stage)) for first in range(stage))
    expert = tuple(tuple(range(s * stage, (s + 1) * stage)) for s in range(pp))
    groups: Groups = _everybody(world)
    for name, parts in (("dp", data), ("tp", tensor), ("pp", pipes), ("ep", expert)):
        if len(parts[0]) > 1 and (name != "ep" or moe):
            groups[name] = parts

    def layer(size: Sequence[int]) -> Iterator[Op]:
        if tp > 1:
            yield Op("tp", "_all_gather_base", (4096, *size))
        if "ep" in groups:
            yield Op("ep", "_all_gather_base", (16,), sync=True)
            yield Op("ep", "all_to_all", (4096, 512))
            yield Op("ep", "all_to_all", (4096,))
        if tp > 1:
            yield Op("tp", "_reduce_scatter_base", (8192, *size))
            yield Op("tp", "all_reduce", (8192,))

    def program(rank: int) -> Iterator[Op]:
        before, after = rank - stage, rank + stage
        size = (1, 512)
        while True:
            for backward in (False, True):
                source, target = (after, before) if backward else (before, after)
                for _ in range(micro):
                    if 0 <= source < world:
                        yield Op("pp", "recv", (4096, *size), peer=source)
                    for _ in range(2):
                        yield from layer(size)
                    if 0 <= target < world:
                        yield Op("pp", "send", (4096, *size), peer=target, waits=False)
            if dp > 1:
                yield Op("dp", "_reduce_scatter_base", (1 << 20,), "Float")
            yield Op(WORLD, "all_reduce", (1,), "Float", sync=True)
            if dp > 1:
                yield Op("dp", "_all_gather_base", (1 << 20,))

    return Job(world, groups, program)


def mesh(tp: int, dp: int) -> Job:
    return megatron(tp, dp, 1, moe=False)


def pipeline(stages: int) -> Job:
    return megatron(1, 1, stages, moe=False)
