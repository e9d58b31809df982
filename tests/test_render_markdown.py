"""GitHub Markdown: within the limit, and whatever a log says stays text when the page is made."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from logdoc.render.markdown import MOST_CHARACTERS, code, fenced, prose, render_markdown
from logdoc.render.plain import one_line
from tests.reportkit import HOSTILE, LONG_TICKS, Language, diagnosis, evidence, fix, hostile, report

GITHUB = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])
# GitHub links what starts with a protocol or "www.", and not a bare name with a country's ending, as "A.AL".
assert GITHUB.linkify is not None
GITHUB.linkify.set({"fuzzy_link": False}).add("www.", {"validate": re.compile(r"[\w-]+(?:\.[\w-]+)*")})
# The tags that the renderer itself writes; anything else would be a log's.
OWN_TAGS = re.compile(r"(?:</?(?:details|summary|sub)>|<!-- -->|[^<>])*")


def tokens(text: str) -> list[Token]:
    return [token for block in GITHUB.parse(text) for token in [block, *(block.children or [])]]


def seen_text(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type in ("text", "code_inline"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_worst_report_fits(language: Language) -> None:
    text = render_markdown(hostile(language))
    assert 60_000 < len(text) <= MOST_CHARACTERS == 65_536
    for number in range(3):
        assert f"fix-0-{number} --now" in text
    own = [token.content for token in tokens(text) if token.type == "html_block"]
    assert "".join(own).count("<details>") == "".join(own).count("</details>") > 4


def test_evidence_goes_first_and_what_is_left_out_is_said() -> None:
    lines = tuple(evidence(f"evidence {number} " + "x" * 400, number) for number in range(400))
    fixes = tuple(fix(f"Fix {number}") for number in range(30))
    text = render_markdown(report(diagnoses=(diagnosis(evidence=lines, fixes=fixes),)))
    assert len(text) <= MOST_CHARACTERS
    assert all(f"Fix {number}**" in text for number in range(30))
    assert "evidence 1 " not in text
    assert "Left out to fit here: 1 parts" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_log_text_becomes_markup(language: Language) -> None:
    found = tokens(render_markdown(hostile(language, diagnoses=12, world=64)))
    kinds = {token.type for token in found}
    assert not kinds & {
        "image",
        "em_open",
        "s_open",
        "hr",
        "blockquote_open",
        "bullet_list_open",
        "ordered_list_open",
        "code_block",
    }
    links = {token.attrs["href"] for token in found if token.type == "link_open"}
    assert links == {"https://docs.pytorch.org/x?a=1&b=2"}
    for token in found:
        if token.type in ("html_block", "html_inline"):
            assert OWN_TAGS.fullmatch(token.content), token.content[:200]


def test_evidence_is_code_to_its_last_line_whatever_fences_it_holds() -> None:
    for text in (*HOSTILE, "`" * 400, "~~~~~~", "```\n</details>\n```"):
        page = render_markdown(report(diagnoses=(diagnosis(evidence=(evidence(text),), fixes=()),)))
        (block,) = [token for token in tokens(page) if token.type == "fence"]
        assert block.content == f"rank_3.log:1 r3 │ {visible_line(text)}\n"


def visible_line(text: str) -> str:
    from logdoc.render.plain import visible

    return visible(text).replace("\n", " ⏎ ")


@given(st.text(max_size=60))
@example("A.AL")
@example("www.A.AL")
def test_prose_reads_as_it_was_written(text: str) -> None:
    page = f"**Why:** {prose(text)}\n"
    assert seen_text(page).replace(" ", "") == f"Why: {one_line(text)}".replace(" ", "")
    kinds = {token.type for token in tokens(page)}
    assert kinds <= {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "strong_open",
        "strong_close",
        "html_inline",
        "text_special",
    }


@given(st.text(alphabet="`ab \n", max_size=40))
def test_code_spans_and_blocks_end_where_they_should(text: str) -> None:
    line = one_line(text)
    spans = [token.content for token in tokens(f"x {code(line)} y\n") if token.type == "code_inline"]
    assert [span.strip() for span in spans] == [line]
    blocks = [token.content for token in tokens(fenced(line, "text")) if token.type == "fence"]
    assert blocks == [f"{line}\n"]


@pytest.mark.parametrize(
    "text",
    ["@everyone", "#123", "GH-77", ":smile:", "http://evil.example", "www.evil.example", "org/repo#9", "a@b.com"],
)
def test_github_finds_nobody_to_notify_and_nothing_to_link(text: str) -> None:
    page = prose(f"x {text} y")
    assert text not in page.replace("\\", "")
    assert not [token for token in tokens(page) if token.type == "link_open"]
    assert seen_text(page) == f"x {text} y"


def test_a_long_run_of_backticks_makes_no_longer_fence() -> None:
    page = render_markdown(report(diagnoses=(diagnosis(evidence=(evidence(LONG_TICKS),)),)))
    assert len(page) < 10_000


def test_table_cells_hold_their_pipes() -> None:
    found = tokens(render_markdown(hostile(diagnoses=1, world=8)))
    rows = [token for token in found if token.type == "tr_open"]
    cells = [token for token in found if token.type in ("th_open", "td_open")]
    assert len(rows) == 9 + 9
    assert len(cells) == 9 * 5 + 9 * 4
