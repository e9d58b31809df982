"""What a report says of its own: the user's frame, values in commands, what to gather, verdicts that are whole."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from logdoc.engine import Engine, load_engine, source_from_text
from logdoc.render import FORMATS, rendered
from logdoc.render.text import TextOptions, render_text
from logdoc.reporting.notes import setup_note
from logdoc.rulebase.observations import MILESTONES
from logdoc.types.report import Report
from tests.reportkit import diagnosis, evidence, report
from tests.rulekit import engine_of, write_rule

FRAMES = """\
Traceback (most recent call last):
  File "/home/u/job/train.py", line 40, in <module>
    main()
  File "/home/u/job/train.py", line 30, in main
    y = layer(x)
        ^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1553, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
"""
BOOM = "FrobnicateError: bad frob\n"
FIRE = "match: {seen: {regex: 'FrobnicateError', needs: [FrobnicateError]}}"


@cache
def shipped() -> Engine:
    return load_engine()


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return engine_of(tmp_path, a__fire=FIRE)


def prefixed(text: str, rank: int) -> str:
    return "".join(f"[rank{rank}]: {line}\n" if line else "\n" for line in text.splitlines())


def place(engine: Engine, log: str) -> tuple[object, object]:
    values = engine.explain_text(log).diagnoses[0].values
    return values.get("traceback.frame"), values.get("traceback.code")


@pytest.mark.parametrize(
    "log",
    [
        FRAMES + BOOM,
        FRAMES.split("\n", 1)[1] + BOOM,
        prefixed(FRAMES + BOOM, 1),
        "".join(f"2024-05-01 10:00:00,123 - root - ERROR - {line}\n" for line in (FRAMES + BOOM).splitlines()),
    ],
    ids=["whole", "headless", "rank prefix", "logged"],
)
def test_the_last_frame_of_the_user_s_own_files_is_known(engine: Engine, log: str) -> None:
    assert place(engine, log) == ("/home/u/job/train.py:30 in main", "y = layer(x)")


def test_the_frame_in_torchrun_s_report(engine: Engine) -> None:
    told = "".join(f"  {line}\n" for line in (FRAMES + BOOM).splitlines()[1:])
    log = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 60 + "\ntrain.py FAILED\n"
        + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2025-08-22_10:00:03\n  host      : gpu-a\n  rank      : 1 (local_rank: 1)\n"
        "  exitcode  : 1 (pid: 802)\n  error_file: /tmp/e.json\n  traceback : Traceback (most recent call last):\n"
        + told + "  \n" + "=" * 60 + "\n"
    )  # fmt: skip
    assert place(engine, log) == ("/home/u/job/train.py:30 in main", "y = layer(x)")


def test_no_frame_of_the_user_no_word_of_one(engine: Engine) -> None:
    torch_only = re.sub(r"/home/u/job/train\.py", "/opt/venv/lib/python3.11/site-packages/torch/run.py", FRAMES)
    launcher = 'Traceback (most recent call last):\n  File "/opt/venv/bin/torchrun", line 8, in <module>\n    main()\n'
    for log in (torch_only + BOOM, launcher + BOOM, BOOM):
        assert place(engine, log) == (None, None)
        assert "own files" not in engine.explain_text(log).diagnoses[0].summary


def test_of_chained_exceptions_the_link_that_failed_counts(engine: Engine) -> None:
    first = FRAMES.replace("line 30, in main", "line 12, in load") + "KeyError: 'x'\n"
    chain = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert place(engine, first + chain + FRAMES + BOOM)[0] == "/home/u/job/train.py:30 in main"
    assert (
        place(engine, prefixed(first, 1) + chain + prefixed(FRAMES + BOOM, 1))[0] == "/home/u/job/train.py:30 in main"
    )


def test_what_a_loader_s_worker_raised_stands_in_the_message(engine: Engine) -> None:
    inner = 'Original Traceback (most recent call last):\n  File "/home/u/job/data.py", line 9, in __getitem__\n    parse()\n'
    log = FRAMES + "FrobnicateError: Caught KeyError in DataLoader worker process 0.\n" + inner + "KeyError: 3\n"
    assert place(engine, log) == ("/home/u/job/data.py:9 in __getitem__", "parse()")


def test_a_cause_s_summary_names_the_line(engine: Engine) -> None:
    said = engine.explain_text(FRAMES + BOOM).diagnoses[0].summary
    assert said == ("Summary of a.fire. In your own files it comes from /home/u/job/train.py:30 in main: y = layer(x)")


def test_the_named_file_is_the_one_the_traceback_names(engine: Engine) -> None:
    def named(log: str) -> object:
        return engine.explain_text(log).diagnoses[0].values.get("traceback.file")

    assert named(FRAMES.replace("layer(x)", "torch.load('ck/step_7.pt')") + BOOM) == "ck/step_7.pt"
    assert named(FRAMES + "FrobnicateError: cannot read /data/ck/last.safetensors\n") == "/data/ck/last.safetensors"
    assert named(FRAMES.replace("layer(x)", "torch.load(f'{d}/step_7.pt')") + BOOM) is None
    assert named(FRAMES + "FrobnicateError: a/x.pt is not b/x.pt\n") is None
    assert named(FRAMES.replace("layer(x)", "cfg.bin") + BOOM) is None


def test_other_ranks_are_spoken_of_only_where_some_are_known() -> None:
    bug = (
        "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 3, in <module>\n    f()\nKeyError: 'a'\n"
    )
    alone = shipped().explain_text(bug).diagnoses[0]
    assert alone.rule == "process.user-exception"
    assert "other" not in alone.summary.lower()
    several = shipped().explain_text("[rank0]: loss 1.0\n[rank2]: loss 1.0\n" + prefixed(bug, 1)).diagnoses[0]
    assert "Other ranks that fail with it: 0, 2." in several.summary


def commands(log: str, rule: str) -> list[str]:
    top = shipped().explain_text(log).diagnoses[0]
    assert top.rule == rule
    return [command for fix in top.fixes for command in fix.commands]


def test_the_script_is_filled_in() -> None:
    bug = "Traceback (most recent call last):\n  File \"/home/u/pre train.py\", line 3, in <module>\n    f()\nKeyError: 'a'\n"
    typed = commands(bug, "process.user-exception")
    assert typed[1] == "python -m pdb -c continue '/home/u/pre train.py' ...   # stops at the exception"
    failed = prefixed(bug, 1) + (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 20 + "\ngpt2.py FAILED\n"
    )
    assert " gpt2.py ..." in commands(failed, "process.user-exception")[0]
    assert " <script> ..." in commands("KeyError: 'a'\n", "process.user-exception")[0]


def test_the_checkpoint_is_filled_in() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/home/u/t.py", line 3, in <module>\n'
        "    torch.load('/ck/step_7.pt')\n"
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
    )
    assert "mv /ck/step_7.pt /ck/step_7.pt.bad" in " ".join(commands(log, "data.checkpoint-corrupt"))


def test_the_repository_is_filled_in() -> None:
    url = "https://huggingface.co/acme/frob-7b/resolve/main/config.json"
    log = f"requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: {url}\n"
    log += "Cannot access gated repo for url\n"
    top = shipped().explain_text(log).diagnoses[0]
    assert top.rule == "data.hub-access"
    assert top.fixes[0].verify.startswith("hf download acme/frob-7b config.json")


def test_commands_of_the_surroundings_come_first(tmp_path: Path) -> None:
    path = write_rule(tmp_path, "a.fire", FIRE)
    text = path.read_text(encoding="utf-8").replace("{any: [fix]}", "{any: [a], docker: [d], k8s: [k], slurm: [s]}")
    path.write_text(text, encoding="utf-8")
    engine = load_engine([path])

    def order(log: str) -> list[str]:
        return [fix.applies for fix in engine.explain_text(log).diagnoses[0].fixes]

    assert order(BOOM) == ["any", "docker", "k8s", "slurm"]
    assert order(f"SLURM_JOB_ID=7\n{BOOM}") == ["any", "slurm", "docker", "k8s"]
    assert order(f"srun: {BOOM}") == ["any", "slurm", "docker", "k8s"]
    assert order(f"[pod/worker-0/pytorch] {BOOM}") == ["any", "k8s", "docker", "slurm"]
    assert order(f"> {BOOM}") == ["any", "docker", "k8s", "slurm"]


GLOO = (
    "[rank0]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:4257. This is typically caused by a remote worker crashing.\n"
)
NCCL = "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2395, remote process exited\n"


def gathered(log: str) -> str:
    found = shipped().explain_text(log)
    assert found.outcome == "symptoms-only"
    return " ".join(found.collect_next)


def test_a_job_of_gloo_is_told_nothing_of_nccl() -> None:
    assert "NCCL" not in gathered(GLOO)
    assert "TORCH_CPP_LOG_LEVEL=INFO" in gathered(GLOO)
    assert "NCCL_DEBUG=INFO" in gathered(NCCL)
    assert "NCCL_DEBUG=INFO" in gathered(NCCL + GLOO)


def test_logs_that_are_here_are_not_asked_for() -> None:
    wanted = "logs of all ranks"
    both = "world_size=2\n[rank1]: step done\n" + GLOO
    assert wanted not in gathered(both)
    assert wanted not in gathered(both.replace("world_size=2\n", ""))
    assert wanted in gathered(both.replace("world_size=2", "world_size=4"))
    assert wanted in gathered(both.replace("world_size=2\n", "").replace("127.0.0.1", "10.0.0.7"))
    assert wanted in gathered(GLOO)


VERDICT = (
    "flight recorder: collectives differ in op at #5 of default_pg: ranks 0 call all_reduce [[4, 4]] Float; "
    + "; ".join(f"ranks {rank} call broadcast [[{rank}]] Float" for rank in range(1, 18))
    + "; ranks 18 call barrier []"
)


def told(own_words: bool) -> Report:
    line = evidence(VERDICT, source="fr_0", rank=None)
    line = type(line)(**{**{name: getattr(line, name) for name in line.__slots__}, "own_words": own_words})
    return report(diagnoses=(diagnosis(evidence=(line,)),))


def test_what_logdoc_says_itself_is_whole_on_every_surface() -> None:
    assert len(VERDICT) > 500
    for form in FORMATS:
        text = unescape(rendered(told(own_words=True), form.name, redacted=False))
        if form.name == "text":
            assert all(len(line) <= 100 for line in text.splitlines() if "call" in line)
        assert VERDICT in re.sub(r"\s+", " ", text), form.name
    cut = render_text(told(own_words=False), TextOptions(width=100))
    assert "call barrier" not in cut


def test_verdicts_are_marked_and_not_cut(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, a__stall="match: {seen: {regex: 'stall verdict', from: [verdict]}}")
    start = (
        "n1:10:20 [0] NCCL INFO ncclCommInitRank comm 0x5{rank} rank {rank} nranks 3 cudaDev 0 busId 7 - Init {what}\n"
    )
    log = "".join(start.format(rank=rank, what="START") for rank in range(3))
    log += "".join(start.format(rank=rank, what="COMPLETE") for rank in range(2))
    lines = engine.explain_text(log).diagnoses[0].evidence
    assert [line.own_words for line in lines] == [True]
    assert lines[0].text.endswith("rank 2 stopped after NCCL Init START")


INIT = "n1:{pid}:20 [{rank}] NCCL INFO ncclCommInitRank comm 0x5{rank} rank {rank} nranks 4 cudaDev 0 busId 7 - Init START\n"


def noted(log: str, language: str = "en") -> list[str]:
    study = shipped().study([source_from_text(log)])
    reading, size = study.reading, study.facts.value("job.world_size")
    assert not study.failures
    assert size is None or isinstance(size, int)
    return setup_note(reading.survey, reading.observed[MILESTONES], reading.sources, size, language)


def started(*ranks: int) -> str:
    return "".join(INIT.format(rank=rank, pid=100 + rank) for rank in ranks)


def test_a_log_that_ends_in_the_set_up_says_how_far_it_came() -> None:
    (said,) = noted(started(0, 1, 2, 3))
    assert "no rank came further than “NCCL Init START” (seen: ranks 0-3)" in said
    (said,) = noted(started(0, 1, 3))
    assert "look first at the logs and nodes of those not seen" in said
    (said,) = noted("initializing distributed\n")
    assert "came as far as “initialising the process group”" in said
    assert noted("initializing distributed\n", "zh") != [said]


def test_a_log_that_goes_on_from_the_set_up_is_not_spoken_of() -> None:
    done = "n1:100:20 [0] NCCL INFO ncclCommInitRank comm 0x50 rank 0 nranks 4 cudaDev 0 busId 7 - Init COMPLETE\n"
    assert noted(started(0, 1) + done) == []
    assert noted(started(0, 1, 2, 3) + "step 7 loss 0.1\n") == []
    assert noted("initializing distributed\n" + "all is well\n" * 5) == []
    assert noted("all is well\n") == []


def test_the_process_of_the_rank_is_filled_in(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, a__fire="match: {seen: {regex: 'NCCL WARN fire'}}")
    lines = started(0, 1) + "n1:101:20 [1] NCCL WARN fire\n"
    assert engine.explain_text(lines).diagnoses[0].values["rank.pid"] == 101


def test_a_report_of_the_shipped_rules_is_json() -> None:
    values = json.loads(rendered(shipped().explain_text(FRAMES + "KeyError: 'a'\n"), "json"))["diagnoses"][0]["values"]
    assert values["traceback.frame"] == "/home/u/job/train.py:30 in main"


def test_nothing_is_known_of_a_hostile_traceback(engine: Engine) -> None:
    hostile = '  File "' + "a/" * 50_000 + '", line 3, in f\n' + '  File "x.py", line 3, in ' + "b" * 100_000 + "\n"
    top = engine.explain_text(hostile + BOOM).diagnoses[0]
    assert len(str(top.values.get("traceback.frame", ""))) < 1_000
