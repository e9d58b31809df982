"""Allocates replay buffers until the address space of the process is used up."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
buffers = []
for index in range(64):
    if rank == 1 or index < 2:
        buffers.append(torch.empty(1 << 27))
    if index % 2 == 0 and rank == 1:
        print(f"rank {rank}: {index + 1} buffers", flush=True)
dist.barrier()
dist.destroy_process_group()
