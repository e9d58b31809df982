"""The library: `import logdoc` is light, `logdoc.explain` takes what the command takes, and both say the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import logdoc
from logdoc.probes.collect.gpu import summary
from logdoc.probes.collect.machine import Sheet
from logdoc.probes.sheets import FactSheet
from logdoc.types.finding import Fact
from tests.clikit import CRASH, run
from tests.rulekit import write_rule

SECRET = "0123456789abcdef0123456789abcdef01234567"


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_importing_logdoc_imports_nothing_heavy() -> None:
    heavy = (
        "pydantic",
        "rich",
        "textual",
        "yaml",
        "regex",
        "click",
        "hyperscan",
        "psutil",
        "logdoc.engine",
        "logdoc.types",
    )
    found = python(f"import sys, logdoc; print([name for name in {heavy!r} if name in sys.modules])")
    assert found == "[]"


def test_the_public_names_are_there_and_documented() -> None:
    assert set(logdoc.__all__) <= set(dir(logdoc))
    for name in logdoc.__all__:
        assert (getattr(logdoc, name).__doc__ or "").strip(), name
    assert logdoc.Report.__name__ == "Report"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        logdoc.nothing  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (
        python("import logdoc, pathlib; print((pathlib.Path(logdoc.__file__).parent / 'py.typed').is_file())") == "True"
    )


def test_a_path_a_text_and_bytes_say_the_same(crash: Path) -> None:
    reports = [logdoc.explain(log) for log in (str(crash), crash, CRASH, CRASH.encode())]
    assert {report.outcome for report in reports} == {"cause-found"}
    assert {report.headline for report in reports} == {reports[0].headline}
    assert [report.input.sources[0].name for report in reports] == [str(crash), str(crash), "<text>", "<text>"]


def test_several_logs_are_one_job(tmp_path: Path, crash: Path) -> None:
    (tmp_path / "other.log").write_text("[rank0]: step 1\n")
    report = logdoc.explain(crash, tmp_path / "other.log", "[rank2]: step 1\n", b"[rank3]: step 1\n")
    assert [source.name for source in report.input.sources][2:] == ["<text 1>", "<text 2>"]
    assert [row.rank for row in report.ranks.table] == [0, 1, 2, 3]
    assert logdoc.explain(tmp_path).ranks.seen == logdoc.explain(str(tmp_path / "*.log")).ranks.seen == 2


def test_the_language_of_the_texts() -> None:
    assert "这样做" in logdoc.rendered(logdoc.explain(CRASH, language="zh"), "text")
    with pytest.raises(logdoc.InputError, match="'fr' is not a language"):
        logdoc.explain(CRASH, language="fr")  # type: ignore[arg-type]


def test_what_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(logdoc.InputError, match=r"missing\.log"):
        logdoc.explain(tmp_path / "missing.log")
    with pytest.raises(logdoc.InputError, match="nothing to read"):
        logdoc.explain()
    with pytest.raises(logdoc.InputError, match="RuntimeError"):
        logdoc.explain("RuntimeError: one line is a path")
    assert issubclass(logdoc.InputError, logdoc.LogdocError)


def test_own_rules_and_an_engine_for_many_logs(tmp_path: Path) -> None:
    write_rule(tmp_path, "site.fire", "match: {seen: {regex: 'Fire in the rack', strength: conclusive}}")
    log = "step 1\n[rank3]: Fire in the rack\n"
    assert logdoc.explain(log).outcome != "cause-found"
    assert logdoc.explain(log, rules=[tmp_path]).diagnoses[0].rule == "site.fire"
    engine = logdoc.load_engine([str(tmp_path)])
    reports = [logdoc.explain(log, engine=engine) for _ in range(2)]
    assert [report.diagnoses[0].rule for report in reports] == ["site.fire", "site.fire"]
    (tmp_path / "broken.yaml").write_text("id: [")
    with pytest.raises(logdoc.RulesError, match=r"broken\.yaml"):
        logdoc.load_engine([tmp_path])


TIMEOUT = (
    "[rank{rank}]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=9, "
    "NumelOut=9, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
)


def test_the_rank_table_tells_where_each_rank_hung_and_who_said_nothing() -> None:
    log = "[rank0]: world_size=4\n[rank1]: step 1\n"
    log += TIMEOUT.format(rank=0, seq=12, op="ALLREDUCE") + TIMEOUT.format(rank=1, seq=11, op="BROADCAST")
    report = logdoc.explain(log + TIMEOUT.format(rank=2, seq=12, op="ALLREDUCE"))
    rows = [(row.rank, row.state, row.last_collective) for row in report.ranks.table]
    waits = [(0, "waiting", "ALLREDUCE #12"), (1, "waiting", "BROADCAST #11"), (2, "waiting", "ALLREDUCE #12")]
    assert rows == [*waits, (3, "silent", None)]
    assert (report.ranks.silent, report.ranks.seen) == ((3,), 3)
    page = logdoc.rendered(report, "markdown")
    assert "| Last collective |" in page
    assert "BROADCAST" in page


def sheet(value: float) -> FactSheet:
    fact = Fact(id="rack.temperature", value=value, origin="gpu-list@node-1", host="node-1")
    return FactSheet(host="node-1", facts=(fact,), errors=(), python="python", source="live")


def test_the_cards_that_the_collector_lists_are_told_one_by_one(tmp_path: Path) -> None:
    write_rule(
        tmp_path,
        "site.fire",
        "match: {seen: {regex: 'Fire in the rack'}}\nprobes: [{use: gpu-list, confirms: {fact: gpu.count, gte: 1}}]",
    )
    collected = Sheet("gpu-list")
    summary(
        collected, [{"index": 0, "name": "NVIDIA A100-SXM4-80GB"}, {"index": 1, "name": "NVIDIA A100-SXM4-80GB"}], ""
    )
    facts = tuple(Fact(id=fact["id"], value=fact["value"], origin="gpu-list@node-1") for fact in collected.facts)
    found = FactSheet(host="node-1", facts=facts, errors=(), python="python", source="live")
    report = logdoc.explain("[rank3]: Fire in the rack\n", rules=[tmp_path], probes=lambda names: found)
    assert report.facts.gpus == ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB")
    assert "gpu.names" not in report.facts.other
    assert logdoc.rendered(report, "html").count("NVIDIA A100-SXM4-80GB") == 1


def test_probes_are_asked_only_if_wanted_and_facts_stand_in_for_them(tmp_path: Path) -> None:
    write_rule(
        tmp_path,
        "site.fire",
        "match: {seen: {regex: 'Fire in the rack'}}\n"
        "probes: [{use: gpu-list, confirms: {fact: rack.temperature, gt: 90}, strength: conclusive}]",
    )
    log, asked = "[rank3]: Fire in the rack\n", []

    def probe(names: object) -> FactSheet:
        asked.append(names)
        return sheet(400.0)

    assert logdoc.explain(log, rules=[tmp_path]).diagnoses[0].probes == ()
    report = logdoc.explain(log, rules=[tmp_path], probes=probe)
    assert len(asked) == 1
    assert report.diagnoses[0].probes[0].outcome == "confirms"
    facts = tmp_path / "facts.json"
    written = {
        "schema": "logdoc.facts/v1",
        "host": "node-1",
        "facts": [{"id": "rack.temperature", "value": 400, "probe": "gpu-list"}],
    }
    facts.write_text(json.dumps(written))
    report = logdoc.explain(log, rules=[tmp_path], facts=[facts], probes=probe)
    assert len(asked) == 1
    assert report.diagnoses[0].probes[0].outcome == "confirms"


def test_probes_true_looks_at_this_machine(tmp_path: Path) -> None:
    write_rule(
        tmp_path,
        "site.fire",
        "match: {seen: {regex: 'Fire in the rack'}}\nprobes: [{use: gpu-list, confirms: {fact: gpu.count, known: true}}]",
    )
    report = logdoc.explain("Fire in the rack\n", rules=[tmp_path], probes=True, python=sys.executable)
    (line,) = report.diagnoses[0].probes
    assert (line.id, line.outcome) == ("gpu-list", "confirms")


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "slack", "teams", "html", "termination"])
def test_the_command_prints_what_the_library_renders(crash: Path, form: str) -> None:
    code, out, _ = run("explain", "--no-probes", str(crash), "--format", form)
    report = logdoc.explain(crash)
    assert code == 1
    timed = (
        json.loads(run("explain", "--no-probes", str(crash), "--format", "json")[1])["input"]["seconds"]
        if form == "json"
        else 0.0
    )
    if form in ("json", "jsonl"):
        mine = json.loads(out.splitlines()[-1])["report"] if form == "jsonl" else json.loads(out)
        mine["input"]["seconds"] = report.input.seconds
        assert mine == json.loads(json.dumps(asdict(report)))
        assert timed >= 0.0
    else:
        assert out == logdoc.rendered(report, form)


def test_the_command_redacts_where_others_read_and_where_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "crash.log"
    path.write_text(f"[rank1]: ValueError: WANDB_API_KEY={SECRET} refused at 10.1.2.3:29500\n")
    for form, hides in (("text", False), ("json", False), ("markdown", True), ("slack", True), ("html", True)):
        for options, hidden in (((), hides), (("--redact",), True), (("--no-redact",), False)):
            out = run("explain", "--no-probes", str(path), "--format", form, *options)[1]
            assert (SECRET in out) is not hidden, (form, options)
            assert ("10.1.2.3" in out) is not hidden
            assert "29500" in out


def test_redact_and_rendered_of_a_report(crash: Path) -> None:
    report = replace(logdoc.explain(crash), warnings=("see https://u:hunter22x@host.corp.example.net/x",))
    assert logdoc.redact(report).warnings == ("see https://<token>@<host-1>/x",)
    assert "hunter22x" not in logdoc.rendered(report, "markdown")
    assert "hunter22x" in logdoc.rendered(report, "markdown", redacted=False)
    with pytest.raises(logdoc.InputError, match="pdf is not a format"):
        logdoc.rendered(report, "pdf")


def test_standard_input(crash: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import logdoc; print(logdoc.explain('-').headline)"],
        input=CRASH.encode(),
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ},
    )
    assert done.stdout.decode().strip() == logdoc.explain(crash).headline
