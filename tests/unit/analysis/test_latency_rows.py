"""The columns of latency: of each pair, and of all probes of a test together."""

from dataclasses import replace

import builders
import probing
import pytest

from rigctl.analysis.rows.cells import derive
from rigctl.analysis.rows.messages import NAMES, latency_values
from rigctl.columns import Level, columns_at
from rigctl.records import Pair

OTHER = Pair("pi3", "pi4")


def test_the_rise_is_that_of_the_medians() -> None:
    cell = probing.cell()
    measured = probing.repetition(cell, probing.probes([100] * 9 + [200], [3000] * 98 + [4000, None]))
    (row,) = derive(builders.run(builders.plan([cell])), [measured]).pairs
    assert [row[name] for name in NAMES] == [100.0, 200.0, 3000.0, 4000.0, 2900.0, pytest.approx(20_000), 1.0]


def test_a_pair_has_its_own_and_the_test_all_of_them() -> None:
    cell = probing.cell(pairs=(probing.PAIR, OTHER))
    measured = probing.repetition(
        cell, probing.probes([100] * 10, [1000] * 90), probing.probes([200] * 10, [5000] * 90, OTHER)
    )
    rows = derive(builders.run(builders.plan([cell])), [measured])
    assert [row["latency_loaded_p50_us"] for row in rows.pairs] == [1000.0, 5000.0]
    assert (rows.cells[0]["latency_idle_p99_us"], rows.cells[0]["latency_loaded_p99_us"]) == (200.0, 5000.0)


def test_a_repetition_that_failed_has_its_idle_round_trips_only() -> None:
    failed = replace(builders.failed(probing.cell()), probes=(probing.probes([100] * 9, [3000] * 9),))
    values = latency_values(failed)
    assert (values["latency_idle_p50_us"], values["latency_loaded_p50_us"], values["latency_lost_pct"]) == (
        100.0, None, None,
    )  # fmt: skip


def test_without_probes_nothing_is_known() -> None:
    assert set(latency_values(builders.repetition(builders.cell(), [900.0, 900.0])).values()) == {None}


def test_they_are_columns_of_tests_and_pairs_only() -> None:
    for level in Level:
        names = {column.name for column in columns_at(level)}
        assert (set(NAMES) <= names) == (level in (Level.CELLS, Level.PAIRS))
