"""Stack dumps are read: one record a process, its threads and frames, whatever tool printed them."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdoc.catalog.frames import is_user_code, owner_of
from logdoc.stacks import stacks_of
from logdoc.types.record import Identity, Record
from tests.stackkit import computes, dumps_in, faulthandler, loads, prefixed, pyspy, records_of, seen, verdict, waits

OWNERS = {
    "user": (
        *(
            "/home/u/train.py",
            "/home/u/torch/train.py",
            "train.py",
            "./src/model.py",
            "../x.py",
            "/tmp/ipykernel_7/9.py",
        ),
        *(r"C:\Users\u\train.py", r"D:\lib\train.py", "/home/u/lib/threading.py", "/srv/python3.11/train.py"),
    ),
    "package": (
        *(
            "/env/lib/python3.11/site-packages/megatron/core.py",
            "/usr/lib/python3/dist-packages/six.py",
            "vllm/worker.py",
        ),
        *(r"C:\env\Lib\site-packages\tqdm\std.py", "site-packages/torchvision/io.py"),
    ),
    "torch": (
        *("/env/lib64/python3.9/site-packages/torch/functional.py", "torch/serialization.py"),
        *("/src/pytorch/torch/distributed/c10d_logger.py", r"C:\env\Lib\site-packages\torch\hub.py"),
    ),
    "python": (
        *("/usr/lib/python3.11/threading.py", "/usr/lib64/python3.9/threading.py", "/opt/lib/python3.13t/queue.py"),
        *("threading.py", "multiprocessing/queues.py", r"C:\Python311\Lib\threading.py", r"C:\e\lib\asyncio\events.py"),
        r"C:\app\python311.zip\threading.py",
    ),
    "none": ("", "??", "<string>", "<frozen runpy>", "ProcessGroupNCCL.cpp", "/lib/libc.so.6", "a.cu"),
}
NATIVE = """Process 811: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 811 (idle): "MainThread"
    0x7f2a476a3f16 (libc.so.6)
    pthread_cond_wait (libc.so.6)
    c10d::Work::wait (libtorch_cpu.so)
    all_reduce (torch/distributed/distributed_c10d.py:3252)
        Arguments:
            tensor: <Tensor at 0x7f2a28ca7020>
            async_op: False
    step (train.py:88)
        Arguments:
            rank: 3
        Locals:
            note: "a (b.py:1)"
    <module> (train.py:120)
        Locals:
            rank: 3
Thread 840 (idle): "pin (memory)"
    wait (threading.py:327)
    _bootstrap (threading.py:1002)
"""
GDB = """[New LWP 18115]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".

Thread 2 (Thread 0x7f2a27e286c0 (LWP 815) "gloo_tcp_loop"):
#0  0x00007f2a47726f36 in epoll_wait (epfd=7, events=0x7f2a27e27b80) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
#1  0x00007f2a3937d62d in gloo::transport::tcp::Loop::run() () from /opt/lib/libtorch_cpu.so

