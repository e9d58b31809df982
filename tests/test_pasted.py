"""Logs that went through a web page: indented as a whole, each line indented, or a traceback without its newlines."""

from __future__ import annotations

import pytest

from logdoc.reader.lines import physical_lines
from logdoc.reader.peel import peel

TRACE = b"""\
Traceback (most recent call last):
  File "t.py", line 3, in <module>
    main()
RuntimeError: Address already in use
"""


def lines(*blocks: bytes) -> list[str]:
    return [text for _, text in physical_lines(blocks)]


def indented(text: bytes, by: int = 4) -> bytes:
    return b"".join(b" " * by + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize("by", [1, 2, 4, 12])
def test_the_common_margin_of_a_log_goes(by: int) -> None:
    assert lines(indented(TRACE, by)) == lines(TRACE)


def test_later_blocks_lose_the_same_margin_wherever_they_are_cut() -> None:
    text = indented(TRACE)
    for cut in range(len(text)):
        assert lines(text, text[:cut], text[cut:]) == lines(TRACE) * 2


def test_the_marks_of_a_quotation_go_wherever_it_is_cut() -> None:
    text = b"".join((b"> " + line).replace(b"> \n", b">\n") for line in (TRACE + b"\nend\n").splitlines(keepends=True))
    for cut in range(len(text)):
        found = lines(text, text[:cut], text[cut:])
        assert [line.lstrip() for line in found] == [line.lstrip() for line in lines(TRACE + b"\nend\n")] * 2
    assert lines(text) == lines(TRACE + b"\nend\n")


@pytest.mark.parametrize(
    "text",
    [
        TRACE,
        b"Events:\n  Type  Reason\n  Normal  Pulled\n  Normal  Started\n",
        b"  a\n",
        b'  File "t.py", line 3, in <module>\n    main()\n  File "t.py", line 9, in main\n    run()\n',
    ],
)
def test_what_is_indented_for_a_reason_stays(text: bytes) -> None:
    assert lines(text) == text.decode().splitlines()


def test_a_flat_traceback_gets_its_lines_back_all_with_its_number() -> None:
    flat = b" ".join(line.strip() for line in TRACE.splitlines()).replace(
        b"main() ", b'main() File "t.py", line 9, in main run() '
    )
    told = list(physical_lines([b"before\n", flat, b"\nafter\n"]))
    assert [number for number, _ in told] == [1, 2, 2, 2, 2, 3]
    assert [text for _, text in told][1:-1] == [
        "Traceback (most recent call last):",
        '  File "t.py", line 3, in <module> main()',
        '  File "t.py", line 9, in main run()',
        "RuntimeError: Address already in use",
    ]


def test_ranks_that_lost_their_newlines_get_a_line_each() -> None:
    assert lines(b'[rank0]: File "a.py", line 5, in f [rank0]: import x [rank0]: ModuleNotFoundError: x') == [
        '[rank0]: File "a.py", line 5, in f',
        "[rank0]: import x",
        "[rank0]: ModuleNotFoundError: x",
    ]


def test_a_million_blanks_in_such_a_line_take_no_time() -> None:
    blanks = b" " * 1_000_000
    for line in (b'x", line 1", line 2' + blanks + b"z", b"[rank0]: [rank1]:" + blanks + b"z"):
        assert "".join(lines(line)).rstrip("z").strip() == line[:19].decode().strip()


@pytest.mark.parametrize(
    ("line", "body", "rank"),
    [
        ("      [rank3]: ValueError: bad", "ValueError: bad", 3),
        ("    [1,2]<stderr>:ValueError: bad", "ValueError: bad", 2),
        ("    raise ValueError('[rank3]: bad')", "    raise ValueError('[rank3]: bad')", None),
        ("    flags | re.X", "    flags | re.X", None),
    ],
)
def test_a_launcher_s_prefix_counts_behind_blanks(line: str, body: str, rank: int | None) -> None:
    peeled = peel(1, line)
    assert (peeled.text, peeled.who.rank) == (body, rank)
