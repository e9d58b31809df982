"""Runs the collector under the job's Python within a budget, and reads fact files; judges nothing, never hangs."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logdoc.probes.collect.machine import Answer, run_command
from logdoc.probes.collect.pieces import printed
from logdoc.probes.collector import script_text
from logdoc.probes.rejoin import rejoined, unlabelled
from logdoc.probes.specs import PROBES, ProbeSpec, passive_ids, spec
from logdoc.types.errors import InputError
from logdoc.types.finding import Fact
from logdoc.types.rule import FactValue

__all__ = [
    "PROBES",
    "FactSheet",
    "ProbeError",
    "ProbeSpec",
    "job_python",
    "load_fact_sheet",
    "load_fact_sheets",
    "passive_ids",
    "run_collector",
    "script_text",
    "sheet_json",
    "sheet_lines",
    "spec",
]

SCHEMA = "logdoc.facts/v1"
FILE_LIMIT = 16 << 20
FACT_LIMIT = 20_000
FACT_ID = re.compile(r"[A-Za-z][\w.+-]{0,199}")
# A sheet is a JSON object; banners and notes of launchers are lines beside it.
SHEET_START = re.compile(r"^[ \t]*\{", re.MULTILINE)
NEXT_SHEET = re.compile(r"\s*\{")
Runner = Callable[[Sequence[str], float, str], Answer]


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


def job_python(explicit: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """The interpreter the job would use: as told, else the active virtual or conda environment's, else PATH's."""
    env = os.environ if environ is None else environ
    if explicit:
        return explicit
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        candidate = Path(env.get(variable, "")) / "bin" / "python"
        if env.get(variable) and os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("python3", path=env.get("PATH")) or shutil.which("python", path=env.get("PATH"))
    return found or sys.executable


def run_collector(
    only: Sequence[str] = (),
    python: str | None = None,
    budget: float = 5.0,
    runner: Runner = run_command,
) -> FactSheet:
    """Facts of this host from the probes named (all passive ones by default), within `budget` seconds.

    The collector runs in a process group of its own and ends itself a little earlier; if it does not, it is stopped, or
    left behind when the kernel holds it: that too is within the budget. What went wrong is in `errors`; raises
    InputError only for an unknown probe.
    """
    unknown = [id for id in only if id not in passive_ids()]
    if unknown:
        known = spec(unknown[0])
        reason = "runs only as an active probe" if known else "is not a probe; there are: " + ", ".join(passive_ids())
        raise InputError(f"{unknown[0]} {reason}")
    interpreter = job_python(python)
    limit = budget - min(0.45, 0.15 * budget)
    own = limit - min(0.3, 0.1 * budget)
    argv = [interpreter, "-", "--budget", f"{own:.2f}", "--since", f"{time.time():.2f}", "--only", ",".join(only)]
    answer = runner(argv, limit, script_text())
    try:
        sheet = printed_sheet(answer.out, interpreter)
    except InputError:
        sheet = None
    return failed_sheet(interpreter, answer, budget, only) if sheet is None else sheet


def printed_sheet(out: str, name: str) -> FactSheet | None:
    """The last sheet in what a collector printed, beside whatever banners; raises InputError, which calls it `name`,
    where that is no sheet after all."""
    lines = [line for line in unlabelled(out).splitlines() if line.startswith("{") and SCHEMA in line]
    return sheet_of(rejoined(parse(line, name) for line in lines)[-1], "live") if lines else None


def failed_sheet(interpreter: str, answer: Answer, budget: float, only: Sequence[str]) -> FactSheet:
    """A sheet without facts that says why the collector gave none."""
    last = (answer.err.strip().splitlines() or [""])[-1][:300]
    reasons = {
        "missing": f"{interpreter} does not exist",
        "refused": f"{interpreter} could not be started: {last}",
        "timeout": f"the collector gave no answer within {budget:g} s and was stopped",
        "abandoned": "the collector is blocked in the kernel and does not react to SIGKILL; it was left behind",
        "ok": f"{interpreter} printed no facts (exit code {answer.code}{': ' + last if last else ''}): the collector "
        "needs Python 3.8 or newer",
    }
    kind = answer.state if answer.state in ("timeout", "abandoned") else "failed"
    errors = tuple(ProbeError(probe=id, error=reasons[answer.state], kind=kind) for id in only or passive_ids())
    return FactSheet(host=socket.gethostname(), facts=(), errors=errors, python=interpreter, source="live")


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
