"""What the UI says: in both languages, with the same placeholders, and nothing that nobody says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logdoc.kept.sentences import PLACEHOLDER
from logdoc.tui.marks import bar, data, printable, short_place
from logdoc.tui.phrases import Voice, phrases

CHINESE = re.compile("[\u4e00-\u9fff]")
SOURCES = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "logdoc/tui").glob("*.py"))]
MADE_UP = (
    "place.",
    "tab.",
    "status.",
    "word.",
    "state.",
    "risk.",
    "probe.",
    "restart.",
    "severity.",
    "role.",
    "relation.",
    "change.",
)
SAME = {"timeline.rank", "log.searching", "job.flight_recorder", "key.language", "state.unknown"}


def test_both_languages_say_the_same_with_the_same_placeholders() -> None:
    for key, text in phrases().items():
        assert set(PLACEHOLDER.findall(text.en)) == set(PLACEHOLDER.findall(text.zh)), key
        if key not in SAME:
            assert CHINESE.search(text.zh), key
            assert not CHINESE.search(text.en), key


def test_every_phrase_is_said_somewhere() -> None:
    code = "\n".join(SOURCES)
    for key in phrases():
        kind, _, name = key.partition(".")
        known = f'"{key}"' in code or f"'{key}'" in code or (kind in ("key", "tip") and f'"{name}"' in code)
        made = any(key.startswith(prefix) for prefix in (*MADE_UP, "busy.", "none.", "outcome.", "prompt."))
        assert known or made, key


def test_every_key_has_a_tip() -> None:
    keys = {key.partition(".")[2] for key in phrases() if key.startswith("key.")}
    assert keys == {key.partition(".")[2] for key in phrases() if key.startswith("tip.")}


def test_a_voice_switches_back_and_forth() -> None:
    voice = Voice("en")
    said = [voice.say("hypotheses")]
    for _ in range(2):
        voice.switch()
        said.append(voice.say("hypotheses"))
    assert said == ["Hypotheses", "假设", "Hypotheses"]


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\x9b", "\u202e", "\u200b", "\ufeff", "\ud800", "\r", "\u2028"])
def test_nothing_a_terminal_obeys_is_printed(sign: str) -> None:
    assert printable(f"a{sign}b") == "a\N{REPLACEMENT CHARACTER}b"
    assert data(f"[bold]{sign}[/]").plain == "[bold]\N{REPLACEMENT CHARACTER}[/]"


def test_bars_and_places() -> None:
    assert [bar(share) for share in (0, 0.5, 1, 7)] == ["░" * 8, "█" * 4 + "░" * 4, "█" * 8, "█" * 8]
    assert [short_place(name, 3) for name in ("a.log", "x/a.log", "/v/w/x/a.log")] == [
        "a.log:3",
        "x/a.log:3",
        "x/a.log:3",
    ]
