"""Records and the literal index to Matches: one literal pass over all bodies, regexes only where a literal occurs."""

from logdoc.matcher.engines import LiteralScanner, best_scanner
from logdoc.matcher.match import Matcher, Prefilter

__all__ = ["LiteralScanner", "Matcher", "Prefilter", "best_scanner"]
