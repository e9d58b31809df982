"""The whole way: outcomes, cause before symptom, attempts, ranks, verdicts of watchdogs, and never a traceback."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from logdoc.engine import Engine, Options
from logdoc.reader import skim
from logdoc.render import render_json
from logdoc.render.text import TextOptions, render_text
from logdoc.scanner import ranges
from logdoc.scanner.ranges import Orders, Scanned, Task, alone
from logdoc.schemas import report_schema
from logdoc.sources import discover, source_from_bytes
from logdoc.types.errors import InputError
from tests.rulekit import engine_of

DUMP = pickle.dumps({"version": "2.10", "pg_config": {}, "entries": []}, 2)
VALIDATOR = Draft202012Validator(report_schema())


def check(report_json: str) -> dict[str, object]:
    value = json.loads(report_json)
    VALIDATOR.validate(value)
    assert isinstance(value, dict)
    return value


@pytest.fixture
def small(tmp_path: Path) -> Engine:
    return engine_of(
        tmp_path,
        a__fire="match: {seen: {regex: '^Fire in the rack', strength: conclusive}}\nrestart: replace-node",
        a__water="match: {seen: {regex: '^Water in the rack'}}\nmasks: [a.damp]",
        a__damp="match: {seen: {regex: 'in the rack', strength: weak}}",
        a__gone="symptom:match: {seen: {regex: 'peer went away'}}\nexplained_by: [a.*]\nrank_state: waiting",
        a__late="match: {seen: {regex: 'collective verdict: rank (?P<rank>\\d+) never', from: [verdict]}}",
        a__calm="noise:match: {seen: {regex: 'ERROR: do not worry'}}",
    )


def test_a_healthy_log(small: Engine) -> None:
    report = small.explain_text("step 1\nstep 2\n2024-01-01 00:00:00 INFO ok\n")
    assert (report.outcome, report.diagnoses, report.first_abnormal) == ("healthy", (), None)


def test_scary_noise_is_healthy_and_named(small: Engine) -> None:
    report = small.explain_text("ERROR: do not worry\n")
    assert (report.outcome, report.noise) == ("healthy", ("a.calm",))


def test_an_unknown_failure_is_not_recognised_and_quoted(small: Engine) -> None:
    report = small.explain_text("fine\n[rank2]: FrobnicationError: the frob is gone\n")
    assert report.outcome == "unrecognised"
    assert report.first_abnormal is not None
    assert (report.first_abnormal.line, report.first_abnormal.rank) == (2, 2)
    assert "FrobnicationError" in report.headline


def test_a_symptom_alone_is_the_answer_and_says_what_to_collect(small: Engine) -> None:
    report = small.explain_text("[rank0]: peer went away\n")
    assert report.outcome == "symptoms-only"
    assert report.diagnoses[0].rule == "a.gone"
    assert report.collect_next


def test_the_cause_is_first_even_when_it_is_printed_last(small: Engine) -> None:
    report = small.explain_text("[rank0]: peer went away\n[rank1]: peer went away\n[rank3]: Fire in the rack\n")
    assert report.outcome == "cause-found"
    assert next(one.rule for one in report.diagnoses if one.kind == "cause") == "a.fire"
    assert report.diagnoses[0].explains == ("a.gone",)
    assert report.diagnoses[0].origin.rank == report.ranks.first_failure == 3
    assert {row.rank: row.state for row in report.ranks.table} == {0: "waiting", 1: "waiting", 3: "failed"}


def test_of_two_causes_the_first_wins_and_the_vaguer_steps_back(small: Engine) -> None:
    report = small.explain_text("[rank1]: Water in the rack\n[rank1]: Fire in the rack\n")
    assert report.diagnoses[0].rule == "a.water"
    assert "a.damp" not in {one.rule for one in report.diagnoses}
    assert "a.damp" in {entry.rule for entry in report.timeline}


def test_the_node_to_leave_out_is_the_one_the_scheduler_names(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path, a__lost="match: {seen: {regex: 'Lost (?P<node>\\S+)', strength: conclusive}}\nrestart: replace-node"
    )
    report = engine.explain_text("(Worker pid=7, ip=head-1) Lost cn14\n")
    assert (report.restart.advice, report.restart.exclude_hosts) == ("replace-node", ("cn14",))


def test_the_last_attempt_is_explained_first(small: Engine) -> None:
    agent = "E1130 07:35:0{}.044000 4854 torch/distributed/elastic/multiprocessing/api.py:1002] "
    failed = "failed (exitcode: 1) local_rank: 1 (pid: 4860) of binary: python\n"
    text = f"Fire in the rack\n{agent.format(1)}{failed}Water in the rack\n{agent.format(9)}{failed}"
    report = small.explain_text(text)
    assert report.diagnoses[0].rule == "a.water"


WATCHDOG = (
    "[rank{r}]:[E1206 18:44:{s}.99 ProcessGroupNCCL.cpp:629] [Rank {r}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600010 milliseconds "
    "before timing out.\n"
)


def test_watchdogs_together_tell_the_rank_that_never_came(small: Engine) -> None:
    steps = "".join(f"[rank{rank}]: step 1\n" for rank in range(8))
    text = steps + "".join(WATCHDOG.format(r=rank, s=10 + rank) for rank in range(8) if rank != 5)
    report = small.explain_text(text)
    assert report.diagnoses[0].rule == "a.late"
    assert report.diagnoses[0].origin.rank == 5


def test_ranks_in_files_of_their_own_are_ordered_by_their_clocks(small: Engine, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank_0.log").write_text("2024-01-01 00:00:09 ERROR Water in the rack\n")
    (logs / "rank_1.log").write_text("2024-01-01 00:00:02 ERROR Fire in the rack\n")
    report = small.explain(discover([str(logs)]).sources)
    assert (report.diagnoses[0].rule, report.diagnoses[0].origin.rank) == ("a.fire", 1)


def test_the_same_input_gives_the_same_bytes(small: Engine) -> None:
    text = "[rank0]: peer went away\n[rank3]: Fire in the rack\nNCCL_DEBUG set by environment to INFO\n"
    outputs = []
    for _ in range(2):
        value = json.loads(render_json(small.explain_text(text)))
        value["input"]["seconds"] = 0
        outputs.append(json.dumps(value))
    assert outputs[0] == outputs[1]


HOSTILE = st.one_of(
    st.binary(max_size=2000),
    st.lists(
        st.sampled_from(
            [
                *("[rank3]: ", "Traceback (most recent call last):\n", '  File "x", line 1\n', "RuntimeError: ", "\r"),
                *("\x1b[31m", "NCCL WARN ", "n:1:2 [0] ", "\n", "99%|#| 9/9 [00:01<00:00, 1it/s]", '{"log": "'),
                *("[red]", "ChildFailedError:\n", "=" * 20, "Root Cause", "[0]:\n", "  exitcode  : -9 (pid: 1)\n", "\x00"),
                *("\ufffd", "\u202e", "CUDA out of memory. ", "Tried to allocate 2.00 GiB"),
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=X, ",
            ]
        ),
        max_size=60,
    ).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(HOSTILE, st.sampled_from(["en", "zh"]))
def test_any_bytes_give_a_valid_report(engine: Engine, data: bytes, language: str) -> None:
    report = engine.explain([source_from_bytes("log", data)], Options(language=language))
    check(render_json(report))
    for long in (False, True):
        text = render_text(report, TextOptions(width=80, long=long, why=long))
        assert text.endswith("\n")
        assert long or len(text.splitlines()) <= 25


REPEATED = ("99%|#| 9/9 [00:01<00:00, 1it/s]", "9%|#| 9/9 [1it]\r", "[rank3]: ", "[default1]:", "(pid=7) ", '  File "x", line 1',
            '[{"msg": ', " ", "\t", "\x1b[A", "a.", "File \"x\", line 1, in f ", "[PG 0 Rank 3] ", "\n", "=" * 9, "┃ ", "> ")  # fmt: skip


@pytest.mark.parametrize("part", REPEATED)
def test_what_comes_thousands_of_times_is_read_to_its_end(small: Engine, part: str) -> None:
    report = small.explain_text(f"start{part * 6_000}\nFire in the rack\n")
    assert report.diagnoses[0].rule == "a.fire"


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_cutting_and_shuffling_a_log_never_breaks_the_report(engine: Engine, data: st.DataObject) -> None:
    lines = [f"[rank{rank}]: step {step}\n" for step in range(3) for rank in range(4)]
    lines += [WATCHDOG.format(r=rank, s=10 + rank) for rank in range(3)]
    lines += ["[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"]
    shuffled = data.draw(st.permutations(lines))
    end = data.draw(st.integers(0, len("".join(shuffled))))
    check(render_json(engine.explain_text("".join(shuffled)[:end])))


def test_a_hostile_dump_is_refused_in_a_line_and_alone_is_unreadable_input(small: Engine, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(tmp_path / "executed"),))

    dump = tmp_path / "nccl_trace_rank_0"
    dump.write_bytes(pickle.dumps({"version": "2.10", "entries": [Evil()]}))
    with pytest.raises(InputError, match="refused"):
        small.explain(discover([str(dump)]).sources)
    (tmp_path / "job.log").write_text("Fire in the rack\n")
    report = small.explain(discover([str(tmp_path)]).sources)
    assert report.diagnoses[0].rule == "a.fire"
    assert any("refused" in warning for warning in report.warnings)
    assert not (tmp_path / "executed").exists()


def test_a_log_that_goes_away_before_it_is_read_is_a_warning(small: Engine, tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "nccl_trace_rank_0", "c.log.gz"):
        (tmp_path / name).write_bytes(
            gzip.compress(b"x\n") if name.endswith("gz") else DUMP if "trace" in name else b"x\n"
        )
    (tmp_path / "d.log").write_text("Fire in the rack\n")
    found = discover([str(tmp_path)]).sources
    for name in ("a.log", "nccl_trace_rank_0", "c.log.gz"):
        (tmp_path / name).unlink()
    report = small.explain(found)
    assert report.diagnoses[0].rule == "a.fire"
    gone = [f"{tmp_path}/{name}: No such file or directory" for name in ("a.log", "c.log.gz", "nccl_trace_rank_0")]
    assert sorted(report.warnings) == gone
    assert [source.truncated for source in report.input.sources] == [True, False, True, False, True]
    for name in ("b.log", "d.log"):
        (tmp_path / name).unlink()
    with pytest.raises(InputError) as told:
        small.explain(found)
    assert str(told.value).count("No such file") == len(found)


@pytest.mark.parametrize("gone", [("big.log",), ("big.log", "packed.log.gz"), ("packed.log.gz", "other.log")])
def test_of_large_logs_too(
    small: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    monkeypatch.setattr(skim, "LARGE", 1000)
    monkeypatch.setattr(skim, "OPENING_OF_LARGE", 100)
    text = b"step 1\n" * 500
    for name in ("big.log", "other.log"):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(text))
    (tmp_path / "z.log").write_bytes(text + b"Fire in the rack\n")
    found = discover([str(tmp_path)]).sources
    for name in gone:
        (tmp_path / name).unlink()
    report = small.explain(found)
    assert (report.diagnoses[0].rule, report.diagnoses[0].origin.line) == ("a.fire", 501)
    assert {source.name for source in report.input.sources if source.truncated} == {
        f"{tmp_path}/{name}" for name in gone
    }
    assert all(any(name in warning for warning in report.warnings) for name in gone)
    for source in found:
        Path(str(source.location)).unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"z.log: cannot be read any more"):
        small.explain(found)


@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
@pytest.mark.parametrize("text", [b"", b"\n", b"x", b"x\n", b"step 1\nstep 2"])
def test_the_last_line_counts_though_nothing_ends_it(
    small: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: bytes
) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "z.log").write_bytes(b"Fire in the rack\n" * 100)
    found = discover([str(tmp_path / name), str(tmp_path / "z.log")]).sources
    lines = [[source.lines for source in small.explain(found).input.sources]]
    monkeypatch.setattr(skim, "LARGE", 100)
    lines.append([source.lines for source in small.explain(found).input.sources])
    assert lines[0] == lines[1] == [len(text.splitlines()), 100]


def test_a_large_log_that_goes_away_while_it_is_scanned_is_told(
    small: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skim, "LARGE", 1000)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 1000)
    monkeypatch.setattr(ranges, "BLOCK_BYTES", 100)
    log = tmp_path / "big.log"
    log.write_bytes(b"step 1\n" * 500)
    (tmp_path / "z.log").write_bytes(b"step 1\n" * 100 + b"Fire in the rack\n")

    def crew(tasks: Iterator[Task], orders: Orders) -> Iterator[Scanned]:
        for number, scanned in enumerate(alone(tasks, orders)):
            yield scanned
            if not number:
                log.unlink()

    monkeypatch.setattr(skim, "OPENING_OF_LARGE", 100)
    report = small.explain(discover([str(tmp_path)]).sources, Options(crew=crew))
    assert (report.diagnoses[0].rule, report.diagnoses[0].origin.line) == ("a.fire", 101)
    assert [source.truncated for source in report.input.sources] == [True, False]
    assert any("big.log: " in warning for warning in report.warnings)


def test_a_good_run_that_goes_away_is_a_warning(small: Engine, tmp_path: Path) -> None:
    (tmp_path / "good.log").write_text("step 1\n")
    good = discover([str(tmp_path / "good.log")]).sources
    (tmp_path / "good.log").unlink()
    report = small.explain([source_from_bytes("bad", b"Fire in the rack\n")], Options(baseline=tuple(good)))
    assert report.diagnoses[0].rule == "a.fire"
    assert report.warnings == (f"{tmp_path}/good.log: No such file or directory",)


def test_a_dump_that_is_too_large_is_not_called_cut_off(
    small: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logdoc.flight_recorder.read.MAX_BYTES", 1 << 20)
    (tmp_path / "nccl_trace_rank_0").write_bytes(DUMP[:-1] + b"0" * (1 << 20) + b".")
    with pytest.raises(InputError, match=r"nccl_trace_rank_0: refused: larger than 1 MiB$"):
        small.explain(discover([str(tmp_path)]).sources)


def test_against_a_good_run_new_kinds_of_lines_stand_out(small: Engine) -> None:
    good = source_from_bytes(
        "good", "".join(f"step {n} loss {9 - n}.5\ncache /data/a{n} opened\n" for n in range(5)).encode()
    )
    bad = source_from_bytes(
        "bad", b"step 1 loss 8.5\ncache /data/a7 opened\nflux capacitor at 12 %\nFrobnicationError: gone\n"
    )
    report = small.explain([bad], Options(baseline=(good,)))
    assert report.outcome == "unrecognised"
    assert [line.line for line in report.novel] == [3, 4]
    assert small.explain([bad]).novel == ()
