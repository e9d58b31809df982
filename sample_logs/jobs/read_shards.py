"""Each rank opens its own shard of the data set."""

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    with open(f"data/train-{rank:05d}.bin", "rb") as shard:
        count = torch.tensor(float(len(shard.read())))
    dist.all_reduce(count)
    print(f"rank {rank}: {int(count)} bytes in all", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
