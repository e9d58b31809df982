"""Which rank did what, which hypothesis explains which, what came first. Judges no rule and knows no weight."""

from logdoc.cascade.order import comes_before
from logdoc.cascade.ranks import RankTrack, Survey
from logdoc.cascade.relations import earliest, relate
from logdoc.cascade.settle import settle

__all__ = ["RankTrack", "Survey", "comes_before", "earliest", "relate", "settle"]
