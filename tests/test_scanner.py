"""Large inputs: both engines find the same, windows hold the very lines of the file, and nobody's number changes it."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from logdoc.engine import Engine, Options
from logdoc.reader import skim
from logdoc.render import render_json
from logdoc.scanner import hits, ranges, windows
from logdoc.scanner.excerpts import Excerpts
from logdoc.scanner.ranges import Orders, Scanned, Task, alone, processes, ranges_of, scan_all
from logdoc.scanner.text import as_utf8, bare, whole_lines
from logdoc.scanner.triggers import (
    AhoCorasickTriggers,
    HyperscanTriggers,
    Trigger,
    TriggerScanner,
    benign,
    with_escapes,
)
from logdoc.scanner.windows import Edges, Piece, WindowScan
from logdoc.sources import discover
from logdoc.sources.origins import FileOrigin
from tests.rulekit import engine_of

TRIGGERS = (Trigger(b"Fire in the", False, "fire"), Trigger(b"water", True, "water"))
LINES = st.sampled_from(
    [
        b"step 1\n",
        b"Fire in the rack\n",
        b"WATER everywhere\n",
        b"\n",
        b"x" * 50 + b"\n",
        b"\x1b[31mFire\x1b[0m in the\n",
    ]
)


def blocks_of(text: bytes, size: int) -> Iterator[bytes]:
    return (text[start : start + size] for start in range(0, len(text), size))


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is large made small, so that a short log goes the way of a long one."""
    for name, value in {"LINES_BEFORE": 3, "LINES_AFTER": 2}.items():
        monkeypatch.setattr(windows, name, value)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 4096)
    monkeypatch.setattr(ranges, "BLOCK_BYTES", 1024)
    sizes = {"READ_IN_FULL": 2000, "LARGE": 8000, "OPENING_OF_LARGE": 1000, "OPENING_OF_STREAM": 1000, "HEAD": 200}
    for name, value in {**sizes, "TAIL": 300}.items():
        monkeypatch.setattr(skim, name, value)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=60).map(b"".join), st.integers(1, 400))
def test_both_engines_find_the_same(text: bytes, size: int) -> None:
    everything = set(range(len(TRIGGERS)))
    fast, plain = HyperscanTriggers(TRIGGERS), AhoCorasickTriggers(TRIGGERS)
    assert fast.present(text) == plain.present(text)
    assert fast.ends(text, everything) == plain.ends(text, everything)
    assert fast.ends(text, {1}) == plain.ends(text, {1})


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=200).map(b"".join), st.integers(1, 700), st.booleans())
def test_windows_hold_the_lines_of_the_file_and_every_trigger(text: bytes, size: int, cut_end: bool) -> None:
    text = text[:-1] if cut_end else text
    scan = WindowScan(AhoCorasickTriggers(TRIGGERS), Edges(0, 1))
    pieces = list(scan.pieces(blocks_of(text, size)))
    lines = text.split(b"\n")
    read: set[int] = set()
    for piece in pieces:
        held = piece.data.removesuffix(b"\n").split(b"\n")
        assert held == lines[piece.line - 1 : piece.line - 1 + len(held)]
        assert not read & set(range(piece.line, piece.line + len(held)))
        read |= set(range(piece.line, piece.line + len(held)))
    hit = [number for number, line in enumerate(lines, 1) if b"Fire in the" in bare(line) or b"water" in line.lower()]
    wanted = hit if len(hit) <= hits.MOST_WINDOWS else []
    assert set(wanted) <= read
    assert scan.counts.lines == text.count(b"\n") + bool(text and not text.endswith(b"\n"))


# literals that lie in each other, overlap and differ by case alone; a line of colours may hide them
FUZZED = [Trigger(one, caseless, "") for one, caseless in
          [(b"abc", False), (b"xabcx", False), (b"abcab", False), (b"ab c", True), (b"cab", True), (b"xab cab", False), (b"ABC", False)]]  # fmt: skip
FUZZED_LINES = st.lists(
    st.one_of(
        st.text("abcxAB C\x1b\x00", max_size=12).map(str.encode),
        st.sampled_from([b"\x1b[1mab\x1b[0mc", b"x" * 700 + b"abc", b"xabcx ab c", b"CAB", b"ab\x00c"]),
    ),
    max_size=80,
).map(b"\n".join)


