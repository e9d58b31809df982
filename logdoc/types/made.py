"""How logdoc.types.value makes its classes. Knows nothing of the values themselves.

The standard library compiles half a dozen functions for each class when the module is imported, and imports `inspect`
to do so: for the classes that one small log needs, most of its time. Here nothing is compiled but `__init__`, when the
first object is made. What `dataclasses.fields`, `replace`, pydantic and others look for on a class is the standard
library's own work, done when somebody looks.
"""

from __future__ import annotations

import sys
from operator import attrgetter

TYPE_CHECKING = False  # as `typing` has it, which costs more to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

_FIELDS = "__value_fields__"
_UNSET: Any = object()
FEW = 50  # objects of a class, up to which compiling its `__init__` takes longer than it saves


class Field:
    """One field: its default, or how a fresh one is made."""

    __slots__ = ("compare", "default", "default_factory", "kw_only", "repr")

    def __init__(self, default: Any, default_factory: Any, repr: bool, compare: bool) -> None:
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.compare = compare
        self.kw_only = False

    @property
    def given(self) -> dict[str, Any]:
        """The same as arguments of the standard library's `field`."""
        made = {"repr": self.repr, "compare": self.compare, "kw_only": self.kw_only}
        if self.default is not _UNSET:
            made["default"] = self.default
        if self.default_factory is not _UNSET:
            made["default_factory"] = self.default_factory
        return made


def field(*, default: Any = _UNSET, default_factory: Any = _UNSET, repr: bool = True, compare: bool = True) -> Any:
    """As `dataclasses.field`."""
    return Field(default, default_factory, repr, compare)


def dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[type], type]:
    """As `dataclasses.dataclass`, for classes whose annotations are strings."""

    def made(cls: type) -> type:
        own = _own_fields(cls, kw_only)
        fields: dict[str, Field] = {}
        for base in cls.__mro__[:0:-1]:
            fields |= base.__dict__.get(_FIELDS, {})
        fields |= own
        members: dict[str, Any] = {**_COMMON, **(_EQUAL if eq else {}), **(_FROZEN if frozen else {})}
        if eq:
            members["__value_key__"] = attrgetter(
                *[name for name, one in fields.items() if one.compare] or ["__class__"]
            )
            members["__hash__"] = _hash if frozen else None
        if frozen and slots:
            members |= _PICKLED
        members[_FIELDS] = fields
        members["__match_args__"] = tuple([name for name, one in fields.items() if not one.kw_only])
        members["__doc__"] = cls.__doc__ or f"{cls.__name__}({', '.join(fields)})"
        parameters = {"frozen": frozen, "kw_only": kw_only, "eq": eq}
        members["__dataclass_fields__"] = _Standard(own, parameters)
        members["__dataclass_params__"] = _Standard(own, parameters)
        cls = _with_slots(cls, own, members) if slots else _with_members(cls, own, members)
        if "__init__" not in cls.__dict__:
            cls.__init__ = _first_init(cls, fields, frozen)  # type: ignore[misc]
        return cls

    return made


def _own_fields(cls: type, kw_only: bool) -> dict[str, Field]:
    """The class's own fields in order."""
    fields = {}
    given = cls.__dict__
    for name, annotation in cls.__annotations__.items():
        if annotation.startswith("ClassVar"):
            continue
        value = given.get(name, _UNSET)
        one = value if value.__class__ is Field else Field(value, _UNSET, True, True)
        one.kw_only = kw_only
        fields[name] = one
    return fields


