"""From the watchdogs' words on a collective that timed out, per group: who never came, who is behind, who differs.

The verdict is written as Records of dialect `verdict`, so that rules judge it like any line of a log.
Method and traps: catalog/torch.md (d); compare only within one group, never a SeqNum of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from logdoc.cascade.ranks import RankTrack
from logdoc.types.finding import Match
from logdoc.types.record import VERDICT, Identity, Record
from logdoc.types.value import dataclass

DEFAULT_GROUP = "default_pg"
MOST_NAMED = 16


@dataclass(slots=True)
class Waiting:
    """What one rank said of one group's collective that did not end: its watchdog, or gloo or nccl2, without numbers.

    Numbers are the group's sequence numbers; `timeout` in seconds. Groups may have one name (every node's `tp`): then
    `guid`, which all ranks of a group share, tells them apart.
    """

    rank: int
    record: Record
    group: str = DEFAULT_GROUP
    guid: str = ""
    seq: int | None = None
    op: str | None = None
    numel: tuple[str, str] | None = None
    timeout: float | None = None
    enqueued: int | None = None
    completed: int | None = None

    @property
    def collective(self) -> str:
        number = f" #{self.seq}" if self.seq is not None else ""
        return f"{self.op or 'a collective'}{number}"


def waiting_ranks(matches: Iterable[Match]) -> list[Waiting]:
    """One entry an attempt, rank, group and collective, in order: `WorkNCCL(…)`, `last enqueued work`, gloo's error.

    A work that names no group is of the only one in which the rank tells of that number; of several, of none.
    """
    told = [match for match in matches if match.rank is not None]
    found: dict[tuple[int, int | None, int | None], list[Waiting]] = {}
    for match in sorted(told, key=_names_no_group):
        seq = int(match.captures["seq"]) if "seq" in match.captures else None
        known = found.setdefault((match.record.attempt, match.rank, seq), [])
        group = _group(match.captures)
        fitting = known if _names_no_group(match) else [one for one in known if (one.group, one.guid) == group]
        if not fitting and match.rank is not None:
            fitting = [Waiting(match.rank, match.record, *group, seq=seq)]
            known.extend(fitting)
        if len(fitting) == 1:
            _hear(fitting[0], match)
    return sorted((one for same in found.values() for one in same), key=lambda one: one.record.seq)


def _names_no_group(match: Match) -> bool:
    return match.name == "work" and "group_rank" not in match.captures


def _hear(waiting: Waiting, match: Match) -> None:
    """Take up what a line says of a collective; of lines that contradict each other the first counts."""
    said = match.captures
    waiting.record = min(waiting.record, match.record, key=lambda record: record.seq)
    if "timeout" in said and waiting.timeout is None:
        waiting.timeout = int(said["timeout"]) / 1000
    if "op" in said and waiting.op is None:
        waiting.op = said["op"]
        waiting.numel = (said["numel_in"], said["numel_out"]) if "numel_in" in said else None
    if "enqueued" in said:
        waiting.enqueued, waiting.completed = int(said["enqueued"]), int(said["completed"])


def _group(said: Mapping[str, str]) -> tuple[str, str]:
    """A group's name and its guid; there is but one default group."""
    guid = said.get("guid", "")
    number = guid or said.get("group", "0")
    name = said.get("desc") or (DEFAULT_GROUP if number == "0" else f"group {number}")
    return name, "" if name == DEFAULT_GROUP else guid


def telling_silence(
    waiting: Sequence[Waiting], tracks: Mapping[int, RankTrack], matches: Iterable[Match]
) -> dict[int, str]:
    """Ranks that said nothing of a timeout in the last attempt though their words would be here, and what shows it.

    One with an error of its own, among `matches`, is none of them.
    """
    latest = _latest(waiting)
    last = [one for one in waiting if one.record.attempt == latest]
    waits = {one.rank for one in last}
    erred = {match.rank for match in matches if match.record.attempt == latest and _is_own_error(match)}
    sources = {one.record.source for one in last}
    reached = {tracks[rank].milestone for rank in waits if rank in tracks}
    found = {}
    for rank, track in tracks.items():
        if rank in waits or rank in erred:
            continue
        if track.last is not None and track.milestone is not None and reached == {track.milestone}:
            found[rank] = "though it printed before and came as far as they"
        elif track.last is None and track.reported in sources:
            found[rank] = "though the launcher's report of it is there"
    return found


def _is_own_error(match: Match) -> bool:
    """Whether it shows that its rank failed or waited, not merely that it was killed or what it was busy with."""
    rule, signature = match.rule, match.signature
    is_clear = signature.role == "evidence" and signature.strength != "weak"
    return is_clear and rule.kind != "noise" and rule.rank_state != "killed"


def _latest(waiting: Iterable[Waiting]) -> int:
    return max((one.record.attempt for one in waiting), default=0)


def verdicts(
    waiting: Sequence[Waiting], seen: Iterable[int], world_size: int | None, telling: Mapping[int, str] | None = None
) -> list[Record]:
    """The verdict on every group whose collective timed out, the first one to time out first; of the last attempt.

    `seen`: the ranks that spoke; `telling`: see `telling_silence`.
    """
    telling = telling or {}
    latest = _latest(waiting)
    groups: dict[tuple[str, str], list[Waiting]] = {}
    for one in waiting:
        if one.record.attempt == latest:
            groups.setdefault((one.group, one.guid), []).append(one)
    present = set(seen) | telling.keys()
    records = []
    for (name, _), members in groups.items():
        waits_elsewhere = {one.rank for other in groups.values() for one in other} - {one.rank for one in members}
        expected = _expected(name, members, present, world_size) - waits_elsewhere
        if all(one.op is None and one.seq is None for one in members):  # of gloo others may have had another error
            expected &= telling.keys() | {one.rank for one in members}
        records += _verdict(name, _earliest_each(members), expected, present, len(waits_elsewhere), telling)
    return records


