"""Watchdogs of many ranks, clocks that disagree, restarts: the judgements below the rules, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from logdoc.cascade import Survey, relate
from logdoc.cascade.clocks import skews
from logdoc.cascade.collectives import Waiting, verdicts, waiting_ranks
from logdoc.cascade.progress import OF_OTHERS
from logdoc.cascade.stalls import stall_verdict
from logdoc.engine import Engine
from logdoc.matcher import Matcher, Prefilter
from logdoc.reader import ReadState, read
from logdoc.rulebase import build_index
from logdoc.rulebase.observations import observations
from logdoc.sources import source_from_bytes
from logdoc.types.finding import Match
from logdoc.types.record import OWN_DIALECTS, VERDICT, Identity, Record
from logdoc.types.spans import spans
from tests.rulekit import engine_of

RECORD = Record(seq=1, source="log", line=1, end_line=1, body="x", raw="x", who=Identity())


def waiting(rank: int, **told: object) -> Waiting:
    given = {"seq": 7, "op": "ALLREDUCE", "numel": ("8", "8"), "timeout": 600.0, "enqueued": 9, "completed": 6, **told}
    return Waiting(rank, RECORD, **given)  # type: ignore[arg-type]


def said(members: list[Waiting], seen: range | set[int], world: int | None = None) -> list[tuple[int | None, str]]:
    return [(record.who.rank, record.body) for record in verdicts(members, seen, world)]


def test_the_rank_that_never_reported() -> None:
    members = [waiting(rank) for rank in range(8) if rank != 5]
    found = said(members, range(8))
    assert [rank for rank, _ in found] == [5]
    assert "never reported ALLREDUCE #7 of default_pg, 7 ranks gave up after waiting 600 s" in found[0][1]


def test_a_rank_that_printed_nothing_at_all_is_named_by_the_world_size() -> None:
    members = [waiting(rank) for rank in range(7)]
    found = said(members, range(7), world=8)
    assert [rank for rank, _ in found] == [7]
    assert found[0][1].endswith("it printed nothing at all")


def test_the_rank_that_enqueued_less() -> None:
    members = [waiting(rank, enqueued=5 if rank == 2 else 9, seq=5 if rank == 2 else 7) for rank in range(4)]
    found = said(members, range(4))
    assert [rank for rank, _ in found] == [2]
    assert "last enqueued #5, the others #9" in found[0][1]


def test_the_rank_that_called_something_else() -> None:
    members = [waiting(rank, op="ALLGATHER" if rank == 1 else "ALLREDUCE") for rank in range(4)]
    assert [rank for rank, _ in said(members, range(4))] == [1]


def test_on_a_tie_nobody_is_accused() -> None:
    members = [waiting(rank, op="ALLGATHER" if rank < 2 else "ALLREDUCE") for rank in range(4)]
    assert all(rank is None for rank, _ in said(members, range(4)))


def test_all_inside_the_same_collective() -> None:
    found = said([waiting(rank) for rank in range(4)], range(4))
    assert found == [(None, "collective verdict: all 4 ranks wait inside the same ALLREDUCE #7 of default_pg after "
                            "waiting 600 s; none is late")]  # fmt: skip


def test_one_rank_of_a_subgroup_says_nothing_of_the_others() -> None:
    assert said([waiting(3, group="mesh_tp")], range(8)) == []


def test_ranks_that_wait_in_another_group_are_not_missing_here() -> None:
    """Rank 5 is late; rank 4 waits for it in their own group, all others in the collective of all."""
    members = [waiting(rank) for rank in range(8) if rank not in (4, 5)] + [waiting(4, group="mesh_tp", seq=90)]
    found = said(members, range(8))
    assert [rank for rank, _ in found] == [5]
    assert "7 ranks gave up" in found[0][1]
    assert found[0][1].endswith("it alone did not, though it printed before")


def test_two_ranks_that_call_different_things_accuse_nobody() -> None:
    ((rank, text),) = said([waiting(0), waiting(1, op="BROADCAST")], range(2))
    assert rank is None
    assert text.endswith("ranks 0 ALLREDUCE(in=8, out=8); ranks 1 BROADCAST(in=8, out=8)")


def test_only_the_last_attempt_is_judged() -> None:
    early = [replace_attempt(waiting(rank), 0) for rank in range(8) if rank != 2]
    late = [replace_attempt(waiting(rank), 1) for rank in range(8) if rank != 6]
    assert [rank for rank, _ in said(early + late, range(8))] == [6]


def replace_attempt(one: Waiting, attempt: int) -> Waiting:
    one.record = replace(one.record, attempt=attempt)
    return one


@pytest.mark.parametrize(
    ("line", "group", "enqueued", "completed"),
    [
        ("[PG ID 1 PG GUID 5(mesh_dp) Rank 6]  failure detected by watchdog at work sequence id: 7 PG status: "
         "last enqueued work: 9, last completed work: 6", "mesh_dp", 9, 6),
        ("[PG 0 (default_pg) Rank 3] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: -1.",
         "default_pg", 9, -1),
        ("[PG ID 0 PG GUID 0 Rank 3]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 9, "
         "last started work: 7 (ALLREDUCE), last completed work: 6", "default_pg", 9, 6),
    ],
)  # fmt: skip
def test_status_lines_of_all_versions(line: str, group: str, enqueued: int, completed: int) -> None:
    found = waiting_in(3, line)
    assert [(one.rank, one.group, one.seq, one.enqueued, one.completed) for one in found] == [
        (3, group, 7, enqueued, completed)
    ]


def waiting_in(rank: int, *lines: str) -> list[Waiting]:
    text = "".join(f"[rank{rank}]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:1785] {line}\n" for line in lines)
    matcher = Matcher(Prefilter(build_index(observations().rules)))
    matches = [match for batch in read("log", [text.encode()], ReadState()) for match in matcher.find(batch)]
    return waiting_ranks(match for match in matches if match.rule.id == "~collectives")


WORK = ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn=8, NumelOut=8, Timeout(ms)=600000) "
        "ran for 600012 milliseconds before timing out.")  # fmt: skip
STATUS = (
    " failure detected by watchdog at work sequence id: {} PG status: last enqueued work: 9, last completed work: 4"
)
ENDED = "Process group watchdog thread terminated with exception: "


@pytest.mark.parametrize(
    ("prefix", "group", "guid"),
    [
        ("[Rank 3] ", "default_pg", ""),
        ("[PG 0 Rank 3] " + ENDED + "[Rank 3] ", "default_pg", ""),
        ("[PG 1 Rank 3] " + ENDED + "[Rank 3] ", "group 1", ""),
        ("[PG 0 (default_pg) Rank 3] " + ENDED + "[Rank 3] ", "default_pg", ""),
        ("[PG ID 0 PG GUID 0 Rank 3] " + ENDED + "[Rank 3] ", "default_pg", ""),
        ("[PG ID 1 PG GUID 5(mesh_tp) Rank 1] " + ENDED + "[Rank 3] ", "mesh_tp", "5"),
        ("[PG ID 1 PG GUID 5(mesh_tp) Rank 1] " + ENDED + "[PG GUID 5(mesh_tp) Rank 1] ", "mesh_tp", "5"),
        ("[PG GUID 0(default_pg) Rank 3] ", "default_pg", ""),
        ("[PG GUID 0 Rank 3] ", "default_pg", ""),
        ("[PG GUID 5 Rank 1] ", "group 5", "5"),
        ("[PG GUID 5(mesh_tp) Rank 1] ", "mesh_tp", "5"),
        ("[PG GUID to_infer_(3,0)(sync) Rank 1] ", "sync", "to_infer_(3,0)"),
    ],
)
def test_the_group_of_a_work_in_all_versions(prefix: str, group: str, guid: str) -> None:
    (one,) = waiting_in(3, prefix + WORK.format(7, "ALLREDUCE"))
    assert (one.rank, one.group, one.guid, one.seq, one.op) == (3, group, guid, 7, "ALLREDUCE")
    assert (one.timeout, one.numel) == (600.0, ("8", "8"))


def test_the_watchdog_of_nccl2_names_its_group() -> None:
    (one,) = waiting_in(3, "[TC][rank=1][name=mesh_tp] Operation timed out after 600207 ms")
    assert (one.rank, one.group, one.seq, one.op, one.timeout) == (3, "mesh_tp", None, None, 600.207)


NAMED = (
    "[PG GUID 0(default_pg) Rank 3] " + WORK.format(5, "ALLREDUCE"),
    "[PG ID 0 PG GUID 0(default_pg) Rank 3] " + STATUS.format(5),
    "[PG GUID 5(tp) Rank 1] " + WORK.format(5, "BROADCAST"),
    "[PG ID 1 PG GUID 5(tp) Rank 1] " + STATUS.format(5),
)


@pytest.mark.parametrize("lines", [*permutations(NAMED)])
def test_two_groups_of_one_number_are_two_collectives_in_any_order(lines: tuple[str, ...]) -> None:
    found = {(one.group, one.op, one.enqueued) for one in waiting_in(3, *lines)}
    assert found == {("default_pg", "ALLREDUCE", 9), ("tp", "BROADCAST", 9)}


def test_a_work_that_names_no_group_is_of_the_only_one_that_counted_so_far() -> None:
    nameless = ["[Rank 3] " + WORK.format(5, "ALLREDUCE"), "[Rank 3] " + WORK.format(90, "BROADCAST")]
    found = waiting_in(3, *nameless, NAMED[1], "[PG ID 1 PG GUID 5(tp) Rank 1] " + STATUS.format(90))
    assert {(one.group, one.seq, one.op) for one in found} == {
        ("default_pg", 5, "ALLREDUCE"), ("tp", 90, "BROADCAST"),
    }  # fmt: skip


def test_a_work_that_may_be_of_two_groups_is_of_neither() -> None:
    found = waiting_in(3, "[Rank 3] " + WORK.format(5, "ALLREDUCE"), NAMED[1], NAMED[3])
    assert {(one.group, one.op, one.enqueued) for one in found} == {("default_pg", None, 9), ("tp", None, 9)}


def test_groups_of_one_name_are_judged_apart() -> None:
    """Every node's tensor-parallel group has the same name and its own number; node 1 has got further."""
    node0 = [waiting(rank, group="tp", guid="3", seq=7) for rank in range(4)]
    node1 = [waiting(rank, group="tp", guid="4", seq=90, enqueued=92) for rank in range(4, 8)]
    found = said(node0 + node1, range(8))
    assert [rank for rank, _ in found] == [None, None]
    assert ["all 4 ranks wait inside the same ALLREDUCE #7" in found[0][1], "#90" in found[1][1]] == [True, True]


