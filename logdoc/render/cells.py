"""How many cells of a terminal a text takes. What holds common signs only needs no table, and rich is not imported."""

from __future__ import annotations

_LATIN = bytes([*range(0x20, 0x7F), *range(0xA0, 0xAD), *range(0xAE, 0x100)]).decode("latin-1")  # one cell each
_NARROW = frozenset(_LATIN + "–—‘’“”…→✗✓≤≥≈│⏎")


def cell_len(text: str) -> int:
    """The cells of `text`: a Chinese character takes two, a combining mark none."""
    if _NARROW.issuperset(text):
        return len(text)
    from rich import cells

    return cells.cell_len(text)


def cropped(text: str, most: int) -> str:
    """`text` cut to `most` cells; half of a wide character is a blank."""
    if _NARROW.issuperset(text):
        return text[:most]
    from rich import cells

    return cells.set_cell_size(text, most)


def chopped(text: str, most: int) -> list[str]:
    """`text` in pieces of at most `most` cells."""
    if _NARROW.issuperset(text):
        return [text[start : start + most] for start in range(0, len(text), most)]
    from rich import cells

    return cells.chop_cells(text, most)
