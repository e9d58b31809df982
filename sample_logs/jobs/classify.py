"""Trains a classifier on shards; the shard of `--bad-rank` holds a label that the head does not have."""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

CLASSES = 10


def load_batch(step: int, bad: bool) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(0, CLASSES, (8,))
    if bad and step == 6:
        labels[3] = 11
    if int(labels.max()) >= CLASSES:
        raise ValueError(f"step {step}: label {int(labels.max())} is out of range for {CLASSES} classes")
    return torch.randn(8, 16), labels


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bad-rank", type=int, default=1)
    parser.add_argument("--good-from-attempt", type=int, default=99)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    print(f"rank {rank} starts, attempt {attempt}", flush=True)
    model = DistributedDataParallel(nn.Linear(16, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        x, y = load_batch(step, rank == args.bad_rank and attempt < args.good_from_attempt)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 3 == 0:
            print(f"training step {step} of attempt {attempt} done, loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "--record" in sys.argv:
        record(main)()
    else:
        main()
