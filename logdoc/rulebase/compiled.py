"""A rule set and its literals as bytes, and back: what `load_rules` and `build_index` would make, without their work. A
rule becomes a Rule only when somebody looks at it."""

from __future__ import annotations

import marshal
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate

from logdoc.rulebase.index import Entry, LiteralIndex
from logdoc.rulebase.rule_set import RuleSet
from logdoc.types import rule as rule_types
from logdoc.types.rule import Rule, Signature
from logdoc.types.value import field_defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CLASS = "~"  # the key that makes a mapping a dataclass of logdoc.types.rule; no rule file uses it as a word
_FORMAT = 4  # of marshal, as every Python from 3.4 on reads it
_LENGTH = 8  # bytes before the head that say how long it is


class CompiledRules(Mapping[str, Rule]):
    """Rules by id, each made of its bytes when it is first asked for; their signatures come before the rest."""

    def __init__(self, content: memoryview, places: Mapping[str, tuple[int, int, int]], roots: list[str]) -> None:
        self.signatures = _Signatures(content, places)
        self._content = content
        self._places = places
        self._roots = roots
        self._read: dict[str, Rule] = {}

    def __getitem__(self, rule_id: str) -> Rule:
        rule = self._read.get(rule_id)
        if rule is None:
            _, start, end = self._places[rule_id]
            root, plain = marshal.loads(self._content[start:end])
            path = self._roots[root] + plain["path"]
            plain = {**plain, "path": path, "match": self.signatures[rule_id]}
            rule = self._read[rule_id] = from_plain(plain)
        return rule

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Signatures(Mapping[str, Mapping[str, Signature]]):
    """The signatures of each rule by name, made when they are first asked for."""

    def __init__(self, content: memoryview, places: Mapping[str, tuple[int, int, int]]) -> None:
        self._content = content
        self._places = places
        self._read: dict[str, dict[str, Signature]] = {}

    def __getitem__(self, rule_id: str) -> dict[str, Signature]:
        made = self._read.get(rule_id)
        if made is None:
            start, end, _ = self._places[rule_id]
            made = self._read[rule_id] = from_plain(marshal.loads(self._content[start:end]))
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class EntryRows(Sequence[tuple[Entry, ...]]):
    """For each literal the signatures it makes worth trying; an Entry is made when its literal is first seen. Most
    literals have one: its number stands in place of a row, which takes half as long to read."""

    def __init__(self, rows: Sequence[int | Sequence[int]], entries: _Entries) -> None:
        self._rows = rows
        self._entries = entries

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        row = self._rows[number]
        return (self._entries.entry(row),) if isinstance(row, int) else tuple(map(self._entries.entry, row))

    def __len__(self) -> int:
        return len(self._rows)


class _Entries:
    """The entries by number, one object each."""

    def __init__(self, named: Sequence[tuple[str, str, bool]], rules: Mapping[str, Rule], signatures: Any) -> None:
        self._named = named
        self._rules = rules
        self._signatures = signatures
        self._made: dict[int, Entry] = {}

    def entry(self, number: int) -> Entry:
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = Entry(self._rules, self._signatures, *self._named[number])
        return made


def written(rule_set: RuleSet, roots: list[str]) -> bytes:
    """An indexed set as bytes: a head of what all runs need, then each rule."""
    index = rule_set.index
    assert index is not None
    rows = (*index.exact_entries, *index.caseless_entries)
    entries = list(dict.fromkeys(entry for row in rows for entry in row))
    number = {entry: position for position, entry in enumerate(entries)}
    bodies = [part for rule in rule_set.rules.values() for part in _parts(rule, roots)]
    head = {
        "digest": rule_set.digest,
        "overridden": rule_set.overridden,
        "ids": list(rule_set.rules),
        "sizes": [len(body) for body in bodies],
        "entries": [(entry.rule_id, entry.name, entry.is_evidence) for entry in entries],
        "exact": index.exact,
        "exact_starts": index.exact_starts,
        "caseless_starts": index.caseless_starts,
        "exact_entries": [_row([number[entry] for entry in row]) for row in index.exact_entries],
        "caseless": index.caseless,
        "caseless_entries": [_row([number[entry] for entry in row]) for row in index.caseless_entries],
    }
    start = marshal.dumps(head, _FORMAT)
    return b"".join([len(start).to_bytes(_LENGTH, "big"), start, *bodies])


