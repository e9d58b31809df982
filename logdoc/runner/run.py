"""`logdoc run` from its start to the report: joins the parts, prints nothing, and returns what there is to say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from logdoc.runner.child import open_standard_streams
from logdoc.runner.dumps import Dump, look
from logdoc.runner.keep import Keep, Kept, LogFile, Ring
from logdoc.runner.phrases import say
from logdoc.runner.settings import helpful_settings
from logdoc.runner.signals import SignalQueue
from logdoc.runner.stall import Hang, Stall, StallWatch, last_words, stacks, verdict
from logdoc.runner.supervise import Ending, Running, run_to_its_end
from logdoc.runner.verdict import HURRIED_BYTES, Question, explain_ending, headline_so_far
from logdoc.sources import Source
from logdoc.sources.limits import size_in_words
from logdoc.types.errors import LogdocError
from logdoc.types.report import Report

if TYPE_CHECKING:
    from logdoc.probes.memory_peak import MemoryPeak
    from logdoc.probes.sheets import FactSheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run and how. `keep_bytes`: how much of the end is kept; `log_file`: keep everything, there.

    `stall_seconds`: silence worth a word, None for none. `settings`: whether helpful variables are set for the command.
    `always`: explain a command that exits with 0 as well. `quiet`: say nothing but the report.
    """

    command: tuple[str, ...]
    question: Question
    keep_bytes: int
    log_file: str | None = None
    stall_seconds: float | None = None
    settings: bool = True
    sample_memory: bool = False
    always: bool = False
    quiet: bool = False


class _Voice:
    """What is said while the command runs, in a form that fits the state of the terminal it shares with us."""

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        self.running: Running | None = None
        self._plan = plan
        self._tell = tell

    def say(self, key: str, **values: str | int) -> None:
        self.lines(f"logdoc: {say(key, self._plan.question.language, **values)}\n")

    def lines(self, text: str) -> None:
        """Whole lines, not in the middle of one of the command's."""
        if not text or self._plan.quiet:
            return
        self.end_line()
        if self.running is not None and self.running.terminal.is_raw:
            text = text.replace("\n", "\r\n")
        self._tell(text)

    def end_line(self) -> None:
        """A line that the command has left open on the terminal ends here."""
        if self.running is not None and self.running.line_is_open:
            self._tell("\r\n" if self.running.terminal.is_raw else "\n")


def run(
    plan: Plan, tell: Callable[[str], None], stalled: Callable[[Stall], str], show: Callable[[Report], None]
) -> Ending:
    """Run the command to its end, and show what there is to explain. Raises StartError, InputError for a bad log file.

    `tell` takes text for stderr, whole lines; `stalled` makes such text of a Stall. While a failure is explained, only
    Ctrl-C ends us: torchrun asks all other ranks to end when the first one has, and the one that broke first must be
    heard. Must be called in the main thread.
    """
    open_standard_streams()
    voice = _Voice(plan, tell)
    added = helpful_settings(os.environ) if plan.settings else {}
    environment = {**os.environ, **added}
    if added:
        voice.say("set", settings=" ".join(f"{name}={value}" for name, value in added.items()))
    with SignalQueue() as signals, closing(_keep(plan)) as keep, _Observer(plan, keep, voice, stalled) as observer:
        ending = run_to_its_end(plan.command, environment, keep, signals, observer)
        signals.let_interrupt()
        with suppress(KeyboardInterrupt):
            _say_ending(ending, voice)
            question = replace(plan.question, environment=environment, sheet=observer.measured())
            try:
                with closing(observer.before_asked or keep.snapshot()) as kept:
                    question = replace(question, dumps=_sources(observer.hang.dumps(kept)))
                    report = _report(plan, question, ending, kept, keep.fault)
                if report is not None:
                    voice.end_line()
                    show(report)
            except Exception as error:  # whatever goes wrong here, the command's exit code is passed on
                voice.say("not_explained", reason=_reason(error))
        return ending


