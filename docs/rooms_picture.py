"""docs/assets/rooms.svg, drawn from the layers in pyproject.toml: `python docs/rooms_picture.py` prints it.

A room imports only from rooms in the rows below it. `make lint` checks the same layers with import-linter.
"""

import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

_PYPROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"
_WIDTH: Final = 640
_ROW: Final = 26  # height of a row in pixels
_GAP: Final = 6  # between two boxes
_MARGIN: Final = 30  # left of the boxes, where the arrow is


def layers() -> list[list[str]]:
    """Return the rooms of each layer, from top to bottom."""
    contracts = tomllib.loads(_PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (rows,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in row.split("|")] for row in rows]


def picture() -> str:
    """Return the picture as SVG. It has a background of its own, for pages in dark mode."""
    rows = layers()
    height = len(rows) * (_ROW + _GAP) + _GAP
    boxes = [line for number, rooms in enumerate(rows) for line in _boxes(rooms, _GAP + number * (_ROW + _GAP))]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            'font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">',
            "<title>The rooms of rigctl: each imports only from those below it</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            f'<path d="M14 {_GAP}V{height - 12}M9 {height - 18}l5 8 5-8" fill="none" stroke="#5b6470"/>',
            *boxes,
            "</svg>\n",
        )
    )


def _boxes(rooms: Sequence[str], top: int) -> list[str]:
    width = (_WIDTH - _MARGIN - _GAP * len(rooms)) / len(rooms)
    lines = []
    for place, room in enumerate(rooms):
        left = _MARGIN + place * (width + _GAP)
        box = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW}" rx="4"'
        lines.append(f'<rect {box} fill="#f6f7f9" stroke="#0b62c4"/>')
        lines.append(f'<text x="{left + width / 2:.1f}" y="{top + 18}" fill="#16191d">{escape(room)}</text>')
    return lines


if __name__ == "__main__":
    print(picture(), end="")
