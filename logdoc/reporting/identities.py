"""Finds who and where in a text: addresses, machines, people. Gives each a stand-in, the same wherever it occurs."""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from typing import Any

from logdoc.reporting.secrets import knowledge, normalised

_EMAIL = re.compile(
    r"(?<![\w.+%-])(?P<who>[\w.+%-]{1,64}+)@(?P<where>(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}(?P<tld>[A-Za-z]{2,24}))(?![\w-])"
)
_HOME = re.compile(
    r"(?P<root>/(?:home|Users|users)/)(?P<user>[^/\s:'\",;(){}\[\]<>|*?&$.\\][^/\s:'\",;(){}\[\]<>|*?&$\\]*)"
)
_WINDOWS_HOME = re.compile(
    r"(?P<root>[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/))"
    r"(?P<user>[^\\/:*?\"<>|\r\n]{1,64}(?=\\|/)|[^\\/\s:*?\"'<>|]{1,64})"
)
_TILDE = re.compile(r"(?<![\w/~.])(?P<root>~)(?P<user>[a-z_][\w-]{1,31})(?=/)")
_LOGIN = re.compile(r"(?<![\w.+-])(?P<user>[\w.+-]{1,64}+)@(?=<(?:host|ip)-\d+>)")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{3,45}(?:(?:\.\d{1,3}){3})?(?![\w.]?[\w:])")
_IPV6_START = re.compile(r"(?:[23][0-9a-f]{3}|f[cdef][0-9a-f]{2}):|::ffff:[\d.]+$", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<![\w.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*+)[\"']?(?P<link>\s{0,3}[=:]\s{0,3}|\s{1,3})[\"']?(?=[A-Za-z0-9])"
)
_MACHINE = re.compile(r"(?=[A-Za-z0-9._,-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_.-]{0,252}(?:\[[0-9,-]{1,80}\])?")
_USER = re.compile(r"[a-z_][\w.-]{1,31}(?![\w.(-])")
_TOKEN = re.compile(r"[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?")
_PART = re.compile(r"[^._-]+")
_CLOUD_HOST = re.compile(r"ip(?:-\d{1,3}){4}")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]{0,20})://$")
_PORT = re.compile(r":\d{2,5}(?!\d)")
_ADDRESS_ENDING = re.compile(r":\d|/\d|<\d|\]")
_VERSION_ENDING = re.compile(
    r"\+|[-_](?:py|cp|cu|rc|post|dev|alpha|beta|\d+(?:\.el|\.fc|\.x86|ubuntu|~))|\.(?:post|dev|whl|so)\b"
)
_STAND_IN = re.compile(r"<[a-z]+(?:-\d+)?>")
MOST_PARTS = 8


