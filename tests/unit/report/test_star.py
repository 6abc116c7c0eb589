"""A star in the report: each node to the centre and from it; and round trips of a mesh in place of goodput."""

from collections.abc import Mapping

import documents
from builders import asking, cell, plan, repetition, run
from meshes import messages_between

from rigctl.model.rounds import around, ordered
from rigctl.records import Link, Pair, Repetition, RunInfo
from rigctl.report.blocks import Document, Table
from rigctl.report.document import document

NODES = ("n1", "n2", "n3", "n4")
STAR = [ends for (ends,) in around("n1", NODES)]
MESH = [ends for (ends,) in ordered(NODES)]


def star_run(rates: Mapping[tuple[str, str], float], narrow: str = "") -> tuple[RunInfo, list[Repetition]]:
    """A star around n1 at 9400 Mbit/s but for `rates`; the link of `narrow` has a gigabit."""
    cells = [
        asking(cell(number, pairs=(Pair(*ends),)), window_bytes=None, mss=None) for number, ends in enumerate(STAR, 1)
    ]
    measured = [repetition(each, [rates.get(each.streams[0].ends, 9400.0)], [each.number % 3]) for each in cells]
    links = {name: Link(10**9 if name == narrow else 10**10, 9000) for name in NODES}
    return run(plan(cells, links=links, title="A star")), measured


def table_of(made: Document) -> Table:
    table = made.results[0].blocks[0]
    assert isinstance(table, Table)
    return table


def about(made: Document, kind: str) -> list[str]:
    return [finding.text for finding in made.findings[1:] if finding.subject.kind == kind]


def test_a_slow_centre_is_named_and_not_the_nodes_around_it() -> None:
    made = document(*star_run({("n1", "n2"): 3000, ("n1", "n3"): 3000, ("n1", "n4"): 3100}))
    assert made.answer.endswith("; n1 is slow in sending.")
    (text,) = about(made, "node")
    assert text.startswith("n1 is slow in sending to the others: 3.00 Gbit/s (median); receiving, it has 9.40 Gbit/s.")
    assert about(made, "pair") == []


def test_a_mesh_of_round_trips_has_their_median_and_p99_and_names_the_late_node() -> None:
    times_s = {ends: 0.008 if "n4" in ends else 0.002 for ends in MESH}
    info, measured = messages_between("pingpong", times_s)
    made = document(info, measured)
    assert made.answer == (
        "Between 4 nodes, the median round trip is shortest at 20.0 µs (n1 → n2) and longest at 80.0 µs (n1 → n4); "
        "n4 answers late."
    )
    table = table_of(made)
    assert [column.unit for column in table.columns[1:3]] == ["µs", "p99"]
    assert [entry.text for entry in table.rows[0].entries] == ["n1", "·", "·", *["20.0"] * 4, *["80.0"] * 2]
    assert about(made, "node") == [
        "n4 answers late: its shortest median round trip is 80.0 µs, that of the usual node 20.0 µs."
    ]
    assert not [text for text in documents.texts(info, measured) if text.startswith("With n")]
    assert documents.section(made, "Median round trip from every node to every other")
