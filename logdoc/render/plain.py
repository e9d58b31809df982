"""Log text made harmless for any surface: no control or bidi characters, no line too long. Knows no markup."""

from __future__ import annotations

import re
import unicodedata

from logdoc.kept.patterns import lazily

CUT_SIGN = "…"
MOST_CLUSTER = 16  # characters looked back for the start of what is drawn as one sign

_ANSI = lazily(r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b\][^\x07\x1b\n]*+(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]?")
# Controls, bidi overrides and isolates, line separators, invisible spaces, surrogates, non-characters, tags.
# The joiners U+200C and U+200D stay: emoji and several scripts need them.
_UNSEEN = lazily(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_JOINER, _VARIATION = "\u200d", "\ufe0f"


def visible(text: str) -> str:
    """`text` with terminal sequences gone and every other unseen character spelt out, as `\\u202e`; keeps newlines."""
    text = _ANSI.sub("", text.replace("\r\n", "\n")).replace("\r", "\n").replace("\t", "    ")
    return _UNSEEN.sub(_spelt, text)


def _spelt(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def one_line(text: str) -> str:
    """A visible text without line breaks and without blanks at its ends."""
    return " ".join(line.strip() for line in visible(text).split("\n")).strip()


def cut(text: str, most: int) -> str:
    """At most `most` characters, `…` for what is left out; never between the parts of one drawn sign."""
    if len(text) <= most:
        return text
    return text[: _sign_start(text, max(most - len(CUT_SIGN), 0))] + CUT_SIGN


def cut_bytes(text: str, most: int) -> str:
    """At most `most` bytes of UTF-8, `…` for what is left out; never inside a character."""
    if len(text) <= most and len(text.encode()) <= most:
        return text
    room = max(most - len(CUT_SIGN.encode()), 0)
    kept = text[:room].encode()[:room].decode("utf-8", "ignore")
    return text[: _sign_start(text, len(kept))] + CUT_SIGN


def _sign_start(text: str, end: int) -> int:
    """The last place at or before `end` where no combining mark, joiner or modifier follows."""
    for place in range(end, max(end - MOST_CLUSTER, 0), -1):
        if not _continues(text, place):
            return place
    return end if end > MOST_CLUSTER else 0


def _continues(text: str, place: int) -> bool:
    if place >= len(text):
        return False
    sign = text[place]
    if sign in (_JOINER, _VARIATION) or text[place - 1] == _JOINER or unicodedata.combining(sign):
        return True
    return "\U0001f3fb" <= sign <= "\U0001f3ff"
