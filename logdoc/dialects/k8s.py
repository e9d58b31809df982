"""Prefixes of container log collectors (kubectl --timestamps, CRI files, [pod/…], docker compose, JobSet names) and of
whoever pasted the log as a quotation."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

# A trailing ordinal of a pod name is its index in the set: of a worker or node, never surely of a rank.
_POD = r"[a-z0-9][a-z0-9.-]*?(?:-(?P<task>\d{1,5}))?(?:-[a-z0-9]{5})?"

K8S = Dialect(
    "k8s",
    frozenset("[0123456789abcdefghijklmnopqrstuvwxyz>"),
    (
        lazily(rf"\[pod/{_POD}(?:/[\w.-]+)?\] ?"),
        # CRI log files: 2016-10-06T00:17:09.669794202Z stdout F message
        lazily(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) [FP] ?"),
        # kubectl logs --timestamps: nanoseconds and Z (fewer digits where trailing zeros are cut)
        lazily(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)):? "),
        # docker compose: `worker-1  | message`, `trainer  | message`
        lazily(r"[a-z][\w.-]*?-(?P<task>\d{1,4}) +\| "),
        lazily(r"[a-z][\w.-]{0,60} {1,20}\| (?=\S|  )"),
        # Markdown's mark of a quotation (not Python's prompt, not pytest's mark of the failing line)
        lazily(r"(?:> ){1,4}(?=[\[({'/\w]| {1,2}\S)"),
    ),
    outer=True,
)