class _Observer:
    """Watches for silence and memory, and remembers what the command had said when it was asked to end, and where its
    processes stood when it hung."""

    def __init__(self, plan: Plan, keep: Keep, voice: _Voice, stalled: Callable[[Stall], str]) -> None:
        self.before_asked: Kept | None = None
        self.hang = Hang()
        self._plan = plan
        self._keep = keep
        self._voice = voice
        self._stalled = stalled
        self._silence = StallWatch(plan.stall_seconds, self._report_stall) if plan.stall_seconds else None
        self._memory: MemoryPeak | None = None
        self._while_running = ExitStack()

    def __enter__(self) -> _Observer:
        return self

    def __exit__(self, *error: object) -> None:
        self._while_running.close()

    def started(self, running: Running) -> None:
        self._running = self._voice.running = running
        if self._plan.sample_memory:
            from logdoc.probes.memory_peak import MemoryPeak

            self._memory = self._while_running.enter_context(MemoryPeak())

    def tick(self) -> None:
        last_output = self._running.last_output
        if self.before_asked is None:
            self.hang.tick(last_output)
        if self._silence is not None:
            self._silence.tick(last_output)

    def asked(self) -> None:
        with suppress(OSError):
            self.before_asked = self._keep.snapshot(HURRIED_BYTES)

    def fault(self, what: str, reason: str) -> None:
        self._voice.say(what, reason=reason)

    def measured(self) -> FactSheet | None:
        """The facts gathered while the command ran."""
        self._while_running.close()
        return self._memory.sheet() if self._memory is not None else None

    def _report_stall(self, silent: float) -> None:
        """Runs in a thread of its own."""
        last, pid = self._running.last_output, self._running.pid
        dumps = look(pid)
        with suppress(OSError), closing(self._keep.snapshot(HURRIED_BYTES)) as kept:  # or the command has ended
            stall = _stall(self._plan, kept, pid, silent, dumps)
            if self._running.last_output == last:
                if self.before_asked is None:  # what is left once it was asked to end tells nothing of the hang
                    self.hang.seen(dumps or (), stall.words, kept, last)
                self._voice.lines(self._stalled(stall))


def _stall(plan: Plan, kept: Kept, pid: int, silent: float, dumps: Sequence[Dump] | None) -> Stall:
    words = last_words(kept.source(plan.question.name, plan.question.hints))
    try:
        headline = headline_so_far(kept, replace(plan.question, dumps=_sources(dumps or ())))
    except Exception:  # the silence is told of, whatever the output does to us
        headline = None
    return Stall(
        pid=pid,
        seconds=silent,
        words=tuple(words),
        verdict=verdict(dumps or ()),
        stacks=None if dumps is None else stacks(dumps),
        headline=headline,
    )


def _sources(dumps: Sequence[Dump]) -> tuple[Source, ...]:
    return tuple(dump.source() for dump in dumps if dump.text)


def _keep(plan: Plan) -> Keep:
    return LogFile(plan.log_file, plan.keep_bytes) if plan.log_file else Ring(plan.keep_bytes)


def _say_ending(ending: Ending, voice: _Voice) -> None:
    if ending.dropped:
        voice.say("dropped", size=size_in_words(ending.dropped))
    if ending.abandoned:
        voice.say("abandoned")


def _report(plan: Plan, question: Question, ending: Ending, kept: Kept, fault: str | None) -> Report | None:
    """The report of a failure; None if there was none."""
    if ending.is_unread or (not ending.code and not plan.always):
        return None
    warnings = [say("not_kept", question.language, reason=fault)] if fault else []
    report = explain_ending(plan.command, ending, kept, question, warnings)
    return report if report.outcome != "healthy" else None


def _reason(error: Exception) -> str:
    """The first line of an error, which names its kind unless it was made for users."""
    said = str(error).split("\n")[0]
    return said if isinstance(error, LogdocError) else f"{type(error).__name__}: {said}"
