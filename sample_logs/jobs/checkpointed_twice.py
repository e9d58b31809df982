"""DDP with find_unused_parameters over a block that re-entrant checkpointing runs twice."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = checkpoint(self.block, x, use_reentrant=True)
        return checkpoint(self.block, x, use_reentrant=True)


dist.init_process_group("gloo")
model = DistributedDataParallel(Shared(), find_unused_parameters=True)
for _ in range(2):
    model(torch.randn(4, 8, requires_grad=True)).sum().backward()
dist.destroy_process_group()
