"""Prefixes of torchrun and of PyTorch's C++ and Python loggers, torch 1.8 to 2.14 (facts: catalog/torch.md (a))."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

TORCHRUN = Dialect(
    "torchrun",
    frozenset("["),
    (
        # sys.excepthook of init_process_group and the C++ logger: the GLOBAL rank
        lazily(r"\[rank(?P<rank>\d+)\]: ?"),
        # --tee with its default template: [role name + LOCAL rank]:
        lazily(r"\[(?!rank)[A-Za-z_][\w.-]{0,120}?(?P<local_rank>\d{1,9})\]:"),
        # templates people set: [${role_name}${local_rank}|rank=${rank}]:  [rank 3]  [host:rank3]
        lazily(r"\[[A-Za-z_][\w.-]{0,120}?(?P<local_rank>\d{1,9})[|,; ]{1,4}rank[=: ]?(?P<rank>\d{1,9})\]:? ?"),
        # lower case only: the `[Rank N]` of ProcessGroupNCCL is the rank within its group and stays in the body
        lazily(r"\[[^\][]{0,60}\brank[=: ]{0,2}(?P<rank>\d{1,9})[^\][]{0,60}\]:? ?"),
    ),
    outer=True,
)

_SOURCE_FILE = r"[\w./<>+-]+\.(?:cpp|cc|cu|c|h|hpp|cuh|py|pyx|rs)"

GLOG = Dialect(
    "glog",
    frozenset("[FEWIVD"),
    (
        # [E1206 18:44:16.997991020 ProcessGroupNCCL.cpp:1515]  (2.4+) and  [E ProcessGroupNCCL.cpp:474]  (to 2.3)
        lazily(
            r"\[(?P<level>[FEWIV])(?:(?P<time>\d{3,4} \d\d:\d\d:\d\d)\.\d+)? "
            rf"(?P<component>{_SOURCE_FILE}:\d+)\] ?"
        ),
        # I0527 15:16:57.219332 58624 ProcessGroupNCCL.cpp:2074]  real glog; torchrun's Python logger since 2.3
        lazily(
            r"(?P<level>[FEWIVD])(?P<time>\d{3,4} \d\d:\d\d:\d\d)\.\d+ +(?P<thread>\d+) "
            rf"(?P<component>{_SOURCE_FILE}:\d+)\] ?"
        ),
        # [2026-11-30 07:48:30,023] torch.distributed.run: [WARNING]  (2.1-2.2)
        lazily(r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)\] (?P<component>torch[\w.]*): \[(?P<level>[A-Z]+)\] ?"),
    ),
)

# [Rank 3]  [PG 0 Rank 3]  [PG 0 (default_pg) Rank 3]  [PG ID 0 PG GUID 0(default_pg) Rank 3]  [PG GUID 0 Rank 3] (2.14)
_DEFAULT_GROUP_RANK = lazily(
    r"\[(?:PG (?:(?:ID )?0 (?:PG GUID 0)?|GUID 0)(?:\((?:default_pg|)\))? ?)?Rank (\d{1,9})\]:? "
)


def default_group_rank(body: str) -> int | None:
    """The rank a ProcessGroup message names, if its group is the default one: only there it is the global rank."""
    found = _DEFAULT_GROUP_RANK.match(body)
    return int(found.group(1)) if found else None
