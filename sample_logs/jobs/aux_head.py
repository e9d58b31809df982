"""DDP over a model whose auxiliary head takes no part in the loss."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.aux_head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


dist.init_process_group("gloo")
model = DistributedDataParallel(Net())
for step in range(3):
    model(torch.randn(4, 8)).sum().backward()
    if dist.get_rank() == 0:
        print(f"step {step} done", flush=True)
dist.destroy_process_group()
