"""The sources room: what the user typed becomes the right named byte streams, whatever the disk holds."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import socket
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logdoc.sources import Discovered, Limits, PathHints, Source, discover, path_hints, source_from_bytes
from logdoc.sources.hints import with_hosts
from logdoc.sources.origins import BytesOrigin
from logdoc.types.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1 << 20
TEXT = b"".join(b"step %d loss %d.%03d\n" % (step, step % 7, step * 7919 % 1000) for step in range(4000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
}
QUICK = Limits(writer_wait_seconds=0.05, idle_seconds=0.05)


def names(found: Discovered) -> list[str]:
    return [source.name for source in found.sources]


def only(found: Discovered) -> Source:
    (source,) = found.sources
    return source


def write(path: Path, data: bytes | str = "a line\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestFiles:
    def test_a_file_is_named_as_typed_and_can_be_read_twice(self, here: Path) -> None:
        write(here / "logs" / "crash.log", TEXT)
        source = only(discover(["logs/../logs/crash.log"]))
        assert (source.name, source.size, source.kind) == ("logs/../logs/crash.log", len(TEXT), "log")
        assert source.location == "logs/../logs/crash.log"
        assert source.read_all() == TEXT
        assert source.read_all() == TEXT
        assert not source.truncated

    def test_blocks_are_bounded(self, here: Path) -> None:
        write(here / "big.log", b"x" * (2 * MIB + 5))
        sizes = [len(block) for block in only(discover(["big.log"])).open_blocks()]
        assert sum(sizes) == 2 * MIB + 5
        assert max(sizes) <= 512 << 10

    def test_reading_stops_at_the_byte_limit_and_says_so(self, here: Path) -> None:
        write(here / "big.log", TEXT)
        source = only(discover(["big.log"], limits=Limits(max_bytes=1000)))
        assert source.read_all() == TEXT[:1000]
        assert source.truncated
        assert source.warnings == ("big.log: stopped at the limit of 1000 bytes of text",)

    def test_a_file_of_exactly_the_limit_is_whole(self, here: Path) -> None:
        write(here / "a.log", b"x" * 1000)
        source = only(discover(["a.log"], limits=Limits(max_bytes=1000)))
        assert len(source.read_all()) == 1000
        assert not source.truncated

    def test_read_all_can_be_capped(self, here: Path) -> None:
        write(here / "a.log", TEXT)
        source = only(discover(["a.log"]))
        assert source.read_all(max_bytes=10) == TEXT[:10]
        assert source.truncated
        assert "first 10 bytes" in source.warnings[0]

    def test_a_relative_path_survives_a_change_of_directory(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(here / "a.log", "text\n")
        source = only(discover(["a.log"]))
        monkeypatch.chdir("/")
        assert source.read_all() == b"text\n"

    @pytest.mark.parametrize(
        ("argument", "why"),
        [
            ("nosuch.log", "nosuch.log: No such file or directory"),
            ("a.log/b", "a.log/b: Not a directory"),
            ("bad\0name", "bad\ufffdname: embedded null byte"),
            ("loop", "loop: Too many levels of symbolic links"),
            ("nosuch*.log", "nosuch*.log: no file matches this"),
        ],
    )
    def test_what_cannot_be_read_is_one_line_with_path_and_reason(self, here: Path, argument: str, why: str) -> None:
        write(here / "a.log")
        (here / "loop").symlink_to("loop")
        with pytest.raises(InputError) as caught:
            discover([argument])
        assert str(caught.value) == why

    def test_beside_a_readable_file_a_fault_is_a_warning(self, here: Path) -> None:
        write(here / "a.log")
        found = discover(["nosuch.log", "a.log"])
        assert names(found) == ["a.log"]
        assert found.warnings == ("nosuch.log: No such file or directory",)

    def test_all_faults_are_told_in_one_line(self) -> None:
        with pytest.raises(InputError, match=r"^/no/1: .*; /no/2: .*; /no/3: .* \(and 2 more\)$"):
            discover([f"/no/{number}" for number in range(1, 6)])

    def test_nothing_named_is_an_error(self) -> None:
        with pytest.raises(InputError, match="nothing to read"):
            discover([])

    def test_a_file_that_vanishes_before_it_is_read(self, here: Path) -> None:
        source = only(discover([str(write(here / "a.log"))]))
        (here / "a.log").unlink()
        with pytest.raises(InputError, match=r"a\.log: No such file"):
            source.read_all()

    def test_a_disk_that_fails_in_the_middle_keeps_what_came_before(self) -> None:
        class FailingDisk:
            def raw_blocks(self, size: int) -> Iterator[bytes]:
                yield b"first\n"
                raise OSError(5, "Input/output error")

        source = Source("a.log", None, None, "log", PathHints(), FailingDisk(), Limits())
        assert source.read_all() == b"first\n"
        assert source.truncated
        assert source.warnings == ("a.log: reading stopped: Input/output error",)

    def test_binary_named_by_the_user_is_read(self, here: Path) -> None:
        data = bytes(range(256)) * 40
        write(here / "core.bin", data)
        assert only(discover(["core.bin"])).read_all() == data

    def test_the_same_file_is_read_once(self, here: Path) -> None:
        write(here / "d" / "a.log")
        (here / "d" / "b.log").hardlink_to(here / "d" / "a.log")
        (here / "link.log").symlink_to("d/a.log")
        assert names(discover(["d/a.log", "./d/a.log", "link.log", "d", "d/*.log"])) == ["d/a.log"]

    def test_hostile_names_are_shown_harmless(self, here: Path) -> None:
        write(here / "a\x1b[31m\n.log")
        write(here / os.fsdecode(b"\xff.log"))
        found = discover(["."])
        assert sorted(names(found)) == ["a\ufffd[31m\ufffd.log", "\ufffd.log"]
        assert [source.read_all() for source in found.sources] == [b"a line\n"] * 2

    def test_bytes_at_hand_are_a_source(self) -> None:
        source = source_from_bytes("rank_3.log", gzip.compress(TEXT))
        assert (source.read_all(), source.hints.rank, source.kind) == (TEXT, 3, "log")


class TestFolders:
    def test_logs_in_natural_order_and_nothing_else(self, here: Path) -> None:
        kept = ["rank_2.log", "rank_10.log", "sub/a.txt", "sub/job.err", "sub/job.out", "sub/stderr.3", "sub/syslog"]
        kept += ["train.log.1", "z/error.json", "z/old.log.gz"]
        for name in kept:
            write(here / "run" / name, gzip.compress(TEXT) if name.endswith(".gz") else b"text\n")
        for name in [
            "train.py",
            "m.pt",
            "m.safetensors",
            "i.png",
            "config.json",
            "README.md",
            ".hidden.log",
            "LICENSE",
        ]:
            write(here / "run" / name)
        write(here / "run" / ".git" / "x.log")
        write(here / "run" / "__pycache__" / "x.log")
        found = discover(["run"])
        assert names(found) == [f"run/{name}" for name in kept]
        assert [source.kind for source in found.sources if source.name.endswith("error.json")] == ["error-json"]
        assert found.warnings == ()

    def test_the_current_folder_adds_no_dot(self, here: Path) -> None:
        write(here / "a.log")
        assert names(discover(["."])) == ["a.log"]
        assert names(discover(["./"])) == ["a.log"]
        assert names(discover([f"../{here.name}"])) == [f"../{here.name}/a.log"]

    def test_binary_files_are_skipped_and_counted(self, here: Path) -> None:
        write(here / "a.log")
        for name in ("blob", "a.out", "x.dat", "y.dat.gz"):
            data = b"\x7fELF" + bytes(range(256)) * 20
            write(here / name, gzip.compress(data) if name.endswith("gz") else data)
        found = discover(["."])
        assert names(found) == ["a.log"]
        assert found.warnings == ("4 binary files (a.out, blob, x.dat, …) skipped",)

    @pytest.mark.parametrize(
        "text", ["错误: 显存不足\n".encode("gbk"), "Fehler: ü\n".encode("utf-16"), b"\0\0ok\n" * 1 + TEXT]
    )
    def test_text_in_other_encodings_is_no_binary(self, here: Path, text: bytes) -> None:
        write(here / "job", text)
        assert only(discover(["."])).read_all() == text

    @pytest.mark.parametrize("content", [{}, {"model.pt": b"PK", "train.py": b"x"}, {"blob": b"\0" * 100}])
    def test_a_folder_without_logs_says_what_was_looked_for(self, here: Path, content: dict[str, bytes]) -> None:
        (here / "empty").mkdir()
        for name, data in content.items():
            write(here / "empty" / name, data)
        with pytest.raises(InputError, match=r"^empty: no log in this folder \(looked for \.log, .*flight-recorder"):
            discover(["empty"])

    def test_links_do_not_loop_and_do_not_leave_the_folder(self, here: Path) -> None:
        write(here / "run" / "deep" / "a.log")
        write(here / "elsewhere" / "b.log")
        write(here / "c.log")
        (here / "run" / "deep" / "up").symlink_to("..")
        (here / "run" / "deep" / "self").symlink_to("self")
        (here / "run" / "out").symlink_to("../elsewhere")
        (here / "run" / "c.log").symlink_to("../c.log")
        found = discover(["run", "run/**/*.log"])
        assert names(found) == ["run/c.log", "run/deep/a.log"]
        assert any("1 link (run/out) to folders elsewhere not followed" in line for line in found.warnings)
        assert any(line.startswith("run/deep/self: Too many levels") for line in found.warnings)

    def test_very_deep_folders(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(here)
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        monkeypatch.chdir(here)
        write(here / "a.log")
        assert names(discover(["."])) == ["a.log"]
        assert names(discover(["**/*.log"])) == ["a.log"]
        subprocess.run(["rm", "-rf", str(here / "d")], check=True)  # too deep for pytest's own clean-up

    def test_more_files_than_the_limit_are_counted(self, here: Path) -> None:
        for number in range(12):
            write(here / f"rank_{number}.log")
        found = discover(["."], limits=Limits(max_files=3))
        assert names(found) == ["rank_0.log", "rank_1.log", "rank_2.log"]
        assert found.warnings == ("9 more files left out: at most 3 are read",)

    def test_looking_stops_at_the_entry_limit(self, here: Path) -> None:
        for number in range(12):
            write(here / f"rank_{number}.log")
        found = discover(["."], limits=Limits(max_entries=5))
        assert len(found.sources) == 5
        assert found.warnings == ("only the first 5 directory entries were looked at",)

    def test_many_faults_do_not_flood_the_warnings(self, here: Path) -> None:
        write(here / "a.log")
        found = discover([*(f"no{number}" for number in range(50)), "a.log"])
        assert len(found.warnings) == 21
        assert found.warnings[-1] == "30 more files or folders could not be read"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_an_unreadable_file_is_a_warning(self, here: Path) -> None:
        write(here / "a.log")
        write(here / "b.log").chmod(0)
        found = discover(["."])
        assert names(found) == ["a.log"]
        assert found.warnings == ("b.log: Permission denied",)


class TestPatterns:
    @pytest.fixture(autouse=True)
    def tree(self, here: Path) -> None:
        for name in ["r/1/out.log", "r/2/out.log", "r/10/out.log", "r/10/x/out.log", "r/10/m.pt", "r/.h/out.log"]:
            write(here / name)
        write(here / "a[1].log")

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("r/*/out.log", ["r/1/out.log", "r/2/out.log", "r/10/out.log"]),
            ("r/**/*.log", ["r/1/out.log", "r/2/out.log", "r/10/out.log", "r/10/x/out.log"]),
            ("**/x/*", ["r/10/x/out.log"]),
            ("r/1**", ["r/1/out.log", "r/10/out.log", "r/10/x/out.log"]),
            ("r/**", ["r/1/out.log", "r/2/out.log", "r/10/out.log", "r/10/x/out.log"]),
            ("r/[12]/*", ["r/1/out.log", "r/2/out.log"]),
            ("r/.*/*", ["r/.h/out.log"]),
            ("a[1].log", ["a[1].log"]),
            ("r/10/m.*", ["r/10/m.pt"]),
            ("./r/?/*.log", ["./r/1/out.log", "./r/2/out.log"]),
        ],
    )
    def test_patterns(self, pattern: str, expected: list[str]) -> None:
        assert names(discover([pattern])) == expected

    def test_an_absolute_pattern(self, here: Path) -> None:
        assert names(discover([f"{here}/r/1/*"])) == [f"{here}/r/1/out.log"]

    def test_a_quoted_home_is_expanded(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(here))
        assert names(discover(["~/r/2/*.log"])) == [f"{here}/r/2/out.log"]

    def test_matches_that_are_no_logs(self) -> None:
        write(Path("r/3/m.pt"))
        with pytest.raises(InputError, match=r"^r/3/\*: none of the 1 matches is a log"):
            discover(["r/3/*"])


class TestCompression:
    @pytest.mark.parametrize("packer", PACKERS)
    def test_told_by_the_bytes_not_the_suffix(self, here: Path, packer: str) -> None:
        write(here / "crash.log", PACKERS[packer](TEXT))
        source = only(discover(["crash.log"]))
        assert source.read_all() == TEXT
        assert not source.truncated
        assert source.size == len(PACKERS[packer](TEXT))

    def test_a_suffix_without_the_format_is_plain_text(self, here: Path) -> None:
        write(here / "crash.log.gz", TEXT)
        assert only(discover(["crash.log.gz"])).read_all() == TEXT

    @pytest.mark.parametrize("packer", PACKERS)
    def test_members_that_follow_each_other(self, packer: str) -> None:
        pack = PACKERS[packer]
        source = source_from_bytes("a", pack(b"one\n") + pack(b"") + pack(TEXT) + pack(b"three\n"))
        assert source.read_all() == b"one\n" + TEXT + b"three\n"
        assert source.warnings == ()

    @pytest.mark.parametrize("packer", PACKERS)
    def test_empty(self, packer: str) -> None:
        assert source_from_bytes("a", PACKERS[packer](b"")).read_all() == b""

    def test_a_skippable_zstd_frame_first(self) -> None:
        frame = b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd.compress(TEXT)
        assert source_from_bytes("a", frame).read_all() == TEXT

    @pytest.mark.parametrize("packer", PACKERS)
    def test_truncated_is_read_as_far_as_it_goes(self, here: Path, packer: str) -> None:
        text = os.urandom(300_000).hex().encode()
        packed = PACKERS[packer](text)
        write(here / "cut.gz", packed[: len(packed) * 4 // 5] if packer != "bzip2" else packed[:-4])
        source = only(discover(["cut.gz"]))
        read = source.read_all()
        assert text.startswith(read)
        assert len(read) > len(text) // 2
        assert source.truncated
        assert "ends early" in source.warnings[0]

    @pytest.mark.parametrize("block_bytes", [1, 7, 100, 5000])
    def test_without_its_trailer_the_text_is_whole(self, block_bytes: int) -> None:
        source = source_from_bytes("a", gzip.compress(bytes(5000))[:-8], Limits(block_bytes=block_bytes))
        assert source.read_all() == bytes(5000)
        assert source.truncated

    @pytest.mark.parametrize("packer", PACKERS)
    def test_a_wrong_check_sum_loses_no_text(self, packer: str) -> None:
        options = {"options": {zstd.CompressionParameter.checksum_flag: 1}} if packer == "zstd" else {}
        packed = bytearray(zstd.compress(TEXT, **options) if options else PACKERS[packer](TEXT))
        packed[-8 if packer == "gzip" else -2] ^= 0x55
        source = source_from_bytes("a.log", bytes(packed))
        assert source.read_all() == TEXT
        assert source.truncated
        assert source.warnings[0].startswith(f"a.log: damaged {packer} data")

    def test_damage_in_the_middle_keeps_all_before_it(self) -> None:
        text = os.urandom(400_000).hex().encode()
        packed = bytearray(gzip.compress(text))
        middle = len(packed) // 2
        packed[middle : middle + 2000] = b"\xff" * 2000
        source = source_from_bytes("a", bytes(packed))
        read = source.read_all()
        good = next(n for n in range(len(read) + 1) if n == len(read) or read[n] != text[n])
        assert good > len(text) * 0.45
        assert source.truncated

    def test_foreign_bytes_at_the_end_are_ignored(self) -> None:
        padded = source_from_bytes("a", gzip.compress(TEXT) + b"\0" * 1000)
        assert (padded.read_all(), padded.warnings) == (TEXT, ())
        for tail in (b"x", b"garbage" * 10):
            source = source_from_bytes("a", gzip.compress(TEXT) + tail)
            assert source.read_all() == TEXT
            assert not source.truncated
            assert source.warnings == ("a: what follows the gzip data is not gzip and was ignored",)

    def test_damaged_from_the_start_is_an_error(self, here: Path) -> None:
        write(here / "a.log.gz", b"\x1f\x8b\x08" + b"\xff" * 100)
        with pytest.raises(InputError, match=r"^a\.log\.gz: damaged gzip data"):
            discover(["a.log.gz"])

    @pytest.mark.parametrize("packer", PACKERS)
    def test_a_bomb_stops_with_the_reason(self, packer: str) -> None:
        bomb = PACKERS[packer](bytes(8 * MIB))
        source = source_from_bytes("b.gz", bomb, Limits(ratio_free_bytes=MIB, max_ratio=100))
        assert MIB < sum(map(len, source.open_blocks())) <= 2 * MIB
        assert source.truncated
        assert "more than 100 to 1" in source.warnings[0]
        limited = source_from_bytes("b.gz", bomb, Limits(max_bytes=MIB))
        assert sum(map(len, limited.open_blocks())) == MIB
        assert limited.warnings == ("b.gz: stopped at the limit of 1 MiB of text",)

    @pytest.mark.parametrize("packer", PACKERS)
    def test_memory_does_not_grow_with_the_text(self, packer: str) -> None:
        def peak_of(copies: int) -> int:
            source = source_from_bytes("b", PACKERS[packer](TEXT * copies))
            tracemalloc.start()
            total = sum(map(len, source.open_blocks()))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert total == len(TEXT) * copies
            return peak

        assert peak_of(150) < peak_of(30) + 2 * MIB

    def test_unpacking_needs_no_suffix_inside_folders(self, here: Path) -> None:
        for name, pack in PACKERS.items():
            write(here / f"job-{name}", pack(TEXT))
        assert [source.read_all() for source in discover(["."]).sources] == [TEXT] * 4

    def test_a_missing_zstd_package_is_named(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(here / "a.zst", zstd.compress(TEXT))
        monkeypatch.setitem(sys.modules, zstd.__name__, None)
        with pytest.raises(InputError, match=r"pip install backports\.zstd"):
            discover(["a.zst"])


class TestArchives:
    @pytest.fixture(autouse=True)
    def archives(self, here: Path) -> None:
        write(here / "x" / "a.log", TEXT)
        with tarfile.open(here / "b c.tgz", "w:gz") as tar:
            tar.add(here / "x" / "a.log", "a.log")
        with tarfile.open(here / "b.tar", "w") as tar:
            tar.add(here / "x" / "a.log", "a.log")
        with zipfile.ZipFile(here / "b.zip", "w") as archive:
            archive.write(here / "x" / "a.log", "a.log")

    @pytest.mark.parametrize(
        ("name", "advice"),
        [
            (
                "b c.tgz",
                "b c.tgz: is a tar archive; unpack it first: mkdir b_c-unpacked && tar -xf 'b c.tgz' -C b_c-unpacked",
            ),
            ("b.tar", "tar -xf b.tar -C b-unpacked && logdoc explain b-unpacked"),
            ("b.zip", "unzip -d b-unpacked b.zip && logdoc explain b-unpacked"),
        ],
    )
    def test_the_message_says_what_to_type(self, name: str, advice: str) -> None:
        with pytest.raises(InputError) as caught:
            discover([name])
        assert advice in str(caught.value)

    def test_in_a_folder_the_rest_is_read(self) -> None:
        found = discover(["."])
        assert names(found) == ["x/a.log"]
        assert found.warnings[0].startswith("b c.tgz: is a tar archive")
        assert found.warnings[1] == "2 more archives skipped; unpack them first"


class TestStandardInput:
    def test_spooled_and_read_twice(self) -> None:
        source = only(discover(["-"], stdin=io.BytesIO(TEXT)))
        assert (source.name, source.location, source.size, source.kind) == ("<stdin>", None, len(TEXT), "log")
        first, second = source.open_blocks(), source.open_blocks()
        assert b"".join(first) == b"".join(second) == TEXT

    def test_compressed(self) -> None:
        assert only(discover(["-"], stdin=io.BytesIO(zstd.compress(TEXT)))).read_all() == TEXT

    def test_interleaved_readings_do_not_disturb_each_other(self) -> None:
        source = only(discover(["-"], stdin=io.BytesIO(TEXT), limits=Limits(block_bytes=1000)))
        pairs = list(zip(source.open_blocks(), source.open_blocks(), strict=True))
        assert b"".join(left for left, _ in pairs) == b"".join(right for _, right in pairs) == TEXT

    def test_a_long_pipe_goes_to_disk_and_memory_stays_flat(self) -> None:
        class Endless(io.RawIOBase):
            given = 0

            def read(self, size: int = -1) -> bytes:
                self.given += size
                return b"" if self.given > 40 * MIB else b"y" * size

        tracemalloc.start()
        found = discover(["-"], stdin=Endless(), limits=Limits(spool_memory_bytes=MIB))  # type: ignore[arg-type]
        assert sum(map(len, only(found).open_blocks())) == 40 * MIB
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 * MIB
        found.close()
        with pytest.raises(InputError, match=r"^<stdin>: the copy of this stream has been closed"):
            only(found).read_all()

    def test_cut_at_the_limit(self) -> None:
        found = discover(["-"], stdin=io.BytesIO(TEXT), limits=Limits(max_bytes=100))
        assert found.warnings == ("<stdin>: only the first 100 bytes were read",)
        assert only(found).read_all() == TEXT[:100]
        assert only(found).truncated

    def test_named_twice_it_is_read_once(self) -> None:
        assert names(discover(["-", "-"], stdin=io.BytesIO(TEXT))) == ["<stdin>"]

    def test_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(InputError, match="<stdin>: standard input is closed"):
            discover(["-"])

    def test_a_folder_as_standard_input(self, here: Path) -> None:
        class Folder(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise IsADirectoryError(21, "Is a directory")

        with pytest.raises(InputError, match=r"<stdin>: .*Is a directory"):
            discover(["-"], stdin=Folder())

    def test_a_pipe_left_non_blocking_is_waited_for(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        timer = threading.Timer(0.05, lambda: (os.write(writing, b"late\n"), os.close(writing)))
        timer.start()
        with open(reading, "rb", buffering=0) as stream:
            assert only(discover(["-"], stdin=stream)).read_all() == b"late\n"  # type: ignore[arg-type]
        timer.join()

    def test_a_full_disk_keeps_what_was_copied(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "tempfile.TemporaryFile", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left"))
        )
        found = discover(["-"], stdin=io.BytesIO(b"x" * 300_000), limits=Limits(spool_memory_bytes=100_000))
        assert "No space left" in found.warnings[0]
        assert len(only(found).read_all()) >= 65_536
        assert only(found).truncated


class TestSpecialFiles:
    def test_a_named_pipe_nobody_writes_into_does_not_hang(self, here: Path) -> None:
        os.mkfifo("pipe")
        began = time.monotonic()
        with pytest.raises(InputError, match=r"^pipe: nobody writes into this named pipe$"):
            discover(["pipe"], limits=QUICK)
        assert time.monotonic() - began < 5

    def test_a_silent_writer_is_not_waited_for_for_ever(self, here: Path) -> None:
        os.mkfifo("pipe")
        keeper = os.open("pipe", os.O_RDWR)
        try:
            os.write(keeper, b"one line\n")
            found = discover(["pipe"], limits=QUICK)
        finally:
            os.close(keeper)
        assert only(found).read_all() == b"one line\n"
        assert "no byte came for 0.05 seconds" in found.warnings[0]

    def test_a_named_pipe_is_read_to_its_end(self, here: Path) -> None:
        os.mkfifo("pipe")
        writer = threading.Thread(target=lambda: (here / "pipe").write_bytes(TEXT))
        writer.start()
        found = discover(["pipe"])
        writer.join()
        assert only(found).read_all() == TEXT
        assert found.warnings == ()

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
    def test_an_endless_device_is_read_to_its_limit(self, device: str) -> None:
        found = discover([device], limits=Limits(max_special_bytes=MIB))
        assert found.warnings[0] == f"{device}: only the first 1 MiB were read"
        assert "no plain text" in found.warnings[1]
        assert sum(map(len, only(found).open_blocks())) == MIB
        assert only(found).truncated

    def test_a_socket_is_refused_and_pipes_in_folders_are_left_alone(self, here: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s.log")
            os.mkfifo("pipe.log")
            with pytest.raises(InputError, match=r"^s\.log: is a socket"):
                discover(["s.log"])
            write(here / "a.log")
            assert names(discover(["."], limits=QUICK)) == ["a.log"]


class TestKinds:
    DUMP = pickle.dumps({"version": "2.9", "pg_config": {}, "entries": []}, protocol=2)
    JSON_DUMP = json.dumps({"comm_lib_version": "", "entries": [{"collective_seq_id": 1}], "version": "2.10"}).encode()

    @pytest.mark.parametrize(
        ("name", "data", "kind", "rank"),
        [
            ("nccl_trace_rank_3", DUMP, "flight-recorder", 3),
            ("comm_lib_trace_rank_12.gz", gzip.compress(DUMP, mtime=0), "flight-recorder", 12),
            ("_dump_7", DUMP, "flight-recorder", 7),
            ("my_dump_7.json", JSON_DUMP, "flight-recorder", 7),
            ("TORCH_FR_job5_4", DUMP, "flight-recorder", 4),
            ("fr-job_17_5", DUMP, "flight-recorder", 5),
            ("nccl_trace_rank_3", b"just text\n", "log", 3),
            ("nccl_trace_rank_4", b"{'a': 1}", "log", 4),
            ("data", pickle.dumps([1, 2]), "log", None),
            ("error.json", b"{}", "error-json", None),
            ("e.json", b'{"message": {"message": "x", "extraInfo": {}}}', "error-json", None),
            ("log.json", b'{"message": "x", "level": "info"}', "log", None),
        ],
    )
    def test_by_name_and_content(self, here: Path, name: str, data: bytes, kind: str, rank: int | None) -> None:
        source = only(discover([str(write(here / name, data))]))
        assert (source.kind, source.hints.rank) == (kind, rank)

    def test_dumps_in_a_folder(self, here: Path) -> None:
        for rank in (0, 2, 10):
            write(here / f"nccl_trace_rank_{rank}", self.DUMP)
        write(here / "nccl_trace_rank_3", b"")
        found = discover(["."])
        assert [(source.kind, source.hints.rank) for source in found.sources] == [
            ("flight-recorder", rank) for rank in (0, 2, 10)
        ]
        assert found.warnings[0].startswith("nccl_trace_rank_3: empty")


NEVER_GUESSED = """
    train-2024-11-30.log train-2024-11.log train_20241130-153012.log train-20241130-3.log run-241130-3.log
    train-2024-11-30-153012-3.log 2024-11-30T15-30-12.log slurm-12345.out slurm-12345_3.out slurm-12345.3.out
    train-12345.log epoch-100-3.log run-1732959000-3.log worker-12345.log node_rank_1.log tp_rank_3.log mp_rank_00.log
    dataloader_worker_2.log rank_0-7.log rank_1_to_rank_3.log crank3.log job.o12345 3.log gpu3.log kill_rank1_late.log
    node-3.log mypod-3.log train.log.1 train.log.3.gz nccl.log.1 nccl.17.4242.log worker-0a1b2c3d-01000000-4242.out
    rank.log attempt_3.log frank/3.log version_3/train.log train-2024-7.log rank_0_7.log worker-3-0.log
