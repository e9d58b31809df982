"""What every surface says of a report, in its language, as plain text; each surface gives it a shape of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from logdoc.kept.patterns import lazily
from logdoc.render.plain import one_line, visible
from logdoc.reporting.wording import phrase
from logdoc.types.report import (
    Abnormal,
    Diagnosis,
    EnvironmentProblem,
    Evidence,
    Origin,
    Place,
    ProbeLine,
    RankRow,
    Report,
    TimelineEntry,
)
from logdoc.types.spans import spans
from logdoc.types.value import dataclass

LONGEST_LINE = 500  # characters of a quoted log line
LONGEST_VERDICT = 2_000  # characters of a sentence of logdoc's own among the evidence
MOST_RANKS_NAMED = 12  # spans of ranks written out before `…`
# What Python has and the shell has not, and how the compiler is told to make no code (ast.PyCF_ONLY_AST).
_ONLY_PYTHON = lazily(r"^(?:from|import|return) [\w.]+|^@\w|[\w\])]\(|[\w\])] [-+*/]?= \S")
_PARSE_ONLY = 0x400
SIGNS = {"cause-found": "✗", "symptoms-only": "!", "unrecognised": "?", "healthy": "✓"}


@dataclass(frozen=True, slots=True)
class Remedy:
    """A fix with its commands for every environment. `heading` names a risk that is not `safe`."""

    heading: str
    why: str | None
    runs: tuple[tuple[str, tuple[str, ...]], ...]
    verify: str


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and rows of words. `more`: what is said of the rows that are left out."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str | None = None


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that were left alike."""

    ranks: tuple[int, ...]
    state: str
    hosts: tuple[str, ...]
    milestone: str | None
    first_error: str | None
    last_collective: str | None


def headline(report: Report) -> str:
    return one_line(f"{SIGNS[report.outcome]} {report.headline}")


def labelled(key: str, text: str, language: str) -> str:
    """`Why: …`, with the colon of the language."""
    return phrase("text.labelled", language, label=phrase(f"text.{key}", language), text=text)


def sureness(diagnosis: Diagnosis, language: str) -> str:
    """`likely (0.94)`."""
    return f"{phrase('word.' + diagnosis.status, language)} ({diagnosis.confidence:.2f})"


def at(spot: Origin | Abnormal | TimelineEntry | Place) -> str:
    """`rank_3.log:812`."""
    return one_line(f"{spot.source}:{spot.line}")


def place(origin: Origin, language: str) -> str:
    """`rank 3 · node-b · rank_3.log:812 · 12:00:01`, as far as it is known."""
    rank = phrase("text.rank", language, rank=origin.rank) if origin.rank is not None else None
    parts = (rank, origin.host, at(origin), origin.time)
    return " · ".join(one_line(part) for part in parts if part)


def byline(diagnosis: Diagnosis, language: str) -> list[str]:
    """Rule, sureness and place; then how often it was seen, where that is more than once."""
    often = repeated(diagnosis, language)
    told = [one_line(diagnosis.rule), sureness(diagnosis, language), place(diagnosis.origin, language)]
    return [*told, often] if often else told


def why(diagnosis: Diagnosis, language: str) -> str:
    """The summary, and that the same thing broke the job before. May be empty."""
    told = [one_line(diagnosis.summary)]
    if len(diagnosis.attempts) > 1:
        told.append(phrase("text.recurring", language, n=len(diagnosis.attempts)))
    return ("" if language == "zh" else " ").join(part for part in told if part)


def remedies(diagnosis: Diagnosis, language: str) -> Iterator[Remedy]:
    """The fixes in the rule's order, those that differ only in the environment joined."""
    for (title, risk), lines in groupby(diagnosis.fixes, key=lambda fix: (fix.title, fix.risk)):
        same = list(lines)
        suffix = "" if risk == "safe" else f" [{phrase('word.' + risk, language)}]"
        yield Remedy(
            heading=one_line(title) + suffix,
            why=one_line(same[0].why) if same[0].why else None,
            runs=tuple((one_line(fix.applies), tuple(commands(fix.commands))) for fix in same),
            verify=one_line(same[0].verify),
        )


def commands(given: Sequence[str]) -> Iterator[str]:
    """The lines to type; unseen characters of a captured value are spelt out."""
    for command in given:
        yield from visible(command).split("\n")


