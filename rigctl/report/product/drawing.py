"""Widths, lines and fonts of texts in pictures, and PNG by resvg: no browser, no request."""

from collections.abc import Sequence
from typing import Final

from rigctl.base.errors import extra
from rigctl.report.charts.marks import text_width

_BOLD: Final = 1.1
"""How much wider bold letters are."""


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    return text_width(text, size) * (_BOLD if bold else 1)


def wrapped(text: str, size: float, most: float, *, bold: bool = False) -> list[str]:
    """Return lines of at most that width, broken at spaces."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold=bold) <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def family(fonts: Sequence[str]) -> str:
    """Return the names as the attribute `font-family`."""
    names = [name for name in fonts if name not in ("system-ui", "-apple-system")]
    return ", ".join(f"'{name}'" if " " in name or "." in name else name for name in names)


def png(svg: str, scale: int = 2) -> bytes:
    """Render a picture. Fonts that this machine lacks are replaced by Arimo, which is as wide as Arial."""
    with extra("pictures", "report --fragment"):
        import fontpkg_arimo
        import resvg_py
    return resvg_py.svg_to_bytes(
        svg,
        zoom=scale,
        font_dirs=[str(path) for path in fontpkg_arimo.__path__],
        font_family="Arimo",
        serif_family="Arimo",
        sans_serif_family="Arimo",
        monospace_family="Arimo",
    )
