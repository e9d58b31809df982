"""logdoc: what broke first in a failed distributed PyTorch job, and what to type next.

    import logdoc

    report = logdoc.explain("logs/")               # files, folders, patterns, URLs; or the text of a log
    print(report.headline)
    for diagnosis in report.diagnoses:             # best first
        print(diagnosis.rule, diagnosis.confidence, diagnosis.fixes[0].commands)
    print(logdoc.rendered(report, "markdown"))     # any format of `logdoc explain --format`

Importing this is cheap: everything else is imported when it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes long to import
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal

    from logdoc.engine import Engine, load_engine
    from logdoc.probes.sheets import FactSheet
    from logdoc.render import rendered
    from logdoc.reporting.redact import redact
    from logdoc.sources import Discovered
    from logdoc.types.errors import InputError, LogdocError, RulesError
    from logdoc.types.report import Diagnosis, Report

    Prober = Callable[[Sequence[str]], FactSheet]

__version__ = "0.1.0"  # pyproject.toml reads it from here

__all__ = [
    "Diagnosis",
    "Engine",
    "InputError",
    "LogdocError",
    "Report",
    "RulesError",
    "explain",
    "load_engine",
    "redact",
    "rendered",
]

_ELSEWHERE = {
    "Diagnosis": "logdoc.types.report",
    "Engine": "logdoc.engine",
    "InputError": "logdoc.types.errors",
    "LogdocError": "logdoc.types.errors",
    "Report": "logdoc.types.report",
    "load_engine": "logdoc.engine",
    "RulesError": "logdoc.types.errors",
    "redact": "logdoc.reporting.redact",
    "rendered": "logdoc.render",
}


def explain(
    *logs: str | bytes | os.PathLike[str],
    language: Literal["en", "zh"] = "en",
    probes: bool | Prober = False,
    python: str | None = None,
    facts: Iterable[str | os.PathLike[str]] = (),
    rules: Iterable[str | os.PathLike[str]] = (),
    engine: Engine | None = None,
) -> Report:
    """Read these logs to their end and say what broke first and why.

    `logs`: what `logdoc explain` takes, a file, a folder, a pattern, a URL or `-` for standard input; a text that holds
    a line break, and bytes, are the log itself. Several are one job. `language` is that of the report's texts.
    `probes`: look at this machine, read-only and for five seconds at most, for what would confirm or refute the
    hypotheses; `python` is the job's interpreter (default: the active environment's). A function in place of True is
    given the ids of the probes wanted and returns the facts. `facts`: files that `logdoc probe` wrote on the failed
    machines; they stand in for probes. `rules`: further rule files or folders; the same id replaces a built-in rule.
    `engine`: rules made ready by `load_engine`, to explain many logs without loading them each time.

    Raises InputError if nothing of the logs can be read, RulesError if a rule is invalid; never for what a log holds.
    """
    from logdoc.engine import Options, fact_sheets, load_engine

    if language not in ("en", "zh"):
        from logdoc.types.errors import InputError

        raise InputError(f"{language!r} is not a language of the reports; there are: en, zh")
    found = _discovered(logs)
    ready = engine or load_engine(rules)
    options = Options(language=language, sheets=fact_sheets(facts), prober=_prober(probes, python))
    return ready.explain_found(found, options)


def _discovered(logs: Sequence[str | bytes | os.PathLike[str]]) -> Discovered:
    """The sources behind `logs`, in their order."""
    from os import fspath

    from logdoc.engine import source_from_text
    from logdoc.sources import Discovered, discover, source_from_bytes

    if not logs:
        return discover([])
    texts: list[str | bytes] = []
    paths: list[str] = []
    for log in logs:
        if isinstance(log, bytes) or (isinstance(log, str) and "\n" in log):
            texts.append(log)
        else:
            paths.append(fspath(log))
    found = discover(paths) if paths else Discovered((), ())
    names = ["<text>"] if len(texts) == 1 else [f"<text {number}>" for number in range(1, len(texts) + 1)]
    given = [
        source_from_text(text, name) if isinstance(text, str) else source_from_bytes(name, text)
        for name, text in zip(names, texts, strict=True)
    ]
    return Discovered((*found.sources, *given), found.warnings)


def _prober(probes: bool | Prober, python: str | None) -> Prober | None:
    if not isinstance(probes, bool):
        return probes
    if not probes:
        return None
    from functools import partial

    from logdoc.probes.collecting import run_collector

    return partial(run_collector, python=python)


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ELSEWHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
