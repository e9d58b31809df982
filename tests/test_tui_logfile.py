"""Lines of logs of any size: counted as the reader counts them, read where they lie, searched both ways."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from logdoc.reader.lines import physical_lines
from logdoc.sources import discover, source_from_bytes
from logdoc.tui.logfile import LONGEST, LogFile


def built(log: LogFile) -> LogFile:
    for _ in log.build():
        pass
    return log


def opened(path: Path, block: int = 64) -> LogFile:
    return built(LogFile(discover([str(path)]).sources[0], block))


@pytest.mark.parametrize("block", [16, 64, 1 << 17])
@pytest.mark.parametrize("ended", [True, False])
def test_lines_are_numbered_as_the_reader_numbers_them(tmp_path: Path, block: int, ended: bool) -> None:
    random.seed(7)
    lines = ["x" * random.choice([0, 0, 1, 5, 15, 16, 17, 100]) + str(number) for number in range(1, 300)]
    lines[40:50] = [""] * 10
    text = "\n".join(lines) + ("\n" if ended else "")
    path = tmp_path / "a.log"
    path.write_text(text)
    log = opened(path, block)
    assert log.line_count == 299
    read = dict(physical_lines([text.encode()]))  # which passes over the later of many blank lines
    assert {number: log.text(number) for number in range(1, 300)} == dict.fromkeys(range(1, 300), "") | read
    assert log.text(0) == log.text(300) == ""


def test_empty_and_one_line_logs(tmp_path: Path) -> None:
    empty, one = tmp_path / "e.log", tmp_path / "o.log"
    empty.write_text("")
    one.write_text("only")
    assert opened(empty).line_count == 0
    assert opened(empty).find("x", 1) is None
    assert (opened(one).line_count, opened(one).text(1)) == (1, "only")


@pytest.mark.parametrize("packed", ["gzip", "utf-16", "bytes", "error-json"])
def test_what_is_not_plain_on_disk_is_read_too(tmp_path: Path, packed: str) -> None:
    text = "first\n显存不足 second\nthird"
    if packed == "gzip":
        path = tmp_path / "a.log.gz"
        path.write_bytes(gzip.compress(text.encode()))
        log = opened(path)
    elif packed == "utf-16":
        path = tmp_path / "a.log"
        path.write_bytes(text.encode("utf-16"))
        log = opened(path)
    elif packed == "bytes":
        log = built(LogFile(source_from_bytes("<stdin>", text.encode())))
    else:
        path = tmp_path / "error.json"
        path.write_text(json.dumps({"message": {"message": "x", "extraInfo": {"py_callstack": text}}}))
        log = opened(path)
    assert [log.text(number) for number in (1, 2, 3)] == text.split("\n")
    assert log.find("显存", 1) == 2
    log.close()


def test_a_terminal_is_never_told_anything_by_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(
        "\x1b[31mred\x1b[0m\ttab \x9b31m \u202eevil\u202c\na 10%|x\rb 20%|x\rdone\n".encode() + b"\xff\xfe bad\n"
    )
    log = opened(path)
    for number in (1, 2, 3):
        assert all(sign.isprintable() for sign in log.text(number))
    assert log.text(1).startswith("red    tab")
    assert log.text(2) == "done"  # as the reader has it: of bars that overwrite each other, the last message


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a" * 5_000_000 + b"\nnext\n")
    log = opened(path, 1 << 17)
    assert len(log.text(1)) == LONGEST + 1
    assert log.text(2) == "next"


def test_search_goes_both_ways_and_round(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        "\n".join("Needle in hay" if number in (3, 70, 71) else f"hay {number}" for number in range(1, 101))
    )
    log = opened(path)
    assert [log.find("needle", start) for start in (1, 3, 4, 71, 72)] == [3, 3, 70, 71, 3]
    assert [log.find("needle", start, backwards=True) for start in (100, 71, 70, 69, 2)] == [71, 71, 70, 3, 71]
    assert log.find("NEEDLE", 1) is None  # a capital letter makes case count
    assert log.find("Needle", 4) == 70
    assert log.find("absent", 50) is None


def test_a_hit_over_the_border_of_two_pieces_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * ((1 << 20) - 3) + b"needle\n" + b"y" * (1 << 20) + b"\nend")
    log = opened(path)
    assert log.find("needle", 1) == 1
    assert log.find("needle", 3, backwards=True) == 1


def test_a_search_can_be_called_off(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("hay\n" * 10)
    assert opened(path).find("hay", 1, stopped=lambda: True) is None


def test_the_index_does_not_grow_with_the_number_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\n" * 8_000_000)
    log = opened(path, 1 << 17)
    assert log.line_count == 8_000_000
    assert log.index_bytes < 1000  # 8 bytes for 128 KiB: 320 KiB for 5 GB
    assert log.text(8_000_000) == ""


def test_lines_can_be_read_while_the_index_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"0123456789abcde\n" * 5_000_000)
    log = LogFile(discover([str(path)]).sources[0])
    progress = log.build()
    next(progress)
    assert not log.complete
    assert 0 < log.line_count < 5_000_000
    assert log.text(log.line_count) == "0123456789abcde"
    assert sum(1 for _ in progress)
    assert log.complete
    assert log.line_count == 5_000_000
