"""What the stages between reader and report pass on: matches, facts, hypotheses, probe results."""

from __future__ import annotations

from logdoc.types.record import Record
from logdoc.types.report import ScoreTerm
from logdoc.types.rule import FactValue, Rule, Signature
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import ProbeOutcome, Status, Strength, Where


@dataclass(slots=True)
class Match:
    """A signature of a rule found in a record. `start` and `end` are character offsets into `record.body`.

    `rank`, `host` and `local_rank` are the failing party's: the captures' when the signature names one, else the
    printer's. `line` is the source line of the match, which may lie below the record's first.
    """

    rule: Rule
    name: str
    signature: Signature
    record: Record
    start: int
    end: int
    captures: dict[str, str]
    line: int
    rank: int | None
    local_rank: int | None
    host: str | None

    @property
    def is_weak_evidence(self) -> bool:
        """Whether a rule of kind noise that knows the record better takes this match back."""
        signature = self.signature
        return self.rule.kind != "noise" and signature.role == "evidence" and signature.strength == "weak"

    @property
    def position(self) -> tuple[int, int]:
        """Where it stands among all matches, in the order of reading."""
        return (self.record.seq, self.start)

    def is_near(self, other: Match, where: Where) -> bool | None:
        """Whether another match is there, seen from this one; None where the log does not tell.

        Processes are told apart by their ranks; where neither has one, by what their printers are known by.
        """
        if where == "anywhere":
            return True
        if where == "same-host":
            return None if self.host is None or other.host is None else self.host == other.host
        if self.rank is not None and other.rank is not None:
            same: bool | None = self.rank == other.rank
        elif self.rank is None and other.rank is None:
            same = self.record.who.is_one_process_with(other.record.who)
        else:
            same = None
        return same if same is None or where == "same-rank" else not same


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value with where it came from: a log line (`source:line`) or a probe (`probe@host`).

    Sizes are bytes, durations seconds, fractions 0..1; `unit` (of a probe's fact) says which, for whoever reads it.
    """

    id: str
    value: FactValue
    origin: str
    unit: str = ""
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe said to one hypothesis."""

    id: str
    outcome: ProbeOutcome
    facts: tuple[Fact, ...]
    command: str
    host: str
    same_host: bool | None
    strength: Strength = "weak"
    seconds: float = 0.0
    error: str | None = None


@dataclass(slots=True)
class Hypothesis:
    """A rule that may be true of this job, with all that speaks for and against it. `went_on`: so did training."""

    rule: Rule
    matches: list[Match]
    context: list[Match] = field(default_factory=list)
    values: dict[str, FactValue] = field(default_factory=dict)
    explains: list[str] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    masked_by: list[str] = field(default_factory=list)
    probe_results: list[ProbeResult] = field(default_factory=list)
    terms: list[ScoreTerm] = field(default_factory=list)
    confidence: float = 0.0
    status: Status = "possible"
    went_on: bool = False

    @property
    def first(self) -> Match:
        return self.matches[0]

    @property
    def origin(self) -> Match:
        """Where it shows as a failure: the first match that was not printed as mere information, else the first."""
        return next((match for match in self.matches if match.record.level not in ("DEBUG", "INFO")), self.first)

    @property
    def rank(self) -> int | None:
        """The rank that failed: the origin's, else the only one that any match of the same attempt names."""
        if self.origin.rank is not None:
            return self.origin.rank
        ranks = {match.rank for match in self._of_its_attempt() if match.rank is not None}
        return ranks.pop() if len(ranks) == 1 else None

    @property
    def host(self) -> str | None:
        """The host it happened on, by the same rule."""
        if self.origin.host is not None:
            return self.origin.host
        hosts = {match.host for match in self._of_its_attempt() if match.host is not None}
        return hosts.pop() if len(hosts) == 1 else None

    def _of_its_attempt(self) -> list[Match]:
        return [match for match in self.matches if match.record.attempt == self.origin.record.attempt]
