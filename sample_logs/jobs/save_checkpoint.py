"""Rank 0 saves a checkpoint at the end of each epoch."""

import torch
import torch.distributed as dist
from torch import nn


def save(model: nn.Module, path: str) -> None:
    with open(path, "wb") as file:
        torch.save({"model": model.state_dict()}, file)


def main() -> None:
    dist.init_process_group("gloo")
    model = nn.Linear(512, 512)
    if dist.get_rank() == 0:
        print("saving epoch 1 to checkpoints/epoch_1.pt", flush=True)
        save(model, "checkpoints/epoch_1.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
