"""Resumes from a checkpoint on every rank."""

import argparse

import torch
import torch.distributed as dist
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="checkpoints/step_400.pt", help="may hold {rank}")
    parser.add_argument("--norm", action="store_true", help="end the model with a LayerNorm")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = args.resume.format(rank=rank)
    print(f"rank {rank}: resuming from {path}", flush=True)
    layers = [nn.Linear(16, 16), nn.Linear(16, 4)]
    model = nn.Sequential(*layers, nn.LayerNorm(4)) if args.norm else nn.Sequential(*layers)
    model.load_state_dict(torch.load(path)["model"])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
