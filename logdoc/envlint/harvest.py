"""Finds settings in text: NCCL's echo, shell, Dockerfile, Slurm, mpirun, Kubernetes, Python. Judges nothing.

The hard part is what is *not* a setting: error texts are full of advice ("try setting NCCL_X=1"). So a line counts only
where it has the form of a command, a declaration or an environment dump from its first word to its last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from logdoc.catalog.environment import env_family, env_variable, shell_commands
from logdoc.catalog.hint import may_name_variable
from logdoc.kept.patterns import lazily


class Setting(NamedTuple):
    """A name and what it is set to; None where that is passed on or computed. `unset`: taken away instead."""

    name: str
    value: str | None
    unset: bool = False


_NAME = r"[A-Z][A-Z0-9_]*[A-Z0-9]"
_NAMES = lazily(_NAME)
_PREFIX = lazily(r"(?:\[\w+\]:\s*|\[\d+,\d+\]<std\w+>:\s*|\d+:\s+)?")  # [rank0]: · mpirun --tag-output · srun -l
_PROMPT = lazily(r"\s*(?:\++\s+|(?:\([\w.-]{1,64}\)\s{0,4})?[\w.-]{1,64}@[^$#\s]{1,128}\s{0,4}[$#]\s+|\$\s+)?")
_ECHO = lazily(rf"(?:^|NCCL INFO )\s*({_NAME}) set by environment to (.*)$")
_CHOICE = lazily(rf"(?:^|NCCL INFO )\s*({_NAME}) set to (\S+)$")  # NCCL_IB_HCA's own form
_DOCKER_ENV = lazily(rf"\s*ENV\s+(?:({_NAME})\s+([^=\s].*)|({_NAME}=.*))$")
_PYTHON = lazily(
    rf"""\s*(?:os\.)?\w{{0,40}}env\w{{0,40}}"""
    rf"""(?:\[\s*["']({_NAME})["']\s*\]\s*=(?!=)\s*|\.setdefault\(\s*["']({_NAME})["']\s*,\s*)(.*)$"""
)
_PYTHON_TEXT = lazily(r"""["']([^"'{}]*)["']\s*\)?\s*(?:#.*)?$""")
_YAML_NAME = lazily(rf"""\s*(?:-\s*)?name:\s*["']?({_NAME})["']?$""")
_YAML_VALUE = lazily(r"\s*(?:-\s*)?value:\s*(.*)$")
_YAML_FLOW = lazily(rf"""\s*-\s*\{{\s*name:\s*["']?({_NAME})["']?\s*,\s*value:\s*([^}}]*)\}}$""")
_YAML_ENTRY = lazily(rf"""\s*["']?({_NAME})["']?\s*:\s+(\S.*)$""")
_YAML_ITEM = lazily(rf"""\s*-\s*["']?({_NAME})=(.*)$""")
_BATCH_LINE = lazily(r"\s*#(?:SBATCH|PBS|\$|BSUB|COBALT)\s+(.*)$")
_ASSIGNMENT = lazily(rf"({_NAME})=(.*)", re.DOTALL)
_SEPARATORS = {";", "&&", "||", "|", "&", "then", "do", "else", "{", "(", ";;"}
_PASS_ON = {"-e", "--env", "-x", "-genv", "--genv"}
_PASS_LIST = {"--export", "--export-env", "-env", "-envlist", "-v"}
_ENV_MAKERS = {"env", "sudo", "export", "exec", "nohup", "time", "declare", "setenv"}
_LONGEST_LINE = 4096  # a longer line is no setting, and patterns stay quick


def variables_in(text_lines: Iterable[str]) -> dict[str, tuple[str | None, int]]:
    """The settings that lines of a log or script make, each with the index of its line; no prose, no advice.

    The last one wins, as in a shell, but what NCCL says it read beats all. A value of None: passed on or computed.
    """
    found: dict[str, tuple[str | None, int]] = {}
    echoed: set[str] = set()
    pending: str | None = None  # the name of a YAML entry whose value is on the next line
    for index, text in enumerate(text_lines):
        if pending is None and not _names_ours(text):
            continue
        for line in text.split("\n"):
            line = line[:_LONGEST_LINE].rstrip()
            if pending is not None and (value := _YAML_VALUE.match(line)):
                found[pending] = _unquoted(value[1]), index
            named = _YAML_NAME.match(line)
            pending = named[1] if named and _is_ours(named[1]) else None
            if pending is not None:
                found[pending] = None, index
            elif (echo := _echo(line)) is not None:
                echoed.add(echo.name)
                found[echo.name] = echo.value, index
            else:
                _take(line, index, found, echoed)
    return found


def read_job_script(text: str) -> dict[str, tuple[str | None, int]]:
    """The settings of a whole job script or manifest: `variables_in`, and YAML mappings (`NCCL_DEBUG: INFO`).

    Only for files known to be scripts: in a log the same forms are as often a table or a list of advice.
    """
    lines = text.splitlines()
    found = variables_in(lines)
    for index, raw in enumerate(lines):
        line = raw[:_LONGEST_LINE].rstrip()
        entry = _YAML_ENTRY.match(line) or _YAML_ITEM.match(line)
        if entry and _is_ours(entry[1]):
            found.setdefault(entry[1], (_unquoted(entry[2].rstrip(",")), index))
    return found


def _take(line: str, index: int, found: dict[str, tuple[str | None, int]], echoed: set[str]) -> None:
    for setting in _declared(line):
        if setting.unset:
            found.pop(setting.name, None)
        elif setting.name not in echoed:
            found[setting.name] = setting.value, index


def _names_ours(text: str) -> bool:
    return may_name_variable(text) and any(map(_is_ours, _NAMES.findall(text)))


@lru_cache(maxsize=4096)
def _is_ours(name: str) -> bool:
    return env_family(name) is not None or env_variable(name) is not None


def _echo(line: str) -> Setting | None:
    """NCCL's own word for what it read: `NCCL_X set by environment to 1.` (numbers end in a full stop)."""
    found = _ECHO.search(line) or _CHOICE.search(line)
    if found is None or not _is_ours(found[1]):
        return None
    return Setting(found[1], found[2].removesuffix("."))


def _declared(line: str) -> Iterator[Setting]:
    """The settings of one line in any of the written forms, as far as the names are ours."""
    flow = _YAML_FLOW.match(line)
    python = _PYTHON.match(line)
    docker = _DOCKER_ENV.match(line)
    settings: Iterable[Setting]
    if flow:
        settings = [Setting(flow[1], _unquoted(flow[2]))]
    elif python:
        text = _PYTHON_TEXT.match(python[3])
        settings = [Setting(python[1] or python[2], text[1] if text else None)]
    elif docker and docker[1]:
        settings = [Setting(docker[1], _unquoted(docker[2]))]
    else:
        settings = _from_shell(docker[3] if docker else line)
    return (setting for setting in settings if _is_ours(setting.name))


def _from_shell(line: str) -> Iterator[Setting]:
    batch = _BATCH_LINE.match(line)
    if batch:
        yield from _options(_words(batch[1]) or [])
        return
    rest = _after(_PROMPT, _after(_PREFIX, line)).rstrip().removesuffix("\\")
    first = rest.split(maxsplit=1)
    if not first or not (_ASSIGNMENT.match(first[0]) or _begins_a_command(first[0]) or first[0] == "do"):
        return  # prose, seen without the cost of parsing it; a comment, too
    for segment in _segments(_words(rest) or []):
        settings = _from_segment(segment)
        if settings is None:
            return  # the line is prose; what follows a separator in it is prose too
        yield from settings


def _after(pattern: re.Pattern[str], line: str) -> str:
    found = pattern.match(line)
    return line[found.end() :] if found else line


def _words(text: str) -> list[str] | None:
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:  # unbalanced quotes: not a whole command
        return None


def _segments(words: list[str]) -> Iterator[list[str]]:
    segment: list[str] = []
    for word in words:
        if word in _SEPARATORS:
            if segment:
                yield segment
            segment = []
        elif word.startswith("#"):
            break
        else:
            segment.append(word)
    if segment:
        yield segment


def _from_segment(words: list[str]) -> list[Setting] | None:
    """The settings of one command; None if this is no command."""
    first = words[0]
    if first == "unset":
        return [Setting(word, None, unset=True) for word in words[1:]]
    if first == "setenv":
        return [Setting(words[1], words[2])] if len(words) == 3 else None
    if first in ("export", "declare"):
        return _exported([word for word in words[1:] if not word.startswith("-")])
    assigned = _leading_assignments(words)
    rest = words[len(assigned) :]
    if not rest:
        return None if _ends_a_sentence(assigned) else assigned
    if not _begins_a_command(rest[0]):
        return None
    if rest[0] in _ENV_MAKERS:
        assigned += _leading_assignments([word for word in rest[1:] if not word.startswith("-")])
    return [*assigned, *_options(rest)]


def _exported(words: list[str]) -> list[Setting] | None:
    """`export NCCL_X=1 and run again` is advice: every word must be a name, or a name with a value."""
    settings: list[Setting] = []
    for word in words:
        found = re.fullmatch(r"([A-Za-z_]\w*)(?:=(.*))?", word, re.DOTALL)
        if found is None or (found[2] is None and not _NAMES.fullmatch(word)):
            return None
        settings.append(Setting(found[1], found[2]))
    return settings


def _ends_a_sentence(assigned: list[Setting]) -> bool:
    values = [setting.value or "" for setting in assigned]
    return bool(values) and (values[-1].endswith(".") or any(value.endswith(",") for value in values))


def _leading_assignments(words: list[str]) -> list[Setting]:
    settings: list[Setting] = []
    for word in words:
        setting = _setting(word)
        if setting is None:
            break
        settings.append(setting)
    return settings


def _options(words: list[str]) -> list[Setting]:
    """`-e NAME=VALUE`, `-x NAME`, `--export=ALL,NAME=VALUE`, `-genv NAME VALUE` among a command's words."""
    settings: list[Setting] = []
    for position, word in enumerate(words):
        option, _, joined = word.partition("=")
        following = words[position + 1 : position + 3]
        if option in _PASS_LIST and (joined or following):
            items = (joined or following[0]).split(",")
            settings += [setting for item in items if (setting := _setting(item))]
        elif option in _PASS_ON and (joined or following):
            settings += _passed(option, [joined] if joined else following)
    return settings


def _passed(option: str, following: list[str]) -> list[Setting]:
    setting = _setting(following[0])
    if setting is not None:
        return [setting]
    if not _NAMES.fullmatch(following[0]):
        return []
    return [Setting(following[0], following[1] if option.endswith("genv") and len(following) > 1 else None)]


def _setting(word: str) -> Setting | None:
    found = _ASSIGNMENT.fullmatch(word)
    return Setting(found[1], found[2]) if found else None


def _begins_a_command(word: str) -> bool:
    """After an assignment only a command word (or a path) makes it a command and not prose."""
    if word in shell_commands() or word.startswith(("./", "/", "~/", "$", "-", "[", "((")):
        return True
    return word.endswith((".sh", ".py")) or re.fullmatch(r"python[\d.]+", word) is not None


def _unquoted(value: str) -> str | None:
    """A YAML or Docker value without its quotes; None where it stands elsewhere (`valueFrom`, an anchor)."""
    plain = value.split(" #")[0].strip()
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'":
        return plain[1:-1]
    return None if plain.startswith(("*", "&", "|", ">")) else plain.strip("\"'")
