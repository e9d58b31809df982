"""Who failed first, where ranks, launcher and kernel each know a part: silence, restarts, local ranks, reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.engine import Engine
from logdoc.sources import discover
from logdoc.types.report import Report

LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.7]:8578"
LATE = (
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 12000ms for recv operation to complete"
)
NO_MESH = "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152] timed out connecting"
OWN = "ValueError: sample 7 has no label"
OTHER_OWN = "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-3.tar'"
MARK = "[default] Worker group FAILED. 1/2 attempts left; will restart worker group\n"
AGENT = "{level}1130 15:22:15.162000 900 torch/distributed/elastic/multiprocessing/api.py:1028] "


def traceback(message: str, prefix: str = "") -> str:
    lines = ("Traceback (most recent call last):", '  File "train.py", line 8, in <module>', "    main()", message)
    return "".join(f"{prefix}{line}\n" for line in lines)


def steps(count: int, prefix: str = "", first: int = 0) -> str:
    return "".join(f"{prefix}step {step} loss 2.{step}\n" for step in range(first, first + count))


def report(first: tuple[int, int], *others: tuple[int, int]) -> str:
    """torchrun's report of ranks and their exit codes, eight ranks a node."""

    def block(number: int, rank: int, code: int) -> str:
        why = f"Signal {-code} (SIGTERM) received by PID {50 + rank}" if code < 0 else "To enable traceback see: docs"
        return (
            f"[{number}]:\n  time      : 2026-05-05_06:00:00\n  host      : n{rank // 8}\n  rank      : {rank} (local_rank: "
            f"{rank % 8})\n  exitcode  : {code} (pid: {50 + rank})\n  error_file: <N/A>\n  traceback : {why}\n"
        )

    listed = "".join(block(number, *one) for number, one in enumerate(others, start=1))
    rule = "=" * 60
    return (
        f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{rule}\ntrain.py FAILED\n{'-' * 60}\n"
        f"Failures:\n{listed}{'-' * 60}\nRoot Cause (first observed failure):\n{block(0, *first)}{rule}\n"
    )


def explained(engine: Engine, folder: Path, files: dict[str, str]) -> Report:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return engine.explain(discover([str(folder)]).sources)


def top(found: Report) -> tuple[str, int | None, str]:
    best = found.diagnoses[0]
    return best.rule, best.origin.rank, best.status


@pytest.mark.parametrize("resumed", [0, 5])
def test_a_rank_file_of_two_attempts_without_marks_or_clocks(engine: Engine, tmp_path: Path, resumed: int) -> None:
    def file(rank: int) -> str:
        first = traceback(OTHER_OWN) if rank == 2 else traceback(LOST)
        second = traceback(OWN) if rank == 1 else traceback(LOST)
        return steps(9) + first + "Initializing process group\n" + steps(6, first=resumed) + second

    files = {f"rank_{rank}.log": file(rank) for rank in range(4)}
    assert top(explained(engine, tmp_path, {**files, "console.log": MARK}))[:2] == ("process.user-exception", 1)


def test_a_requeued_job_that_appends_to_its_files_is_explained_by_its_last_run(engine: Engine, tmp_path: Path) -> None:
    def file(rank: int) -> str:
        first = traceback(OTHER_OWN) if rank == 2 else traceback(LOST)
        return steps(9) + first + "Initializing process group\n" + steps(6) + traceback(OWN if rank == 1 else LOST)

    found = explained(engine, tmp_path, {f"rank_{rank}.log": file(rank) for rank in range(4)})
    assert top(found)[:2] == ("process.user-exception", 1)


def test_a_rank_that_fails_before_others_start_is_no_earlier_attempt(engine: Engine) -> None:
    """Lines without prefixes, of ranks of which one was quicker: nobody had trained yet."""
    log = "Initializing process group\n" + traceback(OTHER_OWN) + "Initializing process group\n" + traceback(LOST)
    assert top(engine.explain_text(log))[0] == "data.file-missing"


def test_epochs_are_no_restarts(engine: Engine, tmp_path: Path) -> None:
    def file(rank: int) -> str:
        run = steps(4) * 3
        return run + traceback(OTHER_OWN if rank == 2 else LOST) + run + traceback(OWN if rank == 1 else LOST)

    files = {f"rank_{rank}.log": file(rank) for rank in range(4)}
    assert top(explained(engine, tmp_path, {**files, "console.log": MARK}))[:2] == ("process.user-exception", 1)


