"""Report to what people and programs read. Pure: no I/O, no decisions, every log text is data."""

from __future__ import annotations

from importlib import import_module

from logdoc.types.errors import InputError
from logdoc.types.report import Report
from logdoc.types.value import dataclass

__all__ = ["FORMATS", "Format", "format_of", "render_json", "rendered"]


@dataclass(frozen=True, slots=True)
class Format:
    """A way to show a report: `render_NAME` in the module of that name, imported when it is used.

    `redacted`: it is meant for others to read, so secrets, people and machines are hidden unless asked for.
    """

    name: str
    redacted: bool

    def render(self, report: Report) -> str:
        """`report` as it is, in this format."""
        text = getattr(import_module(f"logdoc.render.{self.name}"), f"render_{self.name}")(report)
        assert isinstance(text, str)
        return text


FORMATS = (
    Format("text", redacted=False),
    Format("json", redacted=False),
    Format("jsonl", redacted=False),
    Format("markdown", redacted=True),
    Format("slack", redacted=True),
    Format("teams", redacted=True),
    Format("html", redacted=True),
    Format("termination", redacted=False),
)


def format_of(name: str) -> Format:
    """The format of this name; InputError names those there are."""
    for form in FORMATS:
        if form.name == name:
            return form
    raise InputError(f"{name} is not a format; there are: {', '.join(form.name for form in FORMATS)}")


def shown(report: Report, name: str, redacted: bool | None = None) -> Report:
    """What a format may show of `report`; `redacted` None: as the format does by itself."""
    if not (format_of(name).redacted if redacted is None else redacted):
        return report
    from logdoc.reporting.redact import redact

    return redact(report)


def render_json(report: Report, *, indent: int | None = 2) -> str:
    """One JSON object, the public contract; see logdoc.render.json."""
    from logdoc.render.json import render_json as render

    return render(report, indent=indent)


def rendered(report: Report, name: str, redacted: bool | None = None) -> str:
    """`report` in a format of FORMATS, ending with a newline; `redacted` None: as the format does by itself."""
    text = format_of(name).render(shown(report, name, redacted))
    return text if text.endswith("\n") else text + "\n"
