"""What no log, pack or shell should do, and some do: endless lines, closed streams, full disks, aliases of aliases."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdoc import conditions
from logdoc.cli.common import said_plainly
from logdoc.conditions import Scene
from logdoc.kept.patterns import guarded
from logdoc.reader import ReadState, read
from logdoc.reader.clock import seconds
from logdoc.reader.lines import MOST_BLANK, physical_lines
from logdoc.reader.unpacking import Stream
from logdoc.rulebase import load_rules
from logdoc.rulebase.skeleton import UNREADABLE, signature_of
from logdoc.runner.run import Plan
from logdoc.runner.run import run as run_command
from logdoc.runner.verdict import Question
from logdoc.scanner.text import LONGEST_LINE
from logdoc.sources import PathHints, discover
from logdoc.types.errors import InputError, RulesError
from logdoc.types.finding import Match
from logdoc.types.words import Where
from tests.clikit import CRASH, run
from tests.rulekit import engine_of, write_rule
from tests.test_cli import shell

BLOCK = b"x" * (512 << 10)


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    path = tmp_path / "crash.log"
    path.write_text(CRASH)
    return path


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_closed_streams_lead_nowhere(crash: Path, closed: str) -> None:
    done = shell(f"logdoc '{crash}' --no-probes {closed}")
    assert (done.returncode, done.stderr) == (1, b"")
    assert (b"ValueError" in done.stdout) == (">" not in closed)


def test_a_closed_standard_input_is_an_empty_one() -> None:
    done = shell("logdoc - <&-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"logdoc: nothing to read: <stdin>: empty\n"


@pytest.mark.parametrize(
    "command", ["'{crash}' --no-probes --format json", "rules list", "decode xid 79", "run --help", "--version"]
)
def test_a_full_disk_is_told_in_a_line(crash: Path, command: str) -> None:
    done = shell(f"logdoc {command.format(crash=crash)} > /dev/full")
    assert (done.returncode, done.stderr) == (2, b"logdoc: No space left on device\n")


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "ascii"])
def test_a_terminal_that_lacks_a_sign_still_gets_the_report(crash: Path, encoding: str) -> None:
    done = shell(f"logdoc '{crash}' --no-probes", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"ValueError: bad lr" in done.stdout


def test_an_interrupt_is_no_failure_found(capsys: pytest.CaptureFixture[str]) -> None:
    @said_plainly
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        interrupted()
    assert (ended.value.code, capsys.readouterr().err) == (130, "logdoc: interrupted\n")


def test_a_misspelt_command_is_told_the_right_one() -> None:
    code, _, told = run("explian", "x")
    assert code == 2
    assert "no command and no file 'explian'. Did you mean 'explain'?" in told


@pytest.mark.parametrize("rule_id", ["site.a/b", "site.a\n", "../x.y", "site", "site."])
def test_a_new_rule_is_written_where_its_id_says_or_not_at_all(tmp_path: Path, rule_id: str) -> None:
    code, _, told = run("rules", "new", rule_id, "--dir", str(tmp_path / "pack"))
    assert (code, told.count("\n")) == (2, 1)
    assert not (tmp_path / "pack").exists()


def test_testing_a_folder_without_rules_is_no_success(tmp_path: Path) -> None:
    assert run("rules", "test", str(tmp_path))[0] == 2


def test_an_endless_line_is_read_a_piece_at_a_time() -> None:
    given = 0

    def blocks() -> Iterator[bytes]:
        nonlocal given
        for count in range(1, 65):
            given = count
            yield BLOCK
        yield b"\nend\n"

    lines = physical_lines(blocks())
    number, _ = next(lines)
    assert (number, given < 8) == (1, True)
    rest = list(lines)
    assert sum(len(text) for number, text in rest if number == 1) > 60 * len(BLOCK) - LONGEST_LINE
    assert rest[-1] == (2, "end")


def test_the_opening_of_an_endless_line_has_an_end() -> None:
    stream = Stream(iter([BLOCK] * 64), room=len(BLOCK))
    assert sum(len(piece.data) for piece in stream.opening()) <= len(BLOCK) + LONGEST_LINE
    assert not stream.is_over


def test_a_million_empty_lines_are_a_few_and_counted() -> None:
    lines = list(physical_lines([b"a\n" + b"\n" * 1_000_000]))
    assert lines[0] == (1, "a")
    assert (lines[-1], len(lines)) == ((1_000_001, ""), MOST_BLANK + 2)


@pytest.mark.parametrize("text", ["nan", "inf", "-5", "1e308", "9" * 400, "0000-01-01 00:00:00", "9999-99-99 99:99:99"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize("text", ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000"])
def test_a_time_in_smaller_units_is_the_same_time(text: str) -> None:
    assert seconds(text) == 1.7e9


@pytest.mark.parametrize("start", ["(a", "[a", "E   a", "1/2 [it/", "> ", "[rank"])
@pytest.mark.parametrize("part", ["_0", " ", "0", "a.", "(", "it/", ": "])
def test_no_prefix_is_looked_for_for_long(start: str, part: str) -> None:
    """Twenty such lines: with a pattern that tries each end against each start, minutes."""
    line = f"{start}{part * 8_000}"[:16_000].encode()
    began = time.process_time()
    assert sum(1 for _ in read("x", [line + b"\n"] * 20, ReadState()))
    assert time.process_time() - began < 5


def test_a_setting_full_of_blanks_is_judged_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(f"export PYTORCH_CUDA_ALLOC_CONF='a{' ' * 3_000}]'\n{CRASH}")
    began = time.process_time()
    assert run("explain", str(tmp_path / "x.log"), "--no-probes")[0] == 1
    assert time.process_time() - began < 5


def test_ten_thousand_ranks_are_not_each_compared_with_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = 0
    related: Callable[[str, Where, Scene], list[Match]] = conditions._related

    def counted(name: str, where: Where, scene: Scene) -> list[Match]:
        nonlocal touched
        found = related(name, where, scene)
        touched += len(found)
        return found

    monkeypatch.setattr(conditions, "_related", counted)
    rule = """match: {one: {regex: 'a distinctive line'}, two: {regex: 'another distinctive line'}}
