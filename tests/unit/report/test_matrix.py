from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import das2
import documents

from rigctl.analysis.views.matrix import matrix
from rigctl.records import Cell, Condition, HostSetting, Repetition, RunInfo, Trunk
from rigctl.report.blocks import Document, HeatField, HeatMap, HeatMaps
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.sections.matrix import matrix_findings

QUIET = das2.Shape(noise=0.0)
COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1, 2)}


def told(run: tuple[RunInfo, list[Repetition]]) -> str:
    found = matrix(run[0].plan, documents.cells_of(*run))
    assert found is not None
    return " ".join(finding.text for finding in matrix_findings(run[0], found))


def test_the_limit_is_found_without_the_rig_file_and_a_rig_file_that_disagrees_is_named() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    silent = replace(info, plan=replace(info.plan, trunk=None, ports=(), links={}))
    assert "a shared limit of 8.0 Gbit/s on the wire. With fewer" in told((silent, measured))
    assert "The rig file gives the same for the trunk, 8 Gbit/s." in told((info, measured))
    other = replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**10)))
    assert "The rig file gives 10 Gbit/s for the trunk: something else limits, or the trunk has another rate." in told(
        (other, measured)
    )


def test_what_busy_processors_hold_is_not_put_down_to_a_window_or_a_link() -> None:
    def shared(cell: Cell, mtu: int) -> float:
        return min(900.0 * len(cell.pairs), 3600.0 / (10 if cell.parallel == 10 else 1))

    axes: dict[str, Any] = {"windows": (32768, 65536), "flows": (1, 10), "pairs": (1, 4, 8, 12)}
    info, measured = das2.run((das2.OFF,), das2.Shape(noise=0.0, goodput_mbps=shared), **axes)
    assert "From 4 pairs on, the sum stays at 3.60 Gbit/s: a shared limit of 3.8 Gbit/s" in told((info, measured))
    busy = [
        replace(one, nodes=tuple(replace(node, node_busy_us=2 * (node.span_us or 0)) for node in one.nodes))
        for one in measured
    ]
    said = told((info, busy))
    assert "From 4 pairs on, the sum stays at 3.60 Gbit/s, but processors were busy all the time: they may be" in said
    assert "shared limit" not in said
    assert "(3276 bytes each), limited by processors." in said


def test_a_difference_below_two_per_cent_is_called_none() -> None:
    twin = replace(das2.OFF, name="twin")
    said = told(das2.run((das2.OFF, twin), das2.Shape(noise=0.01), **COARSE))
    assert "twin against resize-off: no difference, " in said
    assert ", below the bound of 2 %; " in said
    slower = das2.Shape(goodput_mbps=lambda cell, mtu: 900 * len(cell.pairs) * (0.9 if cell.condition == "twin" else 1))
    assert "twin against resize-off: slower, −" in told(das2.run((das2.OFF, twin), slower, **COARSE))


def test_a_sysctl_that_can_not_have_done_anything_is_said() -> None:
    on = Condition("moderate", (HostSetting("mtu", "1500"), HostSetting("sysctl", "1", "net.ipv4.tcp_moderate_rcvbuf")))
    assert "windows were set, and Linux locks a buffer that was set" in told(das2.run((das2.OFF, on), **COARSE))
    assert "locks" not in told(das2.run((das2.OFF, on), windows=(None,), flows=(1, 2)))
    assert "locks" not in told(das2.run((das2.OFF, das2.ON), **COARSE))


SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def heat_maps(made: Document, begins: str) -> tuple[HeatMap, ...]:
    """Those of the first section whose title begins so."""
    (found,) = (block for block in documents.section(made, begins).blocks if isinstance(block, HeatMaps))
    return found.maps


def fields(heat: HeatMap) -> Iterator[HeatField]:
    return (field for _, row in heat.rows for field in row)


def test_a_field_that_was_not_measured_is_a_dash_without_a_colour() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    made = document(info, measured[1:])
    for begins in ("Total goodput", "Difference"):
        first = next(fields(heat_maps(made, begins)[0]))
        assert (first.text, first.colour, first.value) == ("–", "", None)
    assert page(made).count('<td class="none">–</td>') == 2


def test_a_difference_that_is_only_noise_stays_pale() -> None:
    def colours(run: tuple[RunInfo, list[Repetition]]) -> set[str]:
        return {field.colour for heat in heat_maps(document(*run), "Difference") for field in fields(heat)}

    twin = replace(das2.OFF, name="twin")
    assert colours(das2.run((das2.OFF, twin), das2.Shape(noise=0.002), **SMALL)) == {"z0"}
    small = das2.Shape(goodput_mbps=lambda cell, mtu: 800.0 * len(cell.pairs) + 200 * cell.resize, noise=0.0)
    assert colours(das2.run((das2.OFF, das2.ON), small, **SMALL)) == {"p2"}
