"""The page of a matrix: heat maps, lines, differences, and the table that is folded where it is long."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import das2
import pytest

from rigctl.base.resources import templates
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import HeatField, HeatMap, HeatMaps, Section
from rigctl.report.document import document
from rigctl.report.printers.html import STYLES, page
from rigctl.report.sections.matrix.panels import LINE_COLOURS

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


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, 1.4.3, of two colours as #rrggbb."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_field_of_a_heat_map_has_its_number_and_all_panels_one_scale() -> None:
    shown = sections(*das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0), **SMALL), "Total goodput")
    assert [section.title for section in shown] == ["Total goodput: resize-off", "Total goodput: resize-on"]
    by_text: dict[str, set[str]] = {}
    for section in shown:
        maps = heat_maps(section)
        assert (maps.unit, [heat.title for heat in maps.maps]) == (
            "Gbit/s by pairs and flows",
            ["Total window 64 KiB", "Total window 128 KiB"],
        )
        for heat in maps.maps:
            assert [pairs for pairs, _ in heat.rows] == ["1", "4", "8"]
            for field in fields(heat):
                by_text.setdefault(field.text, set()).add(field.colour)
                assert field.value is not None
                assert f"{field.value / 1000:.2f}" == field.text
    assert by_text["7.53"] == {"h11"}
    assert all(len(colours) == 1 for colours in by_text.values())


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


def test_the_style_sheet_has_every_colour_in_light_dark_and_print_and_its_ink_can_be_read() -> None:
    style = "".join((templates() / name).read_text("utf-8") for name in STYLES)
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]  # paper has the light ones
    blocks = {"light": light, "dark": dark}
    fields = re.findall(r"\.([hpm]\d+) \{ background: var\(--(\w+)\); color: var\(--([\w-]+)\); \}", style)
    assert {name for name, _, _ in fields} >= {
        *(f"h{at}" for at in range(12)),
        *(f"{s}{n}" for s in "pm" for n in range(1, 6)),
    }
    for mode, block in blocks.items():
        known = dict(reversed(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block)))
        for name, ground, ink in fields:
            text = known[ink] if len(known[ink]) == 7 else "#" + "".join(2 * digit for digit in known[ink][1:])
            assert contrast(known[ground], text) >= 4.5, (mode, name)
    for number in range(LINE_COLOURS):
        assert f".l{number} {{ color: var(--l{number}); }}" in style
    assert "content-visibility: auto" not in style  # it leaves panels blank in pictures of a whole page


@pytest.mark.torture
@pytest.mark.long
def test_480_cells_make_a_page_of_less_than_2_megabytes_with_a_row_per_cell() -> None:
    info, measured = das2.run(samples=20)
    html = rendered(info, measured)
    assert len(html.encode()) < 2_000_000
    assert html.count("<tr") > 480
    assert html.count("<svg") <= 4 + 12
