"""The page of a matrix and of a long test: heat maps, lines, differences, the table with its sum."""

import re
import time
from dataclasses import replace
from typing import Any

import builders
import das2
import pytest
from rigctl.report.sections.streams.soak import is_soak, soak_lines, soak_rows, soak_section, sum_over_time

from rigctl.analysis.frames import load
from rigctl.analysis.panels import matrix
from rigctl.analysis.summary import summaries
from rigctl.records import Repetition, RunInfo
from rigctl.report.printers.html import render
from rigctl.report.sections.matrix.charts import LINE_COLOURS, MatrixSection, colour_of, matrix_section
from rigctl.resources import templates

SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}
LONG: dict[str, Any] = {"windows": (131072,), "flows": (1,), "pairs": (12,), "duration_s": 1800.0}


def section(info: RunInfo, measured: list[Repetition]) -> MatrixSection:
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    return matrix_section(info, found)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, 1.4.3, of two colours as #rrggbb."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_field_of_a_heat_map_has_its_number_and_all_panels_one_scale() -> None:
    shown = section(*das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0), **SMALL))
    assert [part.title for part in shown.parts] == ["Sum of goodput: resize-off", "Sum of goodput: resize-on"]
    by_text: dict[str, set[str]] = {}
    for part in shown.parts:
        for heat in part.maps:
            assert [pairs for pairs, _ in heat.rows] == [1, 4, 8]
            for _, fields in heat.rows:
                for one in fields:
                    by_text.setdefault(one.text, set()).add(one.colour)
    assert by_text["7.53"] == {"h11"}
    assert all(len(colours) == 1 for colours in by_text.values())


def test_a_field_that_was_not_measured_is_a_dash_without_a_colour() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    shown = section(info, measured[1:])
    _, fields = shown.parts[0].maps[0].rows[0]
    assert (fields[0].text, fields[0].colour) == ("–", "")
    _, changes = shown.differences[0].maps[0].rows[0]
    assert (changes[0].text, changes[0].colour) == ("–", "")
    page = render(info, measured[1:])
    assert page.count('<td class="none">–</td>') == 2


def test_a_difference_has_signs_and_colours_to_both_sides() -> None:
    shape = das2.Shape(
        goodput_mbps=lambda cell, mtu: 500.0 * len(cell.pairs) + 480 * cell.window.resize * (3 - 2 * cell.parallel),
        noise=0.0,
    )
    (part,) = section(*das2.run((das2.OFF, das2.ON), shape, **SMALL)).differences
    assert part.title == "resize-on − resize-off"
    _, fields = part.maps[0].rows[0]
    assert [(field.text, field.colour) for field in fields] == [("+0.48", "p5"), ("−0.48", "m5")]
    assert part.words[0].startswith("resize-on against resize-off")


def test_a_difference_that_is_only_noise_stays_pale() -> None:
    twin = replace(das2.OFF, name="twin")
    (part,) = section(*das2.run((das2.OFF, twin), das2.Shape(noise=0.002), **SMALL)).differences
    assert {field.colour for heat in part.maps for _, fields in heat.rows for field in fields} == {"z0"}
    small = das2.Shape(goodput_mbps=lambda cell, mtu: 800.0 * len(cell.pairs) + 200 * cell.window.resize, noise=0.0)
    (part,) = section(*das2.run((das2.OFF, das2.ON), small, **SMALL)).differences
    assert {field.colour for heat in part.maps for _, fields in heat.rows for field in fields} == {"p2"}


def test_the_lines_of_a_panel_are_one_per_number_of_flows_in_stand_in_colours() -> None:
    shown = section(*das2.run())
    svg = shown.parts[0].maps[0].svg
    assert svg is not None
    assert {colour for colour in LINE_COLOURS if f'stroke="{colour}"' in svg} == set(LINE_COLOURS)
    assert shown.legend == tuple((str(flows), flows - 1) for flows in range(1, 11))
    assert [colour_of(at, 3) for at in range(3)] == [0, 4, 9]
    assert colour_of(0, 1) == 0


def test_the_style_sheet_has_every_colour_in_light_dark_and_print_and_its_ink_can_be_read() -> None:
    style = (templates() / "matrix.css").read_text("utf-8")
    blocks = {"light": style[: style.index("@media")], "dark": style[style.index("@media") :]}
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
    for colour in LINE_COLOURS:
        assert f'"{colour}"' in style
    assert "content-visibility: auto" in style


