from dataclasses import replace

import documents
from builders import changing_flows
from meshes import NODES, mesh_run, messages_between

from rigctl.model.rounds import ordered
from rigctl.report.blocks import Folded, HeatMaps, Table
from rigctl.report.document import document
from rigctl.report.printers.table_parts import paper_parts


def test_many_servers_have_a_heat_map_and_below_it_several_tables_each_with_all_clients() -> None:
    nodes = tuple(f"node{number:03}" for number in range(1, 13))
    heat, *_, folded = document(*mesh_run({("node001", "node002"): 5000}, nodes=nodes)).results[0].blocks
    assert isinstance(heat, HeatMaps)
    assert [len(fields) for _, fields in heat.maps[0].rows] == [12] * 12
    assert isinstance(folded, Folded)
    tables = [block for block in folded.blocks if isinstance(block, Table)]
    assert [column.title for table in tables for column in table.columns[1::2]] == list(nodes)
    assert {len(table.columns) for table in tables} == {9}
    assert all([row.entries[0].text for row in table.rows] == list(nodes) for table in tables)
    assert all(len(paper_parts(table)) == 1 for table in tables)


def test_what_limits_the_pairs_of_a_slow_node_is_named() -> None:
    info, measured = mesh_run({("n2", ""): 3000})
    made = [changing_flows(each, sender={"rwnd_limited_us": 10**6}) for each in measured]
    info = replace(info, facts={"n3": {"sysctls": {"net.ipv4.tcp_rmem": "4096 131072 425984"}}})
    found = documents.finding(info, made, "n2: 3.00 Gbit/s in sending to the others (median), ")
    assert found.text.endswith("Its pairs are limited by: window (3 pairs; net.ipv4.tcp_rmem of n3 allows no more).")
    assert found.remedy == "Raise net.ipv4.tcp_rmem (its third value) on n3."


def test_more_pairs_than_are_reported_one_by_one_are_counted() -> None:
    nodes = tuple(f"n{number}" for number in range(1, 9))
    ring = {(nodes[at], nodes[(at + 1) % 8]): 5000.0 + 100 * at for at in range(8)}
    about = [finding for finding in document(*mesh_run(ring, nodes=nodes)).findings if finding.subject.kind == "pair"]
    assert len(about) == 7
    assert about[0].text.startswith("n1 → n2: 5.00 Gbit/s, 47 % below the other direction")
    assert about[-1].text.startswith("2 more pairs differ by over 10 % between the directions")
    assert about[-1].subject.names == ("n7 -> n8", "n8 -> n1")


def test_a_mesh_of_round_trips_has_their_median_and_p99_and_names_the_late_node() -> None:
    times_s = {ends: 0.008 if "n4" in ends else 0.002 for (ends,) in ordered(NODES)}
    info, measured = messages_between("pingpong", times_s)
    made = document(info, measured)
    assert made.answer == "n4 answers late: median round trips of 20.0–80.0 µs between 4 nodes"
    table = made.results[0].blocks[0]
    assert isinstance(table, Table)
    assert [column.unit for column in table.columns[1:3]] == ["µs", "p99"]
    assert [entry.text for entry in table.rows[0].entries] == ["n1", "·", "·", *["20.0"] * 4, *["80.0"] * 2]
    about = [finding.text for finding in made.findings[1:] if finding.subject.kind == "node"]
    assert about == ["n4 answers late: its shortest median round trip is 80.0 µs, that of the usual node 20.0 µs."]
    assert not [text for text in documents.texts(info, measured) if text.startswith("With n")]
    assert [entry.colour for entry in table.rows[0].entries] == ["", "", "", "h3", "", "h3", "", "h11", ""]
    assert not [section for section in made.sections if "from every node" in section.title]