"""


class TestHints:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("none_ab12/attempt_0/3/stderr.log", PathHints(local_rank=3, attempt=0)),
            ("/r/none_ab12/attempt_2/0/stdout.log.gz", PathHints(local_rank=0, attempt=2)),
            ("attempt_1/7/error.json", PathHints(local_rank=7, attempt=1)),
            ("x/attempt_1/filtered_stderr.log", PathHints(attempt=1)),
            ("7/error.json", PathHints()),
            ("train-12345-3.log", PathHints(task=3)),
            ("train-12345_7-3.out", PathHints(task=3)),
            ("my-run-12345.0-003.err", PathHints(task=3)),
            ("12345-11.out", PathHints(task=11)),
            ("rank_3.log", PathHints(rank=3)),
            ("rank3.txt", PathHints(rank=3)),
            ("Rank-003.log.xz", PathHints(rank=3)),
            ("log.rank.3", PathHints(rank=3)),
            ("log_rank_12", PathHints(rank=12)),
            ("train_2024-11-30_rank_5_stderr.log", PathHints(rank=5)),
            ("rank_3_of_8.log", PathHints(rank=3)),
            ("rank_3-20241130-153012.log", PathHints(rank=3)),
            ("rank_3.log.2", PathHints(rank=3)),
            ("global_rank_9.log", PathHints(rank=9)),
            ("local_rank_1.log", PathHints(local_rank=1)),
            ("localrank1.log", PathHints(local_rank=1)),
            ("rank_3/stderr", PathHints(rank=3)),
            ("1/rank.3/stdout", PathHints(rank=3)),
            ("rank_4/rank_5.log", PathHints(rank=5)),
            ("worker-3.log", PathHints(task=3)),
            ("mypod-worker-3.log", PathHints(task=3)),
            ("pods/ns_job-worker-3_0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/pytorch/0.log", PathHints(task=3)),
            (f"job-worker-3_default_pytorch-{'0a' * 32}.log", PathHints(task=3)),
            ("stderr.3", PathHints(task=3)),
            ("job.e12345", PathHints()),
            ("nccl.node-a.4242.log", PathHints(host="node-a", pid=4242)),
            ("nccl_debug.gpu17.4242", PathHints(host="gpu17", pid=4242)),
        ],
    )
    def test_read(self, path: str, expected: PathHints) -> None:
        assert path_hints(path) == expected

    @pytest.mark.parametrize(
        "path",
        NEVER_GUESSED.split(),
    )
    def test_never_guessed(self, path: str) -> None:
        assert path_hints(path) == PathHints()

    @pytest.mark.parametrize(
        ("paths", "hosts"),
        [
            (["j/node-a/rank_0.log", "j/node-b/rank_0.log"], ["node-a", "node-b"]),
            (["j/gpu-node-01/none_x/attempt_0/0/stderr.log", "j/gpu-node-17/a.log"], ["gpu-node-01", "gpu-node-17"]),
            (["10.0.0.5/a.log", "10.0.0.6/a.log"], ["10.0.0.5", "10.0.0.6"]),
            (
                ["ip-10-0-0-5.ec2.internal/a", "ip-10-0-0-6.ec2.internal/a"],
                ["ip-10-0-0-5.ec2.internal", "ip-10-0-0-6.ec2.internal"],
            ),
            (["j/node-b/rank_0.log", "j/node-b/rank_1.log"], [None, None]),
            (["j/run-1/a.log", "j/run-2/a.log"], [None, None]),
            (["j/exp-a/a.log", "j/exp-b/a.log"], [None, None]),
            (["j/gpu0/a.log", "j/gpu1/a.log"], [None, None]),
            (["j/node-logs/a.log", "j/node-metrics/a.log"], [None, None]),
            (["j/node_rank_0/a.log", "j/node_rank_1/a.log"], [None, None]),
            (["j/node-1/a.log", "k/node-2/a.log"], [None, None]),
        ],
    )
    def test_hosts_need_company(self, paths: list[str], hosts: list[str | None]) -> None:
        completed = with_hosts(paths, [path_hints(path) for path in paths])
        assert [hints.host for hints in completed] == hosts

    def test_discovery_sees_the_whole_path_and_the_siblings(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for host in ("node-a", "node-b"):
            write(here / host / "none_x" / "attempt_0" / "1" / "stderr.log")
        first, second = discover(["."]).sources
        assert first.hints == PathHints(local_rank=1, attempt=0, host="node-a")
        assert second.hints.host == "node-b"
        monkeypatch.chdir(here / "node-a" / "none_x" / "attempt_0" / "1")
        assert only(discover(["stderr.log"])).hints == PathHints(local_rank=1, attempt=0)

    def test_as_the_reader_wants_them(self) -> None:
        identity = PathHints(rank=3, host="a", pid=7).identity()
        assert (identity.rank, identity.host, identity.pid, identity.task) == (3, "a", 7, None)


class TestUrls:
    @pytest.fixture(autouse=True)
    def store(self) -> Iterator[None]:
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory")
        memory.pipe({"/job/rank_10.log": TEXT, "/job/rank_2.log.gz": gzip.compress(TEXT), "/job/m.pt": b"\0" * 100})
        yield
        memory.store.clear()

    def test_an_object_a_folder_and_a_pattern(self) -> None:
        one = only(discover(["memory://job/rank_10.log"]))
        assert (one.name, one.location, one.hints.rank, one.read_all()) == ("memory://job/rank_10.log", None, 10, TEXT)
        found = discover(["memory://job"])
        assert [source.hints.rank for source in found.sources] == [2, 10]
        assert [source.read_all() for source in found.sources] == [TEXT, TEXT]
        assert [source.hints.rank for source in discover(["memory://job/*.gz"]).sources] == [2]

    def test_what_is_missing_is_named(self) -> None:
        with pytest.raises(InputError, match=r"^memory://job/nosuch\.log: nothing there$"):
            discover(["memory://job/nosuch.log"])
        with pytest.raises(InputError, match=r"^nosuchscheme://a/b: .*nosuchscheme"):
            discover(["nosuchscheme://a/b"])
        with pytest.raises(InputError, match="no log found there"):
            discover(["memory://job/*.out"])

    @pytest.mark.parametrize("url", ["https://h/a.log", "http://h/a.log", "s3://bucket/a.log"])
    def test_without_the_extra(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fsspec", None)
        with pytest.raises(InputError) as caught:
            discover([url])
        assert str(caught.value) == f'{url}: reading URLs needs an extra: pip install "logdoc[remote]"'

    def test_credentials_are_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "fsspec", None)
        with pytest.raises(InputError) as caught:
            discover(["https://me:secret@h/a.log?X-Amz-Signature=secret#secret"])
        assert str(caught.value).startswith("https://h/a.log: ")
        assert "secret" not in str(caught.value)

    def test_a_file_url_is_a_path(self, here: Path) -> None:
        assert only(discover([write(here / "a b.log", "x\n").as_uri()])).read_all() == b"x\n"


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = (
        "import sys, logdoc.sources; "
        "print(*sorted({'fsspec', 'psutil', 'backports.zstd', 'compression.zstd', 'http.client'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


MAGICS = [b"", b"\x1f\x8b\x08", b"BZh91AY&SY", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\x52\x2a\x4d\x18", b"PK\x03\x04"]
NAMES = ["a.log", "a.log.gz", "error.json", "nccl_trace_rank_1", "_dump_2", "rank_3.zst", "data", "x.out"]
wrapped = st.builds(lambda pack, data: pack(data), st.sampled_from(list(PACKERS.values())), st.binary(max_size=3000))
raw_bytes = st.builds(lambda magic, data: magic + data, st.sampled_from(MAGICS), st.binary(max_size=3000))


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """Any bytes: raw, behind a magic number, or a real container that is cut, joined or has bytes changed."""
    data = bytearray(b"".join(draw(st.lists(st.one_of(raw_bytes, wrapped), min_size=1, max_size=3))))
    for position, value in draw(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=3)):
        if data:
            data[position % len(data)] = value
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=hostile(), name=st.sampled_from(NAMES), whole_folder=st.booleans())
def test_any_bytes_in_any_container_give_blocks_or_an_input_error(
    tmp_path: Path, data: bytes, name: str, whole_folder: bool
) -> None:
    folder = tmp_path / "one"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    limits = Limits(max_bytes=100_000, block_bytes=1000)
    refusal = f"{path}: "
    try:
        for source in discover([str(folder if whole_folder else path)], limits=limits).sources:
            blocks = list(source.open_blocks())
            assert all(0 < len(block) <= 1000 for block in blocks)
            assert sum(map(len, blocks)) <= 100_000
    except InputError as error:
        refusal = str(error)
    finally:
        path.unlink()
    assert refusal.startswith((f"{path}: ", f"{folder}: "))
    assert "\n" not in refusal


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000), st.sampled_from(list(PACKERS.values())), st.lists(st.integers(1, 500), max_size=5))
def test_round_trip_however_the_raw_blocks_fall(data: bytes, pack: Callable[[bytes], bytes], cuts: list[int]) -> None:
    packed = pack(data)

    class Ragged(BytesOrigin):
        def raw_blocks(self, size: int) -> Iterator[bytes]:
            start = 1
            yield self.data[:start]
            for cut in cuts:
                if self.data[start : start + cut]:
                    yield self.data[start : start + cut]
                start += cut
            yield self.data[start:]

    source = Source("a", None, None, "log", PathHints(), Ragged(packed), Limits(block_bytes=100))
    assert source.read_all() == data
    assert not source.truncated


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_path_has_hints(text: str) -> None:
    assert isinstance(path_hints(text), PathHints)


@given(st.text(alphabet="*?[]/.a\0~-", max_size=12))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_argument_is_found_or_refused(here: Path, text: str) -> None:
    write(here / "a" / "a.a")
    # Patterns that climb out of the test's folder would search the whole disk.
    if text.startswith(("/", "~")) or ".." in text:
        return
    refusal = ""
    try:
        assert discover([text], stdin=io.BytesIO(b"x"), limits=QUICK).sources
    except InputError as error:
        refusal = str(error)
    assert "\n" not in refusal
