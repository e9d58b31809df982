"""What the log names beside a rule's captures, for texts and commands: the user's frame, the script, the process.

The names have a dot, so that no capture of a rule is called so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from logdoc.cascade import Survey
from logdoc.catalog.frames import is_user_code
from logdoc.kept.patterns import lazily
from logdoc.types.finding import Hypothesis, Match
from logdoc.types.report import Ranks
from logdoc.types.rule import FactValue
from logdoc.types.spans import spans

MOST_RECORDS = 200  # in which a name is looked for
MOST_SPANS = 12  # of ranks that one sentence names

_FRAME = lazily(
    r'^[ \t|+]*File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,7}), in (?P<function>[^\n]{1,200})'
    r'(?:\n(?![ \t|+]*File ")[ \t|+]+(?P<code>[^\s^~][^\n]{0,300}))?',
    re.MULTILINE,
)
_NEXT_LINK = "\nTraceback (most recent call last):"
# torchrun's title, the command of the old launcher, and the frame that every traceback of a script begins with
_TITLE = lazily(r"^(?P<script>\S{1,300}\.py) FAILED *$", re.MULTILINE)
_COMMAND = lazily(r"Command '\[[^\n]{0,400}?'(?P<script>[^'\n]{1,300}\.py)'")
_MAIN = lazily(
    r'Traceback \(most recent call last\):\n[ \t]+File "(?P<script>[^"\n]{1,400}\.py)", line \d+, in <module>'
)
_KEPT_FILE = lazily(
    r"(?P<quote>[\"'])(?P<quoted>[\w./~+=-]{1,300}\.(?P<kind>pt|pth|ckpt|safetensors|bin|distcp|pkl|npy|npz|h5))(?P=quote)"
    r"|(?<![\w.~/{}:+=-])(?P<bare>[\w.~+=-]{0,100}/[\w./+=-]{0,300}\.(?:pt|pth|ckpt|safetensors|bin|distcp|pkl|npy|npz|h5))"
    r"(?!\w|\.\w)"
)
_REPOSITORY = lazily(
    r"https?://(?:huggingface\.co|hf-mirror\.com)/(?:api/(?:models|datasets)/)?"
    r"(?P<name>[\w.-]{1,96}/[\w.-]{1,96}?)(?:/(?:resolve|tree|raw|revision|blob)/|/?$)"
)


def script_values(ranked: Iterable[Hypothesis]) -> dict[str, FactValue]:
    """`job.script`: the script that the job runs, as its launcher or a traceback names it."""
    bodies = list(_bodies(ranked))
    for pattern in (_TITLE, _COMMAND, _MAIN):
        for body in bodies:
            found = pattern.search(body)
            if found is not None and is_user_code(found["script"]):
                return {"job.script": found["script"]}
    return {}


def _bodies(ranked: Iterable[Hypothesis]) -> Iterator[str]:
    seen: set[int] = set()
    for one in ranked:
        for match in one.matches:
            if match.record.seq not in seen:
                seen.add(match.record.seq)
                yield match.record.body
            if len(seen) >= MOST_RECORDS:
                return


def own_values(one: Hypothesis, ranks: Ranks, survey: Survey) -> dict[str, FactValue]:
    """What is known of one hypothesis alone.

    - `traceback.frame`, `traceback.code`: the last frame of the user's own files (`train.py:30 in main`) in the
      traceback that its first match stands in, and the source line there;
    - `traceback.file`: the one checkpoint or data file that this traceback names;
    - `rank.pid`: the process of its rank; `log.name`: the log it was first seen in;
    - `job.other_ranks`: the ranks known beside its own, as spans;
    - `hub.repo`: the repository of the address it was refused at.
    """
    return {
        **traceback_values(one.matches),
        **_process(one.rank, survey),
        **_log(one.origin.record.source),
        **_other_ranks(one, ranks),
        **_repository(one.values),
    }


def traceback_values(matches: Sequence[Match]) -> dict[str, FactValue]:
    """Of a chain of exceptions in records of their own, the link that was matched first and that has such a frame."""
    first = matches[0]
    own = [match for match in matches[:MOST_RECORDS] if match.rank == first.rank]
    told = next(filter(None, map(_frame, own)), {})
    return {**told, **_named_file(first)}


def _frame(match: Match) -> dict[str, FactValue]:
    frames = (found for found in _FRAME.finditer(_traceback(match)) if _is_users(found["file"]))
    last = max(frames, key=lambda found: found.start(), default=None)
    if last is None:
        return {}
    told: dict[str, FactValue] = {"traceback.frame": f"{last['file']}:{last['line']} in {last['function'].strip()}"}
    return {**told, "traceback.code": last["code"].strip()} if last["code"] else told


def _traceback(match: Match) -> str:
    """The record up to the next link of its chain; what a worker process raised stands within the message."""
    body = match.record.body
    end = body.find(_NEXT_LINK, match.end)
    return body if end < 0 else body[:end]


def _is_users(file: str) -> bool:
    """A program that pip made, as `bin/torchrun`, is nobody's own code."""
    return is_user_code(file) and ("/bin/" not in file or file.endswith(".py"))


def _named_file(match: Match) -> dict[str, FactValue]:
    named = {found["quoted"] or found["bare"] for found in _KEPT_FILE.finditer(_traceback(match))}
    return {"traceback.file": named.pop()} if len(named) == 1 else {}


def _process(rank: int | None, survey: Survey) -> dict[str, FactValue]:
    track = survey.tracks.get(rank) if rank is not None else None
    said = (track.last, track.first) if track is not None else ()
    pid = next((record.who.pid for record in said if record is not None and record.who.pid is not None), None)
    return {} if pid is None else {"rank.pid": pid}


def _log(source: str) -> dict[str, FactValue]:
    """A log that has a name: no standard input, and no text that was handed over."""
    return {} if source == "-" or source.startswith("<") else {"log.name": source}


def _other_ranks(one: Hypothesis, ranks: Ranks) -> dict[str, FactValue]:
    own = {one.rank, *(match.rank for match in one.matches)} - {None}
    known = {row.rank for row in ranks.table} | set(range(ranks.world_size or 0))
    named = spans(known - own).split(", ") if own else []
    if not any(named):
        return {}
    return {"job.other_ranks": ", ".join([*named[:MOST_SPANS], *(["…"] if len(named) > MOST_SPANS else [])])}


def _repository(values: Mapping[str, FactValue]) -> dict[str, FactValue]:
    found = _REPOSITORY.match(str(values.get("url", "")))
    return {} if found is None else {"hub.repo": found["name"]}
