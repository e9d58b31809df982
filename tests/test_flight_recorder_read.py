"""Reading single dumps: what torch writes is read, everything else is refused in one line and never run."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdoc.flight_recorder import Dump, analyse, read, read_dump, unpickle
from logdoc.flight_recorder.model import Entry, Frame, Group, Status
from logdoc.types.errors import InputError

ENTRY: dict[str, Any] = {
    "frames": [{"name": "step", "filename": "/home/user/train.py", "line": 7}],
    "record_id": 4000,
    "pg_id": 3,
    "process_group": ("8", "tp"),
    "thread_name": "python3",
    "thread_id": "139887325862784",
    "collective_seq_id": 70000,
    "p2p_seq_id": 0,
    "op_id": 70001,
    "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1796024210785666286,
    "duration_ms": 1.5,
    "input_sizes": [[4, 5]],
    "input_dtypes": ["BFloat16"],
    "output_sizes": [[4, 5]],
    "output_dtypes": ["BFloat16"],
    "state": "started",
    "time_discovered_started_ns": 1796024210785666300,
    "time_discovered_completed_ns": None,
    "retired": False,
    "timeout_ms": 600000,
    "is_p2p": False,
}
DUMP: dict[str, Any] = {
    "version": "2.10",
    "comm_lib_version": "2.27.3",
    "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "8": {"name": "8", "desc": "tp", "ranks": "[2, 3]"},
    },
    "pg_status": {
        "0": {"last_enqueued_collective": 9, "last_started_collective": -1, "last_completed_collective": 9},
        "3": {"last_enqueued_collective": 70000, "last_started_collective": 70000, "last_completed_collective": 69999},
    },
    "nccl_comm_state": {},
    "entries": [ENTRY],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**DUMP, "entries": [{**ENTRY, **fields}]}


def refusal(data: bytes, name: str = "nccl_trace_rank_2") -> str:
    with pytest.raises(InputError) as caught:
        read_dump(data, name)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert message.isprintable(), "one line, whatever the dump holds"
    assert len(message) < 300
    return message.removeprefix(f"{name}: ")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_field_of_a_pickle_arrives(protocol: int) -> None:
    dump = read_dump(pickle.dumps(DUMP, protocol), "nccl_trace_rank_2")
    world, tp = Group("0", "default_pg", (0, 1, 2, 3)), Group("8", "tp", (2, 3))
    assert (dump.name, dump.rank, dump.version, dump.groups) == ("nccl_trace_rank_2", 2, "2.10", (world, tp))
    assert dump.status == {"0": Status(9, None, 9), "8": Status(70000, 70000, 69999)}
    assert dump.status_complete
    assert dump.entries == (
        Entry(
            record=4000,
            group=tp,
            seq=70000,
            p2p_seq=0,
            backend="nccl",
            op="all_reduce",
            peer=None,
            is_p2p=False,
            input_sizes=((4, 5),),
            input_dtypes=("BFloat16",),
            output_sizes=((4, 5),),
            output_dtypes=("BFloat16",),
            state="started",
            retired=False,
            created_ns=1796024210785666286,
            frames=(Frame("step", "/home/user/train.py", 7),),
        ),
    )


def test_json_writes_some_numbers_as_text_and_zero_for_never() -> None:
    content = json.loads(json.dumps(changed(time_created_ns=0)))
    for status in content["pg_status"].values():
        status.update({key: str(value) for key, value in status.items()})
    read_from_json = read_dump(json.dumps(content).encode(), "rank_2.json")
    read_from_pickle = read_dump(pickle.dumps(changed(time_created_ns=None), 2), "rank_2.json")
    assert read_from_json == read_from_pickle


def test_a_json_dump_without_operations_leaves_entries_out() -> None:
    content = {key: value for key, value in DUMP.items() if key != "entries"}
    assert read_dump(json.dumps(content).encode(), "rank_2.json").entries == ()


def test_a_send_names_its_peer_within_the_group() -> None:
    data = pickle.dumps(changed(profiling_name="nccl:send 0->1", is_p2p=True, p2p_seq_id=6), 2)
    (entry,) = read_dump(data, "_dump_2").entries
    assert (entry.op, entry.peer, entry.p2p_seq, entry.is_p2p) == ("send", 1, 6, True)


def test_a_status_whose_group_no_entry_names_is_found_by_age_unless_names_are_hashes() -> None:
    content = {**DUMP, "entries": []}
    assert read_dump(pickle.dumps(content, 2), "rank_2").status == {
        "0": Status(9, None, 9),
        "8": Status(70000, 70000, 69999),
    }
    hashed = {"0": DUMP["pg_config"]["0"], "b1946ac92492d234": DUMP["pg_config"]["8"]}
    dump = read_dump(pickle.dumps({**content, "pg_config": hashed}, 2), "rank_2")
    assert (dump.status, dump.status_complete) == ({}, False)


def test_a_status_out_of_the_order_of_age_is_taken_from_entries_alone() -> None:
    dump = read_dump(pickle.dumps(changed(pg_id=0), 2), "rank_2")
    assert (dump.status, dump.status_complete) == ({"8": Status(9, None, 9)}, False)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("/logs/nccl_trace_rank_3", 3),
        ("comm_lib_trace_rank_3", 3),
        ("_dump_2", 2),
        ("job7_rank2_node-11.pkl", 2),
        ("rank_3.json", 3),
        ("dump.3.json", 3),
    ],
)
def test_the_rank_is_in_the_name(name: str, rank: int) -> None:
    assert read_dump(pickle.dumps(DUMP, 2), name).rank == rank


def test_without_a_rank_in_the_name_the_groups_may_tell_it() -> None:
    alone = {**DUMP, "pg_config": {**DUMP["pg_config"], "9": {"name": "9", "desc": "dp", "ranks": "[3]"}}}
    assert read_dump(pickle.dumps(alone, 2), "trace").rank == 3
    assert read_dump(pickle.dumps(alone, 2), "trace_20260101").rank == 3, "a number no group holds is no rank"
    sending = changed(profiling_name="nccl:recv 1<-0", is_p2p=True)
    assert read_dump(pickle.dumps(sending, 2), "trace").rank == 3
    assert "nothing says which rank" in refusal(pickle.dumps(DUMP, 2), "trace")
    assert "named after rank 40" in refusal(pickle.dumps(DUMP, 2), "rank_40")


def test_an_empty_file_says_why_it_is_empty() -> None:
    assert refusal(b"") == "empty (the trainer was killed while writing it)"


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_cut_anywhere_is_refused_or_complete(protocol: int) -> None:
    data = pickle.dumps(DUMP, protocol)
    for end in range(1, len(data) - 1):
        assert "cut off" in refusal(data[:end])


def test_cut_json_is_refused() -> None:
    data = json.dumps(DUMP).encode()
    for end in range(1, len(data), 7):
        assert "cut off" in refusal(data[:end])


CALLED: list[str] = []


def call_me() -> None:
    CALLED.append("a pickle ran code")


class Calls:
    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return call_me, ()


@pytest.mark.parametrize("protocol", range(6))
def test_an_object_that_calls_is_refused_by_name_and_not_called(protocol: int) -> None:
    message = refusal(pickle.dumps({"entries": Calls()}, protocol))
    assert message.startswith("refused: pickle asks for ")
    if protocol > 1:  # older ones write their dicts with opcodes that are refused already
        assert message.endswith(f"{__name__}.call_me")
    assert CALLED == []


PICKLED_CALLS = {
    "GLOBAL": (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.", "pickle asks for os.system"),
    "STACK_GLOBAL": (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", "pickle asks for os.system"),
    "STACK_GLOBAL on nothing": (b"\x80\x04\x93.", "pickle asks for "),
    "INST": (b"(S'id'\nios\nsystem\n.", "pickle asks for STRING"),
    "INST first": (b"\x80\x02(ios\nsystem\n.", "pickle asks for os.system"),
    "GLOBAL in protocol 0": (b"cos\nsystem\n(S'id'\ntR.", "pickle asks for os.system"),
    "OBJ": (b"\x80\x02(NNo.", "pickle asks for OBJ"),
    "REDUCE": (b"\x80\x02N)R.", "pickle asks for REDUCE"),
    "NEWOBJ": (b"\x80\x02N)\x81.", "pickle asks for NEWOBJ"),
    "BUILD": (b"\x80\x02}}b.", "pickle asks for BUILD"),
    "EXT1": (b"\x80\x02\x82\x01.", "pickle asks for EXT1"),
    "EXT2": (b"\x80\x02\x83\x01\x00.", "pickle asks for EXT2"),
    "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", "pickle asks for EXT4"),
    "PERSID": (b"\x80\x02P0\n.", "pickle asks for PERSID"),
    "BINPERSID": (b"\x80\x02NQ.", "pickle asks for BINPERSID"),
    "NEXT_BUFFER": (b"\x80\x05\x97.", "pickle asks for NEXT_BUFFER"),
    "terminal codes": (b"\x80\x02c\x1b[31mos\nsys\x07tem\n.", "pickle asks for ?[31mos.sys?tem"),
}


@pytest.mark.parametrize("case", PICKLED_CALLS)
def test_opcodes_that_import_call_or_build_are_refused(case: str) -> None:
    data, reason = PICKLED_CALLS[case]
    assert refusal(data).startswith(f"refused: {reason}")


PICKLED_BOMBS = {
    "LONG4 of 2 GiB": (b"\x80\x02\x8b\xff\xff\xff\x7f.", "LONG4"),
    "LONG of text": (b"\x80\x02L" + b"9" * 5000 + b"L\n.", "LONG"),
    "BINBYTES8 of 2**60": (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b".", "BINBYTES8"),
    "BYTEARRAY8 of 2**60": (b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".", "BYTEARRAY8"),
    "BINUNICODE8 of 2**60": (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b".", "BINUNICODE8"),
    "BINUNICODE of 4 GiB": (b"\x80\x02X\xff\xff\xff\xff.", "a string of 4294967295 bytes"),
    "memo index 2**31": (b"\x80\x02}r\xff\xff\xff\x7f.", "neither entries nor pg_config"),
    "marks": (b"\x80\x02" + b"(" * 100_000 + b".", "nested deeper than 64"),
    "nested lists": (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "holds a list"),
    "nested tuple as a key": (b"\x80\x02}N" + b"\x85" * 100_000 + b"Ns.", "key that is no string"),
    "a list that holds itself": (b"\x80\x02]q\x00h\x00a.", "holds a list"),
    "a dict that holds itself": (b"\x80\x02}q\x00X\x07\x00\x00\x00entriesh\x00s.", "entries is no list"),
    "a container a byte": (b"\x80\x02" + b"}" * 5_000_000 + b".", "more than 200000 lists and dicts"),
    "the rest of a full stack": (b"\x80\x02]N.", "holds a NoneType"),
    "STOP at once": (b"\x80\x02.", "empty stack"),
    "a mark taken as a value": (b"\x80\x02}(s.", "empty stack"),
    "an item of nothing": (b"\x80\x02(u.", "no dict"),
    "unknown memo": (b"\x80\x02h\x05.", "never remembered"),
    "unknown protocol": (b"\x80\xff}.", "protocol"),
    "no opcode": (b"\x80\x02\xff.", "no pickle opcode"),
}


@pytest.mark.parametrize("case", PICKLED_BOMBS)
def test_bombs_are_refused_without_their_memory(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickle, "MAX_CONTAINERS", 200_000)
    tracemalloc.start()
    try:
        data, reason = PICKLED_BOMBS[case]
        assert reason in refusal(data)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_one_list_referred_to_a_million_times_is_converted_once() -> None:
    """2,000 entries that share 4,000 tensors of 60 dimensions would be a billion numbers."""
    tensors = [[1] * 60] * 4000
    content = changed(input_sizes=tensors, output_sizes=tensors)
    content["entries"] = content["entries"] * 2000
    assert len(read_dump(pickle.dumps(content, 2), "rank_2").entries) == 2000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "refused: values nested too deeply"),
        ('{"entries": ' + "9" * 5000 + "}", "not JSON, or cut off"),
        ("[]", "it holds a list, not a dict"),
        ("{}", "it has neither entries nor pg_config"),
    ],
)
def test_json_that_is_no_dump_is_refused(text: str, reason: str) -> None:
    assert reason in refusal(text.encode())


def test_files_and_json_beyond_the_caps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_JSON_CONTAINERS", 10)
    assert "lists and dicts" in refusal(json.dumps(DUMP).encode())
    monkeypatch.setattr(read, "MAX_BYTES", 1 << 20)
    assert refusal(b"\x80\x02" + bytes(1 << 20)) == "refused: larger than 1 MiB"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("collective_seq_id", "seven"),
        ("collective_seq_id", 1 << 70),
        ("record_id", True),
        ("process_group", ("8",)),
        ("process_group", "88"),
        ("profiling_name", 5),
        ("input_sizes", [4, 5]),
        ("input_sizes", [[-1]]),
        ("output_dtypes", [None]),
        ("frames", [["train.py", 7]]),
        ("frames", {}),
        ("time_created_ns", []),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(field: str, value: object) -> None:
    assert f"not a flight recorder dump: {field}" in refusal(pickle.dumps(changed(**{field: value}), 2))


@pytest.mark.parametrize("ranks", ["__import__('os').system('id')", "[0, " * 1000, "[123456789012]", "[0] * 9**9"])
def test_ranks_are_read_never_evaluated(ranks: str) -> None:
    content = {**DUMP, "pg_config": {"8": {"name": "8", "desc": "tp", "ranks": ranks}}}
    assert refusal(pickle.dumps(content, 2)) == "not a flight recorder dump: ranks is no list of numbers"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_the_bytes_there_is_a_dump_or_one_line(data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps(DUMP, data.draw(st.sampled_from([2, 4]))))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    outcome = read_or_refuse(bytes(whole))
    if isinstance(outcome, str):
        assert outcome.isprintable()
    else:
        assert set(analyse([outcome]).culprits) <= set(analyse([outcome]).world)


def read_or_refuse(data: bytes) -> Dump | str:
    try:
        return read_dump(data, "nccl_trace_rank_2")
    except InputError as refused:
        return str(refused)


LIVE_JOB = """
import os, sys, torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", store=(store := dist.FileStore(f"{folder}/store", 2)), rank=rank, world_size=2)
def train_step():
    dist.all_reduce(torch.ones(4, 5))
    if rank == 0:
        dist.all_reduce(torch.ones(3), async_op=True)  # rank 1 never comes
