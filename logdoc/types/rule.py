"""A rule as the YAML files state it (format: docs/rule-format.md); read by every room, changed by none."""

from __future__ import annotations

from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Literal

    from logdoc.types.words import Advice, FactType, Kind, Maturity, RankState, Risk, Role, Severity, Strength, Where

    Place = tuple[str | int, ...]  # keys and indexes, from a file's top

FactValue = str | int | float | bool

# Read by pydantic when a rule file is validated; this module itself needs no pydantic.
CLOSED: Any = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What a user reads, in English and Simplified Chinese, with the same placeholders."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    en: str
    zh: str

    def in_language(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One thing a log can say.

    `regex` is tried on a record whose prefixes are gone: on the line that holds the literal (scope `line`) or on
    the whole joined record (scope `record`); `^` and `$` are line ends in both. Named groups become captures; the
    groups `rank`, `local_rank`, `host` and `pid` say who failed when that is another than the printer.
    `needs`: literals of which one must occur (normally derived from `regex`). `not_`: regexes that, found in the same
    record, take the match back. `from_`: dialects one of which must have claimed the record.
    `role: context` is not evidence by itself, it only lends captures and conditions.
    """

    __pydantic_config__: ClassVar[Any] = CLOSED
    regex: str
    needs: tuple[str, ...] = ()
    not_: tuple[str, ...] = ()
    from_: tuple[str, ...] = ()
    scope: Literal["line", "record"] = "line"
    strength: Strength = "strong"
    role: Role = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReference:
    """The right-hand side of a comparison that is itself a fact: `{gt: {fact: oom.tried}}`."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    fact: str


Operand = FactValue | FactReference


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A node of the `when` tree: exactly one operator key, its options beside it.

    Operators: `any`/`all`/`none` of nodes; `seen: signature`; `count: signature` with `gte` (and `within` seconds,
    `after` a signature); `sequence: [signature, …]` in order of the log; `ranks: signature` with `share`;
    `silent_after: signature`; `fact: id` with one of eq, ne, gt, gte, lt, lte, in, matches, known.
    `where` relates a node to the record that is being judged.
    """

    __pydantic_config__: ClassVar[Any] = CLOSED
    any: tuple[Condition, ...] | None = None
    all: tuple[Condition, ...] | None = None
    none: tuple[Condition, ...] | None = None
    seen: str | None = None
    count: str | None = None
    sequence: tuple[str, ...] | None = None
    ranks: str | None = None
    silent_after: str | None = None
    fact: str | None = None
    where: Where = "anywhere"
    share: Literal["one", "some", "all"] | None = None
    within: float | None = None
    after: str | None = None
    eq: Operand | None = None
    ne: Operand | None = None
    gt: Operand | None = None
    gte: Operand | None = None
    lt: Operand | None = None
    lte: Operand | None = None
    in_: tuple[FactValue, ...] | None = None
    matches: str | None = None
    known: bool | None = None

    def nodes(self, place: Place = ()) -> Iterator[tuple[Condition, Place]]:
        """This node and all below it, each with its place in the rule's file."""
        yield self, place
        for name in ("any", "all", "none"):
            for index, child in enumerate(getattr(self, name) or ()):
                yield from child.nodes((*place, name, index))

    def fact_ids(self) -> Iterator[str]:
        """Every fact that is looked at or compared with, as often as it is named."""
        for node, _ in self.nodes():
            if node.fact is not None:
                yield node.fact
                operands = [getattr(node, name) for name in COMPARISONS]
                yield from (operand.fact for operand in operands if isinstance(operand, FactReference))


OPERATORS = ("any", "all", "none", "seen", "count", "sequence", "ranks", "silent_after", "fact")
COMPARISONS = ("eq", "ne", "gt", "gte", "lt", "lte", "in_", "matches", "known")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSource:
    """Where a rule's fact comes from: `signature.capture` names in order of preference, and how to read the text."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    from_: tuple[str, ...]
    as_: FactType = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Arithmetic on two facts (or a fact and a number); no expression language on purpose."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    add: tuple[str | float, str | float] | None = None
    sub: tuple[str | float, str | float] | None = None
    mul: tuple[str | float, str | float] | None = None
    div: tuple[str | float, str | float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeUse:
    """A probe that can judge this rule: it gives facts, these conditions say what they mean."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    use: str
    confirms: Condition | None = None
    refutes: Condition | None = None
    strength: Strength = "strong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """How to see that a fix worked: a probe with the fact it must show, or a command and what it must show."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    probe: str | None = None
    expect: Condition | None = None
    run: str | None = None
    see: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One remedy. `run` maps an environment (any, pip, conda, docker, slurm, k8s) to commands or lines of code."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    title: Text
    run: dict[Literal["any", "pip", "conda", "docker", "slurm", "k8s"], tuple[str, ...]]
    verify: Verify
    why: Text | None = None
    risk: Risk = "safe"
    only_if: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Rules (a glob) that account for a symptom, and where they must be seen for that."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    rule: str
    where: Where = "anywhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    __pydantic_config__: ClassVar[Any] = CLOSED
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the whole engine must make of an example."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    signature: str | None = None
    rank: int | None = None
    line: int | None = None
    top: bool = False
    facts: dict[str, FactValue] = field(default_factory=dict)
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MustMatch:
    __pydantic_config__: ClassVar[Any] = CLOSED
    log: str
    name: str = ""
    expect: Expectation = field(default_factory=Expectation)


@dataclass(frozen=True, slots=True, kw_only=True)
class MustNotMatch:
    """A near miss: this rule must stay silent on `log`. `why` says what it is instead."""

    __pydantic_config__: ClassVar[Any] = CLOSED
    log: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    __pydantic_config__: ClassVar[Any] = CLOSED
    must_match: tuple[MustMatch, ...]
    must_not_match: tuple[MustNotMatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One cause, symptom or noise. `fallback`: judges only records that no other rule's evidence claimed.

    `explained_by` (symptoms): globs of causes that account for it, or {rule: glob, where: same-rank}. `masks`: rules
    that step back on the same rank when this one holds. `rank_state`: how a rank that shows it was left. `path` is
    filled by the loader.
    """

    __pydantic_config__: ClassVar[Any] = CLOSED
    schema: Literal["logdoc.rule/v1"]
    id: str
    kind: Kind
    title: Text
    summary: Text
    match: dict[str, Signature]
    examples: Examples
    severity: Severity = "error"
    status: Maturity = "stable"
    replaced_by: str | None = None
    applies: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    when: Condition | None = None
    fallback: bool = False
    facts: dict[str, FactSource] = field(default_factory=dict)
    derive: dict[str, Derivation] = field(default_factory=dict)
    masks: tuple[str, ...] = ()
    explained_by: tuple[str | Explanation, ...] = ()
    restart: Advice = "unknown"
    rank_state: RankState = "failed"
    probes: tuple[ProbeUse, ...] = ()
    no_probe: str | None = None
    fixes: tuple[Fix, ...] = ()
    references: tuple[Reference, ...] = ()
    path: str = ""

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """`explained_by` with a bare glob read as one that holds anywhere."""
        return tuple(one if isinstance(one, Explanation) else Explanation(rule=one) for one in self.explained_by)

    @property
    def area(self) -> str:
        return self.id.split(".", 1)[0]


def fits(rule_id: str, glob: str) -> bool:
    """Whether a glob of rules (`memory.*`, `gpu.ecc-uncorrectable`) names this one."""
    start, star, rest = glob.partition("*")
    if not rest and "?" not in start and "[" not in start:
        return rule_id.startswith(start) if star else rule_id == start
    from fnmatch import fnmatchcase  # compiles a pattern; rules hardly ever need it

    return fnmatchcase(rule_id, glob)
