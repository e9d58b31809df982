"""What the runner says by itself, in either language; the sentences are data/runner_phrases.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.kept import sentences
from logdoc.runner.stall import MOST_GROUPS, LastWords, Stack, Stall
from logdoc.types.rule import FactValue
from logdoc.types.spans import spans

LONGEST_QUOTE = 200  # characters of a log line


def say(key: str, language: str, **values: FactValue) -> str:
    """The sentence `key`. Every placeholder must be given."""
    return sentences.say("runner_phrases.yaml", key, language, **values)


def stall_text(stall: Stall, language: str) -> str:
    """What a silent command's ranks did last, where they stand, and what it looks like, in lines."""
    return "".join(f"logdoc: {line}\n" for line in _stall_lines(stall, language))


def _stall_lines(stall: Stall, language: str) -> Iterator[str]:
    yield say("stall", language, time=sentences.FILTERS["s"](int(stall.seconds)), pid=stall.pid)
    if not stall.words:
        yield "  " + say("stall.nothing", language)
    for words in stall.words[:MOST_GROUPS]:
        yield "  " + _last_words(words, language)
    if len(stall.words) > MOST_GROUPS:
        yield "  " + say("stall.more", language, n=len(stall.words) - MOST_GROUPS)
    for sentence in stall.verdict:
        yield "  " + say("stall.verdict", language, sentence=sentence)
    if stall.headline is not None:
        yield "  " + say("stall.looks", language, headline=stall.headline)
    if stall.stacks is None:
        yield "  " + say("stall.no_py_spy", language)
    for stack in stall.stacks or ():
        yield from (f"  {line}" for line in _stack(stack, language))


def _last_words(words: LastWords, language: str) -> str:
    text = words.text if words.time is None else f"{words.time} {words.text}"
    text = text[:LONGEST_QUOTE]
    if not words.ranks:
        return say("stall.nobody", language, line=words.line, text=text)
    return say("stall.rank", language, ranks=spans(words.ranks), line=words.line, text=text)


def _stack(stack: Stack, language: str) -> Iterator[str]:
    pids = ", ".join(map(str, stack.pids))
    if stack.error is not None:
        yield say("stall.no_stack", language, pids=pids, pid=stack.pids[0], reason=stack.error)
        return
    if stack.ranks:
        yield say("stall.stack", language, ranks=spans(stack.ranks), does=stack.does)
    else:
        yield say("stall.stack_pid", language, pids=pids, does=stack.does)
    if stack.state is not None:
        yield "  " + say(f"stall.{stack.state}", language, pids=pids, numbers=" ".join(map(str, stack.pids)))
    yield from (f"  {frame}" for frame in stack.frames)
