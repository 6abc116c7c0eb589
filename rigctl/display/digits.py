"""Big digits and bars of full and half blocks, which the fonts of the Linux console have, too."""

from collections.abc import Sequence
from typing import Final

_GLYPHS: Final = {
    "0": ("###", "# #", "# #", "# #", "###"),
    "1": (" # ", "## ", " # ", " # ", "###"),
    "2": ("###", "  #", "###", "#  ", "###"),
    "3": ("###", "  #", " ##", "  #", "###"),
    "4": ("# #", "# #", "###", "  #", "  #"),
    "5": ("###", "#  ", "###", "  #", "###"),
    "6": ("###", "#  ", "###", "# #", "###"),
    "7": ("###", "  #", "  #", "  #", "  #"),
    "8": ("###", "# #", "###", "# #", "###"),
    "9": ("###", "# #", "###", "  #", "###"),
    ".": (" ", " ", " ", " ", "#"),
    ",": (" ", " ", " ", "#", "#"),
    "–": ("   ", "   ", "###", "   ", "   "),
}
_PIXELS: Final = 5  # of a digit's height; a pixel has `scale` half rows
_HALVES: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def size_of(text: str, scale: int) -> tuple[int, int]:
    """Return the columns and rows of `text` at this scale."""
    return scale * (sum(len(_GLYPHS[letter][0]) + 1 for letter in text) - 1), -(-_PIXELS * scale // 2)


def scale_for(text: str, width: int, height: int) -> int:
    """Return the largest scale at which `text` fits, or 0."""
    sizes = ((scale, *size_of(text, scale)) for scale in range(8, 0, -1))
    return next((scale for scale, columns, rows in sizes if columns <= width and rows <= height), 0)


def big(text: str, scale: int) -> list[str]:
    """Draw `text`, of digits and `.,–`, as rows of equal length. A pixel is `scale` columns and `scale` half rows."""
    pixels = [" ".join(_GLYPHS[letter][row] for letter in text) for row in range(_PIXELS)]
    halves = [[mark == "#" for mark in row for _ in range(scale)] for row in pixels for _ in range(scale)]
    if len(halves) % 2:
        halves.append([False] * len(halves[0]))
    return [
        "".join(_HALVES[upper, lower] for upper, lower in zip(top, bottom, strict=True))
        for top, bottom in zip(halves[::2], halves[1::2], strict=True)
    ]


def bars(values: Sequence[float], most: float, width: int, height: int) -> list[str]:
    """Draw the latest of `values` as columns of up to `height` rows."""
    # A value above 0 is always visible.
    halves = [max(value > 0, min(2 * height, round(2 * height * value / (most or 1.0)))) for value in values[-width:]]
    return [
        "".join("█" if level >= 2 * row + 2 else "▄" if level == 2 * row + 1 else " " for level in halves)
        for row in range(height - 1, -1, -1)
    ]