def plainly_found(text: bytes, cut: frozenset[int]) -> set[tuple[int, int]]:
    """(line from 1, trigger): each trigger looked for in each line by itself."""
    found = set()
    for number, line in enumerate(text.split(b"\n"), 1):
        clean = bare(line)
        for index, trigger in enumerate(FUZZED):
            if index not in cut and trigger.literal in (clean.lower() if trigger.caseless else clean):
                found.add((number, index))
    return found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given up, blocks are small, and gates are changed early."""
    for name, value in {"LEAST_CUT": 1 << 60, "MOST_HITS": 1 << 60, "MOST_WINDOWS": 1 << 60}.items():
        monkeypatch.setattr(hits, name, value)
    for name, value in {"IDLE": 3, "DENSE": 12, "PART": 40}.items():
        monkeypatch.setattr(hits, name, value)
    monkeypatch.setattr(ranges, "LONGEST_TRIGGER", 40)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FUZZED_LINES, st.integers(64, 900), st.integers(200, 3000), st.frozensets(st.integers(0, 6), max_size=6))
def test_a_scan_of_ranges_finds_what_plain_search_finds(
    tmp_path: Path, patient: None, text: bytes, block: int, size: int, cut: frozenset[int]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "BLOCK_BYTES", block)
        patch.setattr(ranges, "RANGE_BYTES", size)
        listed = list(ranges_of(FileOrigin(str(path)), 0, len(text)))
        for scanner in (HyperscanTriggers(FUZZED), AhoCorasickTriggers(FUZZED)):
            found, lines = set(), 0
            for one in listed:
                scanned = one.scan(Orders(FUZZED, Edges(), cut), scanner)
                found |= {(lines + line, number) for _, line, number in scanned.hits}
                assert all(text.count(b"\n", 0, at) + 1 == lines + line for at, line, _ in scanned.hits)
                lines += scanned.counts.lines
            assert found == plainly_found(text, cut)
            assert lines == text.count(b"\n") + bool(text and not text.endswith(b"\n"))


@settings(max_examples=200, deadline=None)
@given(FUZZED_LINES, st.frozensets(st.integers(0, 6), max_size=7))
def test_a_gate_lets_every_line_with_a_live_trigger_through(text: bytes, cut: frozenset[int]) -> None:
    scanner = HyperscanTriggers(FUZZED)
    scanner.sharpen(cut)
    clean = bare(text)
    let_through = {clean.count(b"\n", 0, end - 1) + 1 for end in scanner.places(clean, cut)}
    assert {line for line, _ in plainly_found(clean, cut)} == let_through


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=12), st.integers(0, 900), st.integers(0, 900))
def test_excerpts_are_the_lines_of_the_file(wanted: list[tuple[int, bool]], head: int, tail: int) -> None:
    lines = [b"line %d %s" % (number, b"." * (number * 7 % 50)) for number in range(1, 401)]
    text = b"\n".join(lines)
    excerpts = Excerpts(io.BytesIO(text))
    pieces = [excerpts.head(head)]
    for number, _ in sorted(wanted):
        offset = text.find(b"line %d " % number)
        pieces += [excerpts.round(offset, number, 0)] if offset >= 0 else []
    pieces.append(excerpts.tail(tail, len(text), 400))
    reached = 1
    for piece in filter(None, pieces):
        held = piece.data.removesuffix(b"\n").split(b"\n")
        assert held == lines[piece.line - 1 : piece.line - 1 + len(held)]
        assert piece.line == reached if piece.follows else piece.line >= reached
        reached = piece.line + len(held)


def test_margins_and_what_a_margin_lacks_at_a_block_s_end(tight: None) -> None:
    lines = [b"line %d\n" % number for number in range(1, 41)]
    lines[19] = b"Fire in the rack\n"
    for size in (1, 7, 64, 10_000):
        scan = WindowScan(AhoCorasickTriggers(TRIGGERS), Edges(0, 0))
        pieces = list(scan.pieces(blocks_of(b"".join(lines), size)))
        assert b"".join(piece.data for piece in pieces) == b"".join(lines[16:22])
        assert [piece.line for piece in pieces if not piece.follows] == [17]


def test_head_and_tail_are_read_in_any_case(tight: None) -> None:
    lines = [b"line %d\n" % number for number in range(1, 1001)]
    pieces = list(WindowScan(AhoCorasickTriggers(TRIGGERS), Edges(20, 30)).pieces([b"".join(lines)]))
    assert [piece.line for piece in pieces] == [1, 997]
    assert pieces[0].data.startswith(b"line 1\n")
    assert pieces[-1].data.endswith(b"line 1000\n")


def test_a_trigger_of_the_healthy_log_is_given_up_and_counted() -> None:
    text = b"Fire in the log of a healthy job\n" * 5000 + b"water\n"
    scan = WindowScan(AhoCorasickTriggers(TRIGGERS), Edges(0, 0))
    read = b"".join(piece.data for piece in scan.pieces(blocks_of(text, 1 << 14)))
    assert scan.counts.cut == {0}
    assert len(read) < 200 * 120 * 40
    assert b"water" in read
    assert benign(AhoCorasickTriggers(TRIGGERS), text) == {0}


def test_literals_in_json_escapes() -> None:
    forms = {trigger.literal for trigger in with_escapes([Trigger('say "é"'.encode(), False, "a")])}
    assert forms == {'say "é"'.encode(), b'say \\"\\u00e9\\"', 'say \\"é\\"'.encode()}


@given(st.binary(max_size=300), st.integers(1, 40), st.integers(0, 60))
@example(b"\n", 1, 0)
def test_whole_lines_lose_nothing(text: bytes, size: int, least_last: int) -> None:
    blocks = list(whole_lines(blocks_of(text, size), least_last))
    assert b"".join(block for block, _ in blocks) == text
    assert [is_last for _, is_last in blocks] == [False] * (len(blocks) - 1) + [True] * bool(blocks)
    assert all(block.endswith(b"\n") for block, is_last in blocks if not is_last)


def test_utf16_is_scanned_as_utf8() -> None:
    text = "第一行\nFire in the rack\n"
    assert b"".join(as_utf8([b"\xff\xfe" + text.encode("utf-16-le")])) == text.encode()


def test_ranges_are_whole_lines_and_cover_the_file(tmp_path: Path, tight: None) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d of many\n" % number for number in range(3000)))
    size = path.stat().st_size
    found = list(ranges_of(FileOrigin(str(path)), 0, size))
    assert [one.start for one in found[1:]] == [one.end for one in found[:-1]]
    assert (found[0].opens, found[-1].closes, found[-1].end) == (True, True, size)
    text = path.read_bytes()
    assert all(text[one.end - 1 : one.end] == b"\n" for one in found)


def orders() -> Orders:
    return Orders(TRIGGERS, Edges(100, 100), ())


def a_large_log(count: int = 4000) -> bytes:
    dice = random.Random(7)
    lines = [b"[rank%d]: beat %d loss %.3f\n" % (dice.randrange(8), number, dice.random()) for number in range(count)]
    for place in (count // 3, count // 2):
        lines[place] = b"[rank3]: Fire in the rack\n"
    return b"".join(lines)


def test_a_worker_that_dies_only_costs_time(tmp_path: Path, tight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(a_large_log())
    listed = list(ranges_of(FileOrigin(str(path)), 0, path.stat().st_size))
    alone = list(scan_all(listed, orders(), processes(1)))
    whole = ranges.Range.scan

    def dies(one: ranges.Range, given: Orders, scanner: TriggerScanner) -> ranges.Scanned:
        if os.getpid() != here and one.start > 20_000:
            os._exit(9)
        return whole(one, given, scanner)

    here = os.getpid()
    monkeypatch.setattr(ranges.Range, "scan", dies)
    assert list(scan_all(listed, orders(), processes(2))) == alone
    assert any(scanned.hits for scanned in alone)


def test_a_file_that_vanishes_is_no_crash(tmp_path: Path) -> None:
    gone = ranges.Range(FileOrigin(str(tmp_path / "gone")), 0, 100, True, True)
    assert next(scan_all([gone], orders(), processes(1))).hits == ()


@pytest.fixture
def small(tmp_path: Path) -> Engine:
    return engine_of(
        tmp_path / "rules",
        a__fire="match: {seen: {regex: '^Fire in the (?P<what>\\w+)'}}",
        a__trace="match: {seen: {regex: 'ValueError: drowned'}}",
    )


def plainly(engine: Engine, paths: Sequence[Path], workers: int = 1) -> dict[str, object]:
    value = json.loads(
        render_json(engine.explain(discover([str(path) for path in paths]).sources, Options(crew=processes(workers))))
    )
    value["input"]["seconds"] = 0
    assert isinstance(value, dict)
    return value


def test_workers_change_nothing_and_lines_are_exact(tmp_path: Path, small: Engine, tight: None) -> None:
    logs = [tmp_path / f"log{number}.txt" for number in range(3)]
    for number, path in enumerate(logs):
        path.write_bytes(a_large_log(1500 + number))
    logs.append(tmp_path / "log3.txt.gz")
    logs[3].write_bytes(gzip.compress(a_large_log(1503))[:-4])  # its end is missing
    reports = [plainly(small, logs, workers) for workers in (1, 2, 3)]
    assert reports[0] == reports[1] == reports[2]
    found = reports[0]["diagnoses"][0]  # type: ignore[index]
    assert (found["rule"], found["origin"]["line"], found["origin"]["rank"]) == ("a.fire", 501, 3)
    assert [one["lines"] for one in reports[0]["input"]["sources"]] == [1500, 1501, 1502, 1503]  # type: ignore[index]
    for said in ("only searched", "log3.txt.gz: the gzip data ends early"):
        assert any(said in warning for warning in reports[0]["warnings"])  # type: ignore[attr-defined]


def test_a_file_that_goes_away_leaves_the_others_their_lines(tmp_path: Path, small: Engine, tight: None) -> None:
    logs = [tmp_path / f"log{number}.txt" for number in range(3)]
    for number, path in enumerate(logs):
        path.write_bytes(a_large_log(1500 + number))

    def crew(tasks: Iterator[Task], orders: Orders) -> Iterator[Scanned]:
        done = list(alone(tasks, orders))
        logs[1].unlink()
        return iter(done)

    report = small.explain(discover([str(path) for path in logs]).sources, Options(crew=crew))
    assert [source.lines for source in report.input.sources] == [1500, 1501, 1502]
    assert (report.diagnoses[0].origin.line, report.diagnoses[0].occurrences) == (501, 4)


def test_a_compressed_log_gives_the_lines_of_the_plain_one(tmp_path: Path, small: Engine, tight: None) -> None:
    plain, packed = tmp_path / "log.txt", tmp_path / "packed.txt.gz"
    plain.write_bytes(a_large_log())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    reports = [plainly(small, [path]) for path in (plain, packed)]
    origins = [report["diagnoses"][0]["origin"]["line"] for report in reports]  # type: ignore[index]
    assert origins == [1334, 1334]
    assert all(report["warnings"] for report in reports)
    assert [report["input"]["sources"][0]["lines"] for report in reports] == [4000, 4000]  # type: ignore[index]


def test_a_traceback_across_ranges_stays_whole(tmp_path: Path, small: Engine, tight: None) -> None:
    trace = (
        b'[rank1]: Traceback (most recent call last):\n[rank1]:   File "a.py", line 1\n[rank1]: ValueError: drowned\n'
    )
    path = tmp_path / "log.txt"
    for shift in range(0, 120, 7):
        before = b"x" * 60 + b"\n"
        path.write_bytes(before * ((4096 - shift) // 61 + 17) + trace + before * 500)
        found = plainly(small, [path])["diagnoses"][0]  # type: ignore[index]
        assert found["rule"] == "a.trace"
        assert found["origin"]["rank"] == 1
        number = path.read_bytes()[: path.read_bytes().index(b"ValueError")].count(b"\n") + 1
        assert found["evidence"][0]["line"] == number


def test_a_small_log_is_read_whole(tmp_path: Path, small: Engine) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(a_large_log())
    report = plainly(small, [path], workers=2)
    assert report["warnings"] == []


def test_pieces_that_follow_make_one_window() -> None:
    pieces = [Piece(1, b"a\n"), Piece(2, b"b\n", True), Piece(9, b"c\n")]
    joined = [(line, b"".join(blocks)) for line, blocks in skim._windows(iter(pieces))]
    assert joined == [(1, b"a\nb\n"), (9, b"c\n")]
