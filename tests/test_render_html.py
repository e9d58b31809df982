"""The page: one file that needs nothing, valid nesting, a drawn timeline, and log text that stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from logdoc.render.html import render_html
from logdoc.render.plain import visible
from tests.reportkit import HOSTILE, Language, diagnosis, evidence, healthy, hostile, report, unrecognised

VOID = {"meta", "br", "line", "circle", "path"}
OWN_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "h1", "h2", "h3", "p"),
    *("strong", "code", "pre", "details", "summary", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "line", "circle", "path", "text"),
}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; fails where a tag is not closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:80]}")

    def inside(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_ordinary_reports(language: Language) -> None:
    for found in (report(language), healthy(language), unrecognised(language)):
        page = Page(render_html(found))
        assert found.headline in page.inside("h1")[0]
        assert page.tags[0] == ("html", {"lang": "zh-CN" if language == "zh" else "en", "dir": "ltr"})
    page = Page(render_html(report(language)))
    assert "torchrun --nproc-per-node 8 train.py --batch-size 4" in page.inside("pre")
    assert [text for text in page.inside("pre") if "torch.OutOfMemoryError" in text]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_worst_report(language: Language) -> None:
    text = render_html(hostile(language))
    text.encode()
    assert len(text) < 4_000_000
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= OWN_TAGS
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    assert {attributes["href"] for tag, attributes in page.tags if tag == "a"} == {"https://docs.pytorch.org/x?a=1&b=2"}


def test_nothing_is_fetched_and_nothing_runs() -> None:
    text = render_html(hostile(diagnoses=5, world=64))
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use"} & set(tags)
    policies = [attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    styles = "".join(page.inside("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    assert "prefers-color-scheme:dark" in styles
    assert not [attributes for _, attributes in page.tags if "src" in attributes or "style" in attributes]


def test_evidence_reads_as_it_was_logged() -> None:
    for text in HOSTILE:
        page = Page(render_html(report(diagnoses=(diagnosis(evidence=(evidence(text),), fixes=()),))))
        assert page.inside("pre") == [f"rank_3.log:1 r3 │ {visible(text)}".replace("\n", " ⏎ ")]


def drawing(text: str) -> ElementTree.Element:
    found = re.search(r"<svg.*?</svg>", text, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found[0])


SVG = "{http://www.w3.org/2000/svg}"


def test_the_timeline_is_a_drawing_with_the_first_failure_marked() -> None:
    svg = drawing(render_html(report()))
    rings = [one for one in svg.iter(f"{SVG}circle") if one.get("class") == "ring"]
    assert len(rings) == 1
    assert len([one for one in svg.iter(f"{SVG}circle") if one.get("class") == "symptom"]) == 7
    assert len([one for one in svg.iter(f"{SVG}path") if one.get("class") == "cause"]) == 1
    assert len([one for one in svg.iter(f"{SVG}path") if one.get("class") == "flow"]) == 7
    labels = [one.text for one in svg.iter(f"{SVG}text") if one.get("class") is None]
    assert labels == [
        *("12:00:01", "12:10:00", "12:10:01", "12:10:02", "12:10:04", "12:10:05", "12:10:06", "12:10:07"),
        *(f"rank {rank} · {'failed' if rank == 3 else 'waiting'}" for rank in range(8)),
    ]
    titles = [one.text for one in svg.iter(f"{SVG}title")]
    assert "memory.test-oom · logs/rank_3.log:812 · 2024-05-01 12:00:01" in titles


def test_marks_lie_inside_the_drawing_and_not_on_each_other() -> None:
    for world in (8, 32, 4096):
        svg = drawing(render_html(report(world=world)))
        width, height = int(svg.get("width", "0")), int(svg.get("height", "0"))
        centres = [
            (int(one.get("cx", "0")), int(one.get("cy", "0")))
            for one in svg.iter(f"{SVG}circle")
            if one.get("class") == "symptom"
        ]
        assert all(0 < x < width - 8 and 8 < y < height - 8 for x, y in centres)
        assert len(set(centres)) == len(centres)
        assert height < 2_000
        assert width < 1_200


def test_hostile_names_stay_inside_the_drawing() -> None:
    svg = drawing(render_html(hostile(diagnoses=1, world=40)))
    allowed = {f"{SVG}{tag}" for tag in ("svg", "g", "line", "circle", "path", "text", "title")}
    assert {one.tag for one in svg.iter()} <= allowed