Thread 1 (Thread 0x7f2a47e4cb80 (LWP 811) "python3.11"):
#0  __futex_abstimed_wait_common64 (private=0, cancel=true) at ./nptl/futex-internal.c:57
#1  0x00007f2a304a741d in std::condition_variable::wait(std::unique_lock<std::mutex>&) () from /lib/libstdc++.so.6
#2  0x00007f2a36f6984b in c10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >) () from /opt/lib/libtorch.so
#3  Frame 0x7f2a2af33e70, for file train.py, line 88, in step (rank=3)
[Inferior 1 (process 811) detached]
"""


@pytest.mark.parametrize(("owner", "path"), [(owner, path) for owner, paths in OWNERS.items() for path in paths])
def test_whose_code_a_file_holds(owner: str, path: str) -> None:
    assert owner_of(path) == owner
    assert is_user_code(path) == (owner == "user")


def test_pyspy_native_frames_locals_and_threads() -> None:
    (dump,) = dumps_in(NATIVE)
    assert (dump.pid, dump.command, dump.reason) == (811, "python train.py", None)
    assert [(thread.number, thread.name, thread.is_main) for thread in dump.threads] == [
        ("811", "MainThread", True),
        ("840", "pin (memory)", False),
    ]
    main = dump.main
    assert main is not None
    assert [(frame.function, frame.file, frame.line) for frame in main.frames] == [
        ("0x7f2a476a3f16", "libc.so.6", None),
        ("pthread_cond_wait", "libc.so.6", None),
        ("c10d::Work::wait", "libtorch_cpu.so", None),
        ("all_reduce", "torch/distributed/distributed_c10d.py", 3252),
        ("step", "train.py", 88),
        ("<module>", "train.py", 120),
    ]
    assert main.numbers == {"rank": frozenset({3})}


def test_several_pyspy_dumps_in_one_file_are_one_record_each() -> None:
    text = pyspy(811, waits()) + pyspy(812, loads(), state="active+gil") + "done\n"
    records = records_of({"log": text})
    assert [(record.line, record.end_line) for record in records] == [(1, 8), (9, 17), (18, 18)]
    assert [dump.pid for dump in dumps_in(text)] == [811, 812]


def test_a_process_name_in_a_healthy_log_is_no_dump() -> None:
    records = records_of({"log": "Process 3: loading\n\nProcess 4: loading\nepoch 1\n"})
    assert [record.body for record in records] == ["Process 3: loading", "Process 4: loading", "epoch 1"]


def test_pyspy_json() -> None:
    frames = [{"name": "all_reduce", "short_filename": "torch/distributed/distributed_c10d.py", "line": 3252}]
    thread = {"pid": 811, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 811, "active": False,
              "owns_gil": False, "frames": frames}  # fmt: skip
    text = json.dumps([thread], indent=2)
    (dump,) = dumps_in(text)
    assert (dump.pid, dump.main and dump.main.frames[0].function) == (811, "all_reduce")
    assert len(seen({"dump.json": text})) == 1


def test_a_cut_json_dump_is_no_dump_and_no_error() -> None:
    assert dumps_in('[\n  {\n    "pid": 811,\n    "owns_gil": false,\n    "frames": [\n') == []


def test_faulthandler_main_thread_is_the_last_that_no_threading_module_started() -> None:
    helper = [("wait", "threading.py", 327), ("_bootstrap", "threading.py", 1002)]
    text = faulthandler(helper) + "\n" + faulthandler(waits(), address=0x7F2A47E4CB99).split("\n", 1)[1]
    (dump,) = dumps_in(text)
    assert (dump.reason, len(dump.threads)) == ("Timeout (0:05:00)", 2)
    assert dump.main is not None
    assert dump.main.frames[0].function == "all_reduce"


def test_a_crash_names_the_current_thread() -> None:
    text = 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1c2a3f6740 (most recent call first):\n  File "fused.py", line 41 in forward\n  File "train.py", line 9 in <module>\n\nExtension modules: torch._C (total: 1)\n'
    (dump,) = dumps_in(text)
    assert dump.reason == "Segmentation fault"
    assert dump.current is not None
    assert dump.current.frames[0].line == 41
    (record,) = records_of({"log": text})
    assert record.body.endswith("(total: 1)")


def test_threads_without_a_blank_line_between_are_two_dumps() -> None:
    one = faulthandler(waits()).split("\n", 1)[1]
    assert len(dumps_in(one + one)) == 2
    assert len(dumps_in(f"{one}\n{one}")) == 1


@pytest.mark.parametrize("prefix", ["[rank3]: ", "[default3]:", "(RayTrainWorker pid=811) ", " 3: "])
def test_prefixed_dumps_are_joined(prefix: str) -> None:
    (dump,) = dumps_in(prefixed(faulthandler(loads()), prefix))
    assert dump.main is not None
    assert [frame.function for frame in dump.main.frames][:3] == ["wait", "get", "_try_get_data"]


def test_gdb_shows_native_and_python_frames() -> None:
    (dump,) = dumps_in(GDB)
    assert (dump.pid, len(dump.threads)) == (811, 2)
    assert dump.main is not None
    assert [(frame.function, frame.file, frame.line) for frame in dump.main.frames] == [
        ("__futex_abstimed_wait_common64", "./nptl/futex-internal.c", 57),
        ("std::condition_variable::wait", "/lib/libstdc++.so.6", None),
        ("c10d::Work::wait", "/opt/lib/libtorch.so", None),
        ("step", "train.py", 88),
    ]


def test_gdb_bt_of_one_thread() -> None:
    text = "#0  0x00007f in pthread_cond_wait@@GLIBC_2.3.2 () from /lib/libpthread.so.0\n#1  0x00007e in c10d::Work::wait(std::x) ()\n   from /opt/libtorch.so\n[Inferior 1 (process 811) detached]\n"
    one, other = dumps_in(text + text.replace("811", "812"))
    assert (one.pid, other.pid) == (811, 812)
    assert one.main is not None
    assert [frame.function for frame in one.main.frames] == ["pthread_cond_wait", "c10d::Work::wait"]


def test_reports_of_signal_handlers_are_one_record_with_host_and_process() -> None:
    mpi = prefixed(
        "*** Process received signal ***\nSignal: Segmentation fault (11)\n[ 0] /lib/libc.so.6(+0x43090)[0x7f]\n*** End of error message ***",
        "[node-b:04242] ",
    )
    ucx = "[node-b:4242 :0:4242] Caught signal 11 (Segmentation fault: address not mapped)\n==== backtrace (tid:   4242) ====\n 0 0x0000000000043090 ucs_handle_error()  ???:0\n=================================\n"
    glog = '*** Aborted at 1717000000 (unix time) try "date -d @1717000000" ***\nPC: @ 0x0 (unknown)\n*** SIGSEGV (@0x10) received by PID 7 (TID 0x7f) from PID 16; stack trace: ***\n    @     0x7f6b2a043090 (unknown)\n'
    first, caught, table, last = records_of({"log": mpi + ucx + glog})
    assert (first.who.host, first.who.pid, first.end_line - first.line) == ("node-b", 4242, 3)
    assert (caught.who.host, caught.who.pid) == ("node-b", 4242)
    assert (table.end_line - table.line, last.end_line - last.line) == (2, 3)


def test_a_very_long_dump_is_read_to_its_limit() -> None:
    text = pyspy(811, waits()) + "".join(f'Thread {n} (idle): "x"\n    run (a.py:{n})\n' for n in range(900, 9000))
    dumps = dumps_in(text)
    assert dumps[0].pid == 811
    assert sum(len(dump.threads) for dump in dumps) == 8101


FRAGMENTS = ["Process 1: x", "Python v3.11", 'Thread 1 (idle): "MainThread"', "    f (a.py:1)", "        Locals:", "",
             "Thread 0x00007f (most recent call first):", '  File "a.py", line 1 in f', "#0  0x1 in f () from x", "[", "  {",
             '    "pid": 1,', '    "owns_gil": true', "]", "Timeout (0:00:01)!", "    " + "a (" * 40 + ")"]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(string.printable, max_size=40), max_size=30))
def test_any_mixture_of_lines_is_survived(lines: list[str]) -> None:
    for _, text in verdict("\n".join(lines)):
        assert "\n" not in text


@given(st.text(max_size=300))
def test_any_body_is_survived(body: str) -> None:
    for text in (body, f"[{body}"):
        record = Record(seq=1, source="x", line=1, end_line=1, body=text, raw=text, who=Identity())
        assert stacks_of(record) is None or "Thread" in body or "Stack" in body


def test_a_function_of_pyspy_may_hold_parentheses() -> None:
    (dump,) = dumps_in(pyspy(1, [("load (old)", "data.py", 7), *computes()]))
    assert dump.main is not None
    assert (dump.main.frames[0].function, dump.main.frames[0].line) == ("load (old)", 7)
