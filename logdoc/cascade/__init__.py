"""Which rank did what, which hypothesis explains which, what came first. Judges no rule and knows no weight."""

from logdoc.cascade.ranks import RankTrack, Survey
from logdoc.cascade.relations import comes_before, earliest, relate

__all__ = ["RankTrack", "Survey", "comes_before", "earliest", "relate"]
