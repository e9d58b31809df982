"""What the tests of the terminal UI share: a log and its report made by hand, so that no rule's wording is in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from logdoc.engine import Engine
from logdoc.rulebase import RuleSet, load_rules
from logdoc.sources import Source, source_from_bytes
from logdoc.tui.app import LogdocApp
from logdoc.tui.case import Case, Watch
from logdoc.tui.explain_screen import ExplainScreen
from logdoc.tui.freshness import Change
from logdoc.types.report import (
    Diagnosis,
    EnvironmentProblem,
    Evidence,
    Facts,
    FixLine,
    InputInfo,
    Origin,
    Place,
    ProbeLine,
    RankRow,
    Ranks,
    Report,
    Restart,
    ScoreTerm,
    SourceInfo,
    TimelineEntry,
    Tool,
)
from tests.rulekit import write_rule

LOG_NAME = "logs/train.log"
OTHER_NAME = "logs/dmesg.txt"
OOM_LINE = 7
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB."
LOG = "\n".join(
    [
        "[rank0]: epoch 0 step 0 loss 10.91",
        "[rank0]: epoch 0 step 1 loss 8.42",
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "/home/me/moe.py", line 88, in forward',
        "[rank3]:     expert_out = torch.zeros(capacity, self.dim, device=x.device)",
        "[rank3]:                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        f"[rank3]: {OOM}",
        "W1105 09:41:49 torch/distributed: Sending process 71188 closing signal SIGTERM",
        *(f"[rank{rank}]: watchdog: [/not a tag] collective timed out [bold]600 s[/]" for rank in (0, 1, 2)),
        *(f"[rank0]: closing shard {step}" for step in range(1, 31)),
    ]
)
OTHER_LOG = "kernel: first line\nkernel: NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."

TEXTS = {
    "en": {
        "title": "The GPU ran out of memory",
        "summary": "The job needs more GPU memory than this card has. It asked for 3.50 GiB more.",
        "fix": "Halve the micro batch",
        "why": "Activations shrink in proportion.",
        "other": "Another process holds the GPU",
        "refuted": "The GPU fell off the bus",
        "headline": "Rank 3 (node-b): The GPU ran out of memory; 3 other ranks failed because of it",
        "reason": "The same failure will come back.",
    },
    "zh": {
        "title": "显存不足（OOM）",
        "summary": "作业需要的显存超过这块显卡。还要申请 3.50 GiB。",
        "fix": "micro batch 减半",
        "why": "激活显存按比例减少。",
        "other": "其他进程占用了 GPU",
        "refuted": "GPU 掉线",
        "headline": "rank 3（node-b）：显存不足（OOM）；另有 3 个 rank 因此失败",
        "reason": "不修复会再次失败。",
    },
}


def evidence(line: int, text: str, source: str = LOG_NAME, rank: int | None = 3, **captures: str) -> Evidence:
    return Evidence(source=source, line=line, rank=rank, time=None, text=text, signature="torch", captures=captures)


def fixes(texts: dict[str, str]) -> tuple[FixLine, ...]:
    first = FixLine(
        title=texts["fix"],
        why=texts["why"],
        commands=("torchrun train.py --micro-batch 1", "torchrun train.py --accumulate 16"),
        applies="any",
        risk="slower",
        verify="nvidia-smi",
    )
    return first, replace(first, commands=("sbatch --gres=gpu:8 job.sh",), applies="slurm")


def diagnosis(texts: dict[str, str], **changes: object) -> Diagnosis:
    values: dict[str, object] = {
        "rule": "memory.test-oom",
        "kind": "cause",
        "title": texts["title"],
        "summary": texts["summary"],
        "confidence": 0.94,
        "status": "likely",
        "origin": Origin(rank=3, local_rank=3, host="node-b", source=LOG_NAME, line=OOM_LINE, time=None),
        "evidence": (
            evidence(OOM_LINE, OOM, tried="3.50 GiB"),
            evidence(8, "Sending process 71188 closing signal SIGTERM", rank=None),
        ),
        "probes": (),
        "explains": ("collective.test-timeout",),
        "fixes": fixes(texts),
        "references": ("https://pytorch.org/docs/stable/notes/cuda.html",),
        "ranks": (3,),
        "values": {"tried": "3.50 GiB"},
        "score": (ScoreTerm(name="prior", value=-1.5), ScoreTerm(name="evidence", value=4.25)),
    }
    return Diagnosis(**{**values, **changes})  # type: ignore[arg-type]


def report(language: str = "en", *, probed: bool = False) -> Report:
    """Rank 3 of 4 runs out of memory, the others time out; two more hypotheses, one of them in another log."""
    texts = TEXTS[language]
    said = ProbeLine(
        id="gpu-memory",
        outcome="confirms",
        summary="gpu.free = 1.2 GiB",
        host="node-b",
        same_host=True,
        ran="nvidia-smi --query-gpu=memory.free",
    )
    states = {0: "waiting", 1: "waiting", 2: "killed", 3: "failed"}
    rows = tuple(
        RankRow(rank=rank, host="node-b", state=state, first_error=Place(line=9, time=None), last_line=None)  # type: ignore[arg-type]
        for rank, state in states.items()
    )
    timed_out = [_entry(f"2024-11-05 09:41:5{rank}", rank, 9 + rank) for rank in (0, 1, 2)]
    return Report(
        schema="logdoc.report/v1",
        logdoc=Tool(version="0", rules="0"),
        outcome="cause-found",
        headline=texts["headline"],
        diagnoses=(
            diagnosis(texts, probes=(said,), status="confirmed") if probed else diagnosis(texts),
            diagnosis(
                texts,
                rule="memory.test-shared",
                title=texts["other"],
                confidence=0.31,
                status="possible",
                fixes=(),
            ),
            diagnosis(
                texts,
                rule="gpu.test-bus",
                title=texts["refuted"],
                confidence=0.06,
                status="refuted",
                evidence=(evidence(2, "NVRM: Xid (PCI:0000:41:00): 79", OTHER_NAME, None),),
                fixes=(),
            ),
        ),
        ranks=Ranks(world_size=4, seen=4, first_failure=3, silent=(), table=rows),
        timeline=(_entry("2024-11-05 09:41:49", 3, OOM_LINE, "memory.test-oom", "cause"), *timed_out),
        facts=Facts(torch="2.4.0", nccl="2.20.5", cuda="12.1", gpus=("NVIDIA A100-SXM4-80GB",), env={"NCCL_DEBUG": "INFO"}),
        environment=(
            EnvironmentProblem(
                variable="NCCL_ALGO", value="simple", problem="no algorithm", fix="NCCL_PROTO=Simple", severity="breaks"
            ),
        ),
        restart=Restart(advice="fix-first", reason=texts["reason"]),
        similar=(),
        first_abnormal=None,
        collect_next=(),
        warnings=("logs/rank_9.log: not readable",),
        input=InputInfo(sources=(SourceInfo(name=LOG_NAME, bytes=len(LOG), lines=41, truncated=False),), seconds=0.1),
        language="zh" if language == "zh" else "en",
    )  # fmt: skip


def _entry(
    time: str, rank: int, line: int, rule: str = "collective.test-timeout", kind: str = "symptom"
) -> TimelineEntry:
    return TimelineEntry(time=time, rank=rank, rule=rule, kind=kind, line=line, source=LOG_NAME)  # type: ignore[arg-type]


@dataclass
class FixedCase:
    """A case whose reports are made by hand; `asked` notes what was asked of it."""

    sources: tuple[Source, ...] = field(
        default_factory=lambda: (
            source_from_bytes(LOG_NAME, LOG.encode()),
            source_from_bytes(OTHER_NAME, OTHER_LOG.encode()),
        )
    )
    made: Callable[[str, bool], Report] = lambda language, probed: report(language, probed=probed)
    asked: list[str] = field(default_factory=list)
    probed: bool = False
    rereadable: bool = True
    changed: Change = ""

    def change(self) -> Change:
        return self.changed

    def reread(self, language: str, watch: Watch) -> Report:
        self.asked.append(f"reread {language}")
        self.probed, self.changed = False, ""
        return self.made(language, False)

    def report(self, language: str, watch: Watch) -> Report:
        self.asked.append(f"report {language}")
        return self.made(language, self.probed)

    def probe(self, language: str, watch: Watch) -> Report:
        self.asked.append(f"probe {language}")
        self.probed = True
        return self.made(language, True)


def small_rules(root: Path) -> RuleSet:
    """A cause and a symptom of it, in two areas."""
    write_rule(root, "memory.test-oom", "match: {torch: {regex: CUDA out of memory}}\nmasks: [process.test-exit]")
    exit_body = "match: {exit: {regex: 'exitcode: (?P<code>[0-9]+)'}}\nexplained_by: [memory.test-oom]"
    write_rule(root, "process.test-exit", exit_body, "symptom")
    return load_rules([root])


def app_of(case: Case | None, tmp_path: Path, language: str = "en", engine: Engine | None = None) -> LogdocApp:
    """The app in a fixed theme, without animation; its rules are two small ones unless an engine is given."""
    rules = engine or Engine(small_rules(tmp_path))
    app = LogdocApp(lambda: rules, case, language)
    app.animation_level = "none"
    app.theme = "textual-dark"
    return app


async def settled(pilot: Pilot[None]) -> None:
    """Wait until every thread has answered and every answer is on the screen."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
    for prompt in pilot.app.screen.query(Input):
        prompt.cursor_blink = False


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one by one, each seen through to its end."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def explained(app: App[None]) -> ExplainScreen:
    assert isinstance(app.screen, ExplainScreen)
    return app.screen
