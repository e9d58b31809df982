"""What is kept of the output: the beginning and the end, whole lines, however it is written and read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdoc.runner.keep import END_MARK, HEAD_BYTES, LEAST_BYTES, Kept, LogFile, Ring
from logdoc.sources import PathHints
from logdoc.types.errors import InputError

LINE = b"%09d\n"


def text(kept: Kept) -> bytes:
    with closing(kept):
        return b"".join(kept.raw_blocks(1000))


def lines(first: int, last: int) -> bytes:
    return b"".join(LINE % number for number in range(first, last))


@pytest.fixture
def ring() -> Iterator[Ring]:
    with closing(Ring(LEAST_BYTES)) as ring:
        yield ring


def fill_head(ring: Ring) -> None:
    ring.write([b"h" * (HEAD_BYTES - 1) + b"\n"])


def test_a_short_output_is_kept_whole(ring: Ring) -> None:
    ring.write([b"one\ntw", memoryview(b"o\n")])
    kept = ring.snapshot()
    assert (kept.lost, kept.size) == (0, 8)
    assert text(kept) == b"one\ntwo\n"


def test_of_a_long_output_the_beginning_and_the_end_are_kept(ring: Ring) -> None:
    fill_head(ring)
    for start in range(0, 100_000, 100):
        ring.write([lines(start, start + 100)])
    kept = ring.snapshot()
    size = kept.size
    assert kept.lost + size == HEAD_BYTES + 1_000_000
    assert LEAST_BYTES // 2 <= size - HEAD_BYTES <= LEAST_BYTES
    whole = text(kept)
    assert whole.startswith(b"hhh")
    tail = whole[HEAD_BYTES:]
    first = int(tail[:9])
    assert tail == lines(first, 100_000)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=120), st.integers(0, 4), st.integers(1, 200_000))
def test_whatever_the_blocks_the_kept_end_is_the_end(sizes: list[int], watched: int, most: int) -> None:
    written = b"".join(b"%x\n" % number for number in range(400_000))
    with closing(Ring(LEAST_BYTES)) as ring:
        fill_head(ring)
        offset = 0
        for count, size in enumerate(sizes):
            ring.write([written[offset : offset + size]])
            offset += size
            if watched and count % watched == 0:
                ring.snapshot().close()
        everything = b"h" * (HEAD_BYTES - 1) + b"\n" + written[:offset]
        kept = ring.snapshot(most)
        assert kept.lost + kept.size == len(everything)
        found = text(kept)
        assert found.startswith(everything[: HEAD_BYTES - 1])
        tail = found[HEAD_BYTES:]
        assert everything.endswith(tail)
        assert kept.lost or found == everything
        assert len(tail) <= most


def test_a_snapshot_does_not_change_while_the_keeping_goes_on(ring: Ring) -> None:
    fill_head(ring)
    ring.write([lines(0, 5000)])
    kept = ring.snapshot()
    for start in range(5000, 40_000, 500):
        ring.write([lines(start, start + 500)])
    assert text(kept)[HEAD_BYTES:] == lines(0, 5000)


def test_after_a_hard_kill_the_files_say_where_the_output_ends(ring: Ring) -> None:
    fill_head(ring)
    for start in range(0, 20_000, 100):
        ring.write([lines(start, start + 100)])
    assert ring.folder is not None
    contents = [path.read_bytes() for path in ring.folder.glob("tail.*")]
    assert sum(END_MARK in content for content in contents) == 1
    before, _, after = next(content for content in contents if END_MARK in content).partition(END_MARK)
    assert before.endswith(LINE % 19_999)
    assert not after or int(after.split(b"\n")[1]) < int(before[:9])
    assert {path.name for path in ring.folder.iterdir()} == {"head", "tail.0", "tail.1"}


def test_nothing_is_left_behind() -> None:
    ring = Ring(LEAST_BYTES)
    ring.write([b"x\n"])
    folder = ring.folder
    assert folder is not None
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    ring.close()
    assert not folder.exists()
    ring.write([b"late\n"])  # a thread that still passes output on


def test_what_a_killed_logdoc_left_is_removed_a_day_later_unless_it_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("logdoc-run-old", "logdoc-run-new", "other-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "head").write_text("x\n")
    with closing(Ring(LEAST_BYTES)) as in_use:
        assert in_use.folder is not None
        for old in (tmp_path / "logdoc-run-old", tmp_path / "other-old", in_use.folder):
            os.utime(old, (1000, 1000))
        Ring(LEAST_BYTES).close()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"logdoc-run-new", "other-old", in_use.folder.name}


def test_without_a_writable_folder_the_end_is_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**kwargs: object) -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with closing(Ring(1 << 30)) as ring:
        assert ring.folder is None
        for start in range(0, 2_000_000, 10_000):
            ring.write([lines(start, start + 10_000)])
        kept = ring.snapshot()
        assert kept.size < 10 << 20
        assert text(kept).endswith(LINE % 1_999_999)


def test_a_full_disk_ends_the_keeping_and_nothing_else() -> None:
    with closing(LogFile("/dev/full", LEAST_BYTES)) as keep:
        keep.write([b"x\n"])
        keep.write([b"y\n"])
        assert keep.fault == os.strerror(28)


def test_a_log_file_is_appended_to_and_only_the_new_part_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"an earlier run\n")
    with closing(LogFile(str(path), LEAST_BYTES)) as keep:
        keep.write([lines(0, 10)])
        assert text(keep.snapshot()) == lines(0, 10)
    assert path.read_bytes() == b"an earlier run\n" + lines(0, 10)


def test_of_a_long_log_file_the_beginning_and_the_end_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    with closing(LogFile(str(path), LEAST_BYTES)) as keep:
        for start in range(0, 300_000, 1000):
            keep.write([lines(start, start + 1000)])
        kept = keep.snapshot()
        assert kept.lost + kept.size == 3_000_000
        found = text(kept)
    assert path.read_bytes() == lines(0, 300_000)
    assert found.startswith(lines(0, 1000))
    assert found.endswith(lines(299_000, 300_000))
    assert all(len(line) == 9 for line in found.split(b"\n")[:-1])


def test_a_log_file_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-folder/x"):
        LogFile(str(tmp_path / "no-such-folder" / "x"), LEAST_BYTES)


def test_it_reads_as_a_source(ring: Ring) -> None:
    ring.write([b"a\nb\n"])
    with closing(ring.snapshot()) as kept:
        source = kept.source("<output>", PathHints(rank=3))
        assert source.read_all() == source.read_all() == b"a\nb\n"
        assert source.hints.identity().rank == 3


@given(st.lists(st.integers(0, 900), max_size=40), st.integers(0, 40_000))
@settings(max_examples=40, deadline=None)
def test_what_came_since_is_the_end_of_what_is_kept(lengths: list[int], size: int) -> None:
    with closing(Ring(LEAST_BYTES)) as ring:
        written = b"".join(b"x" * length + b"\n" for length in lengths)
        ring.write([written])
        with closing(ring.snapshot()) as kept:
            assert b"".join(kept.since(size).raw_blocks(100)) == written[size:]
            assert kept.since(size).size == len(written[size:])


def test_what_came_since_counts_what_was_lost(ring: Ring) -> None:
    fill_head(ring)
    for start in range(0, 100_000, 100):
        ring.write([lines(start, start + 100)])
    total = HEAD_BYTES + 10 * 100_000
    with closing(ring.snapshot()) as kept:
        assert b"".join(kept.since(total - 30).raw_blocks(1000)) == lines(99_997, 100_000)
        everything = kept.since(0)
        assert (everything.size, everything.lost) == (kept.size, kept.lost)