train_step()
for name, dump in ((f"nccl_trace_rank_{rank}", _dump_fr_trace), (f"rank_{rank}.json", _dump_fr_trace_json)):
    with open(f"{folder}/{name}", "wb") as out:
        out.write(dump())
store.set(f"dumped{rank}", "1")
store.wait(["dumped0", "dumped1"])  # a rank that leaves first breaks the other's call
os._exit(0)
"""


@pytest.mark.torch
def test_dumps_of_a_real_job(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "live.py").write_text(LIVE_JOB)
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}
    workers = [
        subprocess.Popen([sys.executable, "live.py", str(rank), str(tmp_path)], cwd=tmp_path, env=environment)
        for rank in range(2)
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    for pattern in ("nccl_trace_rank_*", "rank_*.json"):
        verdict = analyse([read_dump(path.read_bytes(), path.name) for path in tmp_path.glob(pattern)])
        assert verdict.culprits == (1,)
        if verdict.kind == "stuck-in-collective":  # dumped before rank 1's recorder knew that its first call had ended
            continue
        assert verdict.kind == "lagging"
        assert (verdict.groups[0].seq, verdict.groups[0].op) == (2, "all_reduce")
        frames = [place.frame for place in verdict.places]
        if "json" not in pattern:
            assert [(frame.function, Path(frame.file).name, frame.line) for frame in frames if frame] == [
                ("train_step", "live.py", 7),
                ("train_step", "live.py", 9),
            ]
