"""Features read with NumPy's default type meet a float32 model on rank 1."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(8, 2)
features = torch.ones(4, 8, dtype=torch.float64 if rank == 1 else torch.float32)
loss = model(features).sum()
dist.all_reduce(loss)
print(f"rank {rank}: {loss.item():.3f}", flush=True)
dist.destroy_process_group()