@pytest.mark.parametrize(
    ("before", "after", "went_on"), [(490, 0, True), (490, 50, True), (490, 200, True), (20, 200, False)]
)
def test_whether_a_job_survived_an_error_is_its_own_attempts_affair(
    engine: Engine, before: int, after: int, went_on: bool
) -> None:
    log = (
        steps(5) + traceback(OTHER_OWN) + steps(before, first=5) + MARK + "Initializing process group\n" + steps(after)
    )
    named = {one.rule for one in engine.explain_text(log + traceback(LOST)).diagnoses}
    assert named == {"collective.remote-error"} | ({"data.file-missing"} if not went_on else set())


def test_ranks_that_only_miss_their_peers_after_a_restart_are_the_fallout(engine: Engine) -> None:
    log = steps(5) + traceback(OTHER_OWN, "[rank3]: ") + traceback(LOST, "[rank0]: ") + MARK
    found = engine.explain_text(log + traceback(NO_MESH, "[rank0]: ") + report((0, 1)))
    assert top(found) == ("data.file-missing", 3, "likely")


def test_peers_that_could_never_be_reached_are_the_cause_in_every_attempt(engine: Engine) -> None:
    log = traceback(NO_MESH, "[rank1]: ") + MARK + traceback(NO_MESH, "[rank0]: ")
    assert top(engine.explain_text(log)) == ("network.peer-unreachable", 0, "likely")


def test_after_an_attempt_that_nobody_can_explain_nothing_is_certain(engine: Engine) -> None:
    log = steps(5) + traceback(LOST, "[rank0]: ") + MARK + traceback(NO_MESH, "[rank0]: ")
    assert top(engine.explain_text(log)) == ("network.peer-unreachable", 0, "possible")


def test_a_rank_that_left_without_a_word_explains_the_lost_connections(engine: Engine) -> None:
    found = engine.explain_text(steps(5) + traceback(LOST, "[rank0]: ") + report((2, 7), (0, -15), (1, -15)))
    assert top(found)[:2] == ("process.launcher-exit-only", 2)
    assert found.ranks.first_failure == 2


def test_of_two_nodes_the_rank_without_a_word_left_first(engine: Engine, tmp_path: Path) -> None:
    node0 = "".join(traceback(LOST, f"[rank{rank}]: ") for rank in range(3)) + report((0, 1), (1, 1), (2, 1))
    node1 = traceback(LOST, "[rank8]: ") + report((9, 7), (8, -15))
    found = explained(engine, tmp_path, {"node0.log": node0, "node1.log": node1})
    assert top(found)[:2] == ("process.launcher-exit-only", 9)


def test_the_first_of_a_report_that_lists_everybody_left_first(engine: Engine, tmp_path: Path) -> None:
    files = {f"rank_{rank}.log": steps(5) + traceback(LOST) for rank in range(3)}
    found = explained(engine, tmp_path, {**files, "console.log": report((3, 1), (0, -15), (1, -15), (2, -15))})
    assert top(found)[:2] == ("process.launcher-exit-only", 3)


def test_where_lines_bear_no_rank_nobody_left_without_a_word(engine: Engine) -> None:
    """The lost connection may be the reported rank's own."""
    found = engine.explain_text(steps(5) + traceback(LOST) + report((2, 1), (0, -15), (1, -15)))
    assert top(found)[0] == "collective.remote-error"


def test_a_rank_whose_own_output_is_nowhere_is_not_taken_for_the_first(engine: Engine, tmp_path: Path) -> None:
    """It may have said what its peers say, in a file that is missing."""
    files = {f"rank_{rank}.log": steps(5) + traceback(LOST) for rank in range(3)}
    found = explained(engine, tmp_path, {**files, "console.log": report((3, 1))})
    assert top(found)[0] == "collective.remote-error"
    assert found.ranks.first_failure is None


@pytest.mark.parametrize("prefix", ["[rank{0}]: ", "[default{0}]:[rank{0}]: "])
def test_the_one_of_four_ranks_that_gloo_did_not_time_out_on_is_perhaps_late(engine: Engine, prefix: str) -> None:
    def said(rank: int) -> str:
        return steps(5, f"[default{rank}]:" if "default" in prefix else prefix.format(rank))

    log = "".join(map(said, range(4))) + "".join(traceback(LATE, prefix.format(rank)) for rank in (0, 2, 3))
    assert top(engine.explain_text(log)) == ("collective.rank-straggled", 1, "possible")


