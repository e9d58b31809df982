"""The scanner of small logs finds what the others find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logdoc.scanner.engines import AhoCorasickScanner
from logdoc.scanner.plain import PlainScanner

BYTES = st.binary(max_size=60).map(lambda text: bytes(97 + byte % 3 for byte in text))


@given(st.lists(BYTES.filter(lambda text: len(text) > 0), min_size=1, max_size=20, unique=True), BYTES)
def test_all_occurrences_in_order(literals: list[bytes], text: bytes) -> None:
    assert PlainScanner(literals).ends(text) == AhoCorasickScanner(literals).ends(text)
