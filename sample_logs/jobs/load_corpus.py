"""Reads a corpus into memory; rank 1 is killed on the way, as the kernel's OOM killer does it."""

import os
import signal
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
sent = signal.Signals[sys.argv[1]]
for shard in range(4):
    print(f"rank {rank}: shard {shard} in memory", flush=True)
    if rank == 1 and shard == 2:
        os.kill(os.getpid(), sent)
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
