"""`test: udp` of a scenario: rates, sizes that fit, and what does not go together."""

from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

from rigctl.scenario.forecast import forecasts, table_axes
from rigctl.settings import PARALLEL, RATE, SIZE


def test_rates_and_sizes_are_read(tmp_path: Path) -> None:
    plan = planned(tmp_path, "test: udp\nmatrix: {size: [64, 1472], rate: [10M, max, unlimited]}\nmax_loss: 0.01 %")
    assert [(cell.message_bytes, cell[RATE], cell.transport) for cell in plan.cells[:3]] == [
        (64, 10_000_000, "udp"), (64, "max", "udp"), (64, "unlimited", "udp"),
    ]  # fmt: skip
    assert plan.max_loss == pytest.approx(0.0001)
    assert {SIZE, RATE, PARALLEL} <= set(table_axes(plan))
    assert not plan.in_messages
    (expected,) = forecasts(plan.cells[3], plan, 4)
    assert (expected.mss, round((expected.ceiling_bps or 0) / 1e6, 1)) == (1472, 957.1)


def test_a_datagram_fills_the_mtu_where_no_size_is_given(tmp_path: Path) -> None:
    assert planned(tmp_path, "test: udp\nmatrix: {rate: 10M}").cells[0].message_bytes == 1472
    jumbo = "test: udp\nconditions: {as is: {}, jumbo: {mtu: 9000}}\nmatrix: {rate: 10M}"
    assert [cell.message_bytes for cell in planned(tmp_path, jumbo).cells] == [1472, 8972]


def test_a_larger_one_goes_in_fragments_and_its_ceiling_says_so(tmp_path: Path) -> None:
    plan = planned(tmp_path, "test: udp\nmatrix: {rate: 10M, size: 2952}")
    (expected,) = forecasts(plan.cells[0], plan, 4)
    # 2960 bytes with the UDP header: two fragments of 1480 bytes, each a full frame.
    assert (expected.ceiling_bps or 0) / 1e6 == pytest.approx(1000 * 2952 / (2 * 1538))


@from_file
def test_what_does_not_go_together_is_told(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


def test_without_an_mtu_in_the_rig_file_a_size_must_be_given(tmp_path: Path) -> None:
    nodes = "nodes: {pi1: {address: 10.0.0.1}, pi2: {address: 10.0.0.2}}\n"
    (tmp_path / "r.yaml").write_text(nodes)
    head = "rig: ./r.yaml\npairs: [pi1 -> pi2]\ntest: udp\n"
    said = message(tmp_path, "matrix: {rate: 10M}", head=head)
    assert "test: udp needs the size of its datagrams, as in size: 1472: the rig file lacks an MTU." in said
    assert planned(tmp_path, "matrix: {rate: 10M, size: 512}", head=head).cells[0].message_bytes == 512
