"""SVG from texts, lines and boxes, as wide as its letters, and the same as PNG by resvg: no browser, no request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal, TypeAlias

from rigctl.report.charts.marks import text_width

Anchor: TypeAlias = Literal["start", "middle", "end"]
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


def family(fonts: Sequence[str] | None) -> str:
    """As an attribute of SVG has it. Arial, or what stands in for it, is there where a picture is made."""
    names = [name for name in fonts or () if name not in ("system-ui", "-apple-system")]
    if names and names[-1] == "sans-serif":
        names[-1:] = ["Arial", "sans-serif"]
    return escape(", ".join(f"'{name}'" if " " in name or "." in name else name for name in dict.fromkeys(names)))


def png(svg: str, scale: float = 2.0) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=scale))
