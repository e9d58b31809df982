"""Flight-recorder dumps to what they say together: which ranks broke first, which wait for them, and where in the code.

Runs nothing a dump names and judges no rule: its verdict goes on as Records.
"""

from logdoc.flight_recorder.model import Analysis, Dump
from logdoc.flight_recorder.read import read_dump
from logdoc.flight_recorder.records import analysis_records, reported
from logdoc.flight_recorder.verdict import analyse

__all__ = ["Analysis", "Dump", "analyse", "analysis_records", "read_dump", "reported"]
