"""Literals in raw bytes: which parts of a large log are worth reading line by line. Knows no record and no rule."""

from logdoc.scanner.engines import LiteralScanner, best_scanner

__all__ = ["LiteralScanner", "best_scanner"]