def milestones(text_of_source: dict[str, str]) -> list[Match]:
    matcher = Matcher(Prefilter(build_index(observations().rules)))
    state = ReadState()
    return [
        match
        for source, text in text_of_source.items()
        for batch in read(source, [text.encode()], state)
        for match in matcher.find(batch)
        if match.rule.id == "~milestones"
    ]


def test_the_skew_of_a_host_is_estimated_from_steps_all_ranks_take() -> None:
    def log(offset: int) -> str:
        return "".join(f"2024-01-01 00:{minute:02}:{offset:02} INFO step {minute}\n" for minute in range(6))

    offsets = skews(milestones({"a": log(0), "b": log(30), "c": log(0)}))
    assert {source: offset for (source, _), offset in offsets.items()} == {"b": 30.0}


def test_one_shared_step_is_enough_for_a_time_zone_and_not_for_less() -> None:
    def step(hour: int, minute: int) -> str:
        return f"2024-01-01 {hour:02}:{minute:02}:05 INFO step 7\n"

    offsets = skews(milestones({"a": step(4, 0), "b": step(12, 0), "c": step(4, 11)}))
    assert {source: offset for (source, _), offset in offsets.items()} in (
        {"b": 28800.0},
        {"a": -28800.0, "c": -28800.0},
    )


