"""Host facts for people: what is the same once, what differs a row for each node; what the rig is as findings."""

from dataclasses import replace
from typing import Any

import builders

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
