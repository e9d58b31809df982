"""Rank 1 leaves with an exit code and says nothing, as a library does that calls exit() itself."""

import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1:
    os._exit(3)
time.sleep(60)
