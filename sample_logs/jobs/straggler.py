"""One rank comes to a collective later than the group's timeout allows."""

import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def build_cache(rank: int, seconds: float) -> None:
    print(f"[rank {rank}] building the token cache, 0 of 64 files", flush=True)
    time.sleep(seconds)
    print(f"[rank {rank}] building the token cache, 64 of 64 files", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--late-rank", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=4, help="seconds")
    parser.add_argument("--tell", action="store_true", help="say what the late rank does")
    parser.add_argument("--barrier", action="store_true", help="wait in a barrier, not in a reduction")
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()
    dist.all_reduce(torch.ones(4))
    print(f"rank {rank}: step 0 done", flush=True)
    if rank == args.late_rank:
        build_cache(rank, args.timeout * 2.5) if args.tell else time.sleep(args.timeout * 2.5)
    if args.barrier:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
