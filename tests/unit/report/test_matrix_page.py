"""The page of a matrix: heat maps, lines, differences, and the table that is folded where it is long."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import das2

from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import HeatField, HeatMap, HeatMaps, Section
from rigctl.report.document import document
from rigctl.report.printers.html import page

SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def sections(info: RunInfo, measured: list[Repetition], begins: str) -> list[Section]:
    """Those of the document whose title begins so."""
    made = document(info, measured)
    return [section for section in (*made.results, *made.sections) if section.title.startswith(begins)]


def heat_maps(section: Section) -> HeatMaps:
    (found,) = (block for block in section.blocks if isinstance(block, HeatMaps))
    return found


def fields(heat: HeatMap) -> Iterator[HeatField]:
    return (field for _, row in heat.rows for field in row)


def rendered(info: RunInfo, measured: list[Repetition]) -> str:
    return page(document(info, measured))


def test_a_field_that_was_not_measured_is_a_dash_without_a_colour() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    for begins in ("Total goodput", "Difference"):
        first = next(fields(heat_maps(sections(info, measured[1:], begins)[0]).maps[0]))
        assert (first.text, first.colour, first.value) == ("–", "", None)
    assert rendered(info, measured[1:]).count('<td class="none">–</td>') == 2


def test_a_difference_that_is_only_noise_stays_pale() -> None:
    twin = replace(das2.OFF, name="twin")
    (noise,) = sections(*das2.run((das2.OFF, twin), das2.Shape(noise=0.002), **SMALL), "Difference")
    assert {field.colour for heat in heat_maps(noise).maps for field in fields(heat)} == {"z0"}
    small = das2.Shape(goodput_mbps=lambda cell, mtu: 800.0 * len(cell.pairs) + 200 * cell.resize, noise=0.0)
    (section,) = sections(*das2.run((das2.OFF, das2.ON), small, **SMALL), "Difference")
    assert {field.colour for heat in heat_maps(section).maps for field in fields(heat)} == {"p2"}


def test_the_same_sum_has_the_same_colour_in_every_panel() -> None:
    colours: dict[str, set[str]] = {}
    for section in sections(*das2.run((das2.OFF, das2.ON), flows=(1, 2, 10)), "Total goodput"):
        for heat in heat_maps(section).maps:
            for field in fields(heat):
                colours.setdefault(field.text, set()).add(field.colour)
    assert len(colours) > 50
    # Two sums that print alike may lie on the two sides of a step.
    assert sum(len(found) > 1 for found in colours.values()) <= 11