def _with_slots(cls: type, own: dict[str, Field], members: dict[str, Any]) -> type:
    """The same class once more: slots cannot be given to one that exists."""
    space = {**members, **cls.__dict__, "__doc__": members["__doc__"]}
    for name in (*own, "__dict__", "__weakref__"):
        space.pop(name, None)
    space["__slots__"] = tuple(own)
    space["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, space)


def _with_members(cls: type, own: dict[str, Field], members: dict[str, Any]) -> type:
    """The class with what it lacks; defaults stay on it, as the standard library leaves them."""
    for name, one in own.items():
        if one.default is not _UNSET:
            setattr(cls, name, one.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    for name, value in members.items():
        if name not in cls.__dict__ or name == "__doc__":
            setattr(cls, name, value)
            if isinstance(value, _Standard):
                value.__set_name__(cls, name)
    return cls


def _repr(self: Any) -> str:
    said = [f"{name}={getattr(self, name)!r}" for name, one in self.__value_fields__.items() if one.repr]
    return f"{self.__class__.__qualname__}({', '.join(said)})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__value_key__(self) == self.__value_key__(other)


def _hash(self: Any) -> int:
    return hash(self.__value_key__(self))


def _refuse_setting(self: Any, name: str, value: Any) -> None:
    raise _frozen(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    raise _frozen(f"cannot delete field {name!r}")


def _frozen(message: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


def _state(self: Any) -> list[Any]:
    """For pickle, which could not set the attributes of a frozen object."""
    return [getattr(self, name) for name in self.__value_fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__value_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_COMMON = {"__repr__": _repr}
_EQUAL = {"__eq__": _equal}
_FROZEN = {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
_PICKLED = {"__getstate__": _state, "__setstate__": _restore}


def _first_init(cls: type, fields: dict[str, Field], frozen: bool) -> Any:
    """An `__init__` that needs no compiler; the compiled one takes its place where it is called often, or wrongly."""
    names: list[str] = []
    needed: set[str] = set()
    store = object.__setattr__ if frozen else setattr
    calls = 0

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal calls
        if not calls:
            names.extend([name for name, one in fields.items() if not one.kw_only])
            needed.update([name for name, one in fields.items() if one.default is one.default_factory is _UNSET])
        calls += 1
        given = {**dict(zip(names, args, strict=False)), **kwargs} if args else kwargs
        right = len(given) == len(args) + len(kwargs) and needed <= given.keys() <= fields.keys()
        if calls > FEW or not right:
            compiled = cls.__init__ = _compiled_init(cls, fields, frozen)  # type: ignore[misc]
            compiled(self, *args, **kwargs)
            return
        for name, one in fields.items():
            if name in given:
                store(self, name, given[name])
            else:
                store(self, name, one.default if one.default_factory is _UNSET else one.default_factory())
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    return init


def _compiled_init(cls: type, fields: dict[str, Field], frozen: bool) -> Any:
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    lines = []
    for name, one in fields.items():
        value = name
        if one.default_factory is not _UNSET:
            known[f"_make_{name}"] = one.default_factory
            value = f"_make_{name}() if {name} is _unset else {name}"
        elif one.default is not _UNSET:
            known[f"_default_{name}"] = one.default
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(_parameters(fields))}):\n " + "\n ".join(lines or ["pass"])
    exec(text, known)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameters(fields: dict[str, Field]) -> Iterator[str]:
    yield "self"
    ordered = sorted(fields.items(), key=lambda item: item[1].kw_only)
    for place, (name, one) in enumerate(ordered):
        if one.kw_only and (place == 0 or not ordered[place - 1][1].kw_only):
            yield "*"
        if one.default_factory is not _UNSET:
            yield f"{name}=_unset"
        else:
            yield name if one.default is _UNSET else f"{name}=_default_{name}"


class _Standard:
    """`__dataclass_fields__` or `__dataclass_params__`, made by the standard library when it is asked for."""

    def __init__(self, own: dict[str, Field], parameters: dict[str, bool]) -> None:
        self._own, self._parameters = own, parameters
        self._name = ""
        self._cls: type = type

    def __set_name__(self, owner: type, name: str) -> None:
        self._cls, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        cls = self._cls
        _spell_out(sys.modules[cls.__module__])
        members = {name: value for name, value in cls.__dict__.items() if name in cls.__annotations__}
        members |= {name: dataclasses.field(**one.given) for name, one in self._own.items()}
        members |= {"__annotations__": cls.__annotations__, "__module__": cls.__module__}
        twin: Any = dataclasses.dataclass(**self._parameters)(type(cls.__name__, cls.__bases__, members))
        cls.__dataclass_fields__ = twin.__dataclass_fields__  # type: ignore[attr-defined]
        cls.__dataclass_params__ = twin.__dataclass_params__  # type: ignore[attr-defined]
        return cls.__dict__[self._name]


def _spell_out(module: ModuleType) -> None:
    """Gives a module of logdoc.types the names that its annotations use and that it does not import itself."""
    if module.__name__.startswith("logdoc.types."):
        from logdoc.types import words

        for name in words.__all__:
            vars(module).setdefault(name, getattr(words, name))


def field_defaults(cls: type) -> dict[str, Any]:
    """The fields of a class and their defaults; a field without has an object that equals nothing."""
    fields: dict[str, Field] = getattr(cls, _FIELDS)
    return {
        name: one.default if one.default_factory is _UNSET else one.default_factory() for name, one in fields.items()
    }


def replace(value: Any, /, **changes: Any) -> Any:
    """As `dataclasses.replace`."""
    cls = value.__class__
    return cls(**{name: getattr(value, name) for name in _names(cls)} | changes)


def _names(cls: type) -> Any:
    """The names of a class's fields, whoever made the class; None if it has none."""
    fields = getattr(cls, _FIELDS, None)
    return getattr(cls, "__dataclass_fields__", None) if fields is None else fields


def asdict(value: Any) -> Any:
    """As `dataclasses.asdict`; texts and numbers are not copied."""
    names = _names(value.__class__)
    if names is not None:
        return {name: asdict(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: asdict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([asdict(one) for one in value])
    return value
