"""Vega-Lite specifications to static SVG; the stand-in colours that the style sheet replaces."""

from typing import Any, Final, TypeAlias

Spec: TypeAlias = dict[str, Any]
"""A part of a Vega-Lite specification."""

# Stand-ins, one per role; the style sheet knows them by these values.
SERIES_COLOURS: Final = ("#010001", "#010002", "#010003", "#010004", "#010005", "#010006")
GRID: Final = "#020001"
INK: Final = "#020002"
CEILING: Final = "#020003"


def render_svg(figure: Spec) -> str:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(figure))
