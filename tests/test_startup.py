"""A small log and the help page must feel instant: what is imported for them, and that short cuts say the same."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import logdoc
from logdoc import dialects
from logdoc.cli.arguments import COMMANDS, FLAGS, LISTS, VALUES, Request, explain_arguments, plain_request
from logdoc.cli.commands import commands
from logdoc.cli.explain import explain
from logdoc.cli.main import HELP_COLUMNS, help_page
from logdoc.kept import patterns
from logdoc.kept.patterns import guarded, keep_patterns, lazily

HEAVY = {
    "torch",
    "textual",
    "pydantic",
    "rich",
    "pynvml",
    "click",
    "yaml",
    "importlib.metadata",
    "platformdirs",
    "psutil",
}
HEAVY |= {"asyncio", "multiprocessing", "concurrent.futures", "email", "ssl", "logdoc.probes", "logdoc.runner"}
HEAVY |= {"logdoc.tui", "logdoc.flight_recorder"}
HEAVY |= {"regex._main", "dataclasses", "inspect", "packaging", "statistics", "rapidfuzz", "importlib.resources"}
HEAVY |= {"tempfile", "shutil"}
FAILED = "[rank0]: Traceback (most recent call last):\n[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "_LOGDOC_COMPLETE")}
    return {**kept, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LC_ALL": "C.UTF-8"}


def run(environment: dict[str, str], *arguments: str) -> tuple[int, str, set[str]]:
    """Exit code, output and imported modules of a run of the console script."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); sys.argv[0] = 'logdoc'\n"
    code += "from logdoc.cli import main; main()"
    ran = subprocess.run((sys.executable, "-c", code, *arguments), capture_output=True, text=True, env=environment)
    return ran.returncode, ran.stdout, set(ran.stderr.split())


def test_importing_the_package_imports_nothing_of_weight() -> None:
    code = "import sys, logdoc; print(*sys.modules)"
    loaded = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & (HEAVY | {"re", "typing", "pathlib"})


def test_help_needs_no_command_library(environment: dict[str, str]) -> None:
    code, text, loaded = run(environment, "--help")
    assert (code, text) == (0, help_page())
    assert loaded & (HEAVY | {"re", "typing", "pathlib"}) == set()


def test_the_help_page_is_what_the_commands_say() -> None:
    assert CliRunner().invoke(commands, ["--help"], prog_name="logdoc").output == help_page()
    assert max(map(len, help_page().split("\n"))) <= HELP_COLUMNS + 6  # the examples are not wrapped


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_small_log_needs_few_modules_once_all_is_kept(tmp_path: Path, environment: dict[str, str], form: str) -> None:
    log = tmp_path / "job.log"
    log.write_text(FAILED, encoding="utf-8")
    first = run(environment, str(log), "--no-probes", "--format", form)
    code, text, loaded = run(environment, str(log), "--no-probes", "--format", form)
    assert (first[0], code) == (1, 1)
    assert without_seconds(text) == without_seconds(first[1])
    assert "memory.gpu-oom" in text
    assert loaded & HEAVY == set()
    assert [name for name in loaded if name.startswith("logdoc") and imports_typing(name)] == []


def imports_typing(name: str) -> bool:
    """Whether a module of logdoc imports `typing` at run time; that it is loaded proves nothing, as an editable
    install's own start-up file loads it."""
    path = getattr(importlib.import_module(name), "__file__", None)
    tree = ast.parse(Path(path).read_text(encoding="utf-8") if path else "")
    return any(getattr(node, "module", None) == "typing" for node in tree.body)


def without_seconds(text: str) -> str:
    return re.sub(r'"seconds": [\d.e-]+', "", text)


PLAIN = [
    ["a.log"],
    ["a.log", "b/", "-"],
    ["--format", "json", "a.log", "-q"],
    ["--format=slack", "--redact", "a.log", "--no-redact"],
    ["--lang=zh", "a.log", "--rules", "x", "--rules=y", "--facts", "f.json"],
    ["--baseline", "-", "a.log", "--python", "--long", "--why", "--ascii", "--exit-zero", "--no-probes"],
    ["--color", "never", "--quiet", "a.log"],
]
NOT_PLAIN = [
    ["--format", "jsno", "a.log"],
    ["--form", "json", "a.log"],
    ["--format"],
    ["-qx", "a.log"],
    ["--quiet=yes", "a.log"],
    ["-q=1", "a.log"],
    ["a.log", "--", "--odd-name"],
    ["--help"],
    ["--follow", "a.log"],
    ["--unknown", "a.log"],
    ["--=x", "a.log"],
]


