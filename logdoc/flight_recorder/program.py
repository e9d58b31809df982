"""Who left the program that the ranks of one role run: skipped a collective, called it twice, or in another order.

Ranks of one role (a pipeline stage, or all of a data-parallel job) make the same calls in the same order: the n-th call
of one is the n-th of the others. Judges nobody who merely came less far, and no rank that is alone in its role.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from logdoc.flight_recorder.compare import form
from logdoc.flight_recorder.habits import Form, Habits, Step, Trails, following
from logdoc.flight_recorder.job import Call, Job

MOST_EDITED = 4  # calls that a rank skipped or added; ranks that differ by more run another program
FEWEST_SHARED = 3  # calls by which two runs of calls are told to be one, shifted
SHIFTS = (-1, 1, -2, 2, -3, 3, -4, 4)


def left_program(job: Job) -> dict[int, Call]:
    """The ranks that left the program of their role, each with its first call that is out of place."""
    trails = {rank: _trail(job, rank) for rank in job.tracks}
    habits = Habits(trails)
    found: dict[int, Call] = {}
    for ranks in _same_groups(job, trails):
        parts = sorted(_in_step(trails, ranks), key=len, reverse=True)
        for part in parts:
            if len(part) > 1:
                found.update(_Walk(trails, habits, part).astray(part))
        for rank in _shifted(job, trails, parts):
            found.setdefault(rank, trails[rank][0].call)
    return found


def _trail(job: Job, rank: int) -> list[Step]:
    track = job.tracks[rank]
    calls = [*track.p2p, *(call for calls in track.collectives.values() for call in calls.values())]
    steps = (Step(call.entries[0].record, call.last.record, _form(job, call), call) for call in calls)
    return sorted(steps, key=lambda step: step.first)


def _form(job: Job, call: Call) -> Form:
    group = job.groups[call.group]
    kind = (group.desc, len(group.ranks), call.is_p2p, len(call.entries))
    if not call.is_p2p:
        return kind, form(call.last)
    peer = job.peer(call, call.last)
    return kind, call.last.op, None if peer is None else peer - call.rank


def _is_collective(form: Form) -> bool:
    kind = form[0]
    return isinstance(kind, tuple) and not kind[2]


def _same_groups(job: Job, trails: Trails) -> Iterable[list[int]]:
    """Ranks in groups of the same kinds that, as far as the dumps tell, exchange with the same neighbours."""
    stages = _stages(job)
    whole = all(track.unfiltered for track in job.tracks.values())
    alike: dict[object, list[int]] = defaultdict(list)
    for rank, steps in trails.items():
        kinds = frozenset((group.desc, len(group.ranks)) for group in job.tracks[rank].dump.groups)
        exchanged = frozenset(step.form for step in steps if step.call.is_p2p) if whole else None
        alike[kinds, exchanged, stages[rank]].append(rank)
    return alike.values()


def _stages(job: Job) -> Mapping[int, int]:
    """A number for each rank, the same for ranks that groups join, and for all that no group joins to others.

    A group whose members send to each other, or one of its kind, joins none: its members run different stages.
    """
    pairs = {frozenset((call.rank, job.peer(call, call.last))) for track in job.tracks.values() for call in track.p2p}
    crossing = set()
    for group in job.groups:
        members = set(group.ranks)
        if any(pair <= members for pair in pairs):
            crossing.add((group.desc, len(group.ranks)))
    stage = {rank: rank for rank in job.world}
    parts = {rank: [rank] for rank in job.world}
    for group in job.groups:
        if (group.desc, len(group.ranks)) not in crossing:
            for rank in group.ranks:
                old, new = stage[rank], stage[group.ranks[0]]
                if old != new:
                    parts[new] += parts[old]
                    stage.update(dict.fromkeys(parts.pop(old), new))
    return {rank: number if len(parts[number]) > 1 else -1 for rank, number in stage.items()}


def _in_step(trails: Trails, ranks: Iterable[int]) -> list[list[int]]:
    """Parts of the ranks whose n-th call was once the same call, with the same number in its group."""
    part = {rank: [rank] for rank in ranks}
    first: dict[object, int] = {}
    for rank in ranks:
        for step in trails[rank]:
            other = first.setdefault((step.first, step.key), rank)
            if part[other] is not part[rank]:
                part[other].extend(part[rank])
                for one in part[rank]:
                    part[one] = part[other]
    return list({id(one): one for one in part.values()}.values())


class _Walk:
    """Goes through the calls of ranks of one role together and takes out who differs from the most."""

    def __init__(self, trails: Trails, habits: Habits, ranks: Sequence[int]) -> None:
        self._trails = trails
        self._habits = habits
        self._ends = Counter(trails[rank][-1].key for rank in ranks)
        self._places = {rank: {step.first: place for place, step in enumerate(trails[rank])} for rank in ranks}
        self._records = sorted({record for places in self._places.values() for record in places})

    def astray(self, ranks: Sequence[int], start: int = 0) -> Iterator[tuple[int, Call]]:
        """Those of `ranks` that left the program at or after a place in the order of records."""
        live = list(ranks)
        for at in range(start, len(self._records)):
            parties = self._parties(live, self._records[at])
            if len(parties) == 1 and self._went_on_alone(parties[0], live, self._records[at]):
                live = [rank for rank in live if rank not in parties[0]]
                yield from ((rank, self._step(rank, self._records[at]).call) for rank in parties[0])
            if len(parties) < 2:
                continue
            normal = self._normal(self._records[at], parties)
            for party in parties:
                if party is normal:
                    continue
                live = [rank for rank in live if rank not in party]
                odd = normal and self._is_edit(party, normal, self._records[at])
                if odd:
                    yield from ((rank, self._step(rank, self._records[at]).call) for rank in party)
                elif len(party) > 1:
                    yield from self.astray(party, at + 1)  # another role
            if normal is None:
                return

    def _parties(self, ranks: Iterable[int], record: int) -> list[list[int]]:
        parties: dict[object, list[int]] = {}
        for rank in ranks:
            if record in self._places[rank]:
                parties.setdefault(self._step(rank, record).key, []).append(rank)
        return list(parties.values())

    def _at(self, rank: int, record: int) -> tuple[Sequence[Step], int]:
        return self._trails[rank], self._places[rank][record]

    def _step(self, rank: int, record: int) -> Step:
        return self._trails[rank][self._places[rank][record]]

    def _went_on_alone(self, party: Sequence[int], live: Sequence[int], record: int) -> bool:
        """More ranks stopped at the call before, and this one is strange there: calls skipped, or the last repeated."""
        steps, place = self._at(party[0], record)
        if 2 * len(party) >= len(live) or place == 0 or self._ends[steps[place - 1].key] <= len(party):
            return False
        if not self._is_strange(party, record):
            return False
        after = following(steps, place)
        return self._is_again(party[0], record) or any(
            _is_edit(after, known) for known in self._habits.known(steps, place)
        )

    def _is_again(self, rank: int, record: int) -> bool:
        """The rank makes the call before, a collective, once more and then stops."""
        steps, place = self._at(rank, record)
        is_last = place == len(steps) - 1
        return (
            is_last and place > 0 and steps[place - 1].form == steps[place].form and _is_collective(steps[place].form)
        )

    def _is_edit(self, odd: Sequence[int], normal: Sequence[int], record: int) -> bool:
        after = following(*self._at(odd[0], record))
        if any(_is_edit(after, known) for known in self._goes_on(normal[0], record)):
            return True
        return self._is_again(odd[0], record) and self._is_strange(odd, record)

    def _normal(self, record: int, parties: list[list[int]]) -> list[int] | None:
        """The largest party; of several the one whose call is known to follow what it called before."""
        most = max(map(len, parties))
        largest = [party for party in parties if len(party) == most]
        if len(largest) > 1:
            largest = [party for party in largest if not self._is_strange(party, record)]
        return largest[0] if len(largest) == 1 else None

    def _is_strange(self, party: Sequence[int], record: int) -> bool:
        here = {(id(self._trails[rank]), places[record]) for rank, places in self._places.items() if record in places}
        return self._habits.is_strange(*self._at(party[0], record), here)

    def _goes_on(self, rank: int, record: int) -> Iterator[list[Form]]:
        """What follows this call of a rank, here and wherever else it was called after the same calls."""
        steps, place = self._at(rank, record)
        yield following(steps, place)
        yield from (known for known in self._habits.known(steps, place) if known[0] == steps[place].form)


def _is_edit(odd: Sequence[Form], normal: Sequence[Form]) -> bool:
    """Whether both go on alike after a few collectives that one of them left out, added, changed or exchanged."""

    def alike(skip: int, other: int) -> bool:
        pairs = list(zip(odd[skip:], normal[other:], strict=False))
        edited = (*odd[:skip], *normal[:other])
        return bool(pairs) and all(one == two for one, two in pairs) and all(map(_is_collective, edited))

    few = range(1, MOST_EDITED + 1)
    if any(alike(0, count) or alike(count, 0) for count in few) or alike(1, 1):
        return True
    return list(odd[:2]) == list(normal[1::-1]) and alike(2, 2)


def _shifted(job: Job, trails: Trails, parts: Sequence[Sequence[int]]) -> Iterator[int]:
    """Ranks of small parts that make the calls of a larger part, yet as many calls earlier or later as they are behind
    or ahead in one group: what they skipped or added itself is not in the dumps any more."""
    large = [part for part in parts if len(part) > 1]
    programs = [{step.first: step for rank in reversed(part) for step in trails[rank]} for part in large]
    for part in parts:
        for larger, program in zip(large, programs, strict=True):
            if len(larger) > len(part) and all(
                any(_fits(job, trails[rank], program, shift, larger) for shift in SHIFTS) for rank in part
            ):
                yield from part
                break


def _fits(job: Job, steps: Sequence[Step], program: Mapping[int, Step], shift: int, larger: Sequence[int]) -> bool:
    pairs = [(step, program[step.first - shift]) for step in steps if step.first - shift in program]
    if len(pairs) < FEWEST_SHARED or any(one.form != other.form for one, other in pairs):
        return False
    moved = [(one.call, one.call.seq - other.call.seq) for one, other in pairs if one.call.seq != other.call.seq]
    kinds = {job.groups[call.group].desc for call, _ in moved}
    return len(kinds) == 1 and all(
        not call.is_p2p and by == shift and not set(larger).isdisjoint(job.members(call.group)) for call, by in moved
    )
