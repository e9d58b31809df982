"""Texts with placeholders to sentences: captured numbers filled in, sentences whose numbers nobody knows left out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from logdoc.kept.patterns import lazily
from logdoc.kept.sentences import FILTERS, PLACEHOLDER, say
from logdoc.types.finding import Fact
from logdoc.types.quantity import size_in_bytes
from logdoc.types.rule import FactValue, Text

_MIB = 2**20
_PLAIN_WORD = lazily(r"[\w@%+=:,./-]+")
_SPACE_AFTER_CHINESE_STOP = lazily(r"(?<=[。！？；]) ")
# What stands in a command for something that the user must set, and the values that fill it, the surest first. Never a
# pid of `kill`: that is another process than the one the log speaks of.
_BLANKS: Mapping[str, tuple[str, ...]] = {
    "<script>": ("job.script",),
    "train.py": ("job.script",),
    "<node>": ("node", "host"),
    "NODE": ("node", "host"),
    "<host>": ("host",),
    "<local rank>": ("local_rank",),
    "<log>": ("log.name",),
    "<pid>": ("rank.pid",),
    "<pid of rank {rank}>": ("rank.pid",),
    "CHECKPOINT": ("file", "traceback.file"),
    "ORG/MODEL": ("repo", "hub.repo"),
}
_BLANK = lazily(
    r"<(?:script|node|host|local rank|log|pid of rank \{rank\})>|(?:(?<=--pid )|(?<=-p ))<pid>|(?<=nodename=)NODE(?!\w)"
    r"|(?<![\w/.-])(?:train\.py|ORG/MODEL)(?![\w/]|\.\w)|(?<!\w)CHECKPOINT(?!\w)"
)
_BLANK_OR_PLACEHOLDER = lazily(f"{_BLANK.pattern}|{PLACEHOLDER.pattern}")
_SENTENCE_END = lazily(r"(?<=[.!?;])\s+(?=[A-Z{“\"(])|(?<=[。！？；])\s*")


def fill(template: str, values: Mapping[str, FactValue]) -> str:
    """`template` with its placeholders filled; a sentence with an unknown one is not said. May be empty."""
    sentences = [_filled(sentence, values) for sentence in _SENTENCE_END.split(template.strip())]
    joined = " ".join(sentence for sentence in sentences if sentence)
    return _SPACE_AFTER_CHINESE_STOP.sub("", joined)


def fill_command(template: str, values: Mapping[str, FactValue]) -> str:
    """A command with its placeholders and blanks filled; unknown ones stay visible, `<name>`, for the user to set.

    What a log says may be hostile: a captured text that a shell would not read as one plain word is quoted.
    """

    def filled(found: re.Match[str]) -> str:
        if found["name"] is None:
            return _blank(found, values)
        value = values.get(found["name"])
        if isinstance(value, str) and found["filter"] is None and not _PLAIN_WORD.fullmatch(value):
            return _quoted(value)
        return _value(found, values) or f"<{found['name']}>"

    return _BLANK_OR_PLACEHOLDER.sub(filled, template)


def _blank(found: re.Match[str], values: Mapping[str, FactValue]) -> str:
    """A blank filled in, if its value is known. A host in a log of Kubernetes is a pod, which is no node."""
    names = [name for name in _BLANKS[found[0]] if name != "host" or "kubectl" not in found.string]
    value = next((str(values[name]) for name in names if name in values), None)
    if value is None:
        return found[0].replace("{rank}", str(values.get("rank", "<rank>")))
    if _PLAIN_WORD.fullmatch(value):
        return value
    before = found.string[: found.start()]
    within_quotes = before.count("'") % 2 or before.count('"') % 2
    return found[0] if within_quotes else _quoted(value)


def _quoted(value: str) -> str:
    import shlex  # brings a lexer; few values need it

    return shlex.quote(" ".join(value.split()))


def in_language(text: Text, language: str, values: Mapping[str, FactValue]) -> str:
    return fill(text.in_language(language), values)


def title(text: Text, language: str, values: Mapping[str, FactValue]) -> str:
    """A title is always said: what it does not know is an ellipsis."""
    return PLACEHOLDER.sub(lambda found: _value(found, values) or "…", text.in_language(language))


def _filled(sentence: str, values: Mapping[str, FactValue]) -> str | None:
    parts: list[str] = []
    end = 0
    for found in PLACEHOLDER.finditer(sentence):
        value = _value(found, values)
        if value is None:
            return None
        parts += [sentence[end : found.start()], value]
        end = found.end()
    return "".join([*parts, sentence[end:]])


def _value(found: re.Match[str], values: Mapping[str, FactValue]) -> str | None:
    """The filled placeholder, its default, or None: for what is unknown, and for a size below zero (no size)."""
    value = values.get(found["name"])
    if value is None:
        return found["default"]
    if found["filter"] is None:
        return str(value)
    number, write = size_in_bytes(value), FILTERS.get(found["filter"])
    if number is None or write is None:
        return str(value)
    return None if number < 0 else write(number)


def stated(fact: Fact) -> str:
    """A fact as a reader sees it: `shm.free = 64 MiB`."""
    number, write = size_in_bytes(fact.value), FILTERS["s"] if fact.unit == "s" else None
    if fact.unit == "bytes" and number is not None and number >= _MIB:
        write = FILTERS["mib" if number < 1024 * _MIB else "gib"]
    return f"{fact.id} = {fact.value if number is None or write is None else write(number)}"


def phrase(key: str, language: str, **values: FactValue) -> str:
    """One of logdoc's own sentences, logdoc/data/phrases.yaml. Every placeholder must be given."""
    return say("phrases.yaml", key, language, **values)
