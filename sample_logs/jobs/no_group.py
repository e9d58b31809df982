"""Asks for its rank before the process group exists."""

import torch
import torch.distributed as dist


def scale_learning_rate(base: float) -> float:
    return base * dist.get_world_size()


def main() -> None:
    learning_rate = scale_learning_rate(1e-4)
    dist.init_process_group("gloo")
    print(torch.tensor(learning_rate))


if __name__ == "__main__":
    main()
