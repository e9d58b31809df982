"""What ranks usually call after which calls: tells a call that belongs to the program from one out of place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from logdoc.flight_recorder.job import Call

CONTEXT = 6  # calls before one that say where in the program it is
LOOK_AHEAD = 12  # calls after a difference that show whether two ranks go on alike
RARE = 8  # times that other calls must have followed for one that somebody else made too to be strange
MOST_SEARCHES = 200  # in the calls of all ranks; a job of many ranks and as many differences is not worth more

Form = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a rank as its program makes it: from record `first` to `last`; `form` is the same on every rank."""

    first: int
    last: int
    form: Form
    call: Call

    @property
    def key(self) -> tuple[Form, int]:
        return self.form, self.call.seq


Trails = Mapping[int, Sequence[Step]]


class Habits:
    """The calls of all ranks, searched by what came before."""

    def __init__(self, trails: Trails) -> None:
        self._trails = trails
        self._searches = 0

    @cached_property
    def _after(self) -> dict[Form, list[tuple[Sequence[Step], int]]]:
        """By form: the places right behind a call of that form, where no call between is missing."""
        found: dict[Form, list[tuple[Sequence[Step], int]]] = {}
        for steps in self._trails.values():
            for place in range(1, len(steps)):
                if _is_next(steps, place):
                    found.setdefault(steps[place - 1].form, []).append((steps, place))
        return found

    def is_strange(self, steps: Sequence[Step], place: int, besides: Collection[tuple[int, int]]) -> bool:
        """Hardly anybody ever made this call after the calls before it, while another one mostly followed them.

        `besides`: calls that are in question themselves and prove nothing, by the identity of the steps and the place.
        """
        form = steps[place].form
        for context in _contexts(steps, place):
            places = (found for found in self._occurrences(context) if (id(found[0]), found[1]) not in besides)
            followers = Counter(others[end].form for others, end in places)
            if followers.total() - followers[form] >= max(2, RARE * followers[form]):
                return True
        return False

    def known(self, steps: Sequence[Step], place: int) -> Iterator[list[Form]]:
        """What came elsewhere after the calls before this one, the most alike places first."""
        for context in reversed(list(_contexts(steps, place))):
            for others, end in self._occurrences(context):
                if others is not steps:
                    yield following(others, end)
                elif end < place:
                    yield following(others, end)[: place - end]

    def _occurrences(self, context: Sequence[Form]) -> list[tuple[Sequence[Step], int]]:
        """Where these calls came one after the other, and one more after them."""
        self._searches += 1
        if self._searches > MOST_SEARCHES:
            return []
        length = len(context)
        return [
            (steps, end)
            for steps, end in self._after.get(context[-1], ())
            if end >= length and all(steps[end - length + place].form == context[place] for place in range(length))
        ]


def following(steps: Sequence[Step], place: int) -> list[Form]:
    return [step.form for step in steps[place : place + LOOK_AHEAD]]


def _is_next(steps: Sequence[Step], place: int) -> bool:
    return steps[place].first == steps[place - 1].last + 1


def _contexts(steps: Sequence[Step], place: int) -> Iterator[list[Form]]:
    """The last two calls before the one at `place`, the last three, and so on, as far as none is missing in the dump.

    One call alone does not say where in the program it is: layers call the same collective twice in a row.
    """
    for before in range(place - 1, max(place - 1 - CONTEXT, -1), -1):
        if not _is_next(steps, before + 1):
            return
        if before < place - 1:
            yield [step.form for step in steps[before:place]]