def _earliest_each(members: Sequence[Waiting]) -> list[Waiting]:
    """A rank's oldest collective that did not end; younger ones wait behind it."""
    best: dict[int, Waiting] = {}
    for one in members:
        known = best.get(one.rank)
        if known is None or (one.seq is not None and known.seq is not None and one.seq < known.seq):
            best[one.rank] = one
    return [best[rank] for rank in sorted(best)]


def _expected(name: str, members: Sequence[Waiting], present: set[int], world_size: int | None) -> set[int]:
    """Who belongs to the group, as far as a log tells: everybody for the default group, else those who spoke of it."""
    ranks = {one.rank for one in members}
    if name != DEFAULT_GROUP:
        return ranks
    if world_size is not None and max(ranks | present) < world_size and len(ranks) * 2 >= world_size:
        return set(range(world_size))
    return ranks | present


def _verdict(
    name: str,
    members: list[Waiting],
    expected: set[int],
    present: set[int],
    elsewhere: int,
    telling: Mapping[int, str],
) -> list[Record]:
    """`elsewhere`: ranks that gave up in a collective of another group; they wait for the missing ones there."""
    first = members[0]
    waited = f" after waiting {first.timeout:g} s" if first.timeout is not None else ""
    where = f"{first.collective} of {name}"
    differing = _differing(members)
    if differing:
        return [
            _said(one, one.rank, f"rank {one.rank} called {_call(one)} where the others called "
                                 f"{_call(_majority(members))} (#{one.seq} of {name})")
            for one in differing
        ]  # fmt: skip
    calls = Counter(_call(one) for one in members if one.op)
    if len(calls) > 1 and len({one.seq for one in members}) == 1:
        forms = "; ".join(f"ranks {_ranks_of(call, members)} {call}" for call, _ in calls.most_common())
        return [
            _said(first, None, f"calls differ at #{first.seq} of {name} and nobody can tell which is wrong: {forms}")
        ]
    behind = _behind(members)
    if behind:
        ahead = max(one.enqueued or 0 for one in members)
        return [
            _said(
                one,
                one.rank,
                f"rank {one.rank} is behind in {name}: it last enqueued #{one.enqueued}, the others #{ahead}",
            )
            for one in behind
        ]
    missing = sorted(expected - {one.rank for one in members})
    if missing and len(missing) <= max(len(members), 1) and len(missing) <= MOST_NAMED:
        gave_up = f"never reported {where}, {len(members) + elsewhere} ranks gave up{waited}"
        return [
            _said(first, rank, f"rank {rank} {gave_up}{_known(rank, missing, present, telling)}") for rank in missing
        ]
    counted = first.op is not None or first.seq is not None
    if counted and len(members) > 1 and not missing and len({one.seq for one in members}) == 1:
        return [_said(first, None, f"all {len(members)} ranks wait inside the same {where}{waited}; none is late")]
    return []


def _known(rank: int, missing: Sequence[int], present: set[int], telling: Mapping[int, str]) -> str:
    """What else is known of a rank that did not report."""
    if rank not in present:
        return "; it printed nothing at all"
    how = telling.get(rank, "though it printed before")
    return f"; it alone did not, {how}" if len(missing) == 1 else ""


def _ranks_of(call: str, members: Sequence[Waiting]) -> str:
    return ", ".join(str(one.rank) for one in members if one.op and _call(one) == call)


def _differing(members: Sequence[Waiting]) -> list[Waiting]:
    """Ranks that called something else at the same sequence number, where a majority says what was meant."""
    calls = Counter(_call(one) for one in members if one.op)
    seqs = {one.seq for one in members if one.seq is not None}
    if len(calls) < 2 or len(seqs) != 1 or len(members) < 3:
        return []
    (_, most), *others = calls.most_common()
    if most * 2 <= len(members) or sum(count for _, count in others) > len(members) // 2:
        return []
    common = calls.most_common(1)[0][0]
    return [one for one in members if one.op and _call(one) != common]


def _call(one: Waiting) -> str:
    return f"{one.op}(in={one.numel[0]}, out={one.numel[1]})" if one.numel else str(one.op)


def _majority(members: Sequence[Waiting]) -> Waiting:
    common = Counter(_call(one) for one in members if one.op).most_common(1)[0][0]
    return next(one for one in members if _call(one) == common)


def _behind(members: Sequence[Waiting]) -> list[Waiting]:
    """Ranks that enqueued less than the rest: they have not yet called what the others wait for."""
    known = [one.enqueued for one in members if one.enqueued is not None]
    if len(known) < 2 or len(set(known)) == 1:
        return []
    least, most = min(known), max(known)
    behind = [one for one in members if one.enqueued == least]
    # with asynchronous launches the leaders differ by a little; only a clear minority at the bottom is late
    if least == most or len(behind) * 2 > len(members):
        return []
    waits_for = [one.seq for one in members if one.enqueued != least and one.seq is not None]
    return behind if not waits_for or least < max(waits_for) else []


def _said(witness: Waiting, rank: int | None, text: str) -> Record:
    return witness.record.verdict(f"collective verdict: {text}", VERDICT, Identity(rank=rank))
