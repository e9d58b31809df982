"""Ranked hypotheses to the Report: wording in both languages, fixes, restart advice, nearest known errors."""

from logdoc.reporting.build import Findings, build_report

__all__ = ["Findings", "build_report"]
