"""Facts of the job, from log lines and probes, in one name space with their origin; and a rule's derived numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logdoc.kept.patterns import lazily
from logdoc.rulebase.observations import observations
from logdoc.types.finding import Fact, Match
from logdoc.types.quantity import duration_in_seconds, number_and_unit, size_in_bytes
from logdoc.types.rule import Derivation, FactValue, Rule
from logdoc.types.value import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logdoc.types.words import FactType

_VERSION = lazily(r"\d+(?:\.\d+)*")


@dataclass(slots=True)
class FactSet:
    """All facts known of the job; of several of one id the first added is the one that counts."""

    _facts: dict[str, Fact] = field(default_factory=dict)

    def copy(self) -> FactSet:
        """A set to which facts can be added without changing this one."""
        return FactSet(dict(self._facts))

    def add(self, facts: Iterable[Fact], *, override: bool = False) -> None:
        for fact in facts:
            if override or fact.id not in self._facts:
                self._facts[fact.id] = fact

    def get(self, fact_id: str) -> Fact | None:
        return self._facts.get(fact_id)

    def value(self, fact_id: str) -> FactValue | None:
        fact = self._facts.get(fact_id)
        return None if fact is None else fact.value

    def settings(self) -> dict[str, str]:
        """The environment variables among the facts (`env.NAME`), by name."""
        return {fact_id[4:]: str(fact.value) for fact_id, fact in self._facts.items() if fact_id.startswith("env.")}

    def values(self) -> dict[str, FactValue]:
        return {fact_id: fact.value for fact_id, fact in sorted(self._facts.items())}


def read_value(text: str, as_: FactType) -> FactValue | None:
    """A captured text as a typed value: sizes in bytes, durations in seconds; None where it is no such thing."""
    if as_ == "text":
        return text.strip()
    if as_ == "version":
        found = _VERSION.search(text)
        return found.group() if found else None
    if as_ == "bytes":
        size = size_in_bytes(text)
        return None if size is None else int(size)
    if as_ == "seconds":
        return duration_in_seconds(text)
    read = number_and_unit(text)
    if read is None:
        return None
    return int(read[0]) if as_ == "int" else read[0]


def observed_facts(matches: Iterable[Match]) -> list[Fact]:
    """The facts that the log itself states (logdoc/data/observations.yaml), in order of the log."""
    types = observations().fact_types
    facts = []
    for match in matches:
        value = read_value(match.captures["value"], types[match.name])
        if value is not None:
            origin = f"{match.record.source}:{match.line}"
            facts.append(Fact(id=match.name, value=value, origin=origin, host=match.host))
    return facts


def rule_values(rule: Rule, matches: Iterable[Match], facts: FactSet) -> dict[str, FactValue]:
    """What a rule's texts and conditions can name: captures, the rule's facts, then its derived numbers.

    Earlier matches win. A fact of the log or of a probe fills what the rule's own captures do not say.
    """
    values: dict[str, FactValue] = {}
    captured: dict[str, str] = {}
    for match in matches:
        for name, text in match.captures.items():
            word = text.rstrip(" .,:;") or text  # the end of the log's sentence, not of the value
            captured.setdefault(f"{match.name}.{name}", word)
            values.setdefault(name, word)
    for fact_id, source in rule.facts.items():
        value = _from_captures(source.from_, source.as_, captured)
        known = value if value is not None else facts.value(fact_id)
        if known is not None:
            values[fact_id] = known
    for name, derivation in rule.derive.items():
        result = _derived(derivation, values, facts)
        if result is not None:
            values[name] = result
    return values


def _from_captures(names: Iterable[str], as_: FactType, captured: Mapping[str, str]) -> FactValue | None:
    for name in names:
        if name in captured:
            value = read_value(captured[name], as_)
            if value is not None:
                return value
    return None


def _derived(derivation: Derivation, values: Mapping[str, FactValue], facts: FactSet) -> FactValue | None:
    for operation in ("add", "sub", "mul", "div"):
        operands = getattr(derivation, operation)
        if operands is None:
            continue
        left, right = (_number(operand, values, facts) for operand in operands)
        if left is None or right is None or (operation == "div" and right == 0):
            return None
        result = {"add": left + right, "sub": left - right, "mul": left * right, "div": left / right if right else 0.0}
        return result[operation]
    return None


def _number(operand: str | float, values: Mapping[str, FactValue], facts: FactSet) -> float | None:
    if not isinstance(operand, str):
        return float(operand)
    return size_in_bytes(values.get(operand, facts.value(operand)))


def version_facts(facts: FactSet) -> list[Fact]:
    """What the version tables add to the versions known: the driver a CUDA needs, what a torch wheel bundles, what a
    GPU needs, and known defects of this NCCL (logdoc/data, each row with its source)."""
    torch, nccl, gpu = (_said(facts, name) for name in ("torch.version", "nccl.version", "gpu.name"))
    cuda = _said(facts, "torch.cuda") or _said(facts, "nccl.cuda")
    if not any((torch, nccl, gpu, cuda)):
        return []
    from logdoc.catalog import versions  # a log that names no version needs no table

    found: dict[str, FactValue | None] = {}
    bundle = versions.torch_bundles(torch) if torch else None
    if bundle is not None:
        found["torch.bundled_nccl"], found["torch.bundled_cuda"] = bundle.nccl, bundle.default_cuda
    requirement = versions.cuda_min_driver(cuda) if cuda else None
    found["cuda.min_driver"] = requirement.minimum if requirement else None
    model = versions.gpu_model(gpu) if gpu else None
    if model is not None:
        found["gpu.sm"], support = model.sm, versions.arch_support(model.sm)
        found["gpu.min_cuda"] = support.first_cuda if support else None
        found["gpu.last_cuda"] = (support.last_cuda or None) if support else None
    defects = versions.known_bad("nccl", nccl) if nccl else ()
    found["nccl.known_bad"] = ", ".join(defect.id for defect in defects) or None
    return [Fact(id=name, value=value, origin="version tables") for name, value in found.items() if value is not None]


def _said(facts: FactSet, name: str) -> str | None:
    value = facts.value(name)
    return value if isinstance(value, str) and value else None