@pytest.mark.parametrize("words", PLAIN)
def test_a_plain_command_line_asks_for_what_click_reads(words: list[str]) -> None:
    context = explain.make_context("explain", list(words))
    if "--lang=zh" not in words:
        context.params["language"] = None  # click has asked the locale already
    assert plain_request(words) == Request(**context.params)


@pytest.mark.parametrize("words", NOT_PLAIN)
def test_what_is_not_plainly_right_is_left_to_click(words: list[str]) -> None:
    assert plain_request(words) is None


def test_the_plain_options_are_the_declared_ones() -> None:
    declared = {option: one for one in explain.params for option in (*one.opts, *one.secondary_opts)}
    for option, (name, value) in FLAGS.items():
        one = declared[option]
        assert isinstance(one, click.Option)
        assert (one.name, one.is_flag, option in one.opts) == (name, True, value)
    for option, (name, choices) in VALUES.items():
        one = declared[option]
        assert (one.name, one.multiple) == (name, False)  # type: ignore[attr-defined]
        assert choices == (tuple(one.type.choices) if isinstance(one.type, click.Choice) else ())
    for option, name in LISTS.items():
        assert (declared[option].name, declared[option].multiple) == (name, True)  # type: ignore[attr-defined]
    rest = {name for name, one in declared.items() if isinstance(one, click.Option)} - {*FLAGS, *VALUES, *LISTS}
    assert rest == {"--follow"}


def test_the_names_of_all_commands() -> None:
    context = click.Context(commands)
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_an_input_in_a_commands_place_means_explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("", encoding="utf-8")
    (tmp_path / "rules").mkdir()
    assert explain_arguments(["log", "-q"]) == ["log", "-q"]
    assert explain_arguments(["-q", "log"]) == ["-q", "log"]
    assert explain_arguments(["explain", "x"]) == ["x"]
    assert explain_arguments(["s3://b/x"]) == ["s3://b/x"]
    for other in (["rules", "list"], ["--version"], ["-h"], ["--unknown"], ["nothing"]):
        assert explain_arguments(other) is None


def test_all_lazy_patterns_compile_to_what_re_makes() -> None:
    named = [module.name for module in pkgutil.walk_packages(logdoc.__path__, "logdoc.")]
    rooms = [name for name in named if not re.match(r"logdoc\.(tui|probes|mcp_server|__main__)", name)]
    values = [value for name in rooms for value in vars(importlib.import_module(name)).values()]
    values += [pattern for dialect in dialects.ALL for pattern in dialect.patterns]
    found = [one for one in values if isinstance(one, patterns.Lazy)]
    assert len(found) > 60
    for one in found:
        arguments = patterns._re_arguments(one.pattern, one.flags)
        plain = re.compile(one.pattern, one.flags)
        assert patterns._of_re(one.pattern, one.flags) == plain
        assert (arguments[1], arguments[3], arguments[4]) == (plain.flags, plain.groups, dict(plain.groupindex))


def test_kept_patterns_find_what_fresh_ones_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget(monkeypatch)
    text = "rank 3: lost\nrank 4: found"
    fresh = guarded(r"^rank (?P<rank>\d+): (?P<what>f\w+)$"), lazily(r"(?P<n>\d)(?=: l)", re.IGNORECASE)
    said = [(one.search(text).span(), one.search(text).groupdict()) for one in fresh]
    keep_patterns()
    forget(monkeypatch)
    monkeypatch.setattr(patterns, "_re_arguments", None)
    monkeypatch.setitem(sys.modules, "regex", None)
    again = guarded(r"^rank (?P<rank>\d+): (?P<what>f\w+)$"), lazily(r"(?P<n>\d)(?=: l)", re.IGNORECASE)
    assert [(one.search(text).span(), one.search(text).groupdict()) for one in again] == said


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_new", {})
    patterns._earlier.cache_clear()
    guarded.cache_clear()


def test_no_hot_room_uses_the_slow_dataclass() -> None:
    """The standard library's is for rooms that a small log does not enter."""
    root = Path(logdoc.__file__).parent
    slow = {"tui", "probes", "runner", "flight_recorder"}
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        if room in slow or path.name in ("mcp_server.py", "value.py") or path.name in ("templates.py", "coverage.py"):
            continue
        names = {
            alias.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
            for alias in node.names
        }
        assert "dataclass" not in names, path
