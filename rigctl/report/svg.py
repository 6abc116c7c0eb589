"""Vega-Lite specifications to static SVG, and what all charts share.

The specifications are plain dictionaries (docs/decisions/0004-charts-without-altair.md). The colours are stand-ins, one
per role; the page's style sheet replaces them (an attribute selector wins over a presentation attribute), so that one
SVG serves the light, the dark and the printed page: reports/templates/report.css.
"""

import re
from collections.abc import Sequence
from typing import Final

from rigctl.report.blocks import Spec

SERIES_COLOURS: Final = ("#010001", "#010002", "#010003", "#010004", "#010005", "#010006")
LINE_COLOURS: Final = tuple(f"#0300{number:02}" for number in range(10))
"""Stand-ins for lines in an order, as 1 to 10 flows."""
GRID: Final = "#020001"
INK: Final = "#020002"
CEILING: Final = "#020003"

_ROLES: Final = re.compile(r' (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*")')
_TEXT: Final = {
    "labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 11,
}  # fmt: skip


def framed(parts: Spec) -> Spec:
    """A whole specification of `parts` (width, height, layers) with the frame that all charts have."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "transparent",
        # Below, room for descenders: the page's font is not the one that the renderer measured with.
        "padding": {"left": 2, "right": 10, "top": 4, "bottom": 6},
        "config": {
            "font": "system-ui",
            "axis": {"gridColor": GRID, "domain": False, "ticks": False, "labelPadding": 5, "titlePadding": 6} | _TEXT,
            "view": {"stroke": None},
            "mark": {"aria": False},
            "aria": False,
        },
        **parts,
    }


def rule(value: float, field: str) -> Spec:
    """A dashed line at `value`, as of a ceiling."""
    return {
        "data": {"values": [{field: value}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": CEILING, "strokeWidth": 1.2},
        "encoding": {"y": {"field": field, "type": "quantitative"}},
    }


def coloured(field: str, names: Sequence[str], colours: Sequence[str] = SERIES_COLOURS) -> Spec:
    """The encoding of lines by colour; where there are more lines than colours, all alike."""
    few = len(names) <= len(colours)
    chosen = list(colours[: len(names)]) if few else [colours[0]] * len(names)
    return {"field": field, "type": "nominal", "scale": {"domain": list(names), "range": chosen}, "legend": None}


def axis(field: str, title: str | None, domain: Sequence[float] | None = None, **more: object) -> Spec:
    """A quantitative axis; `domain` is kept as it is."""
    scale = {"domain": list(domain), "nice": False, "zero": False} if domain is not None else {"nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": {"title": title, **more}}


def render_svg(figure: Spec) -> str:
    """Static SVG; hidden from screen readers, which read the label of its figure."""
    import vl_convert

    svg = _ROLES.sub("", str(vl_convert.vegalite_to_svg(figure)))
    return svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
