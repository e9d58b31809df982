"""Bytes to records: joining, ranks, encodings, progress bars, time stamps."""

from __future__ import annotations

from logdoc.reader import ReadState, read
from logdoc.reader.clock import seconds
from logdoc.reader.errorjson import as_text
from logdoc.types.record import Record


def records(text: str | bytes, block: int = 1 << 16) -> list[Record]:
    data = text if isinstance(text, bytes) else text.encode()
    blocks = [data[start : start + block] for start in range(0, len(data), block)]
    return [record for batch in read("log", blocks, ReadState()) for record in batch]


def test_a_traceback_is_one_record() -> None:
    found = records('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x()\nValueError: bad\nnext\n')
    assert [record.body.splitlines()[-1] for record in found] == [["ValueError: bad", "next"][-1]]
    assert found[0].line_of(found[0].body.index("ValueError")) == 4


def test_tracebacks_of_two_ranks_interleaved_line_by_line_come_apart() -> None:
    text = "".join(
        f"[rank{rank}]: {line}\n"
        for line in ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: of rank {}")
        for rank in (0, 1)
    )
    text = text.replace("{}", "X")
    found = records(text)
    assert [(record.who.rank, record.line) for record in found] == [(0, 1), (1, 2)]
    assert all(record.body.count("\n") == 2 for record in found)


def test_an_nccl_exception_keeps_its_last_error() -> None:
    found = records(
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error\n"
        "[rank3]: ncclUnhandledCudaError: Call to CUDA function failed.\n"
        "[rank3]: Last error:\n"
        "[rank3]: Cuda failure 2 'out of memory'\n"
    )
    assert len(found) == 1
    assert found[0].body.endswith("'out of memory'")


WRAPPED = """\
ValueError: the length of the prompts and of the rewards differ, which this
trainer does not allow: it pairs them one by one. Give each prompt one reward, or
set a collator that repeats them.
epoch 1 starts with the rest of the data
"""


def test_a_message_broken_by_a_narrow_console_is_one_line() -> None:
    (found,) = records(WRAPPED)
    first, last = found.body.split("\n")
    assert first.startswith("ValueError: the length")
    assert first.endswith("or set a collator that repeats them.")
    assert found.line_of(found.body.index(last)) == 4


def test_a_sentence_on_two_full_lines_is_one_line() -> None:
    (found,) = records("ValueError: Free memory on device cuda:3 (1.52/39.39 GiB) on startup is\nless than desired.\n")
    assert found.body.endswith("on startup is less than desired.")
    (nccl,) = records(
        "RuntimeError: NCCL error in: x.cpp:1970, unhandled system error, version 2\nncclSystemError: call\n"
    )
    assert nccl.body.count("\n") == 1


def test_an_exception_is_no_part_of_another_one_s_sentence() -> None:
    (found,) = records("ERROR:root:ValueError: bad\n" + "x" * 60 + "\nRuntimeError: of its own\n")
    assert found.body.split("\n")[-1] == "RuntimeError: of its own"


def test_lines_that_a_program_ended_itself_stay_lines() -> None:
    (found,) = records("ValueError: three settings contradict each other:\nbatch size 8\nranks 3\nsteps 5\n")
    assert found.body.count("\n") == 3


def test_a_path_that_found_no_room_stands_behind_its_message() -> None:
    (found,) = records("FileNotFoundError: No such file or directory: \n'/data/shards/00017/tokens.bin'\n")
    assert found.body == "FileNotFoundError: No such file or directory: '/data/shards/00017/tokens.bin'"


def test_a_traceback_behind_a_margin_stands_at_it() -> None:
    (found,) = records('      File "a.py", line 1, in f\n        x()\n    ValueError: bad\n==========\n')[:1]
    assert found.body == '  File "a.py", line 1, in f\n    x()\nValueError: bad'


def test_a_chain_of_exceptions_is_a_record_each() -> None:
    found = records(
        "Traceback (most recent call last):\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\nValueError: b\n"
    )
    assert sum("Error" in record.body for record in found) == 2


REPORT = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-30_07:17:29
  host      : node-a
  rank      : 4 (local_rank: 0)
  exitcode  : -15 (pid: 28000)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 28000
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_07:17:28
  host      : node-a
  rank      : 5 (local_rank: 1)
  exitcode  : 1 (pid: 28001)
  error_file: /tmp/error.json
  traceback : Traceback (most recent call last):
    File "train.py", line 8, in main
      raise KeyError("lr")
  KeyError: 'lr'

