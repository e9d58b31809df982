"""Is 0.9 right nine times in ten? Explains labelled logs, prints reliability, and fits the scale of the scores.

    python benchmarks/calibrate.py sample_logs [MORE_LABELLED_FOLDERS] [--write]

A labelled folder holds <any>/case.yaml beside log.txt or logs/ (keys as in sample_logs/). The fit is two numbers, slope
and offset of the log-odds (Platt scaling), pulled towards 1 and 0 so that few cases cannot make it bold; the figures of
leave-one-out say how it fares on cases it has not seen. Fit on logs that nobody tuned rules on: on others it flatters.
`--write` stores the two in logdoc/data/weights.json.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import yaml

from logdoc.engine import Engine
from logdoc.rulebase import load_rules, rule_roots
from logdoc.sources import discover

WEIGHTS = Path(__file__).resolve().parents[1] / "logdoc" / "data" / "weights.json"
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
PRIOR_STRENGTH = 4.0  # as if so many cases spoke for slope 1, offset 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A top answer: its unscaled log-odds, the confidence it was given, and whether the label agrees."""

    case: str
    rule: str
    log_odds: float
    confidence: float
    right: bool


def answers(engine: Engine, folders: Sequence[Path]) -> tuple[list[Answer], int, int]:
    """All top answers, and how many logs labelled healthy stayed healthy, of how many."""
    found, quiet, healthy = [], 0, 0
    for path in sorted(case for folder in folders for case in folder.rglob("case.yaml")):
        label = yaml.safe_load(path.read_text(encoding="utf-8"))
        log = path.parent / "log.txt"
        report = engine.explain(discover([str(log if log.exists() else path.parent / "logs")]).sources)
        if label["cause"] == "none":
            healthy += 1
            quiet += report.outcome == "healthy"
            continue
        top = report.diagnoses[0] if report.diagnoses else None
        if top is not None:
            right = top.rule in {label["cause"], *(label.get("accept") or [])}
            found.append(
                Answer(path.parent.name, top.rule, sum(term.value for term in top.score), top.confidence, right)
            )
        else:
            found.append(Answer(path.parent.name, "-", -3.0, 0.0, False))
    return found, quiet, healthy


def fitted(cases: Sequence[Answer], steps: int = 400) -> tuple[float, float]:
    """Slope and offset that make the confidences most likely, held near (1, 0) by the prior. Gradient ascent."""
    slope, offset = 1.0, 0.0
    rate = 0.5 / max(len(cases), 1)
    for _ in range(steps):
        errors = [(case.right - sigmoid(slope * case.log_odds + offset), case.log_odds) for case in cases]
        slope += rate * (sum(error * odds for error, odds in errors) - PRIOR_STRENGTH * (slope - 1.0))
        offset += rate * (sum(error for error, _ in errors) - PRIOR_STRENGTH * offset)
    return slope, offset


def sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def brier(cases: Sequence[Answer], confidences: Sequence[float]) -> float:
    """Mean squared distance of confidence and truth: 0 is perfect, 0.25 a coin."""
    return sum((confidence - case.right) ** 2 for case, confidence in zip(cases, confidences, strict=True)) / len(cases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="store the fitted scale in logdoc/data/weights.json")
    options = parser.parse_args()
    cases, quiet, healthy = answers(Engine(load_rules(rule_roots()[:1])), options.folders)
    right = sum(case.right for case in cases)
    print(f"{len(cases)} failures: {right} right ({100 * right / len(cases):.1f} %)")
    print(f"{healthy} healthy logs: {quiet} stay quiet")
    for low, high in pairwise(BINS):
        within = [case for case in cases if low <= case.confidence < high or case.confidence == high == 1.0]
        if within:
            mean = sum(case.confidence for case in within) / len(within)
            print(f"  said {low:.2f}-{high:.2f}: {len(within):4} answers, mean {mean:.2f}, "
                  f"right {sum(case.right for case in within) / len(within):.2f}")  # fmt: skip
    unseen = [fitted([*cases[:index], *cases[index + 1 :]]) for index in range(len(cases))]
    held_out = [sigmoid(slope * case.log_odds + offset) for case, (slope, offset) in zip(cases, unseen, strict=True)]
    slope, offset = fitted(cases)
    now = brier(cases, [case.confidence for case in cases])
    print(
        f"Brier now {now:.4f}, fitted and left out {brier(cases, held_out):.4f}; slope {slope:.3f}, offset {offset:.3f}"
    )
    for case in cases:
        if not case.right and case.confidence >= 0.8:
            print(f"  confident and wrong: {case.case}: {case.rule} {case.confidence:.2f}")
    if options.write:
        stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))
        stored["scale"] = {"slope": round(slope, 3), "offset": round(offset, 3)}
        WEIGHTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
