"""A job that imports a package this environment lacks."""

import deepspeed
import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    engine, *_ = deepspeed.initialize(model=torch.nn.Linear(4, 4))
    print(engine)


if __name__ == "__main__":
    main()
