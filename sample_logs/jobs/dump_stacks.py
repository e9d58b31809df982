"""A job that hangs in the way its argument names; a timer of Python's own writes every rank's stacks (and ends it)."""

import argparse
import faulthandler
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    """Shards on a file system; one rank's does not answer."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(4) if self.answers else self.read(index)

    def read(self, index: int) -> torch.Tensor:
        time.sleep(600)
        return torch.ones(4)


def train(rank: int) -> None:
    for batch in DataLoader(Shards(answers=rank != 2), batch_size=4, num_workers=1):
        dist.all_reduce(batch)


def evaluate(rank: int) -> None:
    scores = torch.ones(4)
    if rank in (1, 3):
        dist.broadcast(scores, src=rank)
    dist.all_reduce(scores)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("hang", choices=["loader", "order"])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--folder", type=Path, help="one file a rank, instead of the terminal")
    args = parser.parse_args()
    rank = int(os.environ["RANK"])
    # the timer keeps only the file's descriptor: the file must stay open
    out = (args.folder / f"stack_rank{rank}.txt").open("w") if args.folder else sys.stderr
    faulthandler.dump_traceback_later(args.seconds, exit=not args.folder, file=out)
    dist.init_process_group("gloo")
    {"loader": train, "order": evaluate}[args.hang](rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
