"""Records and the literal index to Matches: one literal pass over all bodies, regexes only where a literal occurs."""

from logdoc.matcher.match import Matcher, Prefilter
from logdoc.scanner import LiteralScanner, best_scanner

__all__ = ["LiteralScanner", "Matcher", "Prefilter", "best_scanner"]