============================================================
after
"""


def test_the_torchrun_report_tells_each_failure() -> None:
    found = records(REPORT)
    killed, root = (record for record in found if "torchrun-report" in record.dialects)
    assert (killed.who.rank, killed.who.local_rank, killed.who.host, killed.who.pid) == (4, 0, "node-a", 28000)
    assert killed.body.startswith("exitcode: -15 (pid: 28000)  (SIGTERM)")
    assert (root.who.rank, root.component) == (5, "root-cause")
    assert root.body.splitlines()[-1] == "KeyError: 'lr'"
    assert root.line_of(root.body.index("KeyError: 'lr'")) == 24
    assert root.time == seconds("2026-11-30 07:17:28")
    assert found[-1].body == "after"


def test_the_report_is_read_behind_the_label_that_srun_puts_before_each_line() -> None:
    text = "".join(f"0: {line}" for line in REPORT.splitlines(keepends=True))
    told = [[(record.who.rank, record.body) for record in records(log) if record.component] for log in (REPORT, text)]
    assert told[0] == told[1]
    assert [rank for rank, _ in told[1]] == [4, 5]


def test_what_is_printed_into_a_report_that_was_cut_off_is_not_lost() -> None:
    head = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n" + "=" * 60 + "\ntrain.py FAILED\n"
    found = records(f"{head}job 7 starts anew\n\nloading\nRuntimeError: lost\nbye\n")
    (lost,) = (record for record in found if "RuntimeError: lost" in record.body)
    assert lost.line_of(lost.body.index("RuntimeError")) == 7


def test_the_group_rank_of_the_default_group_is_global_and_no_other_is() -> None:
    told = {
        "[Rank 3] Watchdog caught": 3,
        "[PG 0 (default_pg) Rank 3] x": 3,
        "[PG ID 0 PG GUID 0(default_pg) Rank 3]  x": 3,
        "[PG ID 1 PG GUID 5(mesh_dp) Rank 3] x": None,
    }
    for text, rank in told.items():
        assert records(f"[E ProcessGroupNCCL.cpp:474] {text}\n")[0].who.rank == rank


def test_of_overwritten_progress_bars_the_last_stays_and_no_message_is_lost() -> None:
    bars = "\r".join(f"{n}%|##   | {n}/100 [00:01<00:02, 3.00it/s]" for n in range(1, 60))
    found = records(f"{bars}\rRuntimeError: lost\r{bars}\n")
    assert [record.body for record in found if "Error" in record.body] == ["RuntimeError: lost"]
    assert len(found) <= 4


def test_a_message_glued_to_a_progress_bar_is_its_own_line() -> None:
    found = records("steps:  0%|          | 0/186 [00:00<?, ?it/s]ERROR:root:failed hard\n")
    assert found[-1].body == "failed hard"
    assert found[-1].level == "ERROR"


def test_thousands_of_bars_on_one_line_hide_no_message() -> None:
    """A pipe that took the carriage returns away leaves every update of a bar on one line."""
    bars = "".join(f"{n % 100}%|##   | {n}/9999 [00:01<00:02, 3.00it/s]" for n in range(5_000))
    found = records(f"{bars}ERROR:root:failed hard\n")
    assert (found[-1].body, found[-1].level, found[-1].line) == ("failed hard", "ERROR", 1)
    assert len(found) == 5_001


def test_what_a_bar_s_program_prints_behind_it_does_not_hide_what_follows_a_later_one() -> None:
    bar = "9%|#    | 9/99 [00:01<00:02, 3.00it/s]"
    found = records(f"{bar}{{'loss': 2.5}}{bar}RuntimeError: lost\n")
    assert [record.body for record in found] == [f"{bar}{{'loss': 2.5}}{bar}", "RuntimeError: lost"]


def test_a_rank_that_is_no_number_anybody_counts_to_is_none() -> None:
    assert records('{"message": "x", "rank": "--5"}\n')[0].who.rank is None
    for group in ("", "PG 0 ", "PG ID 0 PG GUID 0(default_pg) "):
        assert records(f"[{group}Rank {'9' * 5000}] Watchdog caught\n")[0].who.rank is None


def test_colours_nul_crlf_and_invalid_utf8_do_not_hide_a_message() -> None:
    data = b"\x1b[36m(pid=5)\x1b[0m \x1b[31mValue\x00Error: \xff\xfe bad\x1b[0m\r\n"
    assert records(data)[0].body == "ValueError: �� bad"


def test_utf16_as_powershell_writes_it() -> None:
    assert records("RuntimeError: x\n".encode("utf-16"))[0].body == "RuntimeError: x"


def test_a_mark_of_an_encoding_counts_whatever_the_blocks() -> None:
    for encoding in ("utf-16", "utf-16-be", "utf-8-sig"):
        data = "RuntimeError: x\n".encode(encoding)
        data = b"\xfe\xff" + data if encoding == "utf-16-be" else data
        for block in (1, 2, 3, 100):
            assert records(data, block)[0].body == "RuntimeError: x"


def test_lines_are_numbered_as_an_editor_does_whatever_the_blocks() -> None:
    text = "a\n\nb\r\nc\rd\n" * 50
    for block in (1, 7, 4096):
        found = records(text, block)
        assert [record.line for record in found if record.body == "b"] == [3 + 4 * n for n in range(50)]


def test_a_line_of_ten_megabytes_loses_nothing() -> None:
    text = "x" * 5_000_000 + " RuntimeError: inside " + "y" * 5_000_000
    found = records(text + "\nnext\n")
    assert sum("RuntimeError: inside" in record.body for record in found) == 1
    assert found[-1].line == 2


def test_stamps_of_all_forms() -> None:
    assert seconds("2026-11-30T07:17:29Z") == seconds("2026-11-30 08:17:29+01:00")
    assert seconds("2026-11-30 07:17:29,500") == seconds("2026-11-30 07:17:29") + 0.5
    assert seconds("1206 18:44:16") == seconds("12-06 18:44:16") == seconds("Dec  6 18:44:16")
    assert seconds("Mon Apr  8 17:04:05 2024") == seconds("2024-04-08 17:04:05")
    assert seconds("123.456789") == 123.456789
    assert seconds("9999 99:99:99") is None


def test_a_caught_exception_belongs_to_the_warning_that_logs_it_and_an_uncaught_one_to_nobody() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1\nConnectionError: closed\n'
    caught = records(f"2026-11-30 10:05:43,151 WARNING data.fetch: attempt 1 failed, trying again\n{trace}")
    assert [record.is_caught for record in caught] == [True]
    crash = records(f"2026-11-30 10:05:43,151 INFO trainer: step 5 loss 2.0\n{trace}")
    assert [record.is_caught for record in crash] == [False, False]


def test_two_caught_exceptions_of_one_moment_are_two() -> None:
    trace = 'Traceback (most recent call last):\n  File "fetch.py", line 14, in fetch\nConnectionError: closed\n'
    told = "2026-11-30 10:05:43,151 WARNING data.fetch: attempt {} failed, trying again\n" + trace
    assert [record.is_caught for record in records(told.format(1) + told.format(2))] == [True, True]


def test_a_json_line_unfolds_to_its_message_and_its_exception() -> None:
    line = '{"message": "worker died", "level": "error", "exc_info": "Traceback (most recent call last):\\n  File \\"a.py\\"\\nValueError: bad"}\n'
    found = records(f"first\n{line}")[-1]
    assert found.body.splitlines() == [
        "worker died",
        "Traceback (most recent call last):",
        '  File "a.py"',
        "ValueError: bad",
    ]
    assert found.line_of(found.body.index("ValueError")) == 2
    assert found.level == "ERROR"
    assert records('{"msg": "back-off", "reason": "OOMKilled"}\n')[0].body == "back-off\nOOMKilled"


def test_an_error_file_whose_message_names_no_exception_tells_a_failure_all_the_same() -> None:
    assert as_text(b'{"message": {"message": "worker gave up", "extraInfo": {}}}') == b"Exception: worker gave up"
    assert as_text(b'{"message": "ValueError: bad lr"}') == b"ValueError: bad lr"
    assert as_text(b'{"message": {"message": "x", "extraInfo": {"py_callstack": "Traceback"}}}') == b"Traceback"
