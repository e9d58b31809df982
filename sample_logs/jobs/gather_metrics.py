"""Reduces metrics over the ranks; rank 1 takes part with another shape, operation or type."""

import sys

import torch
import torch.distributed as dist


def reduce_loss(kind: str, rank: int) -> None:
    samples = torch.ones(4)
    if rank == 1 and kind == "shape":
        samples = torch.ones(6)  # the last batch of this shard is longer
    if rank == 1 and kind == "dtype":
        samples = samples.double()
    if rank == 1 and kind == "op":
        dist.broadcast(samples, src=1)
        return
    dist.all_reduce(samples)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(2):
        dist.all_reduce(torch.ones(4))
        if rank == 0:
            print(f"step {step} done", flush=True)
    reduce_loss(sys.argv[1], rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
