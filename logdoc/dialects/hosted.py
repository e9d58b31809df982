"""Prefixes of hosted notebooks and training services: Kaggle's log pages, SageMaker's MPI launcher, Determined's trials."""

from __future__ import annotations

import re

from logdoc.dialects.base import Dialect

HOSTED = Dialect(
    "hosted",
    frozenset("[0123456789"),
    (
        # Kaggle: seconds since the start, the line's number
        re.compile(r"\d{1,7}\.\d{1,3}s[\t ]+\d{1,7}[\t ]"),
        # SageMaker: `[1,mpirank:3,algo-1]<stdout>:`
        re.compile(r"\[\d+,mpirank:(?P<rank>\d+),(?P<host>[A-Za-z][\w.-]{0,252})\](?:<\w+>:?)? ?"),
        # Determined: the container's id, then who is talking in it
        re.compile(r"\[[0-9a-f]{8}\] (?:\[rank=(?P<rank>\d+)\] )?"),
    ),
    outer=True,
)
