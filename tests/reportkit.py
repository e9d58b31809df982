"""Reports for tests of the surfaces: a plain one, and worst cases full of hostile text."""

from __future__ import annotations

from typing import Literal

from logdoc.types.report import (
    Abnormal,
    Diagnosis,
    EnvironmentProblem,
    Evidence,
    Facts,
    FixLine,
    FlightRecorder,
    InputInfo,
    Origin,
    Place,
    ProbeLine,
    RankRow,
    Ranks,
    RecordedPlace,
    Report,
    Restart,
    ScoreTerm,
    Similar,
    SourceInfo,
    TimelineEntry,
    Tool,
)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)> & &lt; <!channel> <@U012AB3CD> <http://evil.example|click>",
    "```\nends the fence\n```` and ~~~ and ``",
    "*bold* _it_ ~gone~ `code` [link](http://evil.example) ![i](x.png) | cell | $x$ # head",
    "@everyone #123 GH-77 :smile: www.evil.example http://evil.example org/repo#9",
    "\u202egnitset\u202c \u2066isolate\u2069 \u200bzero \u2028line \x1b[31mred\x1b[0m \x1b]8;;http://e\x07l\x07 \x00\x07",
    "👩‍👩‍👧‍👦 family 👍🏽 thumbs 🇩🇪 flag é e\u0301 显存不足" * 3,
    "]]> --> </details></summary></pre></style> <!-- ${x} {{x}} %s {rank}",
    "\ud800 lone surrogate \ufffe \U000e0041 tag",
)
LONG = "A" * 100_000
LONG_TICKS = "`" * 100_000

Language = Literal["en", "zh"]


def evidence(text: str, line: int = 1, source: str = "logs/rank_3.log", rank: int | None = 3) -> Evidence:
    return Evidence(
        source=source, line=line, rank=rank, time="2024-05-01 12:00:01", text=text, signature="s", captures={}
    )


def fix(title: str = "Use a smaller batch", **changes: object) -> FixLine:
    values: dict[str, object] = {
        "title": title,
        "why": "It needs less memory.",
        "commands": ("torchrun --nproc-per-node 8 train.py --batch-size 4",),
        "applies": "any",
        "risk": "safe",
        "verify": "nvidia-smi --query-gpu=memory.used --format=csv",
    }
    return FixLine(**{**values, **changes})  # type: ignore[arg-type]


def diagnosis(**changes: object) -> Diagnosis:
    values: dict[str, object] = {
        "rule": "memory.test-oom",
        "kind": "cause",
        "title": "GPU memory ran out",
        "summary": "Tried to get 2.00 GiB with 1.50 GiB free.",
        "confidence": 0.94,
        "status": "likely",
        "origin": Origin(
            rank=3, local_rank=3, host="node-b", source="logs/rank_3.log", line=812, time="2024-05-01 12:00:01"
        ),
        "evidence": (evidence("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", 812),),
        "probes": (
            ProbeLine(
                id="gpu-memory",
                outcome="confirms",
                summary="79 of 80 GiB used",
                host="node-b",
                same_host=True,
                ran="nvidia-smi",
            ),
        ),
        "explains": ("collective.test-peer-gone",),
        "fixes": (
            fix(),
            fix("Ask for more memory", applies="slurm", commands=("#SBATCH --mem=0",), risk="needs-admin"),
        ),
        "references": ("https://docs.pytorch.org/docs/stable/notes/cuda.html",),
        "ranks": (3,),
        "values": {"tried": "2.00 GiB"},
        "score": (ScoreTerm(name="prior", value=-0.4),),
    }
    return Diagnosis(**{**values, **changes})  # type: ignore[arg-type]


def rank_row(rank: int, state: str = "waiting", host: str | None = None) -> RankRow:
    at = Place(line=10 + rank, time="2024-05-01 12:10:00", source=f"logs/rank_{rank}.log")
    name = host or f"node-{chr(97 + rank // 2 % 26)}{rank // 52 or ''}"
    return RankRow(rank=rank, host=name, state=state, first_error=at, last_line=at, milestone="Training")  # type: ignore[arg-type]


def timeline(world: int) -> tuple[TimelineEntry, ...]:
    first = TimelineEntry(
        time="2024-05-01 12:00:01", rank=3, rule="memory.test-oom", kind="cause", line=812, source="logs/rank_3.log"
    )
    later = tuple(
        TimelineEntry(
            time=f"2024-05-01 12:10:{rank % 60:02}",
            rank=rank,
            rule="collective.test-peer-gone",
            kind="symptom",
            line=10 + rank,
            source=f"logs/rank_{rank}.log",
        )
        for rank in range(world)
        if rank != 3
    )
    return (first, *later)