def test_a_clock_is_set_through_another_that_both_share_events_with() -> None:
    def log(first: int, last: int, offset: int) -> str:
        return "".join(f"2024-01-01 00:{n:02}:{offset:02} INFO step {n}\n" for n in range(first, last))

    offsets = skews(milestones({"a": log(0, 4, 0), "b": log(2, 8, 10), "c": log(5, 8, 30)}))
    known = {source: offset for (source, _), offset in offsets.items()}
    assert known.get("c", 0) - known.get("a", 0) == 30.0


def test_a_step_of_another_attempt_is_no_other_time_zone() -> None:
    """Of c's log the middle is lost, so that its later steps are the second attempt's alone."""

    def steps(hour: int, *numbers: int) -> str:
        return "".join(f"2024-01-01 {hour:02}:{number:02}:00 INFO step {number}\n" for number in numbers)

    whole = steps(4, *range(9)) + steps(5, *range(9))
    assert skews(milestones({"a": whole, "b": whole, "c": steps(4, 0, 1) + steps(5, *range(2, 9))})) == {}


def test_without_shared_events_no_clock_is_touched() -> None:
    assert skews(milestones({"a": "2024-01-01 00:00:00 INFO step 1\n", "b": "2024-01-01 05:00:00 INFO step 9\n"})) == {}


