"""One fault of one setting, still in both languages; the small tools all judges share."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from logdoc.catalog.environment import Severity
from logdoc.kept.patterns import lazily
from logdoc.kept.sentences import sentences
from logdoc.types.rule import Text
from logdoc.types.value import dataclass

_LONGEST_QUOTE = 120  # a value is log text: of a huge one only the beginning is shown
_INTEGER = lazily(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|\d+))(.*)", re.DOTALL)
_LEFT_TO_A_SHELL = lazily(r"[$`<>{}]")


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before a language is chosen."""

    variable: str
    severity: Severity
    problem: Text
    fix: Text


def quoted(value: str) -> str:
    """A value as a message shows it."""
    return value if len(value) <= _LONGEST_QUOTE else value[:_LONGEST_QUOTE] + "…"


def filled(text: Text, /, **slots: str | Text) -> Text:
    """Put values into a text's placeholders, in both languages."""
    english = {name: slot.en if isinstance(slot, Text) else slot for name, slot in slots.items()}
    chinese = {name: slot.zh if isinstance(slot, Text) else slot for name, slot in slots.items()}
    return Text(en=_fill(text.en, english), zh=_fill(text.zh, chinese))


def wording(key: str, /, **slots: str | Text) -> Text:
    """A general check's sentence."""
    return filled(sentences("env_wording.yaml")[key], **slots)


def command(text: str) -> Text:
    """A fix that is the same in every language."""
    return Text(en=text, zh=text)


def leading_integer(value: str) -> tuple[int, str] | None:
    """The number a C program reads from a text, and what it leaves; None where it reads none."""
    found = _INTEGER.match(value)
    if found is None:
        return None
    digits = found[1]
    return int(digits, 16 if "x" in digits.lower() else 10), found[2].strip()


def is_literal(value: str | None) -> bool:
    """Whether a value stands as it is: `$RANK`, `$(hostname)` and `<address>` are filled in by somebody else."""
    return value is not None and not _LEFT_TO_A_SHELL.search(value)


def nearest(word: str, known: Collection[str], *, slips: int = 0, likeness: float | None) -> str | None:
    """The known word that is at most `slips` edits away, else the likest one of at least this likeness (0 to 1)."""
    from rapidfuzz import process  # here: few names are misspelt
    from rapidfuzz.distance import OSA

    slip = process.extractOne(word, known, scorer=OSA.distance, score_cutoff=slips)
    if slip is not None or likeness is None:
        return slip and slip[0]
    alike = process.extractOne(word, known, scorer=OSA.normalized_similarity, score_cutoff=likeness)
    return alike and alike[0]


def _fill(template: str, slots: Mapping[str, str]) -> str:
    # Not str.format: a text may hold braces of its own, and a value must never be read as a placeholder.
    return re.sub(r"\{(\w+)\}", lambda slot: slots.get(slot[1], slot[0]), template)
