"""Trains with a learning rate that makes the loss overflow; the loop refuses to go on with it."""

import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=5e5)
    for step in range(40):
        x = torch.randn(8, 16)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        if rank == 0:
            print(f"step {step} loss {loss.item():.4g}", flush=True)
        if sys.argv[1] == "check" and not math.isfinite(loss.item()):
            raise FloatingPointError(f"loss is {loss.item()} at step {step}, stopping training")
        optimizer.zero_grad()
        loss.backward()
        if sys.argv[1] == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 1e30, error_if_nonfinite=True)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
