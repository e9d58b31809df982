"""The Report as a Kubernetes termination message: plain text of at most 4,096 bytes, cut between lines."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.render import parts
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut_bytes, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Report

MOST_BYTES = 4_096  # of /dev/termination-log; all containers of a pod share 12 KiB
LONGEST_LINE = 600  # bytes
LONGEST_COMMANDS = 2_000  # bytes of one fix
MOST_EVIDENCE = 3
MOST_OTHERS = 3
MOST_ADVICE = 4


def render_termination(report: Report) -> str:
    """Headline, place, reason, fixes with their commands, restart advice, then as much evidence as fits."""
    pieces = [Piece(line, len(line.encode()) + 1, need) for line, need in _lines(report)]
    note = f"({phrase('text.left_out', report.language, n=len(pieces))})"
    kept, left_out = fitting(pieces, MOST_BYTES - len(note.encode()) - 1)
    lines = [piece.content for piece in kept]
    if left_out:
        lines.append(f"({phrase('text.left_out', report.language, n=left_out)})")
    return "".join(f"{line}\n" for line in lines)


def _lines(report: Report) -> Iterator[tuple[str, Need]]:
    language = report.language
    yield cut_bytes(parts.headline(report), LONGEST_LINE), Need.HEADLINE
    if report.diagnoses:
        yield from _diagnosis(report.diagnoses[0], language)
    for key, text in list(parts.advice(report))[:MOST_ADVICE]:
        yield cut_bytes(parts.labelled(key, text, language), LONGEST_LINE), Need.ADVICE
    for other in report.diagnoses[1 : MOST_OTHERS + 1]:
        told = f"{one_line(other.title)} ({other.confidence:.2f})"
        yield cut_bytes(parts.labelled("also", told, language), LONGEST_LINE), Need.OTHERS
    if report.diagnoses:
        for line in report.diagnoses[0].evidence[:MOST_EVIDENCE]:
            yield cut_bytes(parts.quoted(line), LONGEST_LINE), Need.EVIDENCE


def _diagnosis(diagnosis: Diagnosis, language: str) -> Iterator[tuple[str, Need]]:
    told = (diagnosis.rule, parts.sureness(diagnosis, language), parts.place(diagnosis.origin, language))
    yield cut_bytes(" · ".join(told), LONGEST_LINE), Need.HEADLINE
    if diagnosis.summary:
        why = parts.labelled("why", one_line(diagnosis.summary), language)
        yield cut_bytes(why, 2 * LONGEST_LINE), Need.WHY
    for number, remedy in enumerate(parts.remedies(diagnosis, language)):
        yield _remedy(remedy, language), Need.FIX if number == 0 else Need.OTHERS


def _remedy(remedy: parts.Remedy, language: str) -> str:
    """Heading, commands and check in one piece: commands without their check are half a fix."""
    lines = [cut_bytes(parts.labelled("do_this", remedy.heading, language), LONGEST_LINE)]
    lines += [f"  {command}" for command in parts.command_lines(remedy, LONGEST_COMMANDS, language)]
    if remedy.verify:
        lines.append(cut_bytes(f"  {parts.labelled('verify', remedy.verify, language)}", LONGEST_LINE))
    return "\n".join(lines)
