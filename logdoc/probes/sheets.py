"""The fact sheet: the facts of one host, as probes give them and fact files hold them; runs and judges nothing."""

from __future__ import annotations

import json
import math
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logdoc.probes.collect.commands import Answer
from logdoc.probes.collect.pieces import printed
from logdoc.probes.rejoin import rejoined, unlabelled
from logdoc.types.errors import InputError
from logdoc.types.finding import Fact
from logdoc.types.rule import FactValue

SCHEMA = "logdoc.facts/v1"
FILE_LIMIT = 16 << 20
FACT_LIMIT = 20_000
FACT_ID = re.compile(r"[A-Za-z][\w.+-]{0,199}")
# A sheet is a JSON object; banners and notes of launchers are lines beside it.
SHEET_START = re.compile(r"^[ \t]*\{", re.MULTILINE)
NEXT_SHEET = re.compile(r"\s*\{")
# By the last word of a fact's id.
UNITS = {"seconds": "s", "used": "bytes", "total": "bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeError:
    """What a probe could not see. `kind`: failed, timeout (stopped), abandoned (blocked in the kernel, left behind)."""

    probe: str
    error: str
    kind: str = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSheet:
    """The facts of one host at one time. `source` is `live` or the file they came from; `commands` says for each fact
    id which command or file gave it; `time` is UTC in ISO 8601."""

    host: str
    facts: tuple[Fact, ...]
    errors: tuple[ProbeError, ...]
    python: str
    source: str
    time: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def live(
        cls, probe: str, values: Mapping[str, FactValue | None], command: str, python: str = "", error: str = ""
    ) -> FactSheet:
        """What a probe has just seen of this host; a value that is None or empty is not known. `command` gave them."""
        host = socket.gethostname()
        known = {id: value for id, value in values.items() if value is not None and value != ""}
        return cls(
            host=host,
            facts=tuple(
                Fact(id=id, value=value, unit=_unit(id), origin=f"{probe}@{host}", host=host)
                for id, value in known.items()
            ),
            errors=(ProbeError(probe=probe, error=error),) if error else (),
            python=python,
            source="live",
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            commands=dict.fromkeys(known, command),
        )

    @classmethod
    def unanswered(
        cls, probes: Sequence[str], answer: Answer, reason: str, python: str, host: str | None = None
    ) -> FactSheet:
        """A sheet without facts: the same process was to answer for all these probes, on this host or another."""
        errors = tuple(ProbeError(probe=probe, error=reason, kind=answer.kind) for probe in probes)
        return cls(host=host or socket.gethostname(), facts=(), errors=errors, python=python, source="live")

    @property
    def timed_out(self) -> tuple[str, ...]:
        """Probes that did not finish or left something behind, in order of first mention."""
        return tuple(dict.fromkeys(error.probe for error in self.errors if error.kind in ("timeout", "abandoned")))

    def value(self, id: str) -> FactValue | None:
        """A fact's value; None when it is not known."""
        return next((fact.value for fact in self.facts if fact.id == id), None)

    def of_probe(self, probe: str) -> tuple[Fact, ...]:
        """The facts that one probe gave."""
        return tuple(fact for fact in self.facts if fact.origin.partition("@")[0] == probe)


def _unit(id: str) -> str:
    return UNITS.get(re.split(r"[._]", id)[-1], "")


def printed_sheet(out: str, name: str) -> FactSheet | None:
    """The last sheet in what a collector printed, beside whatever banners; raises InputError, which calls it `name`,
    where that is no sheet after all."""
    lines = [line for line in unlabelled(out).splitlines() if line.startswith("{") and SCHEMA in line]
    return sheet_of(rejoined(parse(line, name) for line in lines)[-1], "live") if lines else None


def load_fact_sheet(path: str | Path) -> FactSheet:
    """The one sheet of a fact file; raises InputError when the file is unreadable, no fact file, or holds several."""
    sheets = load_fact_sheets(path)
    if len(sheets) != 1:
        raise InputError(f"{path}: holds the facts of {len(sheets)} hosts; one was expected")
    return sheets[0]


def load_fact_sheets(path: str | Path) -> tuple[FactSheet, ...]:
    """Every sheet of a fact file: one JSON object, or one a line or one after the other as srun prints them."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > FILE_LIMIT:
        raise InputError(f"{path}: larger than {FILE_LIMIT >> 20} MiB: not a fact file")
    text = unlabelled(data.decode("utf-8-sig", "replace"))
    values = []
    found = SHEET_START.search(text)
    if found is None:
        raise InputError(f"{path}: not a fact file: no line of it begins a JSON object")
    while found is not None:
        value, end = decode(text, found.end() - 1, str(path))
        values.append(checked(value, str(path)))
        found = NEXT_SHEET.match(text, end) or SHEET_START.search(text, end)
    return tuple(sheet_of(value, str(path)) for value in rejoined(values))


def decode(text: str, position: int, name: str) -> tuple[Any, int]:
    try:
        return json.JSONDecoder(parse_constant=lambda constant: None).raw_decode(text, position)
    except (ValueError, RecursionError) as error:
        if text.count(SCHEMA) > 1:
            raise InputError(
                f"{name}: what several hosts printed ran into each other: let each write a file of its own "
                "(srun --output=facts-%N.json ...) and name them all"
            ) from error
        raise InputError(f"{name}: not valid JSON: {error}") from error


def parse(text: str, name: str) -> dict[str, Any]:
    return checked(decode(text, 0, name)[0], name)


def checked(value: Any, name: str) -> dict[str, Any]:
    """The object, when it has the shape of a fact sheet; else InputError with what is wrong first."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if isinstance(schema, str) and schema.startswith(SCHEMA.rstrip("0123456789")) and schema != SCHEMA:
        raise InputError(
            f"{name}: holds {schema}, this logdoc reads {SCHEMA}: collect again with its own `logdoc probe`"
        )
    if not isinstance(value, dict) or schema != SCHEMA:
        raise InputError(f"{name}: not a fact file (schema {SCHEMA} is missing): make one with `logdoc probe --all`")
    if not isinstance(value.get("host"), str) or not value["host"]:
        raise InputError(f"{name}: `host` must name the machine the facts are of")
    for key in ("facts", "errors"):
        entries = value.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise InputError(f"{name}: `{key}` must be a list of objects")
        if len(entries) > FACT_LIMIT:
            raise InputError(f"{name}: more than {FACT_LIMIT} entries in `{key}`")
    for position, entry in enumerate(value.get("facts", []), start=1):
        id, fact = entry.get("id"), entry.get("value")
        if not isinstance(id, str) or not FACT_ID.fullmatch(id):
            raise InputError(f"{name}: fact {position} has no valid `id`")
        if not isinstance(fact, str | int | float) or (isinstance(fact, float) and not math.isfinite(fact)):
            raise InputError(f"{name}: the value of fact {id} must be text, a number, true or false")
    return value


def text_of(entry: Mapping[str, Any], key: str, default: str = "") -> str:
    value = entry.get(key, default)
    return value if isinstance(value, str) else default


def sheet_of(value: dict[str, Any], source: str) -> FactSheet:
    """A checked object as a FactSheet; a fact's origin is `probe@host`."""
    host = value["host"]
    entries = value.get("facts", [])
    facts = tuple(
        Fact(
            id=entry["id"],
            value=entry["value"],
            unit=text_of(entry, "unit"),
            origin=f"{text_of(entry, 'probe', 'facts')}@{host}",
            host=host,
        )
        for entry in entries
    )
    errors = tuple(
        ProbeError(probe=text_of(entry, "probe"), error=text_of(entry, "error"), kind=text_of(entry, "kind", "failed"))
        for entry in value.get("errors", [])
    )
    python = text_of(value, "executable") or text_of(value, "python")
    commands = {entry["id"]: text_of(entry, "source") for entry in entries}
    return FactSheet(
        host=host,
        facts=facts,
        errors=errors,
        python=python,
        source=source,
        time=text_of(value, "time"),
        commands=commands,
    )


def sheet_json(sheet: FactSheet) -> str:
    """A sheet as one line of JSON; load_fact_sheet reads it back."""
    return json.dumps(_document(sheet), ensure_ascii=False)


def sheet_lines(sheet: FactSheet, environ: Mapping[str, str]) -> str:
    """A sheet as the collector would print it there: one line, within a Slurm step several short ones."""
    return printed(_document(sheet), environ)


def _document(sheet: FactSheet) -> dict[str, Any]:
    facts = [
        {
            "id": fact.id,
            "value": fact.value,
            "unit": fact.unit,
            "source": sheet.commands.get(fact.id, ""),
            "probe": fact.origin.partition("@")[0],
        }
        for fact in sheet.facts
    ]
    errors = [{"probe": error.probe, "error": error.error, "kind": error.kind} for error in sheet.errors]
    return {
        "schema": SCHEMA,
        "host": sheet.host,
        "time": sheet.time,
        "executable": sheet.python,
        "facts": facts,
        "errors": errors,
    }
