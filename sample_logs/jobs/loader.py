"""Feeds a job from DataLoader workers; one of them fails in the way the argument names."""

import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, fault: str, rank: int, pixels: int) -> None:
        self.fault = fault
        self.rank = rank
        self.pixels = pixels

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rank == 1 and index == 20:
            if self.fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "exits":
                os._exit(1)
            if self.fault == "raises":
                raise KeyError(f"no caption for image {index}")
        odd = self.fault == "odd-size" and self.rank == 1 and index == 20
        return torch.ones(self.pixels + odd)


class ManyTensors(Dataset):
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        return [torch.ones(2) for _ in range(4)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("fault")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pixels", type=int, default=4)
    parser.add_argument("--pin-memory", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if args.fault == "keeps":
        kept = list(DataLoader(ManyTensors(), batch_size=4, num_workers=args.workers))
        print(len(kept))
    images = Images(args.fault, rank, args.pixels)
    loader = DataLoader(images, batch_size=4, num_workers=args.workers, pin_memory=args.pin_memory)
    for step, batch in enumerate(loader):
        dist.all_reduce(batch.sum())
        if rank == 0:
            print(f"batch {step}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
