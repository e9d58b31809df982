"""A Report without secrets, people, machines and addresses: each has a stand-in, the same throughout. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from logdoc.kept.patterns import lazily
from logdoc.reporting.identities import Identities
from logdoc.reporting.secrets import find_secrets, is_secret, kind_of
from logdoc.types.report import EnvironmentProblem, Report

HIDDEN = "<token>"
MOST_KNOWN_SECRETS = 100
SHORTEST_KNOWN_SECRET = 12

# Fields that hold words of the schema, ids of rules and probes, or what a rule's author wrote as a reference.
_SCHEMA_WORDS = frozenset(
    (
        *("schema", "outcome", "rule", "kind", "status", "id", "explains", "noise", "references", "advice", "severity"),
        *("state", "risk", "applies", "signature", "variable", "language", "role", "version", "rules", "time"),
        *("milestone", "ScoreTerm.name"),
    )
)
_HOST_FIELDS = frozenset({"host", "hostname", "exclude_hosts"})
_NUMBER = lazily(r"[-+]?[\d.,]+(?:e[-+]?\d+)?\s?[A-Za-z%/]{0,6}", re.IGNORECASE)
_FOUR_NUMBERS = lazily(r"\d+\.\d+\.\d+\.\d+")


def redact(report: Report) -> Report:
    """The same report, fit to leave the house. Numbers, rule ids and the words of the schema stay as they are.

    Secrets become `<token>`; machines, addresses, people and e-mail addresses `<host-1>`, `<ip-1>`, `<user-1>`,
    `<email-1>`, numbered in order of first appearance. Ports stay, and so do hashes, versions and hardware ids.
    """
    hiding = Redactor()
    hiding.learn(report)
    redacted = hiding.hidden(report)
    assert isinstance(redacted, Report)
    return redacted


class Redactor:
    """What one report, or one conversation about it, hides. Learn everything first: a name told late was used early."""

    def __init__(self) -> None:
        self._identities = Identities()
        self._secrets: dict[str, None] = {}
        self._done: dict[str, str] = {}

    def learn(self, value: Any, field: str = "") -> None:
        """Remember the names and secrets of a report, or of any part of one."""
        for name, text in dict.fromkeys(_texts(value, field)):
            if name in _HOST_FIELDS:
                self._identities.learn_host(text)
            else:
                self._learn_text(text)
        self._done.clear()

    def _learn_text(self, text: str) -> None:
        self._identities.learn(text)
        for secret in find_secrets(text):
            if not secret.by_form:
                self._remember(text[secret.start : secret.end])

    def _remember(self, secret: str) -> None:
        """A secret that only its name gave away is hidden wherever else it stands."""
        telling = any(sign.isdigit() for sign in secret) and not _NUMBER.fullmatch(secret)
        if len(secret) >= SHORTEST_KNOWN_SECRET and telling and len(self._secrets) < MOST_KNOWN_SECRETS:
            self._secrets[secret] = None

    def hidden(self, value: Any, field: str = "") -> Any:
        """`value` with every text in it redacted; the same type."""
        if isinstance(value, str):
            if field in _HOST_FIELDS:
                return self._identities.host(value)
            return value if field in _SCHEMA_WORDS else self.text(value)
        if isinstance(value, tuple):
            return tuple(self.hidden(one, field) for one in value)
        if isinstance(value, Mapping):
            return {key: self._setting(key, one) for key, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            made = {one.name: self.hidden(getattr(value, one.name), _field(value, one.name)) for one in fields(value)}
            if isinstance(value, EnvironmentProblem):
                made["value"] = self._setting(value.variable, value.value)
            return replace(value, **made)
        return value

    def text(self, text: str) -> str:
        """Any text, redacted."""
        if text not in self._done:
            self._done[text] = self._identities.hide(self._without_secrets(text))
        return self._done[text]

    def _setting(self, name: str, value: Any) -> Any:
        """A value that has a name: an environment variable, something captured, a fact. A number stays a number."""
        if not isinstance(value, str):
            return value
        if name in _HOST_FIELDS:
            return self._identities.host(value)
        if _is_secret_setting(name, value):
            return HIDDEN
        if _NUMBER.fullmatch(value) and not _FOUR_NUMBERS.match(value):
            return value
        return self.text(value)

    def _without_secrets(self, text: str) -> str:
        made: list[str] = []
        done = 0
        for secret in find_secrets(text):
            made += [text[done : secret.start], HIDDEN]
            done = secret.end
        text = "".join([*made, text[done:]])
        for known in self._secrets:
            text = text.replace(known, HIDDEN)
        return text


def _is_secret_setting(name: str, value: str) -> bool:
    kind = kind_of(name)
    return kind is not None and is_secret(kind, value, strict=True)


def _field(owner: Any, name: str) -> str:
    """A field's name, with its owner's where the same name means another thing elsewhere."""
    return f"{type(owner).__name__}.{name}" if name == "name" else name


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Every text with the name of its field, in the order of the tree; a setting also as `NAME=value`."""
    if isinstance(value, str):
        if field not in _SCHEMA_WORDS:
            yield field, value
    elif isinstance(value, tuple):
        for one in value:
            yield from _texts(one, field)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, key)
            yield "", f"{key}={one}"
    elif is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, EnvironmentProblem):
            yield "", f"{value.variable}={value.value}"
        for one in fields(value):
            yield from _texts(getattr(value, one.name), _field(value, one.name))