@pytest.fixture
def fires(tmp_path: Path) -> Engine:
    return engine_of(
        tmp_path, a__fire="match: {seen: {regex: 'Fire here'}}", a__water="match: {seen: {regex: 'Water here'}}"
    )


def test_a_skewed_clock_does_not_turn_the_order_round(fires: Engine, tmp_path: Path) -> None:
    from logdoc.sources import discover

    for rank, skew, event in ((0, 0, "Fire here"), (1, 40, "Water here")):
        # rank 1's clock is 40 s ahead; its Water happens at true second 33, before rank 0's Fire at true second 38
        at = 38 if rank == 0 else 33 + skew
        steps = "".join(f"2024-01-01 00:{n:02}:{skew:02} INFO step {n}\n" for n in range(5))
        lines = f"{steps}2024-01-01 00:05:{at % 60:02} ERROR {event}\n" if at < 60 else (
            f"{steps}2024-01-01 00:06:{at % 60:02} ERROR {event}\n"
        )  # fmt: skip
        (tmp_path / f"rank_{rank}.log").write_text(lines)
    report = fires.explain(discover([str(tmp_path / "rank_0.log"), str(tmp_path / "rank_1.log")]).sources)
    assert report.diagnoses[0].rule == "a.water"


def test_relations_found_twice_are_the_same(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        a__fire="match: {seen: {regex: 'Fire here'}}\nmasks: [a.heat]",
        a__heat="match: {seen: {regex: 'Fire'}}",
        a__smoke="symptom:match: {seen: {regex: 'Smoke here'}}\nexplained_by: [a.fire]",
    )
    found = engine.study([source_from_bytes("log", b"Fire here\nSmoke here\n")]).failures

    def related() -> dict[str, tuple[list[str], list[str], list[str]]]:
        return {one.rule.id: (one.masked_by, one.explained_by, one.explains) for one in found}

    first = related()
    assert first == {"a.fire": ([], [], ["a.smoke"]), "a.heat": (["a.fire"], [], []), "a.smoke": ([], ["a.fire"], [])}
    relate(found)
    assert related() == first


def test_a_year_is_taken_from_the_dated_lines(fires: Engine, tmp_path: Path) -> None:
    from logdoc.sources import discover

    (tmp_path / "rank_0.log").write_text("2024-12-06 18:44:20 ERROR Fire here\n")
    (tmp_path / "rank_1.log").write_text("[rank1]:[E1206 18:44:16.99 Some.cpp:1] Water here\n")
    report = fires.explain(discover([str(tmp_path / "rank_0.log"), str(tmp_path / "rank_1.log")]).sources)
    assert report.diagnoses[0].rule == "a.water"


INIT = "n1:{pid}:9 [0] NCCL INFO ncclCommInitRank comm 0x55d{rank} rank {rank} nranks 8 cudaDev 0 nvmlDev 0 busId 1000 commId 0xaa - Init {word}\n"


def stalls(ranks_started: range, ranks_complete: set[int], more: str = "") -> list[int | None]:
    text = "".join(INIT.format(pid=rank, rank=rank, word="START") for rank in ranks_started)
    text += "".join(INIT.format(pid=rank, rank=rank, word="COMPLETE") for rank in sorted(ranks_complete)) + more
    survey = Survey()
    matcher = Matcher(Prefilter(build_index(observations().rules)))
    for batch in read("log", [text.encode()], ReadState()):
        survey.see(batch)
        survey.reach(match for match in matcher.find(batch) if match.rule.id == "~milestones")
    return [record.who.rank for record in stall_verdict(survey.tracks, 8)]


def test_the_rank_that_stays_in_init_is_named() -> None:
    assert stalls(range(8), set(range(8)) - {5}) == [5]


def test_the_rank_that_printed_nothing_is_named() -> None:
    assert stalls(range(7), set(range(7))) == [7]


