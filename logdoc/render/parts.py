"""What every surface says of a report, in its language, as plain text; each surface gives it a shape of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from logdoc.render.plain import one_line, visible
from logdoc.reporting.headline import spans
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Evidence, Origin, ProbeLine, RankRow, Report
from logdoc.types.value import dataclass

LONGEST_LINE = 500  # characters of a quoted log line
MOST_RANKS_NAMED = 12  # spans of ranks written out before `…`
SIGNS = {"cause-found": "✗", "symptoms-only": "!", "unrecognised": "?", "healthy": "✓"}


@dataclass(frozen=True, slots=True)
class Remedy:
    """A fix with its commands for every environment. `heading` names a risk that is not `safe`."""

    heading: str
    why: str | None
    runs: tuple[tuple[str, tuple[str, ...]], ...]
    verify: str


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that were left alike."""

    ranks: tuple[int, ...]
    state: str
    hosts: tuple[str, ...]
    milestone: str | None
    first_error: str | None


def headline(report: Report) -> str:
    return one_line(f"{SIGNS[report.outcome]} {report.headline}")


def labelled(key: str, text: str, language: str) -> str:
    """`Why: …`, with the colon of the language."""
    return phrase("text.labelled", language, label=phrase(f"text.{key}", language), text=text)


def sureness(diagnosis: Diagnosis, language: str) -> str:
    """`likely (0.94)`."""
    return f"{phrase('word.' + diagnosis.status, language)} ({diagnosis.confidence:.2f})"


def place(origin: Origin, language: str) -> str:
    """`rank 3 · node-b · rank_3.log:812 · 12:00:01`, as far as it is known."""
    rank = phrase("text.rank", language, rank=origin.rank) if origin.rank is not None else None
    parts = (rank, origin.host, f"{origin.source}:{origin.line}", origin.time)
    return " · ".join(one_line(part) for part in parts if part)


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


def command_lines(remedy: Remedy, most_bytes: int, language: str) -> Iterator[str]:
    """All commands of a remedy; where an environment is meant, a comment above says which.

    What does not fit into `most_bytes` is named by a comment: half a command is worse than none.
    """
    for applies, typed in remedy.runs:
        if applies != "any":
            yield f"# {applies}"
        for command in typed:
            most_bytes -= len(command.encode()) + 1
            yield command if most_bytes >= 0 else f"# {phrase('text.long_command', language, n=f'{len(command):,}')}"
            if most_bytes < 0:
                return


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
        yield "where", one_line(f"{found.source}:{found.line}: {found.text}")
    for near in report.similar:
        yield "similar", f"{one_line(near.rule)} ({near.score:.2f})"
    for problem in report.environment:
        setting = problem.variable if problem.value is None else f"{problem.variable}={problem.value}"
        told = f"{setting}: {problem.problem}" + (f" → {problem.fix}" if problem.fix else "")
        yield "environment", one_line(told)
    if report.outcome == "cause-found" and report.restart.advice != "unknown":
        yield "restart", one_line(f"[{phrase('word.' + report.restart.advice, language)}] {report.restart.reason}")
    for text in report.collect_next:
        yield "collect", one_line(text)
    for text in report.warnings:
        yield "warnings", one_line(text)
    if report.noise:
        yield "noise", one_line(", ".join(report.noise))


def rank_groups(report: Report) -> list[RankGroup]:
    """The rank table with equal ranks joined, first failures first: 4,096 ranks are a few lines."""
    groups: dict[tuple[bool, str, str | None, str | None], list[RankRow]] = {}
    few = len(report.ranks.table) <= MOST_ROWS_EACH
    for row in report.ranks.table:
        error = f"{row.first_error.source}:{row.first_error.line}" if row.first_error else None
        first = row.rank == report.ranks.first_failure
        key = (first, row.state, row.milestone, f"{row.rank} {error}" if few or first else None)
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
        first_error=one_line(f"{error.source}:{error.line}") if error and len(rows) == 1 else None,
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
