"""`logdoc run` from its start to the report: joins the parts, prints nothing, and returns what there is to say."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from logdoc.runner.keep import Keep, LogFile, Ring
from logdoc.runner.phrases import say
from logdoc.runner.settings import helpful_settings
from logdoc.runner.stall import Stall, StallWatch, last_words, stacks
from logdoc.runner.supervise import Ending, Running, run_to_its_end
from logdoc.runner.verdict import HURRIED_BYTES, Question, explain_ending, headline_so_far
from logdoc.sources.limits import size_in_words
from logdoc.types.errors import LogdocError
from logdoc.types.report import Report

if TYPE_CHECKING:
    from logdoc.probes.memory_peak import MemoryPeak


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run and how. `keep_bytes`: how much of the end is kept; `log_file`: keep everything, there.

    `stall_seconds`: silence worth a word, None for none. `settings`: whether helpful variables are set for the command.
    `always`: explain a command that exits with 0 as well.
    """

    command: tuple[str, ...]
    question: Question
    keep_bytes: int
    log_file: str | None = None
    stall_seconds: float | None = None
    settings: bool = True
    sample_memory: bool = False
    always: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended, and the report if there is a failure to explain."""

    ending: Ending
    report: Report | None


class _Voice:
    """What is said while the command runs, in a form that fits the state of the terminal it shares with us."""

    def __init__(self, language: str, tell: Callable[[str], None]) -> None:
        self.running: Running | None = None
        self._language = language
        self._tell = tell

    def say(self, key: str, **values: str | int) -> None:
        self.lines(f"logdoc: {say(key, self._language, **values)}\n")

    def lines(self, text: str) -> None:
        """Whole lines, not in the middle of one of the command's."""
        if self.running is not None and self.running.line_is_open:
            text = "\n" + text
        if self.running is not None and self.running.terminal.is_raw:
            text = text.replace("\n", "\r\n")
        self._tell(text)


def run(plan: Plan, tell: Callable[[str], None], stalled: Callable[[Stall], str]) -> Ended:
    """Run the command to its end; explain it if it failed. Raises StartError, and InputError for a bad log file.

    `tell` takes text for stderr, whole lines. `stalled` makes such text of a Stall. Must be called in the main thread.
    """
    voice = _Voice(plan.question.language, tell)
    environment = dict(os.environ)
    added = helpful_settings(environment) if plan.settings else {}
    if added:
        voice.say("set", settings=" ".join(f"{name}={value}" for name, value in added.items()))
    with closing(_keep(plan)) as keep, ExitStack() as observers:
        peak = _memory_peak() if plan.sample_memory else None

        def started(running: Running) -> Callable[[], None]:
            voice.running = running
            if peak is not None:
                observers.enter_context(peak)
            return _stall_watch(plan, keep, running, voice, stalled)

        ending = run_to_its_end(
            plan.command, {**environment, **added}, keep, lambda key, why: voice.say(key, reason=why), started
        )
        observers.close()
        _say_ending(ending, voice)
        sheet = peak.sheet() if peak is not None else None
        return Ended(ending, _report(plan, replace(plan.question, sheet=sheet), ending, keep, voice))


def _memory_peak() -> MemoryPeak:
    from logdoc.probes.memory_peak import MemoryPeak

    return MemoryPeak()


def _keep(plan: Plan) -> Keep:
    return LogFile(plan.log_file, plan.keep_bytes) if plan.log_file else Ring(plan.keep_bytes)


def _stall_watch(
    plan: Plan, keep: Keep, running: Running, voice: _Voice, stalled: Callable[[Stall], str]
) -> Callable[[], None]:
    """What to call about once a second, so that silence is noticed."""
    if plan.stall_seconds is None:
        return lambda: None

    def report(silent: float) -> None:
        last = running.last_output
        with suppress(OSError):  # the command has ended and what was kept is gone
            stall = _stall(plan, keep, running, silent)
            if running.last_output == last:
                voice.lines(stalled(stall))

    watch = StallWatch(plan.stall_seconds, report)
    return lambda: watch.tick(running.last_output)


def _stall(plan: Plan, keep: Keep, running: Running, silent: float) -> Stall:
    with closing(keep.snapshot(HURRIED_BYTES)) as kept:
        words = last_words(kept.source(plan.question.name, plan.question.hints))
    try:
        headline = headline_so_far(keep, plan.question)
    except LogdocError:
        headline = None
    standing = stacks(running.pid)
    return Stall(pid=running.pid, seconds=silent, words=tuple(words), stacks=tuple(standing), headline=headline)


def _say_ending(ending: Ending, voice: _Voice) -> None:
    if ending.dropped:
        voice.say("dropped", size=size_in_words(ending.dropped))
    if ending.abandoned:
        voice.say("abandoned")


def _report(plan: Plan, question: Question, ending: Ending, keep: Keep, voice: _Voice) -> Report | None:
    """The report of a failure; None if there was none, or if it could not be explained, which is said."""
    if ending.is_unread or (not ending.code and not plan.always):
        return None
    try:
        report = explain_ending(plan.command, ending, keep, question)
    except LogdocError as error:
        voice.say("not_explained", reason=str(error).split("\n")[0])
        return None
    return report if ending.code or report.outcome != "healthy" else None