def test_the_page_of_a_matrix_says_the_limit_first_and_folds_its_long_table() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0), flows=(1, 2, 4), pairs=(1, 4, 8, 10, 12))
    page = render(info, measured)
    lead = re.search(r'<p class="lead">(.*?)</p>', page)
    assert lead is not None
    assert lead[1].startswith(
        "From 8 pairs on, the sum stays at 7.53 Gbit/s: a shared limit of 8.0 Gbit/s on the wire."
    )
    assert "<summary>All 120 tests, a row each</summary>" in page
    assert page.count('<table class="heat">') == 8 + 4
    assert "Difference: resize-on − resize-off" in page
    few = render(*das2.run(**SMALL))
    assert "a row each" not in few
    assert '<table class="heat">' in few
    assert '<table class="heat">' not in render(*builders.gigablox())


def test_480_cells_make_a_page_of_less_than_5_megabytes_with_a_row_per_cell() -> None:
    info, measured = das2.run(samples=20)
    began = time.process_time()
    page = render(info, measured)
    took = time.process_time() - began
    assert len(page.encode()) < 2_000_000
    assert took < 10
    assert page.count("<tr") < 480 + 4 * 13 + 200
    assert page.count("<svg") <= 4 + 12


def test_names_of_conditions_that_are_markup_are_escaped() -> None:
    nasty = replace(das2.OFF, name="<script>alert(1)</script>")
    page = render(*das2.run((nasty, das2.ON), **SMALL))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_one_long_test_of_several_pairs_has_the_table_of_the_page() -> None:
    info, measured = das2.run(**LONG)
    frames = load(info, measured)
    shown = soak_section(frames, summaries(frames)[0])
    assert shown is not None
    assert [(left.number, right and right.number) for left, right in shown.halves] == [(n, n + 6) for n in range(1, 7)]
    rows = soak_rows(frames.derived.flows)
    assert rows[0].pair == "n01 → n13"
    known = [row.goodput_mbps for row in rows if row.goodput_mbps is not None]
    assert float(shown.total[0]) == pytest.approx(sum(known), abs=1)
    assert shown.svg is None  # no samples, no chart
    lines = soak_lines(shown)
    assert lines[0].split() == ["Flow", "Pair", "Mbit/s", "Retr"] * 2
    assert lines[-1].split() == ["Sum", *shown.total]
    assert len({line.index("→") for line in lines[1:-1]}) == 1


def test_an_odd_number_of_flows_leaves_one_place_empty_and_repetitions_are_averaged() -> None:
    info, _ = das2.run(**(LONG | {"pairs": (3,)}))
    cell = info.plan.cells[0]
    measured = [das2.repetition(cell, number=number) for number in (1, 2)]
    frames = load(info, [*measured, builders.failed(cell, repetition=3)])
    shown = soak_section(frames, summaries(frames)[0])
    assert shown is not None
    assert shown.halves[1][1] is None
    assert shown.repetitions == 2
    speeds = [row["goodput_mbps"] for row in frames.derived.flows if row["source"] == "n01"]
    assert shown.halves[0][0].goodput_mbps == pytest.approx(sum(speeds) / 2)
    assert "Means over 2 repetitions." in render(info, measured)


def test_the_sum_over_time_holds_all_bytes_and_takes_the_lines_of_counters_beside_it() -> None:
    info, measured = das2.run(samples=1800, **LONG)
    summed = sum_over_time(measured[0])
    assert summed is not None
    assert len(summed[1]) == len(summed[2]) == 180
    total = sum(flow.bytes or 0 for flow in measured[0].flows)
    assert sum(summed[2]) / 180 * 1800 / 8e-6 == pytest.approx(total, rel=1e-6)
    frames = load(info, measured)
    counted = ("force10 g0/49", [float(at) for at in range(0, 1800, 10)], [8000.0] * 180)
    shown = soak_section(frames, summaries(frames)[0], [counted])
    assert shown is not None
    assert shown.svg is not None
    assert shown.legend == (("sum of the flows", 1), ("force10 g0/49", 2))
    assert 'stroke="#010002"' in shown.svg
    assert shown.spacing == "10 s"
    assert "Each point is the mean over about 10 s." in render(info, measured)


def test_a_flow_that_was_not_reported_leaves_no_sum_over_time() -> None:
    _, measured = das2.run(samples=100, **LONG)
    lost = replace(measured[0], flows=(replace(measured[0].flows[0], receiver=None), *measured[0].flows[1:]))
    assert sum_over_time(lost) is None
    assert sum_over_time(replace(measured[0], window_start_ns=None)) is None


def test_other_runs_have_no_table_of_a_long_test() -> None:
    assert not is_soak(builders.plan())
    assert is_soak(das2.run(**LONG)[0].plan)
    info, _ = das2.run(**LONG)
    frames = load(info, [builders.failed(info.plan.cells[0])])
    assert soak_section(frames, summaries(frames)[0]) is None
