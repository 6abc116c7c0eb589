"""A mesh in the report: client by server, the answer, slow nodes named once, pairs whose directions differ."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import documents
import pytest
from builders import asking, cell, plan, repetition, run

from rigctl.findings import Severity
from rigctl.records import Cell, Link, Pair, Repetition, RunInfo
from rigctl.report.blocks import Table
from rigctl.report.document import document
from rigctl.report.printers.table_parts import paper_parts

NODES = ("n1", "n2", "n3", "n4")


def mesh_run(
    rates: Mapping[tuple[str, str], float] | None = None,
    points: tuple[dict[str, object], ...] = ({},),
    usual: float = 9400.0,
    nodes: tuple[str, ...] = NODES,
    rate_bps: Mapping[str, int] | None = None,
) -> tuple[RunInfo, list[Repetition]]:
    """Every node to every other at `usual` Mbit/s but for `rates`: ("n1", "") is all of n1's, ("", "n1") all to it."""
    cells: list[Cell] = []
    for ends in permutations(nodes, 2):
        for point in points:
            settings = {"window_bytes": None, "mss": None, "congestion": "cubic", "duration_s": 1.0} | point
            cells.append(asking(cell(len(cells) + 1, pairs=(Pair(*ends),)), **settings))

    def mbps(source: str, destination: str) -> float:
        own = [(rates or {}).get(key) for key in ((source, destination), (source, ""), ("", destination))]
        return min([rate for rate in own if rate is not None], default=usual)

    measured = [repetition(each, [mbps(*each.streams[0].ends)], [each.number % 3]) for each in cells]
    links = {name: Link((rate_bps or {}).get(name, 10**10), 9000) for name in nodes}
    return run(plan(cells, links=links, title="A mesh")), measured


def test_many_servers_are_in_several_tables_each_with_all_clients() -> None:
    nodes = tuple(f"node{number:03}" for number in range(1, 13))
    made = document(*mesh_run({("node001", "node002"): 5000}, nodes=nodes))
    tables = [block for block in made.results[0].blocks if isinstance(block, Table)]
    assert [column.title for table in tables for column in table.columns[1::2]] == list(nodes)
    assert {len(table.columns) for table in tables} == {9}
    assert all([row.entries[0].text for row in table.rows] == list(nodes) for table in tables)
    assert [len(table.legend) for table in tables] == [0, 0, 3]
    assert all(len(paper_parts(table)) == 1 for table in tables)


def test_several_slow_nodes_are_named_in_the_answer() -> None:
    made = document(*mesh_run({("", "n3"): 2930, ("n1", ""): 4000}))
    assert made.answer.endswith("; n1 is slow in sending, n3 in receiving.")
    made = document(*mesh_run({(node, ""): 4000 for node in ("a", "b", "c", "d")}, nodes=tuple("abcdefghijk")))
    assert made.answer.endswith("; a, b, c and d are slow.")


def test_a_slow_node_is_reported_once_and_its_pairs_are_not() -> None:
    made = document(*mesh_run({("n2", ""): 3000, ("n3", "n4"): 7000}))
    about = [finding for finding in made.findings[1:] if finding.subject.kind in ("node", "pair")]
    assert [finding.subject.names for finding in about] == [("n2",), ("n3 -> n4",)]
    assert about[0].text.startswith(
        "n2 is slow in sending to the others: 3.00 Gbit/s (median); pairs without a slow node have 9.40 Gbit/s."
    )
    assert about[0].level is Severity.WARNING
    assert about[0].numbers["roles"] == "sending"
    assert about[1].text == "n3 → n4 has 7.00 Gbit/s, 26 % less than the other direction with 9.40 Gbit/s."
    assert about[1].numbers["slower_mbps"] == pytest.approx(7000, abs=1)


def test_what_limits_the_pairs_of_a_slow_node_is_named() -> None:
    info, measured = mesh_run({("n2", ""): 3000})
    made = [
        replace(
            each,
            flows=tuple(replace(flow, sender=replace(flow.sender, tcp=replace(flow.sender.tcp, rwnd_limited_us=10**6)))
                        for flow in each.flows if flow.sender is not None),
        )
        for each in measured
    ]  # fmt: skip
    info = replace(info, facts={"n3": {"sysctls": {"net.ipv4.tcp_rmem": "4096 131072 425984"}}})
    found = documents.finding(info, made, "n2 is slow in sending to")
    assert found.text.endswith("Its pairs are limited by: window (3 pairs; net.ipv4.tcp_rmem of n3 allows no more).")
    assert found.remedy == "Raise net.ipv4.tcp_rmem (its third value) on n3."


def test_more_pairs_than_are_reported_one_by_one_are_counted() -> None:
    nodes = tuple(f"n{number}" for number in range(1, 9))
    ring = {(nodes[at], nodes[(at + 1) % 8]): 5000.0 + 100 * at for at in range(8)}
    made = document(*mesh_run(ring, nodes=nodes))
    about = [finding for finding in made.findings if finding.subject.kind == "pair"]
    assert len(about) == 7
    assert about[0].text.startswith("n1 → n2 has 5.00 Gbit/s, 47 % less")
    assert about[-1].text.startswith("2 more pairs differ by over 10 % between the directions")
    assert about[-1].subject.names == ("n7 -> n8", "n8 -> n1")
