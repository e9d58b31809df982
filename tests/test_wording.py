"""Texts: what is not known is not said; commands keep a visible blank; both languages say the same things."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from logdoc.render.wrap import wrapped
from logdoc.reporting.wording import PLACEHOLDER, fill, fill_command, phrases, title
from logdoc.types.rule import Text


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("It needs {need:gib}. It has {total:gib}.", "It needs 4.00 GiB."),
        ("Needs {need:gib} of {total:gib}. Version 2.1 is old.", "Version 2.1 is old."),
        ("{n:n} times after {t:ms}", "1,234 times after 10 min"),
        ("需要 {need:gib}。共有 {total:gib}。", "需要 4.00 GiB。"),
        ("uses {x|python}", "uses python"),
        ("{text:gib} is shown as it is", "lots is shown as it is"),
        ("a dict {1: 2} stays", "a dict {1: 2} stays"),
    ],
)
def test_sentences(template: str, said: str) -> None:
    assert fill(template, {"need": 4 * 2**30, "n": 1234, "t": "600000", "text": "lots"}) == said


def test_a_command_shows_what_the_user_must_set() -> None:
    assert fill_command("{python|python} -m x --host {host}", {}) == "python -m x --host <host>"


def test_own_phrases_exist_twice_with_the_same_placeholders() -> None:
    for key, text in phrases().items():
        names = [{found["name"] for found in PLACEHOLDER.finditer(part)} for part in (text.en, text.zh)]
        assert names[0] == names[1], key
        assert text.en.strip()
        assert text.zh.strip()


@pytest.mark.parametrize("text", ["word " * 60, "显存不足，需要更多显存" * 20, "x" * 300, "mixed 显存 text " * 30, ""])
def test_wrapping_counts_cells_and_loses_nothing(text: str) -> None:
    lines = list(wrapped(text, 40, "  "))
    assert all(cell_len(line) <= 40 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("captured", "typed"),
    [
        ("eth0", "ip link show eth0"),
        ("/data/a-b_1.tar", "ip link show /data/a-b_1.tar"),
        ("$(touch pwned)", "ip link show '$(touch pwned)'"),
        ("x; rm -rf ~", "ip link show 'x; rm -rf ~'"),
        ("a\nb", "ip link show 'a b'"),
    ],
)
def test_a_hostile_log_cannot_shape_a_command(captured: str, typed: str) -> None:
    assert fill_command("ip link show {name}", {"name": captured}) == typed


def test_a_title_with_an_unknown_part_is_still_said() -> None:
    text = Text(en="It raised {type}", zh="抛出了 {type}")
    assert title(text, "en", {"type": "KeyError"}) == "It raised KeyError"
    assert title(text, "zh", {}) == "抛出了 …"
