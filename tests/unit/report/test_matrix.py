"""Findings and heat maps of a matrix of settings, and of a mesh of nodes."""

from dataclasses import replace
from typing import Any

import das2
import documents
import pages
import pytest
from builders import changing_flows, using
from cases import from_file
from documents import document
from known import known
from meshes import NODES, mesh_run, messages_between

from rigctl.analysis.run_view import RunView
from rigctl.model.rounds import order_pairs
from rigctl.records import Cell, Condition, HostSetting, Repetition, RunInfo, Trunk
from rigctl.report.blocks import Document, Folded, HeatField, HeatMaps, Table
from rigctl.report.printers.html import page
from rigctl.report.sections.matrix import matrix_findings

QUIET = das2.Shape(noise=0.0)
COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1, 2)}


def told(run: tuple[RunInfo, list[Repetition]]) -> str:
    found = known(RunView.in_memory(*run).matrix)
    return " ".join(finding.text for finding in matrix_findings(run[0], found))


def test_the_limit_is_found_without_the_rig_file_and_a_rig_file_that_disagrees_is_named() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    silent = replace(info, plan=replace(info.plan, trunk=None, ports=(), links={}))
    assert "a shared limit of 8.0 Gbit/s on the wire. With fewer" in told((silent, measured))
    assert "The rig file gives the same for the trunk, 8 Gbit/s." in told((info, measured))
    other = told((replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**10))), measured))
    assert "The rig file gives 10 Gbit/s for the trunk: something else limits, or the trunk has another rate." in other


@pytest.mark.parametrize(
    ("sums_mbps", "answer", "brief"),
    [
        ({1: 900.0, 4: 1500.0, 8: 2400.0}, "nor stays level", "highest with 8 pairs: 2.40 Gbit/s"),
        ({4: 2400.0, 8: 2400.0}, "to name a shared limit", "2.40 Gbit/s with every number of pairs"),
    ],
)
def test_the_headline_in_a_list_of_runs_leaves_out_why_no_limit_is_named(
    sums_mbps: dict[int, float], answer: str, brief: str
) -> None:
    shape = das2.Shape(noise=0.0, goodput_mbps=lambda cell, mtu: sums_mbps[len(cell.pairs)])
    info, measured = das2.run((das2.OFF,), shape, pairs=tuple(sums_mbps), **COARSE)
    found = next(iter(matrix_findings(info, known(RunView.in_memory(info, measured).matrix))))
    assert answer in found.text
    assert found.brief == brief


def test_what_busy_processors_hold_is_not_put_down_to_a_window_or_a_link() -> None:
    def shared(cell: Cell, mtu: int) -> float:
        return min(900.0 * len(cell.pairs), 3600.0 / (10 if cell.parallel == 10 else 1))

    axes: dict[str, Any] = {"windows": (32768, 65536), "flows": (1, 10), "pairs": (1, 4, 8, 12)}
    info, measured = das2.run((das2.OFF,), das2.Shape(noise=0.0, goodput_mbps=shared), **axes)
    assert "From 4 pairs on, total goodput stays at 3.60 Gbit/s: a shared limit of 3.8 Gbit/s" in told((info, measured))
    used = [{node.node: {"node_busy_us": 2 * (node.span_us or 0)} for node in one.nodes} for one in measured]
    said = told((info, [using(one, usage) for one, usage in zip(measured, used, strict=True)]))
    assert "From 4 pairs on, total goodput stays at 3.60 Gbit/s, but processors were busy all the time" in said
    assert "shared limit" not in said
    assert "(3276 bytes each), limited by processors." in said


@from_file
def test_a_condition_is_judged_from_four_repetitions_on(repeat: int, factor: float, said: str) -> None:
    twin = replace(das2.OFF, name="twin")
    shape = das2.Shape(
        goodput_mbps=lambda cell, mtu: 900 * len(cell.pairs) * (factor if cell.condition == "twin" else 1), noise=0.0
    )
    run = das2.run((das2.OFF, twin), shape, repeat=repeat, windows=(131072,), flows=(1,), pairs=(1, 2, 4))
    assert f"twin against resize-off: {said}" in told(run)


def test_a_sysctl_that_can_not_have_done_anything_is_said() -> None:
    on = Condition("moderate", (HostSetting("mtu", "1500"), HostSetting("sysctl", "1", "net.ipv4.tcp_moderate_rcvbuf")))
    assert "windows were set, and Linux never resizes a buffer that was set" in told(das2.run((das2.OFF, on), **COARSE))
    assert "locks" not in told(das2.run((das2.OFF, on), windows=(None,), flows=(1, 2)))
    assert "locks" not in told(das2.run((das2.OFF, das2.ON), **COARSE))


SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def fields(made: Document, begins: str) -> list[HeatField]:
    """Those of all heat maps of the first section whose title begins so."""
    (found,) = (block for block in documents.section(made, begins).blocks if isinstance(block, HeatMaps))
    return [field for heat in found.maps for _, row in heat.rows for field in row]


def test_a_field_that_was_not_measured_is_a_dash_without_a_colour() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    made = document(info, measured[1:])
    first = fields(made, "Total goodput")[0]
    assert (first.text, first.colour, first.value) == ("–", "", None)
    assert page(made).count('<td class="none">–</td>') == 1


def test_a_long_matrix_is_first_its_totals_with_the_most_pairs() -> None:
    made = document(*pages.matrix())
    totals = {each.title: block for each in made.results for block in each.blocks if isinstance(block, HeatMaps)}
    brief, whole = totals["Total goodput with 6 pairs"], totals["Total goodput"]
    last = {one.title: dict(one.rows)["6"] for one in whole.maps}
    shown = {f"{name}, {one.title}": fields for one in brief.maps for name, fields in one.rows}
    assert shown == last
    assert "Total goodput" not in documents.printed(made, 80)
    assert {"Total goodput", "Total goodput with 6 pairs"} <= {*documents.printed(made, 80, everything=True)}


def test_many_servers_have_a_heat_map_in_place_of_a_table() -> None:
    nodes = tuple(f"node{number:03}" for number in range(1, 13))
    heat, *rest = document(*mesh_run({("node001", "node002"): 5000}, nodes=nodes)).results[0].blocks
    assert isinstance(heat, HeatMaps)
    assert [len(fields) for _, fields in heat.maps[0].rows] == [12] * 12
    assert not any(isinstance(block, Table | Folded) for block in rest)


def test_what_limits_the_pairs_of_a_slow_node_is_named() -> None:
    info, measured = mesh_run({("n2", ""): 3000})
    made = [changing_flows(each, sender={"rwnd_limited_us": 10**6}) for each in measured]
    info = replace(info, facts={"n3": {"sysctls": {"net.ipv4.tcp_rmem": "4096 131072 425984"}}})
    found = documents.finding(info, made, "node-slow")
    assert (found.subject.names, found.numbers["roles"]) == (("n2",), "sending")
    assert found.remedy == "Raise net.ipv4.tcp_rmem (its third value) on n3."


def test_more_pairs_than_are_reported_one_by_one_are_counted() -> None:
    nodes = tuple(f"n{number}" for number in range(1, 9))
    ring = {(nodes[at], nodes[(at + 1) % 8]): 5000.0 + 100 * at for at in range(8)}
    about = [finding for finding in document(*mesh_run(ring, nodes=nodes)).findings if finding.subject.kind == "pair"]
    assert len(about) == 7
    assert about[0].subject.names == ("n1 -> n2",)
    assert about[0].numbers["slower_mbps"] == pytest.approx(5000, rel=0.01)
    assert about[-1].code == "more-directions-differ"
    assert about[-1].subject.names == ("n7 -> n8", "n8 -> n1")


def test_a_mesh_of_round_trips_has_their_median_and_p99_and_names_the_late_node() -> None:
    times_s = {ends: 0.008 if "n4" in ends else 0.002 for (ends,) in order_pairs(NODES)}
    info, measured = messages_between("pingpong", times_s)
    made = document(info, measured)
    numbers = {"nodes": 4, "shortest_us": 20.0, "longest_us": 80.0, "late_nodes": 1}
    assert made.findings[0].code == "mesh"
    assert made.findings[0].numbers == pytest.approx(numbers, rel=0.01)
    table = made.results[0].blocks[0]
    assert isinstance(table, Table)
    assert [column.unit for column in table.columns[1:3]] == ["µs", "p99"]
    assert [entry.text for entry in table.rows[0].entries] == ["n1", "·", "·", *["20.0"] * 4, *["80.0"] * 2]
    about = [(finding.code, finding.subject.names) for finding in made.findings[1:] if finding.subject.kind == "node"]
    assert about == [("node-answers-late", ("n4",))]
    assert "round-trip-other" not in documents.codes(info, measured)
    assert [entry.colour for entry in table.rows[0].entries] == ["", "", "", "h3", "", "h3", "", "h11", ""]
    assert not [section for section in made.sections if "from every node" in section.title]
