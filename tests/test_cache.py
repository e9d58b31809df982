"""Kept rules equal read ones; what is stale, damaged or unwritable costs time and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logdoc import kept
from logdoc.kept import data, keep
from logdoc.kept import kept as kept_content
from logdoc.rulebase import RuleSet, build_index, load_rules, ready_rules
from logdoc.rulebase import cache as cache_module
from logdoc.rulebase.compiled import from_plain, to_plain
from logdoc.rulebase.observations import observations
from logdoc.scanner.engines import HyperscanScanner
from logdoc.types.errors import RulesError
from tests.rulekit import write_rule


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(kept, "_folder", lambda: str(folder))
    return folder


def small(root: Path, word: str = "drowned") -> Path:
    write_rule(root, "a.b", f"match: {{seen: {{regex: '{word} (?P<n>\\\\d+)', not: [dry]}}}}\nwhen: {{seen: seen}}")
    write_rule(root, "a.old", "status: retired\nmatch: {seen: {regex: 'very old'}}")
    return root


def refuse_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(_: object) -> RuleSet:
        raise AssertionError("the rules were read again")

    monkeypatch.setattr(cache_module, "_loaded", loaded)


def test_every_rule_survives_being_written(rule_set: RuleSet) -> None:
    assert all(from_plain(to_plain(rule)) == rule for rule in rule_set.rules.values())


def test_kept_rules_are_the_read_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = small(tmp_path / "rules")
    first = ready_rules([root])
    refuse_to_load(monkeypatch)
    again, read = ready_rules([root]), load_rules([root])
    for found in (first, again):
        assert dict(found.rules) == dict(read.rules)
        assert (found.digest, found.overridden, found.active()) == (read.digest, read.overridden, read.active())
        assert list(found.lazily()) == read.active()
        assert found.some(["a.b", "a.none"]) == [read["a.b"]]
    index, wanted = again.index, build_index([*read.active(), *observations().rules])
    assert index is not None
    assert (index.exact, index.caseless) == (wanted.exact, wanted.caseless)
    for rows, others in (
        (index.exact_entries, wanted.exact_entries),
        (index.caseless_entries, wanted.caseless_entries),
    ):
        assert [[(e.rule_id, e.name, e.is_evidence, e.signature) for e in row] for row in rows] == [
            [(e.rule_id, e.name, e.is_evidence, e.signature) for e in row] for row in others
        ]


def test_a_changed_new_or_deleted_file_is_noticed(tmp_path: Path) -> None:
    root = small(tmp_path / "rules")
    digests = [ready_rules([root]).digest]
    small(root, "sunk deep")
    digests.append(ready_rules([root]).digest)
    write_rule(root, "a.c", "match: {seen: {regex: 'lost'}}")
    digests.append(ready_rules([root]).digest)
    (root / "a" / "old.yaml").unlink()
    digests.append(ready_rules([root]).digest)
    assert len(set(digests)) == 4


def test_a_pack_that_replaces_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = [small(tmp_path / "rules"), tmp_path / "pack"]
    write_rule(roots[1], "a.b", "match: {seen: {regex: 'replaced'}}")
    ready_rules(roots)
    refuse_to_load(monkeypatch)
    found = ready_rules(roots)
    assert (found.overridden, found["a.b"].match["seen"].regex) == (("a.b",), "replaced")
    assert found["a.b"].path == str(roots[1] / "a" / "b.yaml")


def test_faulty_rules_are_said_each_time(tmp_path: Path) -> None:
    write_rule(tmp_path / "rules", "a.b", "match: {seen: {regexp: 'drowned'}}")
    for _ in range(2):
        with pytest.raises(RulesError, match="regexp"):
            ready_rules([tmp_path / "rules"])


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign", "folder"])
def test_a_damaged_copy_is_ignored(tmp_path: Path, own_cache: Path, damage: str) -> None:
    root = small(tmp_path / "rules")
    wanted = ready_rules([root]).digest
    for path in own_cache.iterdir():
        content = path.read_bytes()
        path.unlink()
        if damage == "folder":
            path.mkdir()
            continue
        changed = bytearray(content)
        changed[-20] ^= 1
        damaged = {"cut": content[:-5], "flip": bytes(changed), "empty": b"", "foreign": b"\x80\x04cos\nsystem\n."}
        path.write_bytes(damaged[damage])
    found = ready_rules([root])
    assert (found.digest, found["a.b"].match["seen"].not_) == (wanted, ("dry",))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kept, "_folder", lambda: str(tmp_path / "file" / "below"))
    assert set(ready_rules([small(tmp_path / "rules")]).rules) == {"a.b", "a.old"}


def test_the_built_set_is_taken_while_its_files_have_their_sizes(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, built = small(tmp_path / "rules"), str(tmp_path / "built")
    monkeypatch.setattr(cache_module, "_built_path", lambda: built)
    cache_module.build(root)
    moved = root.rename(tmp_path / "installed")
    for path in moved.rglob("*.yaml"):
        os.utime(path, (1, 1))
    with monkeypatch.context() as patched:
        refuse_to_load(patched)
        assert ready_rules([moved])["a.b"].path == str(moved / "a" / "b.yaml")
    small(moved, "sunk deep")
    assert ready_rules([moved])["a.b"].match["seen"].regex.startswith("sunk deep")


def test_a_data_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("a\n1\n", encoding="utf-8")
    parsed: list[str] = []
    parse = data.parse
    monkeypatch.setattr(data, "parse", lambda path: parsed.append(path) or parse(path))
    assert [data.parsed_once(str(path)) for _ in range(3)] == [[{"a": "1"}]] * 3
    assert parsed == [str(path)]
    path.write_text("a\n22\n", encoding="utf-8")
    assert data.parsed_once(str(path)) == [{"a": "22"}]


@pytest.mark.parametrize("path", sorted(Path(data.DATA).iterdir()), ids=lambda path: path.name)
def test_the_wheel_reads_its_data_files_as_the_checkout_does(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.suffix not in data.PARSERS:
        assert path.suffix in (".txt", ".css")
        assert data.text(path.name)
        return
    installed = tmp_path / path.name
    installed.write_bytes(path.read_bytes())
    wanted = data.parsed_once(str(installed))
    data.build(str(path), str(installed) + data.BUILT_SUFFIX)
    monkeypatch.setattr(data, "parse", None)  # only the built form is left
    monkeypatch.setattr(data, "kept_value", None)
    assert data.parsed_once(str(installed)) == wanted


def test_a_word_of_a_data_file_stays_a_word() -> None:
    assert {kind["waits"] for kind in data.document("stack_frames.yaml")["kinds"].values()} <= {
        "peers",
        "maybe",
        "no",
    }


def test_a_database_for_another_cpu_is_compiled_again(own_cache: Path) -> None:
    literals = [b"drowned", b"lost at sea"]
    wanted = HyperscanScanner(literals).ends(b"drowned and lost at sea")
    (path,) = own_cache.iterdir()
    key = path.read_bytes().partition(b"\n")[0].split(b" ", 2)[2].decode()
    keep(path.name, key, b"not a database")
    assert kept_content(path.name, key) == b"not a database"
    assert HyperscanScanner(literals).ends(b"drowned and lost at sea") == wanted


def test_the_package_and_its_command_start_light(tmp_path: Path) -> None:
    heavy = "{'torch', 'textual', 'pydantic', 'rich', 'pynvml'} & set(sys.modules)"
    for code in ("import logdoc", "import logdoc.engine", "import logdoc.rulebase, logdoc.scanner, logdoc.reader"):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; {code}; sys.exit(' '.join({heavy}) or 0)"],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, ""), code


def test_a_warm_start_validates_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom logdoc.rulebase import ready_rules, rule_roots\nfrom logdoc.engine import Engine\n"
        "Engine(ready_rules(rule_roots()[:1]))\n"
        "print(*sorted({'pydantic', 'logdoc.rulebase.load'} & set(sys.modules)))"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    cold, warm = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True).stdout
        for _ in range(2)
    )
    assert "logdoc.rulebase.load" in cold
    assert not {"pydantic", "logdoc.rulebase.load"} & set(warm.split())
