"""Colours of charts that stand alone, without the page's style sheet: as a file, as a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


@dataclass(frozen=True, slots=True)
class Palette:
    """`colours` by class of the style sheet; a class that is missing is drawn as `axis`."""

    colours: Mapping[str, str]
    background: str = "#ffffff"  # `none`: transparent
    ink: str = "#16191d"
    font: str = FONT

    def colour(self, name: str) -> str:
        return self.background if name == "plate" else self.colours.get(name, self.colours.get("axis", self.ink))


LIGHT: Final = Palette(
    {
        "s1": "#0b62c4", "s2": "#d9570b", "s3": "#0c8a5b", "s4": "#a33ac1", "s5": "#8a6d00", "s6": "#b8214f",
        "l0": "#b86000", "l1": "#c15626", "l2": "#c34f4c", "l3": "#c04d6b", "l4": "#b84f88", "l5": "#ab54a2",
        "l6": "#995bb8", "l7": "#8364c8", "l8": "#676ed1", "l9": "#4278d2",
        "grid": "#e6e9ed", "axis": "#5b6470", "ceiling": "#6b7480", "good": "#0c7a43", "warn": "#a14400",
    }
)  # fmt: skip
"""The light page's (reports/templates/report.css, matrix.css)."""
