"""Which rank did what, which hypothesis explains which, what came first. Judges no rule and knows no weight."""

from logdoc.cascade.attempts import number_attempts
from logdoc.cascade.clocks import set_clocks
from logdoc.cascade.collectives import telling_silence, verdicts, waiting_ranks
from logdoc.cascade.order import comes_before, in_order
from logdoc.cascade.ranks import RankTrack, Survey
from logdoc.cascade.relations import earliest, relate
from logdoc.cascade.stalls import stall_verdict

__all__ = [
    "RankTrack",
    "Survey",
    "comes_before",
    "earliest",
    "in_order",
    "number_attempts",
    "relate",
    "set_clocks",
    "stall_verdict",
    "telling_silence",
    "verdicts",
    "waiting_ranks",
]
