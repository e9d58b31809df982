"""Time stamps of every form a log prints, to seconds. Stamps without a year are placed by the job's other stamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from logdoc.kept.patterns import lazily

LATEST = 1e11  # seconds: the year 5138; a larger number counts in a smaller unit
_UNITS = (1, 1e3, 1e6, 1e9)
YEARLESS = 1972  # a leap year, so that 29 February parses; far from any real log, so that it shows

_ISO = lazily(r"(\d{4})[-/](\d\d)[-/](\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?")
_GLOG = lazily(r"(\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)$")
_SHORT = lazily(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")
_SYSLOG = lazily(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d+) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?$")
_MONTHS = {
    "Jan": 1, "Feb": 2, "Mar": 3, "Apr": 4, "May": 5, "Jun": 6, "Jul": 7, "Aug": 8, "Sep": 9,
    "Oct": 10, "Nov": 11, "Dec": 12,
}  # fmt: skip


@lru_cache(maxsize=4096)
def seconds(text: str) -> float | None:
    """A stamp as seconds since 1970 (UTC where it names a zone, the printing host's clock where not); None if unread.

    glog's fraction is CLOCK_MONOTONIC's, not the wall clock's, so it never gets here (catalog/torch.md (a)).
    A bare number below 10^8 is uptime (dmesg) and stays as it is: it only orders lines of its own host.
    """
    try:
        return _parse(text.strip())
    except (ValueError, OverflowError):
        return None


def _parse(text: str) -> float | None:
    if found := _ISO.match(text):
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        stamp = datetime(int(year), int(month), int(day), int(hour), int(minute), min(int(second), 59), tzinfo=UTC)
        base = (stamp - _offset(zone)).timestamp()
        return base + (float(f"0.{fraction}") if fraction else 0.0)
    if found := _GLOG.match(text) or _SHORT.match(text):
        month, day, hour, minute, second = (int(part) for part in found.groups())
        return datetime(YEARLESS, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    if found := _SYSLOG.match(text):
        name, day, hour, minute, second, year = found.groups()
        month = _MONTHS.get(name, 0)
        return datetime(
            int(year or YEARLESS), month, int(day), int(hour), int(minute), int(second), tzinfo=UTC
        ).timestamp()
    value = float(text)
    for unit in _UNITS:
        if 0 <= value / unit < LATEST:
            return value / unit
    return None  # no time at all, such as NaN


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta()
    sign = -1 if zone[0] == "-" else 1
    digits = zone[1:].replace(":", "")
    return sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))


def is_yearless(value: float) -> bool:
    """Whether `seconds` had to place this stamp in the stand-in year."""
    return datetime.fromtimestamp(value, UTC).year == YEARLESS if 0 <= value < 4e9 else False


def is_uptime(value: float) -> bool:
    """Whether this is a kernel's seconds since boot, not a date."""
    return value < 6e7


def with_year(value: float, year: int) -> float:
    """A yearless stamp moved to `year`."""
    stamp = datetime.fromtimestamp(value, UTC)
    try:
        return stamp.replace(year=year).timestamp()
    except ValueError:
        return stamp.replace(year=year, day=28).timestamp()


def year_of(value: float) -> int:
    return datetime.fromtimestamp(value, UTC).year