when: {all: [{sequence: [one, two]}, {seen: two, where: same-rank}, {count: one, gte: 2}, {ranks: one, share: all}]}"""
    engine = engine_of(tmp_path, **{"site.case": rule})
    text = "".join(f"[rank{n}]: a distinctive line\n[rank{n}]: another distinctive line\n" for n in range(500))
    assert engine.explain_text(text).diagnoses
    assert touched < 10_000


ALIASES = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize("text", [ALIASES, "a: &a [*a]", "a: &a {b: *a}", "x" * (2 << 20)])
def test_a_rule_file_that_explodes_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(RulesError) as told:
        load_rules([tmp_path])
    assert len(str(told.value)) < 500


def test_a_pack_that_is_a_device_a_pipe_or_a_folder_called_yaml_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").mkdir()
    (tmp_path / "c.yaml").symlink_to("/dev/zero")
    with pytest.raises(RulesError) as told:
        load_rules([tmp_path, Path("/dev/zero")])
    assert [problem.message.rsplit(": ")[-1] for problem in told.value.problems] == [
        "not a file", "a folder", "not a file", "not a file",
    ]  # fmt: skip


def test_json_holds_no_character_that_a_terminal_obeys(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("ValueError: a\u009b31mb\u202ec\u2066d\u200be\x1b]0;f\x07g\n")
    for form in ("json", "jsonl"):
        code, out, _ = run("explain", str(tmp_path / "x.log"), "--format", form, "--no-probes")
        assert code == 1
        assert not {"\u009b", "\u202e", "\u2066", "\u200b", "\x1b"}.intersection(out)
        assert "a\u009b31mb\u202ec" in json.dumps(
            json.loads(out.splitlines()[-1] if form == "jsonl" else out), ensure_ascii=False
        )


def test_what_is_hardly_a_log_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "weights.bin").write_bytes(bytes(range(32)) * 200)
    assert discover([str(tmp_path / "empty.log")]).warnings == (f"{tmp_path}/empty.log: empty",)
    assert "no plain text" in discover([str(tmp_path / "weights.bin")]).warnings[0]


def test_an_archive_from_a_pipe_comes_with_no_command_that_names_the_pipe() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../a.log", CRASH)
    with pytest.raises(InputError, match=r"^<stdin>: is a zip archive; unpack it first$"):
        discover(["-"], io.BytesIO(packed.getvalue()))


def test_a_compressed_file_in_a_compressed_file_is_not_called_healthy(tmp_path: Path) -> None:
    (tmp_path / "x.log.gz.gz").write_bytes(gzip.compress(gzip.compress(CRASH.encode())))
    with pytest.raises(InputError, match="take off the outer one first"):
        discover([str(tmp_path / "x.log.gz.gz")])


def test_a_fault_of_its_own_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    @said_plainly
    def broken() -> float:
        return int("9" * 400) / 1000

    with pytest.raises(SystemExit) as ended:
        broken()
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n")) == (2, 1)
    assert "OverflowError" in told
    assert "at test_hostile.py:" in told


@pytest.mark.parametrize(("kind", "code"), [("nccl", "--5"), ("xid", "9" * 5000), ("errno", "9" * 5000), ("ib", "²")])
def test_no_code_is_too_odd_to_be_looked_up(kind: str, code: str) -> None:
    exit_code, _, told = run("decode", "--", kind, code)
    assert exit_code == 2
    assert told.endswith(": not in the table\n")


def test_an_argument_quoted_in_an_error_is_nothing_a_terminal_obeys() -> None:
    _, _, told = run("decode", "library", "\x1b]0;gotcha\x07\u202e")
    assert told == "logdoc: library \ufffd]0;gotcha\ufffd\ufffd: not in the table\n"


def test_a_rule_made_from_a_line_with_controls_is_yaml(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("ValueError: a very \u009bodd \u202eline\n")
    pack = tmp_path / "pack; reboot"
    code, out, told = run("rules", "new", "site.odd", "--from", f"{tmp_path}/x.log:1", "--dir", str(pack))
    assert (code, told) == (0, "")
    assert out.endswith(f"logdoc rules test '{pack}'\n")
    rule = load_rules([pack])["site.odd"]
    assert rule.match["seen"].regex == "ValueError: a very .odd .line"


WORDS = st.sampled_from(
    [
        "0xAB",
        "0x7f00c",
        "3.5.",
        "'a b'",
        '"x',
        "/a/b-c.so",
        "\\ ",
        "(",
        "[1]",
        " ",
        "GiB",
        "\u202e",
        "\t",
        "'",
        "$",
        "{x}",
    ]
)


@given(st.lists(WORDS, min_size=1, max_size=12).map("".join))
def test_the_pattern_of_a_new_rule_fits_the_line_it_was_made_from(line: str) -> None:
    shown = "".join(sign if sign.isprintable() or sign == "\t" else UNREADABLE for sign in line)
    assert guarded(signature_of(shown)).search(line)


def test_rules_that_may_not_be_read_are_not_left_out_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.log").write_text(CRASH)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root
    code, _, told = run("explain", f"{tmp_path}/x.log", "--rules", str(tmp_path), "--no-probes")
    assert (code, told) == (2, f"logdoc: --rules {tmp_path}: may not be read\n")


def test_one_rank_is_spoken_of_as_one(tmp_path: Path) -> None:
    entry = {"record_id": 1, "collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "state": "started",
             "process_group": ["0", "x"]}  # fmt: skip
    dump = {"version": "2.4", "entries": [entry], "pg_config": {}}
    (tmp_path / "nccl_trace_rank_0.json").write_text(json.dumps(dump))
    assert run("explain", str(tmp_path), "--no-probes")[1].startswith("! Rank 0: ")


def test_whatever_logdoc_gets_wrong_the_exit_code_is_the_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr("logdoc.runner.run.explain_ending", broken)
    told: list[str] = []
    question = Question(language="en", name="<output>", hints=PathHints(), probes=False)
    plan = Plan(command=("sh", "-c", "exit 7"), question=question, keep_bytes=1 << 20, settings=False)
    ending = run_command(plan, told.append, lambda stall: "", lambda report: None)
    assert (ending.code, "".join(told)) == (7, "logdoc: the failure could not be explained: OverflowError: too large\n")


def test_what_a_script_or_a_pack_says_is_nothing_a_terminal_obeys(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("export NCCL_SOCKET_IFNAM=\x1b]0;gotcha\nexport NCCL_ALGO='a\u009bb\u202ec'\n")
    pack = tmp_path / "pack"
    rule = write_rule(pack, "site.case", "match: {seen: {regex: 'a distinctive line'}}")
    rule.write_text(re.sub("(?m)^title:.*", r'title: {en: "a\\e[31mb\\u202ec", zh: x}', rule.read_text()))
    for words in (["env", f"{tmp_path}/job.sh"], ["rules", "list", "site", "--rules", str(pack)],
                  ["rules", "show", "site.case", "--rules", str(pack)]):  # fmt: skip
        _, out, _ = run(*words)
        assert "\\u202e" in out
        assert not {"\x1b", "\u202e", "\u009b"}.intersection(out)


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    "line",
    [
        "[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)={n}) ran for {n} milliseconds before timing out.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} GiB. GPU 0 has a total capacity of {n} GiB "
        "of which 1.0 MiB is free.",
        "NCCL version {n}.{n}.{n}\nValueError: x",
    ],
)
def test_absurd_numbers_are_read_as_far_as_anybody_can_count(tmp_path: Path, line: str, digits: int) -> None:
    (tmp_path / "x.log").write_text(line.format(n="9" * digits) + "\n")
    code, out, told = run("explain", str(tmp_path / "x.log"), "--no-probes", "--format", "json")
    assert (code, told) == (1, "")
    assert json.loads(out)["outcome"] != "unrecognised"


def test_a_report_of_absurd_ranks_is_read() -> None:
    listed = ["Root Cause (first observed failure):", "[0]:", "  time      : 2025-01-01_00:00:00", "  host      : n1",
              f"  rank      : {'9' * 5000} (local_rank: {'9' * 5000})", "  exitcode  : 1 (pid: {'9' * 5000})",
              "  error_file: <N/A>"]  # fmt: skip
    ruler = "=" * 60
    text = "\n".join(["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", ruler, "t.py FAILED", "-" * 60,
                      "Failures:", "  <NO_OTHER_FAILURES>", "-" * 60, *listed, ruler])  # fmt: skip
    batches = list(read("x", [f"{text}\n".encode()], ReadState()))
    assert sum(map(len, batches)) == 2
