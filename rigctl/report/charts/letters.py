"""How wide a text is, without a font: estimated by the letters' widths in DejaVu Sans, which is wider than most."""

from typing import Final

FONT_SIZE: Final = 11
_WIDTHS: Final = {
    letter: width
    for letters, width in (
        ("ijlI|'", 0.29), (" .,/:;!", 0.33), ("ft()[]-\"", 0.39), ("r", 0.42), ("sz?_–·", 0.53), ("ckvxy", 0.58),
        ("abdeghnopqu0123456789EFLPTYS$", 0.63), ("ABCKRVXZ", 0.69), ("DGHNOQUwµ", 0.79), ("MW%m+=<>−→←≥≤", 0.95),
    )
    for letter in letters
}  # fmt: skip
_OTHER: Final = 0.65
_WIDE: Final = 1.0
"""Chinese, Japanese and Korean letters and pictures fill a square."""


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """In pixels."""
    widths = (_WIDTHS.get(letter, _WIDE if letter >= "\u1100" else _OTHER) for letter in text)
    return size * sum(widths)


def cut(text: str, most: float) -> str:
    """`text`, or as much of its beginning as is at most `most` pixels wide, with an ellipsis."""
    if text_width(text) <= most:
        return text
    kept = len(text)
    while kept and text_width(text[:kept] + "…") > most:
        kept -= 1
    return text[:kept].rstrip() + "…"
