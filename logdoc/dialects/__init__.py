"""The grammars of log prefixes: whose line is this, when, and what is left when the prefix is gone.

`ALL` is the written-out list of known formats; a new one is a module with a Dialect and a line here.
"""

from logdoc.dialects.base import Dialect, Peeled
from logdoc.dialects.hosted import HOSTED
from logdoc.dialects.jsonlog import JSONLOG
from logdoc.dialects.k8s import K8S
from logdoc.dialects.kernel import KERNEL
from logdoc.dialects.mpi import MPI
from logdoc.dialects.nccl import NCCL
from logdoc.dialects.pdsh import PDSH
from logdoc.dialects.python import PYTHON
from logdoc.dialects.ray import RAY, RAY_LOG
from logdoc.dialects.slurm import SLURM, SLURM_PROGRAM
from logdoc.dialects.torchrun import GLOG, TORCHRUN

ALL: tuple[Dialect, ...] = (
    NCCL,
    TORCHRUN,
    GLOG,
    KERNEL,
    K8S,
    MPI,
    PDSH,
    HOSTED,
    RAY,
    RAY_LOG,
    SLURM,
    SLURM_PROGRAM,
    JSONLOG,
    PYTHON,
)

__all__ = ["ALL", "Dialect", "Peeled"]