def kinds(typed: Iterable[str]) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Commands in their order, those for the script (True) apart from those for the shell."""
    is_code = False
    found: list[tuple[bool, list[str]]] = []
    for line in typed:
        is_code = is_code if line.startswith("#") and found else is_python(line)
        if not found or found[-1][0] != is_code:
            found.append((is_code, []))
        found[-1][1].append(line)
    return ((code, tuple(lines)) for code, lines in found)


def is_python(line: str) -> bool:
    """Whether a line belongs into a script: it reads as Python and has what no command has, a call, an import, a
    decorator or an assignment with blanks round it."""
    code = line.split("  #", 1)[0].strip()
    if len(code) > LONGEST_LINE or not _ONLY_PYTHON.search(code):
        return False
    bodies = (code, f"{code} pass", f"{code}\ndef f(): pass")  # a head of a block, a decorator
    return any(map(_parses, bodies))


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(code, "", "exec", _PARSE_ONLY, dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def labels(
    parts: Iterable[tuple[bool, tuple[str, ...]]], language: str
) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """The same, each with what is said above it: nothing above commands for the shell that come first."""
    for number, (code, lines) in enumerate(parts):
        yield phrase("text.in_script" if code else "text.in_shell", language) if code or number else None, lines


def command_blocks(remedy: Remedy, most_bytes: int, language: str) -> Iterator[tuple[bool, list[str]]]:
    """All commands of a remedy in pieces for the script (True) and for the shell; where an environment is meant, a
    comment above says which.

    What does not fit into `most_bytes` is named by a comment: half a command is worse than none.
    """
    for applies, typed in remedy.runs:
        lines = [f"# {applies}"] if applies != "any" else []
        for is_code, given in kinds(typed):
            for command in given:
                most_bytes -= len(command.encode()) + 1
                if most_bytes < 0:
                    yield is_code, [*lines, f"# {phrase('text.long_command', language, n=f'{len(command):,}')}"]
                    return
                lines.append(command)
            yield is_code, lines
            lines = []


def command_lines(remedy: Remedy, most_bytes: int, language: str) -> Iterator[str]:
    """The same as lines of one block, in which comments tell the script from the shell."""
    before = False
    for is_code, lines in command_blocks(remedy, most_bytes, language):
        if is_code or before:
            yield f"# {phrase('text.in_script' if is_code else 'text.in_shell', language)}"
        yield from lines
        before = is_code


def longest(line: Evidence) -> int:
    """Characters of a line of evidence where room is short: what logdoc says itself decides, so it is whole."""
    return LONGEST_VERDICT if line.own_words else LONGEST_LINE


def quoted(line: Evidence) -> str:
    """`rank_3.log:812 r3 │ text` on one line, whole."""
    rank = f" r{line.rank}" if line.rank is not None else ""
    name = one_line(line.source).rsplit("/", 1)[-1]
    return f"{name}:{line.line}{rank} │ {visible(line.text).replace(chr(10), ' ⏎ ')}"


def probe(line: ProbeLine, language: str) -> str:
    label = f"{line.id} [{phrase('word.' + _OUTCOMES[line.outcome], language)}]"
    return one_line(phrase("text.labelled", language, label=label, text=line.summary))


_OUTCOMES = {"confirms": "confirms", "refutes": "refutes", "unknown": "cannot-tell"}


def repeated(diagnosis: Diagnosis, language: str) -> str | None:
    """How often and on which ranks, where that is more than once."""
    if len(diagnosis.ranks) > 1:
        named = ranks(diagnosis.ranks)
        return phrase("text.occurrences", language, n=diagnosis.occurrences, ranks=named)
    return phrase("text.times", language, n=diagnosis.occurrences) if diagnosis.occurrences > 1 else None


def ranks(numbers: Sequence[int]) -> str:
    """`0-6, 9`; of many spans only the first."""
    named = spans(numbers).split(", ")
    return ", ".join([*named[:MOST_RANKS_NAMED], *(["…"] if len(named) > MOST_RANKS_NAMED else [])])


def advice(report: Report) -> Iterator[tuple[str, str]]:
    """Key of the label, and text, of what else to know or do, the most useful first."""
    language = report.language
    if report.first_abnormal is not None:
        found = report.first_abnormal
        yield "where", at(found) if found.text in report.headline else one_line(f"{at(found)}: {found.text}")
    for new in report.novel:
        yield "novel", one_line(f"{at(new)}: {new.text}")
    for near in report.similar:
        yield "similar", f"{one_line(near.rule)} ({near.score:.2f})"
    for problem in report.environment:
        yield "environment", problem_line(problem, language)
    if report.outcome == "cause-found" and report.restart.advice != "unknown":
        yield "restart", one_line(f"[{phrase('word.' + report.restart.advice, language)}] {report.restart.reason}")
    for text in report.collect_next:
        yield "collect", one_line(text)
    for text in report.warnings:
        yield "warnings", one_line(text)
    if report.noise:
        yield "noise", one_line(", ".join(report.noise))


def problem_line(problem: EnvironmentProblem, language: str) -> str:
    """`NCCL_ALGO=simple: what is wrong → what to set`."""
    setting = problem.variable if problem.value is None else f"{problem.variable}={problem.value}"
    told = problem.problem + (f" → {problem.fix}" if problem.fix else "")
    return one_line(phrase("text.labelled", language, label=setting, text=told))


def rank_table(report: Report, most: int) -> Table | None:
    """How the ranks were left, ranks that were left alike in one row, at most `most` rows; None for a lone rank.

    What is known of none has no column.
    """
    if len(report.ranks.table) < 2:
        return None
    language, groups = report.language, rank_groups(report)
    names = ("ranks", "state", "host", "first_error", "last_collective", "milestone")
    said = [phrase(f"text.{name}", language) for name in names]
    columns = zip(said, *(_rank_cells(group, language) for group in groups[:most]), strict=True)
    heads, *rows = zip(*(column for column in columns if any(column[1:])), strict=True)
    hidden = len(groups) - most
    return Table(
        title=f"{phrase('text.ranks', language)} ({report.ranks.seen}/{report.ranks.world_size or '?'})",
        heads=heads,
        rows=tuple(rows),
        more=phrase("text.more_ranks", language, n=hidden) if hidden > 0 else None,
    )


def _rank_cells(group: RankGroup, language: str) -> tuple[str, ...]:
    hosts = ", ".join(group.hosts) if len(group.hosts) < 4 else phrase("text.hosts", language, n=len(group.hosts))
    state = phrase(f"word.{group.state}", language)
    told = (group.first_error, group.last_collective, group.milestone)
    return (ranks(group.ranks), state, hosts, *(one or "" for one in told))


def timeline_table(report: Report, most: int) -> Table | None:
    """The first `most` things that happened; None if nothing did."""
    if not report.timeline:
        return None
    language = report.language
    time, event, where = (phrase(f"text.{head}", language) for head in ("time", "event", "where"))
    return Table(
        title=f"{phrase('text.timeline', language)} ({len(report.timeline):,})",
        heads=(time, "rank", event, where),
        rows=tuple(
            (entry.time or "", "" if entry.rank is None else str(entry.rank), entry.rule, at(entry))
            for entry in report.timeline[:most]
        ),
    )


def rank_groups(report: Report) -> list[RankGroup]:
    """The rank table with equal ranks joined, first failures first: 4,096 ranks are a few lines."""
    groups: dict[tuple[bool, str, str | None, str | None, str | None], list[RankRow]] = {}
    few = len(report.ranks.table) <= MOST_ROWS_EACH
    for row in report.ranks.table:
        error = at(row.first_error) if row.first_error else None
        first = row.rank == report.ranks.first_failure
        alone = f"{row.rank} {error}" if few or first else None
        key = (first, row.state, row.last_collective, row.milestone, alone)
        groups.setdefault(key, []).append(row)
    ordered = sorted(groups.items(), key=lambda item: (not item[0][0], item[1][0].rank if few else len(item[1])))
    return [_group(rows) for _, rows in ordered]


MOST_ROWS_EACH = 32  # up to here every rank has its own row


def _group(rows: Sequence[RankRow]) -> RankGroup:
    error = rows[0].first_error
    return RankGroup(
        ranks=tuple(row.rank for row in rows),
        state=rows[0].state,
        hosts=tuple(dict.fromkeys(one_line(row.host) for row in rows if row.host)),
        milestone=one_line(rows[0].milestone) if rows[0].milestone else None,
        first_error=at(error) if error and len(rows) == 1 else None,
        last_collective=one_line(rows[0].last_collective) if rows[0].last_collective else None,
    )


def made_by(report: Report) -> str:
    """The line at the foot: which logdoc read how much."""
    return phrase(
        "text.made_by",
        report.language,
        version=report.logdoc.version,
        rules=report.logdoc.rules,
        lines=f"{sum(source.lines for source in report.input.sources):,}",
        files=len(report.input.sources),
    )
