"""The report, logdoc.report/v1: the public contract. Fields may be added; none is renamed or removed."""

from __future__ import annotations

from logdoc.types.rule import FactValue
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from logdoc.types.words import Advice, Kind, Outcome, ProbeOutcome, Risk, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    rank: int | None
    local_rank: int | None
    host: str | None
    source: str
    line: int
    time: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A line that speaks for a diagnosis. `own_words`: not of the log, but what logdoc says of several of its lines."""

    source: str
    line: int
    rank: int | None
    time: str | None
    text: str
    signature: str
    captures: dict[str, str]
    own_words: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLine:
    id: str
    outcome: ProbeOutcome
    summary: str
    host: str
    same_host: bool | None
    ran: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixLine:
    title: str
    why: str | None
    commands: tuple[str, ...]
    applies: str
    risk: Risk
    verify: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTerm:
    """One addend of a score in log-odds; `--why` prints them all."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    rule: str
    kind: Kind
    title: str
    summary: str
    confidence: float
    status: Status
    origin: Origin
    evidence: tuple[Evidence, ...]
    probes: tuple[ProbeLine, ...]
    explains: tuple[str, ...]
    fixes: tuple[FixLine, ...]
    references: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    occurrences: int = 1
    attempts: tuple[int, ...] = ()
    values: dict[str, FactValue] = field(default_factory=dict)
    score: tuple[ScoreTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    line: int
    time: str | None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    rank: int
    host: str | None
    state: Literal["failed", "killed", "waiting", "silent", "finished", "unknown"]
    first_error: Place | None
    last_line: Place | None
    last_collective: str | None = None
    milestone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    world_size: int | None
    seen: int
    first_failure: int | None
    silent: tuple[int, ...]
    table: tuple[RankRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    time: str | None
    rank: int | None
    rule: str
    kind: Kind
    line: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    torch: str | None = None
    nccl: str | None = None
    cuda: str | None = None
    driver: str | None = None
    gpus: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    other: dict[str, FactValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentProblem:
    variable: str
    value: str | None
    problem: str
    fix: str
    severity: Literal["breaks", "risky", "ineffective", "deprecated", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    advice: Advice
    reason: str
    exclude_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    rule: str
    score: float
    line: int
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abnormal:
    """The first abnormal line of a log no rule recognises."""

    source: str
    line: int
    rank: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    name: str
    bytes: int
    lines: int
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InputInfo:
    sources: tuple[SourceInfo, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace:
    """Where the flight recorder shows a rank: its operation, and the innermost frame of user code that called it."""

    rank: int
    role: Literal["culprit", "suspect", "waiting"]
    group: str | None
    operation: str | None
    frame: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightRecorder:
    """What the flight-recorder dumps of one job say together; `culprits` broke first, of `suspects` one did."""

    source: str
    kind: str
    culprits: tuple[int, ...]
    suspects: tuple[int, ...]
    without_dump: tuple[int, ...]
    places: tuple[RecordedPlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    version: str
    rules: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    schema: Literal["logdoc.report/v1"]
    logdoc: Tool
    outcome: Outcome
    headline: str
    diagnoses: tuple[Diagnosis, ...]
    ranks: Ranks
    timeline: tuple[TimelineEntry, ...]
    facts: Facts
    environment: tuple[EnvironmentProblem, ...]
    restart: Restart
    similar: tuple[Similar, ...]
    first_abnormal: Abnormal | None
    collect_next: tuple[str, ...]
    warnings: tuple[str, ...]
    input: InputInfo
    noise: tuple[str, ...] = ()
    flight_recorder: tuple[FlightRecorder, ...] = ()
    novel: tuple[Abnormal, ...] = ()
    language: Literal["en", "zh"] = "en"