def test_of_two_ranks_gloo_waited_for_the_other(engine: Engine) -> None:
    log = steps(5, "[rank0]: ") + steps(5, "[rank1]: ") + traceback(LATE, "[rank0]: ")
    assert top(engine.explain_text(log)) == ("collective.rank-straggled", 1, "possible")


def test_a_rank_that_lost_its_connection_is_not_late(engine: Engine) -> None:
    log = "".join(steps(5, f"[rank{rank}]: ") for rank in range(4))
    log += "".join(traceback(LATE, f"[rank{rank}]: ") for rank in (0, 2, 3)) + traceback(LOST, "[rank1]: ")
    assert "collective.rank-straggled" not in [one.rule for one in engine.explain_text(log).diagnoses]


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:"])
def test_however_often_one_rank_fails_the_next_one_is_named_too(engine: Engine, prefix: str) -> None:
    full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    best = engine.explain_text(f"{prefix.format(0)}{full}" * 139 + f"{prefix.format(1)}{full}").diagnoses[0]
    assert (best.rule, best.ranks) == ("memory.gpu-oom", (0, 1))


def test_where_lines_bear_no_rank_the_report_tells_who_said_nothing(engine: Engine) -> None:
    log = steps(5) + "".join(traceback(LATE, f"[rank{rank}]: ") for rank in (0, 1, 3))
    found = engine.explain_text(log + report((0, 1), (1, 1), (2, -15), (3, 1)))
    assert top(found) == ("collective.rank-straggled", 2, "possible")


def test_a_rank_that_only_the_report_names_did_not_print_before(engine: Engine, tmp_path: Path) -> None:
    """Nine ranks are silent as far as the files tell; rank 3 is known by its abort alone, so rank 5 is late."""
    glog = (
        "[E505 06:00:00.1 ProcessGroupNCCL.cpp:685] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL("
    )
    work = "SeqNum=7, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
    files = {f"rank_{rank}.log": steps(5) + f"{glog.format(rank)}{work}\n" for rank in range(10) if rank not in (3, 5)}
    found = explained(engine, tmp_path, {**files, "rank_5.log": steps(5), "console.log": report((3, -6))})
    assert top(found)[:2] == ("collective.rank-straggled", 5)


NODE = "[rank{rank}]: n{node}:{pid}:9 [{device}] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer\n"
KILLED = AGENT.format(level="W") + "Sending process 51 closing signal SIGTERM\n" + AGENT.format(level="E") + (
    "failed (exitcode: -9) local_rank: 5 (pid: 55) of binary: /usr/bin/python3\n"
)  # fmt: skip


@pytest.mark.parametrize(("device", "rank"), [(3, 13), (0, None)])
def test_a_local_rank_is_counted_from_its_nodes_first_one(engine: Engine, device: int, rank: int | None) -> None:
    """The agent's node is that of a process it signals; device 0 is no place, each process may see one GPU."""
    log = steps(3, "[rank0]: ") + NODE.format(rank=11, node=1, pid=51, device=device)
    assert top(engine.explain_text(log + KILLED))[:2] == ("memory.host-oom-kill", rank)


def test_the_task_that_srun_names_is_a_rank_where_tasks_are(engine: Engine, tmp_path: Path) -> None:
    files = {f"run-552211-{task}.out": steps(5) for task in range(4)}
    found = explained(engine, tmp_path, {**files, "run.log": "srun: error: n1: task 2: Out Of Memory\n"})
    assert top(found)[:2] == ("memory.host-oom-kill", 2)


def test_what_the_kernel_says_of_no_process_is_of_the_rank_that_lost_its_gpu(engine: Engine, tmp_path: Path) -> None:
    xid = "May  5 06:00:00 n1 kernel: NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.\n"
    failure = traceback("torch.AcceleratorError: CUDA error: unspecified launch failure", "[rank6]: ")
    found = explained(engine, tmp_path, {"job.log": failure + traceback(LOST, "[rank2]: "), "dmesg.log": xid})
    assert top(found)[:2] == ("gpu.fell-off-bus", 6)


def test_the_host_that_pdsh_puts_before_a_ranks_line_is_no_part_of_it(engine: Engine) -> None:
    best = engine.explain_text(traceback(OTHER_OWN, "gpu-b: [rank9]: ")).diagnoses[0]
    assert (best.rule, best.origin.rank, best.origin.host) == ("data.file-missing", 9, "gpu-b")
