"""logdoc's dataclasses are the standard library's in all that shows."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from logdoc.types import made
from logdoc.types.made import asdict, dataclass, field, field_defaults, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    names: list[str] = field(default_factory=list)
    note: str = field(default="", repr=False, compare=False)
    unit: ClassVar[str] = "m"

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: int = 0
    names: list[str] = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", repr=False, compare=False)
    unit: ClassVar[str] = "m"


@dataclass(slots=True, kw_only=True)
class Mutable:
    a: int
    b: Any = None
    seen: int = 0

    def __post_init__(self) -> None:
        self.seen += 1


@dataclass(frozen=True, slots=True)
class Child(Point):
    z: int = 9


@dataclass(slots=True, eq=False)
class Thing:
    name: str


MADE = {"few": lambda cls: cls, "many": lambda cls: [cls(1) for _ in range(made.FEW + 1)] and cls}


@pytest.fixture(params=["few", "many"])
def point(request: pytest.FixtureRequest) -> Any:
    """The class before and after its `__init__` was compiled."""
    return MADE[request.param](Point)


def test_objects_behave_as_the_standard_librarys(point: Any) -> None:
    one, same, standard = point(1, note="x"), point(x=1, y=0, note="y"), Standard(1)
    assert one == same
    assert repr(one) == repr(standard).replace("Standard", "Point")
    assert (one.x, one.y, one.names, one.note, one.sum, one.unit) == (1, 0, [], "x", 1, "m")
    assert one != point(2)
    assert one != standard
    assert one.names is not same.names
    assert hash(point(1, 2, ())) == hash(point(1, 2, (), "other"))
    assert point.__match_args__ == ("x", "y", "names", "note")
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, [], "", 5), {}), ((1,), {"x": 1}), ((1,), {"w": 1})])
def test_wrong_arguments_are_refused(point: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    with pytest.raises(TypeError):
        point(*arguments[0], **arguments[1])
    assert point(1).y == 0


def test_frozen_is_frozen(point: Any) -> None:
    one = point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.x
    assert one.x == 1


def test_copies_and_pickles(point: Any) -> None:
    one = point(1, 2, ["a"], "n")
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert other.note == "n"
    thing = Mutable(a=1)
    assert pickle.loads(pickle.dumps(thing)) == thing


def test_the_standard_library_knows_its_fields() -> None:
    one = Point(1, 2, ["a"])
    assert dataclasses.is_dataclass(one)
    named = [(one.name, one.type, one.default, one.repr, one.compare) for one in dataclasses.fields(Point)]
    assert named == [(one.name, one.type, one.default, one.repr, one.compare) for one in dataclasses.fields(Standard)]
    assert dataclasses.replace(one, y=5) == replace(one, y=5) == Point(1, 5, ["a"])
    nested = Point(Mutable(a=(one, {"k": one})))
    assert asdict(nested) == dataclasses.asdict(nested)
    assert [one.kw_only for one in dataclasses.fields(Mutable)] == [True] * 3
    assert field_defaults(Mutable) | {"a": 0} == {"a": 0, "b": None, "seen": 0}


def test_keywords_only_and_what_happens_afterwards() -> None:
    assert Mutable(a=1).seen == 1
    with pytest.raises(TypeError):
        Mutable(1)  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(Mutable(a=1))


def test_a_child_has_its_parents_fields() -> None:
    one = Child(1, z=3)
    assert (one.x, one.y, one.z) == (1, 0, 3)
    assert [one.name for one in dataclasses.fields(Child)] == ["x", "y", "names", "note", "z"]


def test_identity_where_equality_is_not_wanted() -> None:
    one, other = Thing("a"), Thing("a")
    assert one != other
    assert len({one, other}) == 2


def test_values_of_the_standard_librarys_classes_are_told_and_replaced_too() -> None:
    inner = dataclasses.make_dataclass("Inner", [("a", int)])
    outer = dataclasses.make_dataclass("Outer", [("one", inner), ("many", list)])
    value = outer(inner(1), [inner(2)])
    assert asdict(value) == dataclasses.asdict(value)
    assert replace(value, many=[]) == outer(inner(1), [])
