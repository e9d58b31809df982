"""The Report as a Kubernetes termination message: plain text of at most 4,096 bytes, cut between lines."""

from __future__ import annotations

from collections.abc import Iterator

from logdoc.render import parts
from logdoc.render.budget import Need, Piece, fitting
from logdoc.render.plain import cut_bytes, one_line
from logdoc.reporting.wording import phrase
from logdoc.types.report import Diagnosis, Report
from logdoc.types.value import replace

MOST_BYTES = 4_096  # of /dev/termination-log; all containers of a pod share 12 KiB
LONGEST_LINE = 600  # bytes
LONGEST_COMMANDS = 2_000  # bytes of one fix
MOST_EVIDENCE = 3
MOST_OTHERS = 3
MOST_ADVICE = 4

Runs = tuple[tuple[str, tuple[str, ...]], ...]  # of a remedy: an environment and its commands


def render_termination(report: Report) -> str:
    """Headline, place, reason, evidence, fixes with their commands, restart advice, as far as they fit."""
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


def _diagnosis(diagnosis: Diagnosis, language: str) -> Iterator[tuple[str, Need]]:
    yield cut_bytes(" · ".join(parts.byline(diagnosis, language)), LONGEST_LINE), Need.HEADLINE
    if why := parts.why(diagnosis, language):
        yield cut_bytes(parts.labelled("why", why, language), 2 * LONGEST_LINE), Need.WHY
    for number, line in enumerate(diagnosis.evidence[:MOST_EVIDENCE]):
        most = 2 * LONGEST_LINE if line.own_words else LONGEST_LINE
        yield cut_bytes(parts.quoted(line), most), Need.WHY if number == 0 else Need.EVIDENCE
    for number, remedy in enumerate(parts.remedies(diagnosis, language)):
        yield _remedy(remedy, language), Need.FIX if number == 0 else Need.OTHERS


def _remedy(remedy: parts.Remedy, language: str) -> str:
    """Heading, commands and check in one piece: commands without their check are half a fix."""
    lines = [cut_bytes(parts.labelled("do_this", remedy.heading, language), LONGEST_LINE)]
    here = replace(remedy, runs=_in_a_pod(remedy.runs))
    lines += [f"  {command}" for command in parts.command_lines(here, LONGEST_COMMANDS, language)]
    if remedy.verify:
        lines.append(cut_bytes(f"  {parts.labelled('verify', remedy.verify, language)}", LONGEST_LINE))
    return "\n".join(lines)


def _in_a_pod(runs: Runs) -> Runs:
    """Those for any place and for Kubernetes; where Kubernetes has none, all but Slurm's, which knows no pod."""
    wanted = [run for run in runs if run[0] in ("any", "k8s")]
    if not any(run[0] == "k8s" for run in wanted):
        wanted = [run for run in runs if run[0] != "slurm"]
    return tuple(wanted) or runs
