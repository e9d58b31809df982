"""Texts folded as Chinese and English are read: nothing lost, no line too wide, no line begun by a closing sign."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.content import Content

from logdoc.tui.folding import fold

TEXTS = [
    "✗ 有一个 rank 迟迟没有参与集合通信（在做只有它才做的工作）。",
    "  › torchrun --per_device_train_batch_size 1 --gradient_accumulation_steps 16   # HF; then/a/path/that/has/no/blank/at/all",
    "Where: logs/collective/watchdog-8-ranks/log.txt:13",
    "",
    "   ",
    "，，，，，，，，，，，，，，，，，，，，，，，，，，，",
    "👩‍👩‍👧 family e\u0301 and 显存 mixed GPU显存不足，cuda:0 上的 tensor",
    "first\n\nthird",
]


def bare(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [10, 23, 46, 200])
def test_every_line_fits_and_nothing_is_lost(text: str, width: int) -> None:
    folded = fold(Content(text), width).plain
    assert bare(folded) == bare(text)
    assert all(cell_len(line) <= width for line in folded.split("\n"))


def test_chinese_breaks_between_characters_but_not_before_a_closing_sign() -> None:
    folded = fold(Content("还要申请显存（GPU），这块显卡放不下。"), 16).plain.split("\n")
    assert folded == ["还要申请显存", "（GPU），这块显", "卡放不下。"]


def test_words_stay_whole_and_go_on_below_where_the_text_began() -> None:
    assert fold(Content("  › train.py --steps 100 --lr 3"), 16).plain == "  › train.py\n    --steps 100\n    --lr 3"


def test_styles_stay_on_their_words() -> None:
    text = Content.assemble("some words before ", ("the bold ones", "bold"))
    folded = fold(text, 12)
    bold = [folded.plain[span.start : span.end] for span in folded.spans if span.style == "bold"]
    assert bare("".join(bold)) == "theboldones"
