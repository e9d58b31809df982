"""The environment variables of NCCL, PyTorch, CUDA and friends: what each accepts, since when, and what it means.

Says what is known; judging a setting is envlint's work. Sources: NCCL 2.3.5 to 2.30.7 (every release tag), the PyTorch
wheels 1.8 to 2.14, aws-ofi-nccl's parameter header, the vendors' manuals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from logdoc.kept.data import document, rows
from logdoc.kept.sentences import bilingual, meaning
from logdoc.types.rule import Text
from logdoc.types.value import dataclass

Owner = Literal["nccl", "torch", "cuda", "gloo", "ofi", "framework", "folklore"]
Status = Literal["current", "undocumented", "renamed", "removed", "never-existed"]
Severity = Literal["breaks", "risky", "ineffective", "deprecated", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVariable:
    """One name a job may set.

    `owner`: who reads it (folklore: nobody). `type`: flag, int, enum, enum-any-case, words, list, string, path, bool,
    torch-flag, torch-int or allocator-options. `values` is the grammar: alternatives joined by `|`, `LO..HI` a range
    open on either side; for a flag `=1` (only 1 acts), `!=0`, `set` (any value acts). `since` and `until` are the
    owner's first and last version that reads it ('' = as far back, or as recent, as is known).
    `instead`: what to type in place of a name nobody reads. `danger`: one word for what a careless value does.
    """

    name: str
    owner: Owner
    type: str
    values: str
    default: str
    since: str
    until: str
    renamed_to: str
    instead: str
    status: Status
    danger: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class EnvFamily:
    """Names that begin alike. `closed`: every name of it is catalogued. `spelling`: a near miss is a misspelling."""

    prefix: str
    closed: bool
    spelling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorKey:
    """An option inside PYTORCH_CUDA_ALLOC_CONF; `values` and versions as in EnvVariable."""

    name: str
    values: str
    default: str
    since: str
    until: str
    meaning: Text


@dataclass(frozen=True, slots=True)
class VariableReference:
    """A bound that is another variable's value: `{gt: {variable: NCCL_MAX_CTAS}}`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvCondition:
    """What must be true of one value. Exactly one field is set.

    `exact`/`any_case`: one of these texts. `word`/`other_word`: an element of a list (`^Tree,ring`, `allreduce:tree`)
    is, or is not, one of these words in any case. `matches`/`not_matches`: a regular expression over the whole value.
    `number`: bounds (eq, ne, gt, gte, lt, lte) on the leading integer. `present`: set at all.
    """

    exact: tuple[str, ...] | None = None
    any_case: tuple[str, ...] | None = None
    word: tuple[str, ...] | None = None
    other_word: tuple[str, ...] | None = None
    matches: str | None = None
    not_matches: str | None = None
    number: Mapping[str, float | VariableReference] | None = None
    present: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvCheck:
    """A setting, or several together, worth a word. See the head of logdoc/data/env_checks.yaml.

    `versions` maps nccl or torch to a range, or to "unknown" for checks that speak only where nobody knows.
    `invalid`: the value is none the variable knows. `silent`: holds its topic without being reported.
    """

    id: str
    topic: str
    variable: str
    when: Mapping[str, EnvCondition]
    versions: Mapping[str, str]
    context: Mapping[str, EnvCondition]
    severity: Severity
    invalid: bool
    silent: bool
    problem: Text
    fix: Text


@cache
def env_variables() -> Mapping[str, EnvVariable]:
    """Every catalogued name; one that ends in `*` stands for all names that begin so."""
    return _Variables({row["name"]: row for row in rows("env.tsv")})


class _Variables(Mapping[str, EnvVariable]):
    """The rows by name; an entry is made when it is asked for: a log names few of the hundreds."""

    def __init__(self, table: Mapping[str, Mapping[str, str]]) -> None:
        self._rows = table
        self._made: dict[str, EnvVariable] = {}

    def __getitem__(self, name: str) -> EnvVariable:
        if name not in self._made:
            row = self._rows[name]
            cells: dict[str, Any] = {key: cell for key, cell in row.items() if not key.startswith("meaning_")}
            self._made[name] = EnvVariable(**cells, meaning=meaning(row))
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def env_variable(name: str) -> EnvVariable | None:
    """The entry of a name, or of the longest `PREFIX_*` entry that covers it."""
    exact = env_variables().get(name)
    if exact is not None:
        return exact
    return next((env_variables()[f"{prefix}*"] for prefix in _wildcards() if name.startswith(prefix)), None)


@cache
def _wildcards() -> tuple[str, ...]:
    return tuple(sorted((name[:-1] for name in env_variables() if name.endswith("*")), key=len, reverse=True))


@cache
def env_families() -> tuple[EnvFamily, ...]:
    """The prefixes logdoc looks for in logs and scripts, longest first."""
    found = [
        EnvFamily(row["prefix"], row["closed"] == "yes", row["spelling"] == "yes") for row in rows("env_families.tsv")
    ]
    return tuple(sorted(found, key=lambda family: (-len(family.prefix), family.prefix)))


def env_family(name: str) -> EnvFamily | None:
    """The longest family prefix of a name."""
    return next((family for family in env_families() if name.startswith(family.prefix)), None)


@cache
def allocator_keys() -> Mapping[str, AllocatorKey]:
    """The options of PyTorch's caching allocator."""
    table = {}
    for row in rows("env_allocator_keys.tsv"):
        cells = {key: row[key] for key in ("values", "default", "since", "until")}
        table[row["key"]] = AllocatorKey(name=row["key"], **cells, meaning=meaning(row))
    return MappingProxyType(table)


@cache
def env_checks() -> tuple[EnvCheck, ...]:
    """Checks of values, combinations first so that the graver word wins a topic. In file order otherwise."""
    return tuple(_check(entry) for name in ("env_combinations.yaml", "env_checks.yaml") for entry in document(name))


@cache
def shell_commands() -> frozenset[str]:
    """Words a command line in a job script begins with."""
    return frozenset(row["word"] for row in rows("shell_commands.tsv"))


def _check(entry: Mapping[str, Any]) -> EnvCheck:
    return EnvCheck(
        id=entry["id"],
        topic=entry["topic"],
        variable=entry["variable"],
        when={name: _condition(value) for name, value in entry["when"].items()},
        versions=dict(entry.get("versions", {})),
        context={name: _condition(value) for name, value in entry.get("context", {}).items()},
        severity=entry.get("severity", "note"),
        invalid=entry.get("kind") == "invalid",
        silent=entry.get("silent", False),
        problem=bilingual(entry.get("problem", "")),
        fix=bilingual(entry.get("fix", "")),
    )


def _condition(value: Any) -> EnvCondition:
    if isinstance(value, bool):
        return EnvCondition(exact=("true" if value else "false",))
    if isinstance(value, str):
        return EnvCondition(exact=(value,))
    if isinstance(value, list):
        return EnvCondition(exact=tuple(value))
    (operator, operand), *more = value.items()
    if more:
        raise ValueError(f"one operator a condition, not {sorted(value)}")
    if operator == "number":
        operand = {
            key: VariableReference(bound["variable"]) if isinstance(bound, dict) else bound
            for key, bound in operand.items()
        }
    field: dict[str, Any] = {operator: tuple(operand) if isinstance(operand, list) else operand}
    return EnvCondition(**field)
