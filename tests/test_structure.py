"""The house keeps its promises: small modules and functions, no rule named in Python, no path of some machine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from logdoc.rulebase import RuleSet

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "logdoc").rglob("*.py"))
TEXT_SUFFIXES = {".py", ".yaml", ".yml", ".md", ".toml", ".tsv", ".json", ".txt", ".sh", ".cmd", ""}
LONGEST_MODULE, LONGEST_FUNCTION = 400, 50


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_fits_in_a_head(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= LONGEST_MODULE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_no_python_names_a_rule(rule_set: RuleSet) -> None:
    named = [
        f"{path.name}: {rule_id}"
        for path in MODULES
        for rule_id in rule_set.rules
        if re.search(rf"[\"']{re.escape(rule_id)}[\"']", path.read_text(encoding="utf-8"))
    ]
    assert not named


def test_nothing_names_a_path_of_the_machine_it_was_written_on() -> None:
    own = re.compile("/" + r"work/(?:main|shared|venv)\b|/" + r"root/(?!\.)|/" + r"opt/pypi")
    listed = [path for path in ROOT.rglob("*") if path.is_file() and path.suffix in TEXT_SUFFIXES]
    kept = [path for path in listed if not _is_scratch(path.relative_to(ROOT))]
    found = [str(path) for path in kept if own.search(path.read_text(encoding="utf-8", errors="replace"))]
    assert not found


def _is_scratch(path: Path) -> bool:
    """Caches and environments that no commit holds."""
    return any(
        (part.startswith(".") and part != ".ci") or part in ("__pycache__", "build", "dist") for part in path.parts
    )
