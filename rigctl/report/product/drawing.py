"""Pictures of texts, lines and boxes as SVG, and as PNG by resvg: no browser, no request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal, TypeAlias

from rigctl.base.errors import extra
from rigctl.report.charts.marks import text_width

Anchor: TypeAlias = Literal["start", "middle", "end"]
_COMMON: Final = {
    "sans-serif": ("Arial",),
    "serif": ("Times New Roman", "Liberation Serif", "DejaVu Serif"),
    "monospace": ("Courier New", "Liberation Mono", "DejaVu Sans Mono"),
}
_BOLD: Final = 1.1
"""How much wider bold letters are."""


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    return text_width(text, size) * (_BOLD if bold else 1)


def wrapped(text: str, size: float, most: float, *, bold: bool = False) -> list[str]:
    """In lines of at most that width, broken at spaces."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold=bold) <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@dataclass(slots=True)
class Drawing:
    """`fonts`: names, the first that a reader has is used."""

    width: float
    height: float
    fonts: Sequence[str]
    label: str
    paper: str = "none"
    parts: list[str] = field(default_factory=list)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size: float,
        colour: str,
        *,
        bold: bool = False,
        anchor: Anchor = "start",
        fonts: Sequence[str] | None = None,
    ) -> None:
        more = ' font-weight="700"' if bold else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += f' font-family="{family(fonts)}"' if fonts else ""
        self.parts.append(
            f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="{size:g}" fill="{colour}"{more}>{escape(text)}</text>'
        )

    def box(self, at: tuple[float, float], size: tuple[float, float], colour: str, round_: float = 0) -> None:
        corner = f' rx="{round_:g}"' if round_ else ""
        self.parts.append(
            f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{max(0.0, size[0]):.1f}" height="{size[1]:.1f}" '
            f'fill="{colour}"{corner}/>'
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str, dash: str = "") -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            f'stroke="{colour}"{dashes}/>'
        )

    def image(self, at: tuple[float, float], size: tuple[float, float], address: str) -> None:
        self.parts.append(
            f'<image x="{at[0]:.1f}" y="{at[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" href="{address}"/>'
        )

    def svg(self) -> str:
        ground = f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="{self.paper}"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" font-family="{family(self.fonts)}">'
            f"<title>{escape(self.label)}</title>{ground if self.paper != 'none' else ''}{''.join(self.parts)}</svg>"
        )


def with_common(fonts: Sequence[str]) -> list[str]:
    """Put common fonts before a generic name at the end: resvg knows no font by a generic name."""
    common = _COMMON.get(fonts[-1], ()) if fonts else ()
    return list(dict.fromkeys([*fonts[:-1], *common, *fonts[-1:]]))


def family(fonts: Sequence[str] | None) -> str:
    """Return the names as the attribute `font-family`."""
    names = with_common([name for name in fonts or () if name not in ("system-ui", "-apple-system")])
    return escape(", ".join(f"'{name}'" if " " in name or "." in name else name for name in names))


def png(svg: str, scale: int = 2) -> bytes:
    """Render a picture. Fonts that this machine lacks are replaced by Arimo, which is as wide as Arial."""
    with extra("pictures", "report --fragment"):
        import fontpkg_arimo
        import resvg_py
    return resvg_py.svg_to_bytes(
        svg,
        zoom=scale,
        font_dirs=[str(folder) for folder in fontpkg_arimo.__path__],
        font_family="Arimo",
        serif_family="Arimo",
        sans_serif_family="Arimo",
        monospace_family="Arimo",
    )
