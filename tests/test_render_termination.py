"""The Kubernetes termination message: 4,096 bytes at most, whole lines, evidence before fixes, no Slurm in a pod."""

from __future__ import annotations

import pytest

from logdoc.render.termination import MOST_BYTES, render_termination
from tests.reportkit import HOSTILE, LONG, Language, diagnosis, evidence, fix, healthy, hostile, report, saying


def checked(text: str) -> list[str]:
    data = text.encode()
    assert len(data) <= MOST_BYTES == 4096
    assert text.endswith("\n")
    assert data.decode() == text
    return text.splitlines()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_ordinary_reports(language: Language) -> None:
    lines = checked(render_termination(report(language)))
    assert lines[0] == "✗ Rank 3 (node-b): GPU memory ran out; 7 other ranks failed because of it"
    assert "  torchrun --nproc-per-node 8 train.py --batch-size 4" in lines
    shown = next(number for number, line in enumerate(lines) if line.startswith("rank_3.log:812 r3 │ torch.OutOf"))
    assert shown < lines.index("  torchrun --nproc-per-node 8 train.py --batch-size 4")
    assert len(checked(render_termination(healthy(language)))) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("diagnoses", [1, 200])
def test_the_worst_report(language: Language, diagnoses: int) -> None:
    lines = checked(render_termination(hostile(language, diagnoses=diagnoses)))
    assert "  fix-0-0 --now" in lines
    assert "fix-0" not in lines[-1]


@pytest.mark.parametrize("text", [*HOSTILE, LONG, "显存" * 5000, "👩‍👩‍👧‍👦" * 2000, "\n" * 9000])
def test_any_text_anywhere(text: str) -> None:
    checked(render_termination(saying(text)))


def test_commands_are_those_of_a_pod() -> None:
    fixes = tuple(
        fix("Look", applies=applies, commands=(f"{applies} it",)) for applies in ("any", "slurm", "docker", "k8s")
    )
    lines = checked(render_termination(report(diagnoses=(diagnosis(fixes=fixes),))))
    shown = [line.strip() for line in lines if line.startswith("  ") and " it" in line]
    assert shown == ["any it", "k8s it"]
    none = (
        fix("Look", applies="docker", commands=("docker it",)),
        fix("Look", applies="slurm", commands=("slurm it",)),
    )
    lines = checked(render_termination(report(diagnoses=(diagnosis(fixes=none),))))
    assert ("  docker it" in lines, "  slurm it" in lines) == (True, False)
    only = (fix("Look", applies="slurm", commands=("slurm it",)),)
    assert "  slurm it" in checked(render_termination(report(diagnoses=(diagnosis(fixes=only),))))


def test_evidence_is_dropped_first_and_the_best_fix_never() -> None:
    lines = tuple(evidence(f"evidence {number} " + "x" * 500, number) for number in range(3))
    fixes = (fix("First", commands=("first " + "y" * 1500,)), fix("Second", commands=("second " + "y" * 1500,)))
    text = render_termination(report(diagnoses=(diagnosis(evidence=lines, fixes=fixes, summary="why " * 200),)))
    checked(text)
    assert "  first yyy" in text
    assert "evidence 2" not in text
    assert "Left out to fit here" in text


def test_a_command_that_fits_nowhere_is_named() -> None:
    text = render_termination(report(diagnoses=(diagnosis(fixes=(fix(commands=("z" * 5000,)),)),)))
    checked(text)
    assert "a command of 5,000 characters is left out" in text
    assert "zz" not in text
