"""Judges a value by its variable's grammar: numbers, ranges, words, flags. What a bad value does is data (checks)."""

from __future__ import annotations

import re
from collections.abc import Callable

from logdoc.catalog.environment import EnvVariable
from logdoc.envlint.finding import Finding, command, leading_integer, quoted, wording
from logdoc.kept.patterns import lazily

_YES = {"1", "true", "yes", "y", "t"}
_NO = {"0", "false", "no", "n", "f"}
_MEANT_ON = _YES | {"on", "enable", "enabled"}
_MEANT_OFF = _NO | {"off", "disable", "disabled", "none"}
_RANGE = lazily(r"(?P<low>-?\d+(?:\.\d+)?)(?P<rest>\.\.(?P<high>-?\d+(?:\.\d+)?)?)?")
_AUTOMATIC = {-1, -2}  # NCCL's own marks for "decide yourself", harmless everywhere


def judge_value(entry: EnvVariable, name: str, value: str) -> Finding | None:
    """What is wrong with a value, as far as the grammar in the catalogue tells; an empty value is like unset."""
    if not value.strip():
        return None
    judge = _JUDGES.get(entry.type)
    return judge(entry, name, value) if judge else None


def _flag(entry: EnvVariable, name: str, value: str) -> Finding | None:
    """An NCCL flag is a number to strtoll; the flags of others are read in too many ways to judge."""
    if entry.owner != "nccl" or entry.values == "set":
        return None
    number = leading_integer(value)
    if number is None:
        return _flag_word(entry, name, value)
    if number[1]:
        return _with_unit(name, value, number[0])
    if entry.values == "=1" and number[0] not in (0, 1):
        return Finding(name, "ineffective", wording("only-one-acts", value=quoted(value)), command(f"{name}=1"))
    return None


def _flag_word(entry: EnvVariable, name: str, value: str) -> Finding | None:
    """A word counts as 0. That is what `off` means, and for a *_DISABLE variable the opposite of what `true` means."""
    word = value.strip().casefold()
    if word in _MEANT_OFF:
        return None
    disables = entry.values in ("=1", "!=0") or name.endswith("_DISABLE")
    effect = "zero-means-not-disabled" if disables else "zero-means-off"
    return _not_a_number(name, value, effect, f"{name}=1" if word in _MEANT_ON else f"unset {name}")


def _int(entry: EnvVariable, name: str, value: str) -> Finding | None:
    number = leading_integer(value)
    if number is None:
        return _not_a_number(name, value, "zero-is-read", f"unset {name}") if entry.owner == "nccl" else None
    if number[1]:
        return _with_unit(name, value, number[0]) if entry.owner == "nccl" else None
    if number[0] in _AUTOMATIC or in_range(number[0], entry.values):
        return None
    return _out_of_range(entry, name, value)


def _torch_flag(entry: EnvVariable, name: str, value: str) -> Finding | None:
    if value.strip().casefold() in _YES | _NO:
        return None
    return Finding(name, "breaks", wording("torch-flag", value=quoted(value)), command(f"{name}=1"))


def _torch_int(entry: EnvVariable, name: str, value: str) -> Finding | None:
    number = leading_integer(value)
    if number is None:
        return Finding(name, "breaks", wording("torch-number", value=quoted(value)), command(f"unset {name}"))
    return None if in_range(number[0], entry.values) else _out_of_range(entry, name, value)


def _enum(entry: EnvVariable, name: str, value: str) -> Finding | None:
    """One word; NCCL's path types must be spelt in upper case, most others in any."""
    choices = _words(entry.values)
    given = value.strip()
    if given in choices or _is_number_of(given, entry.values):
        return None
    alike = next((choice for choice in choices if choice.casefold() == given.casefold()), None)
    if alike is None:
        problem = wording("not-a-choice", value=quoted(given), values=", ".join(choices))
        return Finding(name, "ineffective", problem, command(f"unset {name}"))
    if entry.type == "enum-any-case":
        return None
    return Finding(
        name, "ineffective", wording("wrong-case", word=alike, value=quoted(given)), command(f"{name}={alike}")
    )


def _word_list(entry: EnvVariable, name: str, value: str) -> Finding | None:
    known = _words(entry.values)
    folded = {word.casefold() for word in known}
    foreign = next((word for word in list_elements(value) if word.casefold() not in folded), None)
    if foreign is None:
        return None
    problem = wording("unknown-word", word=quoted(foreign), values=", ".join(known))
    return Finding(name, "ineffective", problem, command(f"unset {name}"))


def list_elements(value: str) -> list[str]:
    """The words of `^Tree,ring` or, since NCCL 2.24, of `allreduce:tree,ring;broadcast:ring`."""
    parts = [part.rpartition(":")[2] for part in value.split(";")]
    return [word for part in parts for raw in part.split(",") if (word := raw.strip().lstrip("^").strip())]


def in_range(number: float, values: str) -> bool:
    """Whether a number fits one alternative of a grammar such as `0..31` or `-1|0..255`; no grammar, no limit."""
    alternatives = values.split("|") if values else []
    return not alternatives or any(_within(number, one) for one in alternatives)


def _within(number: float, alternative: str) -> bool:
    found = _RANGE.fullmatch(alternative)
    if found is None:
        return False
    low, rest = float(found["low"]), found["rest"]
    if rest is None:
        return number == low
    return number >= low and (not found["high"] or number <= float(found["high"]))


def _words(values: str) -> list[str]:
    return [one for one in values.split("|") if not re.match(r"-?\d", one)]


def _is_number_of(given: str, values: str) -> bool:
    ranges = "|".join(one for one in values.split("|") if re.match(r"-?\d", one))
    return bool(ranges) and re.fullmatch(r"-?\d{1,18}", given) is not None and in_range(int(given), ranges)


def _not_a_number(name: str, value: str, effect: str, fix: str) -> Finding:
    problem = wording("not-a-number", value=quoted(value), meaning=wording(effect))
    return Finding(name, "ineffective", problem, command(fix))


def _with_unit(name: str, value: str, number: int) -> Finding:
    problem = wording("number-with-unit", value=quoted(value), number=str(number))
    return Finding(name, "ineffective", problem, command(f"unset {name}"))


def _out_of_range(entry: EnvVariable, name: str, value: str) -> Finding:
    problem = wording("out-of-range", value=quoted(value), values=entry.values)
    return Finding(name, "ineffective", problem, command(f"unset {name}"))


_JUDGES: dict[str, Callable[[EnvVariable, str, str], Finding | None]] = {
    "flag": _flag,
    "int": _int,
    "torch-flag": _torch_flag,
    "torch-int": _torch_int,
    "enum": _enum,
    "enum-any-case": _enum,
    "words": _word_list,
}
