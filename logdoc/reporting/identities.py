"""Finds who and where in a text: addresses, machines, people. Gives each a stand-in, the same wherever it occurs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from logdoc.kept.patterns import lazily
from logdoc.reporting.machines import (
    IPV4,
    IPV6,
    STAND_IN,
    TOKEN,
    is_common,
    is_kept_user,
    is_machine,
    is_machine_setting,
    is_public,
    is_user_setting,
    is_version,
    kept_address,
    real_ipv4,
    real_ipv6,
    within_mail,
)
from logdoc.reporting.secrets import normalised

MOST_PARTS = 8  # of a name such as gpu-a100-17-rack-4
MOST_LISTED = 5_000  # machines of one Slurm list
MOST_LISTS = 50
LONGEST_NAME = 100

_EMAIL = lazily(
    r"(?<![\w.+%-])(?P<who>[\w.+%-]{1,64}+)@(?P<where>(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24})(?![\w-])"
)
_PERSON = r"(?P<user>[^/\s:'\",;(){}\[\]<>|*?&$.\\][^/\s:'\",;(){}\[\]<>|*?&$\\]*)"
_HOME = lazily(r"(?P<root>/(?:home|Users)/)" + _PERSON)
_USERS = lazily(r"(?P<root>/users/)" + _PERSON)
_WINDOWS_HOME = lazily(
    r"(?P<root>[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/))"
    r"(?P<user>[^\\/:*?\"<>|\r\n]{1,64}(?=\\|/)|[^\\/\s:*?\"'<>|]{1,64})"
)
_TILDE = lazily(r"(?<![\w/~.])(?P<root>~)(?P<user>[a-z_][\w-]{1,31})(?=/)")
_LOGIN = lazily(r"(?<![\w.+-])(?P<user>[\w.+-]{1,64}+)@(?=<(?:host|ip)-\d+>)")
_NAMED_USER = lazily(r"(?P<root>/|\b(?i:user(?:name)?|logname|login|owner)[=:\s]\s?['\"]?)(?P<user>\w[\w.-]*)(?![\w-])")
_SETTING = lazily(
    r"(?<![\w.-])(?P<flag>-{0,2})(?P<name>[A-Za-z_][\w.-]*+)(?P<link>[\"']?\s{0,3}[=:]\s{0,3}|\s{1,3})(?P<quote>[\"']?)"
)
_MACHINE = lazily(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}(?P<list>\[[0-9,-]{1,80}\])?")
_USER = lazily(r"[a-z_][\w.-]{1,31}(?![\w.(-])")
_PART = lazily(r"[^._-]+")


class Identities:
    """The stand-ins of one report, numbered in order of first use."""

    def __init__(self) -> None:
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._lists: dict[str, str] = {}
        self._users: set[str] = set()
        self._parts = 1

    def learn(self, text: str) -> None:
        """Remember the machines and people that settings, addresses and paths in `text` name."""
        for found in _SETTING.finditer(text):
            name = normalised(found["name"][:LONGEST_NAME])
            if is_machine_setting(name):
                self._learn_setting(found)
            elif "=" in found["link"] and is_user_setting(name):
                user = _USER.match(text, found.end())
                if user and not is_common(user[0]):
                    self._users.add(user[0])
        for token in TOKEN.finditer(text):
            if is_machine(token):
                self.learn_host(token[0])
        for pattern in (_HOME, _WINDOWS_HOME):
            self._users.update(found["user"] for found in pattern.finditer(text) if not is_common(found["user"]))

    def _learn_setting(self, found: re.Match[str]) -> None:
        """`host: cpu` is no machine: without a sign that it is a setting, the value must look like a machine."""
        value = _MACHINE.match(found.string, found.end())
        if value is None or IPV4.fullmatch(value[0].rstrip(".")):
            return
        written_as_setting = "=" in found["link"] or found["quote"] or (found["flag"] and not found["link"].strip())
        if not written_as_setting and not (":" in found["link"] and any(sign.isdigit() for sign in value[0])):
            return
        if value["list"]:
            self._learn_list(value[0])
        else:
            self.learn_host(value[0].rstrip("._-"))

    def _learn_list(self, text: str) -> None:
        """`node[01-04,07]`, as Slurm writes it: the list and each machine of it."""
        if text not in self._lists and len(self._lists) < MOST_LISTS:
            self._lists[text] = text.lower()
            for name in _listed_machines(text):
                self.learn_host(name)

    def learn_host(self, name: str) -> None:
        """Remember a machine's name, and its short form."""
        if not _MACHINE.fullmatch(name) or name.isdigit() or IPV4.fullmatch(name):
            return
        if is_common(name) or is_public(name.lower()):
            return
        short = name.split(".", 1)[0]
        distinctive = len(short) > 2 and not short.isdigit() and re.search(r"[0-9-]", short) is not None
        self._hosts.setdefault(_key(name), _key(short if distinctive else name))
        if distinctive:
            self._hosts.setdefault(_key(short), _key(short))
        self._parts = min(max(self._parts, len(_PART.findall(name))), MOST_PARTS)

    def host(self, name: str) -> str:
        """The stand-in of a host field, whatever stands in it."""
        if not name.strip() or STAND_IN.fullmatch(name) or kept_address(name):
            return name
        if real_ipv4(name) or real_ipv6(name):
            return self._stand_in("ip", name.lower())
        return self._stand_in("host", self._hosts.get(_key(name), _key(name)))

    def hide(self, text: str) -> str:
        """`text` with everything known or recognisable as an address, a machine or a person replaced."""
        for written, key in self._lists.items():
            text = text.replace(written, self._stand_in("host", key)) if written in text else text
        if "@" in text:
            text = _EMAIL.sub(self._email, text)
        if "/" in text or "\\" in text:
            for pattern in (_HOME, _USERS, _WINDOWS_HOME, _TILDE):
                text = pattern.sub(self._user, text)
        text = IPV6.sub(self._ipv6, text) if ":" in text else text
        text = IPV4.sub(self._ipv4, text) if "." in text else text
        text = TOKEN.sub(self._token, text)
        text = _LOGIN.sub(self._login, text) if "@" in text else text
        return _NAMED_USER.sub(self._named_user, text) if self._users else text

    def _stand_in(self, kind: str, key: str) -> str:
        if (kind, key) not in self._stand_ins:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._stand_ins[kind, key] = f"<{kind}-{self._counts[kind]}>"
        return self._stand_ins[kind, key]

    def _email(self, found: re.Match[str]) -> str:
        if not within_mail(found["where"]) or (found["who"] == "git" and is_public(found["where"].lower())):
            return found[0]
        return self._stand_in("email", found[0].lower())

    def _user(self, found: re.Match[str]) -> str:
        if is_kept_user(found["user"]):
            return found[0]
        return found["root"] + self._stand_in("user", found["user"])

    def _login(self, found: re.Match[str]) -> str:
        return found[0] if is_kept_user(found["user"]) else f"{self._stand_in('user', found['user'])}@"

    def _named_user(self, found: re.Match[str]) -> str:
        """A known person where a path or a setting names one; elsewhere the word may mean something else."""
        return self._user(found) if found["user"] in self._users else found[0]

    def _ipv4(self, found: re.Match[str]) -> str:
        if kept_address(found[0]) or not real_ipv4(found[0]) or is_version(found):
            return found[0]
        return self._stand_in("ip", found[0])

    def _ipv6(self, found: re.Match[str]) -> str:
        address = found[0] if found[0].endswith("::") else found[0].rstrip(":")
        if kept_address(address) or not real_ipv6(address):
            return found[0]
        return self._stand_in("ip", address.lower()) + found[0][len(address) :]

    def _token(self, found: re.Match[str]) -> str:
        """A word with its dots and hyphens: a machine's name, or one with a machine's name in it."""
        key = _key(found[0])
        if key in self._hosts or is_machine(found):
            return self._stand_in("host", self._hosts.get(key, key))
        return self._with_known_parts(found[0]) if self._hosts else found[0]

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


def _listed_machines(text: str) -> Iterator[str]:
    stem, _, numbers = text.rstrip("]").partition("[")
    for part in numbers.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            for number in range(int(first), min(int(last or first), int(first) + MOST_LISTED) + 1):
                yield f"{stem}{number:0{len(first)}}"


def _key(name: str) -> str:
    """Names of several parts are the same in any case; `a100` is not the GPU `A100`."""
    return name.lower() if "-" in name or "." in name else name