def report(language: Language = "en", world: int = 8, **changes: object) -> Report:
    rows = tuple(rank_row(rank, "failed" if rank == 3 else "waiting") for rank in range(world))
    values: dict[str, object] = {
        "schema": "logdoc.report/v1",
        "logdoc": Tool(version="0.1.0", rules="0123456789abcdef"),
        "outcome": "cause-found",
        "headline": "Rank 3 (node-b): GPU memory ran out; 7 other ranks failed because of it",
        "diagnoses": (diagnosis(),),
        "ranks": Ranks(world_size=world, seen=world, first_failure=3, silent=(), table=rows),
        "timeline": timeline(world),
        "facts": Facts(
            torch="2.5.1+cu124", nccl="2.21.5", cuda="12.4", gpus=("NVIDIA H100",), env={"NCCL_DEBUG": "INFO"}
        ),
        "environment": (
            EnvironmentProblem(
                variable="NCCL_ALGO",
                value="simple",
                problem="is no algorithm",
                fix="NCCL_PROTO=Simple",
                severity="breaks",
            ),
        ),
        "restart": Restart(advice="fix-first", reason="The same failure will come back."),
        "similar": (),
        "first_abnormal": None,
        "collect_next": (),
        "warnings": ("logs/rank_9.log: not readable",),
        "input": InputInfo(
            sources=(SourceInfo(name="logs/rank_3.log", bytes=4000, lines=900, truncated=False),), seconds=0.1
        ),
        "language": language,
    }
    return Report(**{**values, **changes})  # type: ignore[arg-type]


def healthy(language: Language = "en") -> Report:
    ranks = Ranks(world_size=None, seen=0, first_failure=None, silent=(), table=())
    return report(
        language, outcome="healthy", headline="Nothing failed in this log", diagnoses=(), ranks=ranks, timeline=(),
        environment=(), warnings=(), restart=Restart(advice="unknown", reason="Nothing failed."),
    )  # fmt: skip


def unrecognised(language: Language = "en") -> Report:
    odd = Abnormal(source="logs/a.log", line=7, rank=None, text="FrobError: </details> ``` *gone*")
    return report(
        language, outcome="unrecognised", headline=f"Not recognised. First abnormal line: {odd.text}", diagnoses=(),
        first_abnormal=odd, similar=(Similar(rule="memory.test-oom", score=0.81, line=7),), collect_next=("Give all logs.",),
    )  # fmt: skip


def hostile(language: Language = "en", diagnoses: int = 200, world: int = 4096) -> Report:
    """Every text of the report is markup, control characters, or far too long."""
    everything = " ".join(HOSTILE)
    texts = (*HOSTILE, everything, LONG, LONG_TICKS, "", "\n\n", "x\ny\r\nz\tw")

    def text(number: int) -> str:
        return texts[number % len(texts)]

    found = tuple(
        diagnosis(
            rule=f"area.rule-{number}",
            title=text(number) or "t",
            summary=text(number + 1),
            confidence=max(0.9 - number / 300, 0.06),
            origin=Origin(
                rank=number,
                local_rank=None,
                host=text(number),
                source=text(number + 3),
                line=number + 1,
                time=text(number + 5),
            ),
            evidence=tuple(evidence(text(number + line), line, source=text(line), rank=line) for line in range(1, 6)),
            fixes=tuple(
                fix(
                    f"Fix {number}.{one} {text(number + one)}"[:3000],
                    why=text(one),
                    commands=(f"fix-{number}-{one} --now", text(number + one)),
                    applies="any" if one else "pip",
                    risk="slower",
                    verify=text(one + 4),
                )
                for one in range(3)
            ),
            explains=("collective.test-peer-gone", text(number)),
            references=("https://docs.pytorch.org/x?a=1&b=2", "javascript:alert(1)", text(number)),
            ranks=tuple(range(0, world, 2)),
            occurrences=world,
        )
        for number in range(diagnoses)
    )
    rows = tuple(rank_row(rank, "failed" if rank == 3 else "waiting", text(rank % 7) or "h") for rank in range(world))
    places = tuple(
        RecordedPlace(rank=rank, role="waiting", group=text(rank), operation="ALLREDUCE", frame=text(rank))
        for rank in range(9)
    )
    return report(
        language, world,
        headline=everything,
        diagnoses=found,
        ranks=Ranks(world_size=world, seen=world, first_failure=3, silent=(), table=rows),
        facts=Facts(torch=text(1), gpus=HOSTILE, env={"NCCL_X": text(2), "</td>": LONG}),
        environment=tuple(EnvironmentProblem(variable="NCCL_X", value=one, problem=one, fix=one, severity="note") for one in texts),
        restart=Restart(advice="replace-node", reason=everything, exclude_hosts=HOSTILE),
        first_abnormal=Abnormal(source=LONG, line=1, rank=0, text=everything),
        similar=(Similar(rule="a.b", score=0.7, line=1, source=everything),),
        collect_next=texts,
        warnings=texts,
        noise=HOSTILE,
        flight_recorder=(FlightRecorder(source=everything, kind="stuck-in-collective", culprits=(1,), suspects=(), without_dump=(), places=places),),
    )  # fmt: skip


def saying(text: str) -> Report:
    """A report that says `text` wherever a text of a log or a rule can stand."""
    top = diagnosis(
        title=text,
        summary=text,
        evidence=(evidence(text),),
        fixes=(fix(text, why=text, commands=(text,), verify=text),),
    )
    return report(headline=text, diagnoses=(top,), warnings=(text,))
