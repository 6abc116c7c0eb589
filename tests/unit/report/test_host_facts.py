"""Host facts for people: what is the same once, what differs a row for each node; what the rig is as findings."""

from dataclasses import replace
from typing import Any

import builders

from rigctl.findings import Severity, Weight
from rigctl.records import Link, RunInfo
from rigctl.report.blocks import Folded, Table
from rigctl.report.sections import host_facts


def having(virtual: str | None = None, **differing: dict[str, Any]) -> RunInfo:
    """Nodes with usual facts, but for what `differing` has of each."""
    nodes = {node: builders.facts(**own) for node, own in differing.items()}
    plan = builders.plan(virtual=virtual, links=dict.fromkeys(nodes, Link(10**9, 1500)))
    return replace(builders.run(plan), facts=nodes)


def tables(info: RunInfo) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The rows of what differs, and what is the same."""
    differing: list[dict[str, str]] = []
    same: dict[str, str] = {}
    for section in host_facts.sections(info):
        for block in section.blocks:
            if isinstance(block, Table):
                titles = [column.title for column in block.columns]
                differing = [
                    dict(zip(titles, (entry.text for entry in row.entries), strict=True)) for row in block.rows
                ]
            elif isinstance(block, Folded):
                (table,) = block.blocks
                assert isinstance(table, Table)
                same = {row.entries[0].text: row.entries[1].text for row in table.rows}
    return differing, same


def test_what_is_the_same_on_all_nodes_stands_once() -> None:
    differing, same = tables(having(a={}, b={}))
    assert differing == []
    assert (same["MTU"], same["Link speed"], same["CPU"]) == ("1500", "1 Gbit/s", "Cortex-A72")


def test_what_differs_has_a_column_and_each_node_a_row() -> None:
    differing, same = tables(having(a={}, b={"mtu": 9000, "governor": None}))
    assert differing == [
        {"Node": "a", "CPU governor": "ondemand", "MTU": "1500"},
        {"Node": "b", "CPU governor": "–", "MTU": "9000"},
    ]
    assert "MTU" not in same


def test_what_tells_one_machine_from_all_others_stays_in_the_store() -> None:
    differing, same = tables(
        having(a={}, b={"mac": "dc:a6:32:00:00:02", "boot_id": "other", "addresses": ["10.0.0.1"]})
    )
    assert differing == []
    assert not {"mac", "boot_id", "addresses"} & same.keys()


def test_values_are_printed_as_people_read_them() -> None:
    _, same = tables(having(a={"memory_bytes": 4 * 2**30, "offloads": {"tso": True, "gro": False}}))
    assert (same["Memory"], same["offloads: tso"], same["offloads: gro"]) == ("4,096 MiB", "on", "off")
    assert (same["Virtual interface"], same["Throttled"]) == ("no", "none")
    assert same["net.core.rmem_max"] == "212992"
    assert "Notes" not in same  # there are none


def test_a_run_without_facts_has_no_such_section() -> None:
    assert list(host_facts.sections(replace(builders.run(), facts={}))) == []


class TestFindings:
    def test_a_virtual_rig_is_called_one(self) -> None:
        (found,) = host_facts.findings(having("namespaces", a={}))
        assert found.text == "The rig is virtual: network namespaces with shaped links on one machine."
        assert found.weight is Weight.RIG

    def test_delayed_links_are_named_with_their_round_trip(self) -> None:
        info = having("namespaces", a={}, b={})
        links = {"a": Link(10**9, 1500), "b": Link(10**9, 1500, rtt_s=0.005)}
        (found,) = host_facts.findings(replace(info, plan=replace(info.plan, links=links)))
        assert found.text.endswith(" A relay delays the frames of b (5 ms) for the round-trip time in the rig file.")

    def test_figures_of_emulated_machines_are_called_emulations_and_those_of_kvm_are_not(self) -> None:
        rig, warning = host_facts.findings(having("machines", a={"emulated": True}, b={"emulated": True}))
        assert rig.text == "The rig is virtual: QEMU machines on one machine, joined by a hub. No link is shaped."
        assert warning.text.startswith("The processors of all nodes are emulated: the figures are emulation's")
        assert (warning.level, warning.weight) == (Severity.WARNING, Weight.SUSPECT)
        _, part = host_facts.findings(having("machines", a={"emulated": True}, b={"emulated": False}))
        assert part.text.startswith("The processors of a are emulated")
        (only,) = host_facts.findings(having("machines", a={"emulated": False}, b={"emulated": False}))
        assert only.weight == Weight.RIG

    def test_the_loopback_interface_is_no_link(self) -> None:
        (found,) = host_facts.findings(having("loopback", a={"speed_bps": 10**8}))
        assert found.text == "The rig is the loopback interface of one machine: no link, no switch."

    def test_links_that_are_not_as_the_rig_file_says_are_warned_of(self) -> None:
        found = list(host_facts.findings(having(None, a={"speed_bps": 10**8}, b={"mtu": 9000})))
        assert [made.text for made in found] == [
            "The link of a runs at 100 Mbit/s; the rig file has 1 Gbit/s.",
            "The MTU of b is 9000; the rig file has 1500.",
        ]
        assert {(made.weight, made.level) for made in found} == {(Weight.SUSPECT, Severity.WARNING)}
        assert [made.subject.kind for made in found] == ["link", "link"]

    def test_a_real_rig_as_its_file_says_gives_none(self) -> None:
        assert list(host_facts.findings(having(None, a={}, b={}))) == []


def test_a_table_of_many_nodes_is_folded() -> None:
    nodes: dict[str, dict[str, Any]] = {f"node{number:03}": {"mtu": 1500 + number} for number in range(100)}
    info = having(None, **nodes)
    (section,) = host_facts.sections(info)
    first = section.blocks[0]
    assert isinstance(first, Folded)
    (table,) = first.blocks
    assert isinstance(table, Table)
    assert (first.summary, len(table.rows)) == ("What differs between 100 nodes", 100)
