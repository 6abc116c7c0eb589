"""Colours of charts that stand alone, without the page's style sheet: as a file, as a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by class of the style sheet; a class that is missing is drawn as `axis`."""

    colours: Mapping[str, str]
    background: str = "#ffffff"  # `none`: transparent
    ink: str = "#16191d"
    font: str = FONT

    def colour(self, name: str) -> str:
        return self.background if name == "plate" else self.colours.get(name, self.colours.get("axis", self.ink))


LIGHT: Final = Palette(
    {
        "s1": "#0b62c4", "s2": "#e17721", "s3": "#2ea765", "s4": "#ae6e94", "s5": "#4f4c00", "s6": "#7e2644",
        "l0": "#000070", "l1": "#40008e", "l2": "#6e0b8e", "l3": "#871588", "l4": "#9b1d81", "l5": "#ab2479",
        "l6": "#bb2c70", "l7": "#cd3962", "l8": "#e55447", "l9": "#e07a00",
        "grid": "#e6e9ed", "axis": "#5b6470", "ceiling": "#6b7480", "good": "#00736b", "warn": "#a14400",
    }
)  # fmt: skip
"""The light page's (reports/templates/report.css)."""


HEAT_STEPS: Final = 12


def heat_step(mbps: float, top_mbps: float) -> int:
    """Return the colour of a value: 0 to `HEAT_STEPS` − 1, in equal steps from 0 to the highest value of the run."""
    return max(0, min(HEAT_STEPS - 1, int(HEAT_STEPS * mbps / top_mbps))) if top_mbps > 0 else 0
