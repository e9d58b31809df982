"""The closed sets of words that rules and reports use, as types.

They stand apart because only what looks at annotations at run time needs them (pydantic, say), and then
logdoc.types.made hands them out: the import of `typing` takes a small log's run as long as all its matching.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

__all__ = [
    "Advice",
    "Any",
    "ClassVar",
    "FactType",
    "Kind",
    "Literal",
    "Maturity",
    "Outcome",
    "ProbeOutcome",
    "RankState",
    "Risk",
    "Role",
    "Severity",
    "Status",
    "Strength",
    "Where",
]

Kind = Literal["cause", "symptom", "noise"]
RankState = Literal["failed", "killed", "waiting"]
Role = Literal["evidence", "context"]
Severity = Literal["fatal", "error", "warning", "info"]
Maturity = Literal["experimental", "stable", "retired"]
Strength = Literal["conclusive", "strong", "weak"]
Risk = Literal["safe", "slower", "changes-results", "needs-admin"]
Advice = Literal["retry", "fix-first", "replace-node", "unknown"]
Where = Literal["same-rank", "same-host", "other-rank", "anywhere"]
FactType = Literal["text", "int", "float", "bytes", "seconds", "version"]
Outcome = Literal["cause-found", "symptoms-only", "unrecognised", "healthy"]
Status = Literal["confirmed", "likely", "possible", "refuted"]
ProbeOutcome = Literal["confirms", "refutes", "unknown"]
