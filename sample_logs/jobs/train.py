"""A small DDP regression: the job that most cases start, healthy unless its surroundings are broken."""

import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps")
    parser.add_argument("--init-timeout", type=int, default=60, help="seconds")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--find-unused", action="store_true")
    parser.add_argument("--print-env", action="store_true")
    parser.add_argument("--keep-group", action="store_true", help="leave without destroy_process_group")
    return parser.parse_args()


def report(step: int, steps: int, loss: float, progress: bool) -> None:
    if progress:
        filled = 20 * (step + 1) // steps
        bar = "█" * filled + " " * (20 - filled)
        percent = 100 * (step + 1) // steps
        print(f"\repoch 1: {percent:3d}%|{bar}| {step + 1}/{steps} [loss={loss:.4f}]", end="", flush=True)
    elif step % 10 == 0:
        print(f"step {step} loss {loss:.4f}", flush=True)


def main() -> None:
    args = parse_args()
    if args.print_env and os.environ.get("RANK") == "0":
        for name in sorted(os.environ):
            if name.startswith(("NCCL_", "TORCH_", "GLOO_")):
                print(f"{name}={os.environ[name]}")
    print("Initializing process group", flush=True)
    dist.init_process_group(args.backend, timeout=timedelta(seconds=args.init_timeout))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world_size} ready", flush=True)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(args.device)
    model = DistributedDataParallel(model, find_unused_parameters=args.find_unused)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        x = torch.randn(16, 32, device=args.device)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            report(step, args.steps, loss.item(), args.progress)
        time.sleep(args.pause)
    if rank == 0:
        print("\ntraining finished" if args.progress else "training finished", flush=True)
    if not args.keep_group:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