def test_a_verdict_stands_in_one_line_at_its_witness_and_is_no_words_of_its() -> None:
    dump = replace(
        RECORD, line=5, end_line=9, level="INFO", component="a.py:3", time=60.0, line_numbers=(5, 6, 9), attempt=1
    )
    found = dump.verdict("rank 3 is late", VERDICT, Identity(rank=3))
    assert (found.line, found.end_line, found.line_of(4), found.time, found.attempt) == (5, 5, 5, 60.0, 1)
    assert (found.body, found.raw, found.who, found.dialects) == (
        *["rank 3 is late"] * 2,
        Identity(rank=3),
        ("verdict",),
    )
    assert (found.level, found.component) == (None, None)


def test_the_format_of_rules_names_every_dialect_of_our_own() -> None:
    told = (Path(__file__).parent.parent / "docs" / "rule-format.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"`from` names\s+dialects \(`([^`]*)`\)", told)
    assert set(OWN_DIALECTS) <= set(listed.split()) & OF_OTHERS


@pytest.mark.parametrize(
    ("ranks", "text"), [([3, 1, 1, 2], "1-3"), ([9, 0, 1], "0-1, 9"), ([4], "4"), ([], ""), (range(2048), "0-2047")]
)
def test_ranks_in_spans(ranks: Iterable[int], text: str) -> None:
    assert spans(ranks) == text


def test_a_start_that_was_cut_or_finished_accuses_nobody() -> None:
    assert stalls(range(8), set()) == []
    assert stalls(range(8), set(range(8))) == []
    assert stalls(range(8), {0, 1}) == []
    assert stalls(range(0), set(range(1, 8))) == []  # an excerpt that begins after the start


def test_steps_printed_by_rank_0_alone_accuse_nobody() -> None:
    assert stalls(range(8), set(range(8)), "[rank0]: step 1 loss 2.0\n" * 3) == []


def survey_of(text: str) -> Survey:
    survey = Survey()
    for batch in read("log", [text.encode()], ReadState()):
        survey.see(batch)
    return survey


def test_the_tasks_of_srun_are_the_ranks_if_there_are_several_on_a_host() -> None:
    survey = survey_of("".join(f"{task}: n1:{task + 10}:9 [0] NCCL INFO x\n" for task in range(4)))
    survey.settle(several_nodes=True)
    assert survey.rank_of(Identity(task=3)) == 3


def test_a_task_in_which_another_rank_talks_is_no_rank() -> None:
    survey = survey_of("".join(f"{task}: [rank{task + 8}]: n1:7:9 [0] NCCL INFO x\n" for task in range(4)))
    survey.settle(several_nodes=True)
    assert survey.rank_of(Identity(task=3)) is None


def test_the_kernels_process_is_the_rank_that_had_its_number(engine: Engine) -> None:
    log = "[rank3]: n1:4711:9 [3] NCCL INFO x\n" + (
        "Dec  6 18:44:16 n1 kernel: NVRM: Xid (PCI:0000:c1:00): 79, pid=4711, name=python, GPU has fallen off the bus.\n"
    )
    top = engine.explain_text(log).diagnoses[0]
    assert (top.rule, top.origin.rank) == ("gpu.fell-off-bus", 3)


def report_of(*failures: tuple[int, int]) -> str:
    blocks = "".join(
        f"[{i}]:\n  time      : 2024-12-06_18:44:16\n  host      : n1\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {rank + 10})\n  error_file: <N/A>\n  traceback : To enable traceback see: docs\n"
        for i, (rank, code) in enumerate(failures)
    )
    edge = "=" * 60
    return (
        f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{edge}\ntrain.py FAILED\n{'-' * 60}\n"
        f"Failures:\n{blocks}{'-' * 60}\nRoot Cause (first observed failure):\n"
        f"{blocks.split('[1]:')[0]}{edge}\n"
    )


BARE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: no label\n'


@pytest.mark.parametrize(
    ("failures", "rank"), [(((6, 1), (2, -15)), 6), (((6, 1), (2, 1)), None), (((6, -6), (2, -15)), None)]
)
def test_a_bare_traceback_is_of_the_only_rank_that_raised(
    engine: Engine, failures: tuple[tuple[int, int], ...], rank: int | None
) -> None:
    top = engine.explain_text(BARE + report_of(*failures)).diagnoses[0]
    assert (top.rule, top.origin.rank) == ("process.user-exception", rank)
