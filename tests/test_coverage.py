"""The catalogue of messages: nearly every one leads to its rule, and the rest is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet
from logdoc.rulebase.coverage import Coverage, coverage, read_table
from logdoc.rulebase.templates import Slots, appearances, fillings
from logdoc.types.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
TABLES = ("nccl", "torch")
LEAST = 0.98
DOCUMENT = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def measured(engine: Engine) -> dict[str, Coverage]:
    return {name: coverage(read_table(catalogue(name)), engine.recognise) for name in TABLES}


def catalogue(name: str) -> Path:
    return ROOT / "rules" / "catalog" / f"{name}.tsv"


@pytest.mark.parametrize("name", TABLES)
def test_the_rules_know_the_catalogue(name: str, measured: dict[str, Coverage]) -> None:
    assert measured[name].share >= LEAST
    assert len(measured[name].elsewhere) <= (1 - LEAST) * measured[name].rows


@pytest.mark.parametrize("name", TABLES)
def test_the_document_lists_exactly_the_exceptions(name: str, measured: dict[str, Coverage]) -> None:
    part = DOCUMENT.split("## Not recognised")[1].split("\n## ")[0]
    listed = {message for message, table in re.findall(r"^- `(.+)` \((\w+)\): \S", part, re.MULTILINE) if table == name}
    assert listed == {message.template for message in measured[name].unknown}


@pytest.mark.parametrize("name", TABLES)
def test_the_document_states_the_measured_figures(name: str, measured: dict[str, Coverage]) -> None:
    found = measured[name]
    own = found.rows - len(found.unknown) - len(found.elsewhere)
    figures = [found.rows, own, len(found.elsewhere), len(found.unknown), f"{100 * found.share:.1f} %"]
    assert f"| {name}.tsv | {' | '.join(map(str, figures))} |" in DOCUMENT


@pytest.mark.parametrize("name", TABLES)
def test_the_catalogue_names_rules_that_exist(name: str, rule_set: RuleSet) -> None:
    assert {message.label for message in read_table(catalogue(name))} <= set(rule_set.rules)


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_catalogue_is_whole(name: str) -> None:
    lines = [line for line in catalogue(name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    width = lines[0].count("\t")
    assert [line for line in lines if line.count("\t") != width or line.endswith("\t")] == []


def test_a_choice_is_tried_with_each_of_its_words() -> None:
    assert fillings("signal: {Killed|Bus error}") == ["signal: Killed", "signal: Bus error"]


def test_optional_text_is_tried_with_and_without_it() -> None:
    assert fillings("failed{. This is an internal error} now") == [
        "failed. This is an internal error now",
        "failed now",
    ]


def test_a_set_in_braces_keeps_them() -> None:
    assert fillings("missing ranks: {{r}}") == ["missing ranks: {3}"]


def test_what_stands_before_a_hole_tells_its_value() -> None:
    texts = fillings("Call to bind failed: %s")
    assert "Call to bind failed: Address already in use" in texts
    assert all("%" not in text for text in texts)


def test_a_named_call_of_the_verbs_file_is_a_verb() -> None:
    texts = fillings("Call to {name} failed with error %s errno %d", Slots(file="src/misc/ibvwrap.cc"))
    assert all(text.startswith("Call to ibv_") for text in texts)


def test_a_message_wears_the_prefixes_of_its_releases_only() -> None:
    old = appearances("no route", Slots(file="src/net.cc", line="7", level="WARN", since="2.3.5", until="2.18.6"))
    new = appearances("no route", Slots(file="src/net.cc", line="7", level="WARN", since="2.30.7"))
    assert [text.strip() for text in old[0]] == ["node1:311:402 [0] net.cc:7 NCCL WARN no route"]
    assert any("(ncclFunction) NCCL WARN no route" in text for text in new[0])


def test_an_exception_of_torch_is_tried_as_a_traceback_with_its_rank() -> None:
    texts = appearances("ValueError: port must be free", Slots(component="c10d", since="2.5"))[0]
    assert any(text.splitlines()[-1] == "[rank3]: ValueError: port must be free" for text in texts)


def test_a_message_missed_in_one_form_is_not_recognised(tmp_path: Path) -> None:
    table = tmp_path / "later.tsv"
    table.write_text("message\tcomponent\trule\nwidget {a|b}\tc10d\tx.y\n", encoding="utf-8")
    found = coverage(read_table(table), lambda text: ({"x.y"}, set()) if "widget a" in text else (set(), set()))
    assert (found.rows, len(found.unknown), found.share) == (1, 1, 0.0)


def test_another_rule_than_the_tables_is_told_apart(tmp_path: Path) -> None:
    table = tmp_path / "later.tsv"
    table.write_text("# a remark\nmessage\ttag\nfirst\tx.y\nsecond\t-\n", encoding="utf-8")
    found = coverage(read_table(table), lambda text: ({"x.other"}, set()))
    assert [(message.template, rules) for message, rules in found.elsewhere] == [("first", ("x.other",))]


def test_context_counts_for_the_tables_own_rule_only(tmp_path: Path) -> None:
    table = tmp_path / "later.tsv"
    table.write_text("message\trule\nfirst\tx.y\nsecond\tx.z\n", encoding="utf-8")
    found = coverage(read_table(table), lambda text: (set(), {"x.y"}))
    assert [message.template for message in found.unknown] == ["second"]


@pytest.mark.parametrize("content", [b"", b"a\tb\n1\t2\n", b"\xff\xfe\x00"])
def test_what_is_no_table_is_refused(content: bytes, tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_bytes(content)
    with pytest.raises(InputError):
        read_table(table)
