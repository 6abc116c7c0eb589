from collections.abc import Sequence
from dataclasses import replace

import builders
import compared_runs
import pytest
from documents import cells_of, column, section, titles

from rigctl.analysis.nights.comparison import compared, of_variants
from rigctl.model.statistics.samples import Difference, Verdict
from rigctl.records import Against, Cell, Copying, Direction, Pair, Repetition, Status
from rigctl.report.blocks import Document, Folded, Items, Table
from rigctl.report.comparison import comparison_document, interval_text, signed, up
from rigctl.report.sections.streams import comparison

MANY = tuple(Pair(f"a{n}", f"b{n}") for n in range(12))


def table_of(cells: Sequence[Cell], measured: Sequence[Repetition]) -> Table:
    info = builders.run(builders.plan(cells))
    return comparison(info, cells_of(info, measured))


def table_for(cell: Cell, *measured: Repetition) -> Table:
    return table_of([cell], measured)


def test_only_the_axes_that_are_set_have_a_column() -> None:
    plain = builders.cell(window_bytes=None, mss=None)
    assert titles(table_for(plain, builders.repetition(plain)))[:3] == ["Test", "Parallel", "Goodput of each pair"]
    full = builders.cell(congestion="bbr", nodelay=True, direction=Direction.REVERSE)
    assert titles(table_for(full, builders.repetition(full)))[4:7] == ["Congestion control", "Nodelay", "Direction"]


def test_a_pair_of_many_that_is_not_known_is_not_hidden_by_the_range() -> None:
    cell = builders.cell(pairs=MANY)
    measured = builders.repetition(cell, [600.0 + n for n in range(12)])
    flows = tuple(replace(flow, bytes=None) if at == 3 else flow for at, flow in enumerate(measured.flows))
    table = table_for(cell, replace(measured, flows=flows))
    assert column(table, "Goodput of each pair") == ["600 to 611, –"]
    assert column(table, "Total goodput") == ["–"]


def test_a_column_has_one_number_of_decimals_that_of_its_smallest_rate() -> None:
    cells = [builders.cell(number) for number in (1, 2, 3)]
    rates = ((911, 941), (94.26, 94), (9.4, 9.414))
    measured = [builders.repetition(cell, each) for cell, each in zip(cells, rates, strict=True)]
    assert column(table_of(cells, measured), "Goodput of each pair") == ["911.00, 941.00", "94.26, 94.00", "9.40, 9.41"]
    assert column(table_of(cells[:2], measured[:2]), "Goodput of each pair") == ["911.0, 941.0", "94.3, 94.0"]


def test_no_rate_is_rounded_to_above_its_ceiling() -> None:
    cells = [builders.cell(number, pairs=(Pair("pi1", "pi2"),)) for number in (1, 2)]
    # 1 Gbit/s × 1400 / 1490 are 939.6 Mbit/s: 939.52 is below it, 940 would not be.
    mss = {"mss": 1400}
    measured = [builders.repetition(cell, (mbps,), sender=mss) for cell, mbps in zip(cells, (939.52, 900), strict=True)]
    assert column(table_of(cells, measured), "Goodput") == ["939.5", "900.0"]
    assert column(table_of(cells, measured[1:]), "Goodput") == ["–", "900"]


def test_requested_and_effective_zerocopy_stand_in_one_table() -> None:
    cell = builders.cell(zerocopy=True, copy=False)
    sent = Copying(sends=400, uncopied_sends=100)
    table = table_for(cell, builders.changing_flows(builders.repetition(cell), sender={"copying": sent}))
    assert (column(table, "Zerocopy"), column(table, "Copy")) == (["on"], ["off"])
    assert column(table, "Effective zerocopy") == ["25"]
    assert "Effective zerocopy" not in titles(table_for(builders.cell()))


TESTS = compared_runs.cells(6)
LATER = "20261121-214501-77aa"


