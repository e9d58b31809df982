"""Tells machines, addresses and logins from what only looks like them: modules, files, versions, C++ scopes, clocks."""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from typing import Any

from logdoc.kept.patterns import lazily
from logdoc.reporting.secrets import knowledge

IPV4 = lazily(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
# Only what starts as real addresses do (global, unique local, link-local, multicast, mapped IPv4): a C++ scope, a MAC,
# a PCI address, a time and an InfiniBand GUID do not.
IPV6 = lazily(
    r"(?<![0-9A-Za-z])(?:(?:[23][0-9a-f]{3}|f[cdef][0-9a-f]{2}):[0-9a-f:]{1,40}(?:(?:\.\d{1,3}){3})?"
    r"|::ffff:\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\w)",
    re.IGNORECASE,
)
TOKEN = lazily(r"[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?")
STAND_IN = lazily(r"<[a-z]+(?:-\d+)?>")
LONGEST_DOMAIN = 253
LOOKED_BACK = 60  # characters before four numbers that may say they are a version

_LABEL = lazily(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_CLOUD_HOST = lazily(r"ip(?:-\d{1,3}){4}")
_SCHEME = lazily(r"([a-zA-Z][a-zA-Z0-9+.-]{0,20})://(?:[^\s/@]{1,80}@)?$")
_LONGEST_BEFORE_HOST = 110  # characters of a URL before its host
_PORT = lazily(r":\d{2,5}(?!\d)")
_ADDRESS_ENDING = lazily(r":\d|/\d|<\d|\]")
_VERSION_ENDING = lazily(
    r"\+|[-_](?:py|cp|cu|rc|post|dev|alpha|beta|\d+(?:\.el|\.fc|\.x86|ubuntu|~))|\.(?:post|dev|whl|so)\b"
)


def is_machine(found: re.Match[str]) -> bool:
    """Whether a TOKEN is a machine's name by its form or its place: in a URL, before a port, or written in full."""
    token, text = found[0], found.string
    if _CLOUD_HOST.fullmatch(token):
        return True
    in_url = text[found.start() - 1 : found.start()] in ("/", "@")
    start = max(0, found.start() - _LONGEST_BEFORE_HOST)
    scheme = _SCHEME.search(text, start, found.start()) if in_url else None
    if scheme is not None and scheme[1].lower() not in _listed("no_host_schemes"):
        if "." not in token:
            return not is_common(token) and not token.isdigit()
        return _is_domain(token) and not is_public(token.lower())
    return "." in token and is_full_name(token, with_port=_PORT.match(text, found.end()) is not None)


def is_full_name(token: str, with_port: bool = False) -> bool:
    """Whether a dotted word is a machine's full name and not a module, a file or a version."""
    if not _is_domain(token) or is_public(token.lower()):
        return False
    labels = token.lower().split(".")
    suffixes = knowledge()["host_suffixes"]
    hyphen, digit = any("-" in label for label in labels), any(sign.isdigit() for sign in labels[0])
    if labels[-1] in suffixes["sure"]:
        return True
    if labels[-1] in suffixes["long"]:
        return with_port or len(labels) > 2 or "-" in labels[0] or digit
    return labels[-1] in suffixes["guarded"] and (with_port or (len(labels) > 2 and (hyphen or digit)))


def _is_domain(token: str) -> bool:
    if len(token) > LONGEST_DOMAIN:
        return False
    labels = token.split(".")
    if len(labels) < 2 or not labels[-1].isalpha() or len(labels[-1]) < 2:
        return False
    return all(_LABEL.fullmatch(label) for label in labels)


def within_mail(domain: str) -> bool:
    """Whether a domain is one that mail goes to, and not `torch.ops` in `kernel@torch.ops`."""
    last = domain.lower().rsplit(".", 1)[-1]
    return len(last) == 2 or any(last in suffixes for suffixes in knowledge()["host_suffixes"].values())


def is_version(found: re.Match[str]) -> bool:
    """Whether four numbers with dots are a version: something before or behind them says so, and no port does not."""
    text, start, end = found.string, found.start(), found.end()
    if _ADDRESS_ENDING.match(text, end):
        return False
    if _VERSION_ENDING.match(text, end):
        return True
    return _pattern("version_words").search(text[max(0, start - LOOKED_BACK) : start]) is not None


def real_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def real_ipv6(text: str) -> bool:
    if text.count(":") < 2 or not IPV6.fullmatch(text):
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def kept_address(text: str) -> bool:
    """The addresses and names that are the same on every machine."""
    return text.lower().removeprefix("::ffff:").startswith("127.") or text.lower() in _listed("kept_addresses")


def is_common(name: str) -> bool:
    """A word that means something in every log, so that it cannot be hidden wherever it stands."""
    if name.lower() in _listed("common_words") or _pattern("no_values").match(name):
        return True
    return name.isupper() and (name.isalpha() or is_machine_setting(name.lower()))  # HOST or MASTER_ADDR in a usage


def is_kept_user(name: str) -> bool:
    """A login of images and machines, not of a person."""
    return name.lower() in _listed("kept_users") or name.startswith("<") or name.isdigit()


def is_public(name: str) -> bool:
    """A site that everybody knows, or a part of one."""
    labels = name.split(".")
    return any(".".join(labels[start:]) in _listed("public_sites") for start in range(len(labels) - 1))


def is_machine_setting(name: str) -> bool:
    return _pattern("host_names").search(name) is not None


def is_user_setting(name: str) -> bool:
    return _pattern("user_names").search(name) is not None


@cache
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile(knowledge()[key])


@cache
def _listed(key: str) -> frozenset[Any]:
    return frozenset(str(one).lower() for one in knowledge()[key])
