"""The joint verdict of the dumps as Records of dialect `flight-recorder`, which rules judge like any line of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logdoc.flight_recorder.model import Analysis, Dump, GroupReport, Place
from logdoc.types.record import FLIGHT_RECORDER, Identity, Record
from logdoc.types.report import FlightRecorder, RecordedPlace

MOST_RANKS = 16  # named in one sentence


def analysis_records(analysis: Analysis, dumps: Sequence[Dump], seq: int) -> list[Record]:
    """What to say of these dumps, one Record a rank that is to blame; none if they show nothing wrong.

    A Record's source is the dump of its rank, or the first one. `seq` is the last sequence number taken: dumps are
    written after everything else.
    """
    said = list(_sentences(analysis))
    names = {dump.rank: dump.name for dump in dumps}
    return [
        Record(
            seq=seq + offset,
            source=dumps[0].name if rank is None else names.get(rank, dumps[0].name),
            line=1,
            end_line=1,
            body=text,
            raw=text,
            who=Identity(rank=rank),
            dialects=(FLIGHT_RECORDER,),
        )
        for offset, (rank, text) in enumerate(said, start=1)
    ]


def reported(analysis: Analysis, source: str) -> FlightRecorder:
    """The analysis as the report's contract states it."""
    return FlightRecorder(
        source=source,
        kind=analysis.kind,
        culprits=analysis.culprits,
        suspects=analysis.suspects,
        without_dump=analysis.without_dump,
        places=tuple(
            RecordedPlace(
                rank=place.rank,
                role=place.role,
                group=_group(place),
                operation=f"{place.op} #{place.seq}" if place.op else None,
                frame=f"{place.frame.file}:{place.frame.line} ({place.frame.function})" if place.frame else None,
            )
            for place in analysis.places
        ),
    )


def _group(place: Place) -> str | None:
    return place.group.desc or place.group.name or "default_pg" if place.group is not None else None


def _sentences(analysis: Analysis) -> Iterator[tuple[int | None, str]]:
    if analysis.kind == "healthy":
        return
    places = {place.rank: place for place in analysis.places}
    waiting = len({wait.rank for wait in analysis.waits} - set(analysis.culprits))
    for rank in analysis.culprits:
        place = places.get(rank)
        kind = place.kind if place is not None else analysis.kind
        yield rank, f"flight recorder: rank {rank} {_KINDS.get(kind, kind)}{_where(place)}; {waiting} ranks wait for it"
    if not analysis.culprits and analysis.suspects:
        names = ", ".join(map(str, analysis.suspects[:MOST_RANKS]))
        yield None, f"flight recorder: one of ranks {names} {_KINDS.get(analysis.kind, analysis.kind)}"
    for report in analysis.groups:
        if report.disagreement is not None:
            yield from _disagreement(report)


_KINDS = {
    "missing-rank": "never joined the group's collectives",
    "lagging": "fell behind",
    "mismatch": "called another collective than the others",
    "stuck-in-collective": "is stuck inside a collective",
    "no-dump": "left no dump",
    "unknown": "holds the others up",
}


def _where(place: Place | None) -> str:
    """` at all_reduce #12 of default_pg, in train.py:88 (step)`, as far as it is known."""
    if place is None or place.op is None:
        return ""
    text = f" at {place.op} #{place.seq}"
    if place.group is not None:
        text += f" of {_group(place)}"
    if place.frame is not None:
        text += f", in {place.frame.file}:{place.frame.line} ({place.frame.function})"
    return text


def _disagreement(report: GroupReport) -> Iterator[tuple[int | None, str]]:
    difference = report.disagreement
    assert difference is not None
    group = report.group.desc or report.group.name or "default_pg"
    forms = "; ".join(
        f"ranks {', '.join(map(str, variant.ranks[:MOST_RANKS]))} call {variant.op} {list(map(list, variant.sizes))} "
        f"{' '.join(variant.dtypes)}".rstrip()
        for variant in difference.variants
    )
    rank = difference.minority[0] if len(difference.minority) == 1 else None
    yield rank, f"flight recorder: collectives differ in {difference.what} at #{report.seq} of {group}: {forms}"