def _row(numbers: list[int]) -> int | tuple[int, ...]:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _parts(rule: Rule, roots: list[str]) -> Iterator[bytes]:
    """The rule's signatures, then the rest, with its path relative to the root it came from: the last that holds it."""
    root = max(number for number, root in enumerate(roots) if rule.path.startswith(root))
    plain = {**to_plain(rule), "path": rule.path.removeprefix(roots[root])}
    yield marshal.dumps(plain.pop("match"), _FORMAT)
    yield marshal.dumps((root, plain), _FORMAT)


def read_back(content: bytes | memoryview, roots: list[str], others: Iterable[Rule]) -> RuleSet:
    """The set that `written` was given, with its index; `others` are the pseudo rules that share the index."""
    view = memoryview(content)
    at = _LENGTH + int.from_bytes(view[:_LENGTH], "big")
    head = marshal.loads(view[_LENGTH:at])
    pseudo = {rule.id: rule for rule in others}
    ends = list(accumulate(head["sizes"], initial=at))
    places = dict(zip(head["ids"], zip(ends[::2], ends[1::2], ends[2::2], strict=False), strict=True))
    rules = CompiledRules(view, places, roots)
    known: Mapping[str, Rule] = ChainMap(pseudo, rules)  # type: ignore[arg-type]
    signatures = ChainMap({rule.id: rule.match for rule in pseudo.values()}, rules.signatures)  # type: ignore[arg-type]
    entries = _Entries(head["entries"], known, signatures)
    index = LiteralIndex(
        head["exact"],
        EntryRows(head["exact_entries"], entries),
        head["caseless"],
        EntryRows(head["caseless_entries"], entries),
        head["exact_starts"],
        head["caseless_starts"],
    )
    return RuleSet(rules, head["digest"], tuple(head["overridden"]), index)


def to_plain(value: Any) -> Any:
    """A value of logdoc.types.rule as marshal can hold it. Raises ValueError where that could look like a class."""
    if type(value).__name__ in _classes():
        defaults = field_defaults(type(value))
        named = {name: getattr(value, name) for name in defaults}
        said = {name: to_plain(one) for name, one in named.items() if not _is_same(one, defaults[name])}
        return {_CLASS: type(value).__name__, **said}
    if isinstance(value, dict):
        if _CLASS in value:
            raise ValueError(f"{_CLASS!r} is no key")
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def _is_same(found: Any, default: Any) -> bool:
    return type(found) is type(default) and bool(found == default)


def from_plain(plain: Any) -> Any:
    """What `to_plain` was given: mappings with a class name become that class, lists tuples; what is made stays."""
    if isinstance(plain, dict):
        values = {key: from_plain(item) if isinstance(item, dict | list) else item for key, item in plain.items()}
        return _revived(values) if _CLASS in values else values
    if isinstance(plain, list):
        return tuple([from_plain(item) if isinstance(item, dict | list) else item for item in plain])
    return plain


def _revived(values: dict[str, Any]) -> Any:
    """The object whose values these are. They were checked when it was written, and its class asks no more of them, so
    its slots are set without its `__init__`: a small log needs hundreds of them."""
    cls, slots = _shapes()[values[_CLASS]]
    made: object = object.__new__(cls)
    for put, name, default in slots:
        put(made, values.get(name, default))
    return made


@cache
def _shapes() -> dict[str, tuple[type, list[tuple[Callable[[object, object], None], str, Any]]]]:
    """How to set the slots of each class, and what stands in those of which nothing was written."""
    return {
        name: (cls, [(vars(cls)[slot].__set__, slot, default) for slot, default in field_defaults(cls).items()])
        for name, cls in _classes().items()
    }


@cache
def _classes() -> dict[str, type]:
    """The classes of logdoc.types.rule by name."""
    found = vars(rule_types).items()
    return {name: one for name, one in found if isinstance(one, type) and one.__module__ == rule_types.__name__}