class Identities:
    """The stand-ins of one report, numbered in order of first use."""

    def __init__(self) -> None:
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._hosts: dict[str, str] = {}
        self._users: set[str] = set()
        self._parts = 1

    def learn(self, text: str) -> None:
        """Remember the machines and people that settings and paths in `text` name."""
        for found in _NAMED.finditer(text):
            name = normalised(found["name"][:100])
            if _names("host_names").search(name):
                self._learn_machine(name, found["link"], text, found.end())
            elif "=" in found["link"] and _names("user_names").search(name):
                user = _USER.match(text, found.end())
                if user and not _is_word(user[0]):
                    self._users.add(user[0])
        for pattern in (_HOME, _WINDOWS_HOME):
            self._users.update(found["user"] for found in pattern.finditer(text) if not _kept_user(found["user"]))

    def _learn_machine(self, name: str, link: str, text: str, start: int) -> None:
        """`host: cpu` is no machine: where the name is vague, the value must look like one."""
        found = _MACHINE.match(text, start)
        if not found or _is_word(found[0]) or _IPV4.fullmatch(found[0].rstrip(".")):
            return
        vague = name in ("host", "hosts") or "=" not in link
        if not vague or re.search(r"[0-9-]", found[0]):
            self.learn_host(found[0].rstrip(".-"))

    def learn_host(self, name: str) -> None:
        """Remember a machine's name, and its short form."""
        if _STAND_IN.fullmatch(name) or not _MACHINE.fullmatch(name) or name.isdigit() or _is_word(name):
            return
        if _is_public(name.lower()) or _IPV4.fullmatch(name):
            return
        short = name.split(".", 1)[0]
        distinctive = re.search(r"[0-9-]", short) and not short.isdigit() and len(short) > 2
        self._hosts.setdefault(_key(name), _key(short if distinctive else name))
        if distinctive:
            self._hosts.setdefault(_key(short), _key(short))
        self._parts = min(max(self._parts, len(_PART.findall(name))), MOST_PARTS)

    def host(self, name: str) -> str:
        """The stand-in of a host field, whatever stands in it."""
        if not name.strip() or _STAND_IN.fullmatch(name) or name.lower() in ("localhost", *_listed("kept_addresses")):
            return name
        if _IPV4.fullmatch(name) or (":" in name and _is_ipv6(name)):
            return self._stand_in("ip", name.lower())
        return self._stand_in("host", self._hosts.get(_key(name), _key(name)))

    def hide(self, text: str) -> str:
        """`text` with everything known or recognisable as an address, a machine or a person replaced."""
        if "@" in text:
            text = _EMAIL.sub(self._email, text)
        if "/" in text or "\\" in text:
            for pattern in (_HOME, _WINDOWS_HOME, _TILDE):
                text = pattern.sub(self._user, text)
        text = _IPV6.sub(self._ipv6, text) if ":" in text else text
        text = _IPV4.sub(self._ipv4, text) if "." in text else text
        text = _TOKEN.sub(self._token, text)
        text = _LOGIN.sub(self._login, text) if "@" in text else text
        return self._named_users(text) if self._users else text

    def _stand_in(self, kind: str, key: str) -> str:
        known = self._stand_ins.get((kind, key))
        if known is None:
            number = 1 + sum(one == kind for one, _ in self._stand_ins)
            known = self._stand_ins[kind, key] = f"<{kind}-{number}>"
        return known

    def _email(self, found: re.Match[str]) -> str:
        tld = found["tld"].lower()
        if len(tld) != 2 and not any(tld in suffixes for suffixes in knowledge()["host_suffixes"].values()):
            return found[0]
        if found["who"] == "git" and _is_public(found["where"].lower()):
            return found[0]
        return self._stand_in("email", found[0].lower())

    def _user(self, found: re.Match[str]) -> str:
        if _kept_user(found["user"]):
            return found[0]
        return found["root"] + self._stand_in("user", found["user"])

    def _login(self, found: re.Match[str]) -> str:
        return found[0] if _kept_user(found["user"]) else f"{self._stand_in('user', found['user'])}@"

    def _ipv4(self, found: re.Match[str]) -> str:
        if found[0] in _listed("kept_addresses") or not _is_ipv4(found[0]):
            return found[0]
        text, start, end = found.string, found.start(), found.end()
        if not _ADDRESS_ENDING.match(text, end):
            before = text[max(0, start - 60) : start]
            if _VERSION_ENDING.match(text, end) or _names("version_words").search(before):
                return found[0]
        return self._stand_in("ip", found[0])

    def _ipv6(self, found: re.Match[str]) -> str:
        address = found[0].rstrip(":") if not found[0].endswith("::") else found[0]
        if address in _listed("kept_addresses") or not _is_ipv6(address):
            return found[0]
        return self._stand_in("ip", address.lower()) + found[0][len(address) :]

    def _token(self, found: re.Match[str]) -> str:
        """A word with its dots and hyphens: a machine's name, or one with a machine's name in it."""
        token, text = found[0], found.string
        if _key(token) in self._hosts:
            return self._stand_in("host", self._hosts[_key(token)])
        scheme = _SCHEME.search(text, max(0, found.start() - 24), found.start())
        in_url = scheme is not None and scheme[1].lower() not in _listed("no_host_schemes")
        if self._is_machine(token, in_url, bool(_PORT.match(text, found.end()))):
            self.learn_host(token)
            return self._stand_in("host", self._hosts.get(_key(token), _key(token)))
        return self._with_known_parts(token) if self._hosts else token

    def _is_machine(self, token: str, in_url: bool, with_port: bool) -> bool:
        if _CLOUD_HOST.fullmatch(token):
            return True
        if in_url and "." not in token:
            return not _is_word(token) and not token.isdigit()
        return "." in token and len(token) < 254 and is_full_name(token, in_url or with_port)

    def _with_known_parts(self, token: str) -> str:
        """`rank3-node-b.log` names node-b: look for known names between dots, hyphens and underscores."""
        parts = [(part.start(), part.end()) for part in _PART.finditer(token)]
        made: list[str] = []
        done = position = 0
        while position < len(parts):
            start = parts[position][0]
            for last in range(min(position + self._parts, len(parts)) - 1, position - 1, -1):
                end = parts[last][1]
                if (known := self._hosts.get(_key(token[start:end]))) is not None:
                    made += [token[done:start], self._stand_in("host", known)]
                    done, position = end, last
                    break
            position += 1
        return "".join([*made, token[done:]])

    def _named_users(self, text: str) -> str:
        """A known person where a path or a setting names one; elsewhere the word may mean something else."""

        def replaced(found: re.Match[str]) -> str:
            known = found["user"] in self._users
            return found["root"] + self._stand_in("user", found["user"]) if known else found[0]

        return re.sub(
            r"(?P<root>/|\b(?i:user(?:name)?|logname|login|owner)[=:\s]\s?['\"]?)(?P<user>\w[\w.-]*)(?![\w-])",
            replaced,
            text,
        )


def is_full_name(token: str, as_address: bool) -> bool:
    """Whether a dotted word is a machine's full name and not a module, a file or a version."""
    labels = token.lower().split(".")
    if not all(re.fullmatch(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", label) for label in labels):
        return False
    if not labels[-1].isalpha() or len(labels[-1]) < 2 or _is_public(token.lower()):
        return False
    if as_address:
        return True
    suffixes = knowledge()["host_suffixes"]
    hyphen, digit = any("-" in label for label in labels), bool(re.search(r"\d", labels[0]))
    if labels[-1] in suffixes["sure"]:
        return True
    if labels[-1] in suffixes["long"]:
        return len(labels) > 2 or "-" in labels[0] or digit
    return labels[-1] in suffixes["guarded"] and len(labels) > 2 and (hyphen or digit)


def _key(name: str) -> str:
    """Names of several parts are the same in any case; `a100` is not the GPU `A100`."""
    return name.lower() if "-" in name or "." in name else name


@cache
def _names(key: str) -> re.Pattern[str]:
    return re.compile(knowledge()[key])


@cache
def _listed(key: str) -> frozenset[Any]:
    return frozenset(str(one).lower() for one in knowledge()[key])


def _is_word(name: str) -> bool:
    """A word that means something in every log."""
    return name.lower() in _listed("common_words") or bool(_names("no_values").match(name))


def _kept_user(name: str) -> bool:
    return name.lower() in _listed("kept_users") or name.startswith("<") or name.isdigit()


def _is_public(name: str) -> bool:
    labels = name.split(".")
    return any(".".join(labels[start:]) in _listed("public_sites") for start in range(len(labels) - 1))


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    """A real address, not a C++ scope, a MAC, a PCI address or a time that happens to parse."""
    if text.count(":") < 2 or not _IPV6_START.match(text):
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
