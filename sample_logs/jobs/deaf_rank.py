"""Rank 0 ignores SIGTERM (a handler that waits for its upload), so the launcher ends it with SIGKILL."""

import signal
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(4))
if rank == 0:
    signal.signal(signal.SIGTERM, lambda *_: print("rank 0: waiting for the upload to end", flush=True))
    time.sleep(600)
if rank == 1:
    time.sleep(1)
    raise RuntimeError("tokenizer vocabulary has 32000 entries, the embedding 31998")
