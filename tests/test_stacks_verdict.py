"""What the stacks of a job's processes say together: who waits in which call, and who keeps them waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import logdoc.stacks
from logdoc.kept.yaml_source import parse_yaml
from logdoc.matcher import Matcher, Prefilter
from logdoc.rulebase import RuleSet, build_index
from logdoc.stacks import stack_verdict
from tests.stackkit import LOADER, MAIN, FrameText, computes, faulthandler, loads, prefixed, pyspy, seen, verdict, waits


def by_rank(*frames: Sequence[FrameText]) -> dict[str, str]:
    return {f"stack_rank{rank}.txt": faulthandler(one) for rank, one in enumerate(frames)}


def test_the_rank_whose_loader_gives_nothing() -> None:
    assert verdict(by_rank(waits(), waits(), loads(), waits())) == [
        (2, "rank 2 holds the others up: it waits for its data loader in step (train.py:85); "
            "ranks 0-1, 3 wait in all_reduce called at step (train.py:88)"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "doing"),
    [
        ([("_save", "torch/serialization.py", 1259), ("save", "train.py", 60), MAIN], "writes a checkpoint in save (train.py:60)"),
        ([("build", "torch/_inductor/cpp_builder.py", 9), ("step", "train.py", 7), MAIN], "compiles code in step (train.py:7)"),
        ([("interaction", "pdb.py", 433), ("step", "train.py", 7), MAIN], "stands in the debugger in step (train.py:7)"),
        ([("wait", "threading.py", 327), ("step", "train.py", 7), MAIN], "waits for a lock or another thread in step (train.py:7)"),
        ([("http_get", "huggingface_hub/file_download.py", 3), MAIN], "downloads in <module> (train.py:120)"),
        ([("read", "corpus.py", 9), ("fetch", "torch/utils/data/_utils/fetch.py", 54), MAIN], "reads data itself in read (corpus.py:9)"),
        (computes(), "runs forward (model.py:31)"),
    ],
)  # fmt: skip
def test_what_the_late_rank_does(frames: list[FrameText], doing: str) -> None:
    ((rank, text),) = verdict(by_rank(waits("barrier"), frames, waits("barrier")))
    assert (rank, text.split(": it ")[1].split("; ")[0]) == (1, doing)


def test_a_collective_inside_a_checkpoint_is_a_wait() -> None:
    saves = [
        ("barrier", "torch/distributed/distributed_c10d.py", 5356),
        ("save", "torch/distributed/checkpoint/state_dict_saver.py", 9),
        MAIN,
    ]
    ((_, text),) = verdict(by_rank(saves, saves))
    assert text == "each of all 2 dumped ranks waits in barrier called at <module> (train.py:120); none is elsewhere"


def test_ranks_in_different_collectives() -> None:
    ((rank, text),) = verdict(by_rank(waits(), waits(), waits("broadcast", 91), waits("broadcast", 91)))
    assert rank is None
    assert text == (
        "the ranks wait in different calls: ranks 0-1 wait in all_reduce called at step (train.py:88); "
        "ranks 2-3 wait in broadcast called at step (train.py:91)"
    )


def test_the_steps_of_joining_are_one_wait_for_the_rank_that_never_came() -> None:
    join = ("init_process_group", "torch/distributed/distributed_c10d.py", 1700)
    store = [("_create_c10d_store", "torch/distributed/rendezvous.py", 189), join, MAIN]
    group = [("_new_process_group_helper", "torch/distributed/distributed_c10d.py", 1945), join, MAIN]
    ((rank, text),) = verdict(by_rank(store, group), world=3)
    assert rank is None
    assert text.startswith("each of all 2 dumped ranks waits for the others to join in _create_c10d_store")
    assert text.endswith("; no dump is of rank 2")


def test_a_lone_rank_in_another_collective_is_named() -> None:
    ((rank, text),) = verdict(by_rank(waits(), waits("all_gather", 99), waits()))
    assert (rank, text.split(":")[0]) == (1, "the ranks wait in different calls")


def test_sends_and_receives_beside_collectives_prove_little() -> None:
    ((_, text),) = verdict(by_rank(waits(), waits(), waits("recv", 40)))
    assert text.startswith("the ranks wait at different places: ")


def test_a_rank_without_a_dump_is_missed() -> None:
    files = by_rank(waits(), waits(), waits())
    assert verdict(files, world=4)[0][1].endswith("none is elsewhere; no dump is of rank 3")
    assert verdict(files, world=64)[0][1].endswith("none is elsewhere")


def test_one_look_at_a_running_process_proves_little() -> None:
    waiting = pyspy(811, waits()) + pyspy(812, waits())
    once = verdict(waiting + pyspy(813, computes(), state="active"))
    assert once[0][1].startswith("process 813 may hold the others up: ")
    twice = verdict(waiting + pyspy(813, computes(), state="active") + pyspy(813, computes(), state="active"))
    assert twice[0][1].startswith(
        "process 813 holds the others up: it runs forward (model.py:31) (in all 2 of its dumps); "
    )
    moved = verdict(waiting + pyspy(813, computes(), state="active") + pyspy(813, computes(87)[1:], state="active"))
    assert moved[0][1].startswith("process 813 may hold the others up: it runs step (train.py:87); ")


def test_a_majority_busy_elsewhere_accuses_nobody() -> None:
    assert verdict(by_rank(waits(), computes(), loads(), computes())) == []


def test_most_ranks_at_one_line_wait_for_something_no_frame_names() -> None:
    item: list[FrameText] = [("step", "train.py", 90), MAIN]
    ((rank, text),) = verdict(by_rank(item, item, loads(), item))
    assert (rank, text.split(";")[1]) == (2, " ranks 0-1, 3 stand in step (train.py:90)")
    assert text.startswith("rank 2 holds the others up")


def test_all_ranks_wait_for_their_loader() -> None:
    ((_, text),) = verdict(by_rank(loads(), loads()))
    assert text == "each of all 2 dumped ranks waits for its data loader in step (train.py:85)"


def test_healthy_snapshots_say_nothing() -> None:
    assert verdict(by_rank(computes(), computes(87)[1:], [MAIN])) == []
    assert verdict(pyspy(811, computes())) == []


def test_launcher_and_loader_workers_are_no_ranks() -> None:
    agent: list[FrameText] = [
        ("_invoke_run", "torch/distributed/elastic/agent/server/api.py", 9),
        ("run", "torch/distributed/run.py", 1),
    ]
    worker: list[FrameText] = [("read", "corpus.py", 9), ("_worker_loop", "torch/utils/data/_utils/worker.py", 374),
                               ("_bootstrap", "multiprocessing/process.py", 314), ("step", "train.py", 85), MAIN]  # fmt: skip
    text = pyspy(800, agent) + pyspy(811, waits()) + pyspy(812, loads()) + pyspy(813, worker)
    assert verdict(text) == [
        (None, "process 812 holds the others up: it waits for its data loader in step (train.py:85) "
               "(a loader worker stands in read (corpus.py:9)); process 811 waits in all_reduce called at step (train.py:88)"),
    ]  # fmt: skip


def test_a_forked_child_is_judged_without_its_parents_frames() -> None:
    forked: list[FrameText] = [("work", "train.py", 5), ("_bootstrap", "multiprocessing/process.py", 314),
                               ("start_processes", "torch/multiprocessing/spawn.py", 280), MAIN]  # fmt: skip
    ((_, text),) = verdict(pyspy(811, waits()) + pyspy(812, forked))
    assert text.startswith("process 812 holds the others up: it runs work (train.py:5)")


def test_ranks_by_process_id_prefix_command_line_and_locals() -> None:
    text = pyspy(811, waits()) + pyspy(812, loads())
    assert verdict(text, ranks={811: 4, 812: 5})[0][0] == 5
    tee = prefixed(faulthandler(waits()), "[default0]:") + prefixed(faulthandler(loads()), "[default1]:")
    assert verdict(tee)[0][1].startswith("local rank 1 holds the others up")
    titles = pyspy(811, waits(), command="sglang::scheduler_TP0") + pyspy(812, loads(), command="sglang::scheduler_TP1")
    assert verdict(titles)[0][1].startswith("local rank 1 holds the others up")
    local = pyspy(811, waits()) + pyspy(812, loads()) + "        Locals:\n            rank: 7\n"
    assert verdict(local)[0][0] == 7


def test_one_process_id_in_two_pods_is_two_processes() -> None:
    pods = {"worker-0.txt": pyspy(68, waits()), "worker-1.txt": pyspy(68, loads())}
    assert len(verdict(pods)) == 1
    hosts = {"pyspy-node-a-68.txt": pyspy(68, waits()), "pyspy-node-b-68.txt": pyspy(68, loads())}
    assert verdict(hosts)[0][1].startswith("process 68 on node-b holds the others up")


def test_a_native_dump_and_a_python_dump_of_one_process_make_one() -> None:
    native = (
        'Thread 1 (Thread 0x7f2a47e4cb80 (LWP 812) "python"):\n#0  0x00007f in clock_nanosleep () from /lib/libc.so.6\n'
    )
    files = {
        "pyspy-811.txt": pyspy(811, waits()),
        "pyspy-812.txt": pyspy(812, [("load", "data.py", 41), MAIN]),
        "gdb-812.txt": native,
    }
    assert verdict(files)[0][1].startswith("process 812 holds the others up: it sleeps in load (data.py:41)")


def test_a_known_hang_makes_gpu_waits_tell() -> None:
    syncs: list[FrameText] = [("synchronize", "torch/cuda/__init__.py", 9), ("step", "train.py", 90), MAIN]
    text = pyspy(811, syncs) + pyspy(812, syncs) + pyspy(813, loads(), state="active")
    assert verdict(text)[0][1].startswith("process 813 may hold the others up")
    assert verdict(text, hung=True)[0][1].startswith("process 813 holds the others up")
    unknown = pyspy(811, syncs) + pyspy(812, syncs) + pyspy(813, computes())
    assert verdict(unknown, hung=True)[0][1].startswith("process 813 may hold the others up")


def test_gpu_waits_are_weaker_than_collectives() -> None:
    syncs: list[FrameText] = [("synchronize", "torch/cuda/__init__.py", 9), ("step", "train.py", 90), MAIN]
    (said,) = verdict(pyspy(811, syncs) + pyspy(812, syncs) + pyspy(813, loads()))
    assert said[1].startswith("process 813 may hold the others up")
    assert verdict(by_rank(syncs, waits(), waits())) == []


def test_a_crashed_rank_is_named_and_no_straggler() -> None:
    files = by_rank(waits(), waits())
    files["stack_rank2.txt"] = faulthandler(computes(), reason="Fatal Python error: Segmentation fault")
    said = verdict(files)
    assert said[0] == (2, "rank 2 crashed (Segmentation fault) in forward (model.py:31)")
    assert said[1][1].startswith("each of all 2 dumped ranks waits in all_reduce")


def test_an_abort_shows_where_everybody_was() -> None:
    files = {f"stack_rank{rank}.txt": faulthandler(frames, reason="Fatal Python error: Aborted")
             for rank, frames in enumerate([waits(), [("_next_data", LOADER, 1), ("_get_data", LOADER, 2), MAIN], waits()])}  # fmt: skip
    assert verdict(files)[0][1].startswith("rank 1 holds the others up: it waits for its data loader")


def test_a_lone_dump_tells_why_it_was_made_if_its_rank_waits_for_no_peer() -> None:
    def alone(frames: list[FrameText]) -> str:
        return verdict({"stack_rank2.txt": faulthandler(frames, reason="Timeout (0:05:00)!")})[0][1]

    loading = "only rank 2 was dumped (Timeout (0:05:00)): it waits for its data loader in step (train.py:85)"
    assert alone(loads()) == loading
    assert alone(waits()) == "only rank 2 was dumped: it waits in all_reduce called at step (train.py:88)"


def test_a_word_in_a_dumps_file_name_is_no_host() -> None:
    assert verdict({"deadlock.dump.4711.txt": pyspy(4711, loads())})[0][1].startswith("only process 4711 was dumped")
    assert verdict({"gpu7.dump.4711.txt": pyspy(4711, loads())})[0][1].startswith(
        "only process 4711 on gpu7 was dumped"
    )


def test_only_the_last_attempt_counts() -> None:
    matches = seen(by_rank(waits(), loads()))
    for match in matches:
        match.record.attempt = 0 if match.rank == 1 else 1
    assert [record.body for record in stack_verdict(matches, None)] == [
        "stack dumps: only rank 0 was dumped: it waits in all_reduce called at step (train.py:88)"
    ]


def test_a_thousand_ranks_are_quick_and_named_in_spans() -> None:
    frames = [waits() for _ in range(1024)]
    frames[700] = loads()
    ((rank, text),) = verdict(by_rank(*frames))
    assert (rank, text.split("; ")[1]) == (700, "ranks 0-699, 701-1023 wait in all_reduce called at step (train.py:88)")


@pytest.mark.parametrize(
    ("frames", "rule"),
    [
        ([waits(), waits(), loads()], "collective.rank-straggled"),
        ([waits(), waits("broadcast"), waits()], "collective.mismatch"),
        ([waits(), waits()], "collective.timeout-unexplained"),
        ([waits()], "collective.timeout-unexplained"),
        ([waits("init_process_group")] * 2, "rendezvous.init-stalled"),
        ([loads(), loads()], "data.dataloader-worker-died"),
    ],
)
def test_rules_judge_the_verdict(frames: list[list[FrameText]], rule: str, rule_set: RuleSet) -> None:
    said = stack_verdict(seen(by_rank(*frames)), None)
    found = Matcher(Prefilter(build_index(rule_set.active()))).find(said)
    assert {match.rule.id for match in found if match.signature.role == "evidence"} == {rule}


def test_the_table_of_frames_is_sound() -> None:
    path = Path(logdoc.stacks.__file__).parents[1] / "data" / "stack_frames.yaml"
    data = parse_yaml(path.read_text(encoding="utf-8"), path.name)
    assert {entry["kind"] for entry in data["frames"]} == set(data["kinds"])
    assert {kind["waits"] for kind in data["kinds"].values()} == {"peers", "maybe", "no"}
    for entry in [*data["frames"], *data["roles"].values(), data["forked"]]:
        assert set(entry) <= {"kind", "files", "functions", "symbols", "libraries"}
        assert entry.get("files") or entry.get("symbols") or entry.get("libraries")