def table_in(document: Document, title: str) -> Table:
    table = section(document, title).blocks[0]
    assert isinstance(table, Table)
    return table


def test_every_test_without_a_verdict_has_its_reason() -> None:
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    few = compared_runs.view(TESTS[:2], repeat=3, seed=2, run=LATER, without={1: skewed})
    document = comparison_document(compared(compared_runs.view(TESTS[:2]), few))
    reasons = section(document, "Without a verdict").blocks[0]
    assert isinstance(reasons, Items)
    assert reasons.sentences[0].startswith(
        "Test 2 (hub → n02): inconclusive: 3 repetitions; a verdict needs 4 on either side. Changes from "
    )
    assert reasons.sentences[1] == "Test 1 (hub → n01): invalid: after: invalid: start skew 14 ms."
    table = table_in(document, "Changes")
    assert table.notes == ("Invalid: after: invalid: start skew 14 ms.",)
    assert [row.counted for row in table.rows] == [True, False]


@pytest.mark.parametrize(
    ("tests", "repeat", "said"),
    [
        (6, (1, 1), "Measured once each; as measured −14.9 % in test 3 (hub → n03), −0.4 to +0.4 % in the others; "),
        (1, (6, 2), "Measured 6 times before and twice after; as measured +0.2 %; "),
    ],
)
def test_too_few_repetitions_give_the_changes_as_measured(tests: int, repeat: tuple[int, int], said: str) -> None:
    before = compared_runs.view(TESTS[:tests], repeat[0])
    after = compared_runs.view(TESTS[:tests], repeat[1], seed=2, factors={3: 0.85}, run=LATER)
    document = comparison_document(compared(before, after))
    assert document.answer == f"{said}`--repeat 4` decides."
    table = table_in(document, "Changes")
    assert column(table, "Change")[0] in said
    assert "Verdict" not in titles(table)


def test_both_values_of_a_setting_head_their_columns() -> None:
    cells = [builders.asking(TESTS[0], number=at, congestion=name) for at, name in ((1, "cubic"), (2, "bbr"))]
    against = Against("congestion", "cubic", "bbr", ((1, 2),))
    run = compared_runs.view(cells, plan={"against": against})
    assert titles(table_in(comparison_document(of_variants(run)), "Changes"))[-5:-3] == ["cubic", "bbr"]


def test_pairs_of_a_test_have_a_table_of_their_own() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    after = compared_runs.view(tests, seed=2, factors={3: 0.9}, run=LATER)
    document = comparison_document(compared(compared_runs.view(tests), after))
    assert column(table_in(document, "Pairs"), "Pair")[:2] in (["hub → n03", "hub ← n03"], ["hub ← n03", "hub → n03"])
    assert any(finding.text.startswith("2 pairs got worse: ") for finding in document.findings)


def test_bounds_are_rounded_up_and_changes_have_a_true_minus() -> None:
    assert (up(0.0031), up(0.003), up(0.0)) == ("0.4", "0.3", "0.0")
    assert (signed(-0.098), signed(0.0003), signed(-0.0004)) == ("−9.8", "0.0", "0.0")
    assert interval_text(Difference(Verdict.SAME, 0.0, -0.002, 0.001)) == "−0.2 to +0.1"
    assert interval_text(Difference(Verdict.INCONCLUSIVE)) == "–"


def test_of_very_many_pairs_the_largest_changes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.report.comparison.MOST_PAIRS", 20)
    pairs = tuple(Pair(f"a{n:03}", f"b{n:03}") for n in range(25))
    tests = [builders.cell(1, pairs=pairs, window_bytes=None, mss=None, duration_s=0.5)]
    before, after = (compared_runs.view(tests, repeat=4, seed=at, run=f"20261120-21450{at}-3f9a") for at in (1, 2))
    (folded,) = section(comparison_document(compared(before, after)), "Pairs").blocks
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Table)
    assert len(folded.blocks[0].rows) == 20
    assert folded.summary == "The 20 largest of 25 changes of pairs"
