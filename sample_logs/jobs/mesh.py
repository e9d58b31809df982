"""Asks for a 2 x 2 mesh on whatever world it gets."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
dist.all_reduce(torch.ones(4), group=mesh.get_group("dp"))
dist.destroy_process_group()
