"""Settings of a scenario: what each may be, what it does not go with, and what of it reaches the plan."""

from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from planning import message, planned

from rigctl.cli.commands.plan import columns_by_head
from rigctl.measure.orders import channels, sockets
from rigctl.records import Cell, Retest, Until
from rigctl.records.flat import flatten
from rigctl.scenario.forecast import forecasts, notes, sum_ceiling_bps, table_axes
from rigctl.scenario.overrides import value_text
from rigctl.settings import ITERATIONS, PARALLEL, PLACEMENT, RATE, READ, SETTINGS, SIZE, WRITE, Direction

BOTH = "matrix: {engine: [agent, iperf3]}"
SEARCH = "test: udp\nmatrix: {rate: max}"


def only_cell(folder: Path, text: str) -> Cell:
    (cell,) = planned(folder, text).cells
    return cell


@from_file
def test_both_ends_of_a_range_are_taken(tmp_path: Path, text: str, field: str, value: object) -> None:
    assert flatten(only_cell(tmp_path, text))[field] == value


@from_file
def test_what_does_not_fit_is_told_with_what_is_expected(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


@pytest.mark.parametrize(
    ("folder", "taken"),
    [
        ("/srv/data", True),
        ("C:\\Temp", True),
        ("d:/My Files", True),
        ("C:Temp", False),
        ("\\\\server\\x", False),
        ("x", False),
    ],
)
def test_a_folder_is_an_absolute_path_of_linux_or_of_windows(tmp_path: Path, folder: str, taken: bool) -> None:
    text = f"test: file\nfolder: '{folder}'\nmatrix: {{size: 1M}}"
    if taken:
        assert only_cell(tmp_path, text).folder == folder
    else:
        assert "expected an absolute path" in message(tmp_path, text)


@from_file
def test_a_setting_is_asked_for_or_not(tmp_path: Path, name: str, text: str, kept: list[object]) -> None:
    setting = SETTINGS[name]
    assert [cell[setting] for cell in planned(tmp_path, text).cells] == kept
    assert [setting.parse(name, setting.text(value)) for value in kept] == kept


def test_shares_and_times_of_a_plan_are_taken_up_to_their_ends(tmp_path: Path) -> None:
    least = planned(tmp_path, f"max_loss: 0%\nmax_skew: 1us\nheads: {{Mean: {'x' * 40}, RTT mean: RTT}}")
    assert [least.max_loss, least.max_skew_s] == pytest.approx([0.0, 1e-6])
    assert least.heads == (("Mean", "x" * 40), ("RTT mean", "RTT"))
    most = planned(tmp_path, "max_loss: 99.9 %\nmax_skew: 2\nrepeat: 1000")
    assert [most.max_loss, most.max_skew_s, most.repeat] == pytest.approx([0.999, 2.0, 1000])
    text = "test: requests\nmatrix: {size: 1, per_second: max}\nmax_latency: "
    assert [planned(tmp_path, text + end).max_latency_s for end in ("10us", "1min")] == pytest.approx([1e-5, 60.0])
    left_out = planned(tmp_path, "heads:")  # as in the documentation
    assert (left_out.max_skew_s, left_out.max_loss, left_out.repeat, left_out.heads) == (0.1, 0.001, 1, ())


def test_a_file_goes_from_disk_to_disk_where_nothing_else_is_said(tmp_path: Path) -> None:
    cell = only_cell(tmp_path, "test: file\nmatrix: {size: 1M}")
    assert (cell[READ], cell[WRITE], cell.folder) == ("disk", "disk", "/var/tmp")
    assert (cell[ITERATIONS], cell.message_bytes) == (1, 2**20)
    other = only_cell(tmp_path, "matrix: {window: 64K}")  # in another test there is no file
    assert (other[READ], other[WRITE], other[ITERATIONS]) == (None, None, None)


def test_each_end_of_a_file_may_be_memory_and_the_folder_another_disk(tmp_path: Path) -> None:
    text = "test: file\nfolder: /mnt/x\nmatrix: {size: 1M, read: [memory, disk], write: [disk, memory]}"
    found = [(cell[READ], cell[WRITE], cell.folder) for cell in planned(tmp_path, text).cells]
    ends = [("memory", "disk"), ("memory", "memory"), ("disk", "disk"), ("disk", "memory")]
    assert found == [(*end, "/mnt/x") for end in ends]


def test_more_than_4_million_bins_over_all_flows_are_refused(tmp_path: Path) -> None:
    most = "bins: 0.1ms\nduration: 100s\nmatrix: {parallel: %d}"
    assert only_cell(tmp_path, most % 4).bin_us == 100
    assert only_cell(tmp_path, "bins: 0.1ms\nmatrix: {parallel: 40}").parallel == 40  # of 10 s
    head = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
    assert "bins: 6,000,000 bins over all flows" in message(tmp_path, most % 3, head=head)


def test_rates_and_sizes_of_datagrams_are_read(tmp_path: Path) -> None:
    plan = planned(tmp_path, "test: udp\nmatrix: {size: [64, 1472], rate: [10M, max, unlimited]}")
    found = [(cell.message_bytes, cell[RATE], cell.transport) for cell in plan.cells[:3]]
    assert found == [(64, rate, "udp") for rate in (10_000_000, "max", "unlimited")]
    assert {SIZE, RATE, PARALLEL} <= set(table_axes(plan))
    assert not plan.in_messages
    (expected,) = forecasts(plan.cells[3], plan, 4)
    assert (expected.mss, round((expected.ceiling_bps or 0) / 1e6, 1)) == (1472, 957.1)


def test_a_datagram_fills_the_mtu_where_no_size_is_given(tmp_path: Path) -> None:
    jumbo = "test: udp\nconditions: {as is: {}, jumbo: {mtu: 9000}}\nmatrix: {rate: 10M}"
    assert [cell.message_bytes for cell in planned(tmp_path, jumbo).cells] == [1472, 8972]
    (tmp_path / "r.yaml").write_text("nodes: {pi1: {address: 10.0.0.1}, pi2: {address: 10.0.0.2}}\n")
    head = "rig: ./r.yaml\npairs: [pi1 -> pi2]\ntest: udp\n"
    said = message(tmp_path, "matrix: {rate: 10M}", head=head)
    assert "test: udp needs the size of its datagrams (as size: 1472), because the rig file has no MTU." in said
    assert planned(tmp_path, "matrix: {rate: 10M, size: 512}", head=head).cells[0].message_bytes == 512


def test_one_table_can_have_two_engines_and_captures_of_the_agent_alone(tmp_path: Path) -> None:
    cells = planned(tmp_path, f"capture: [1]\n{BOTH}").cells
    assert [(cell.engine, cell.capture) for cell in cells] == [("agent", True), ("iperf3", False)]
    assert [cell.engine for cell in planned(tmp_path, BOTH, "engine=iperf3").cells] == ["iperf3"]
    assert only_cell(tmp_path, "").engine == "agent"


def test_the_ceiling_of_one_link_is_not_that_of_multipath_tcp(tmp_path: Path) -> None:
    plan = planned(tmp_path, "matrix: {mptcp: [default, true]}")
    one, several = (forecasts(cell, plan, 4) for cell in plan.cells)
    assert one[0].ceiling_bps is not None
    assert (several[0].ceiling_bps, several[0].mss, sum_ceiling_bps(several, Direction.FORWARD, plan)) == (
        None,
        None,
        None,
    )
    assert any("MPTCP may use more links" in note for note in notes(plan, 4))


def test_an_option_has_lists_of_processors_with_a_plus(tmp_path: Path) -> None:
    plan = planned(tmp_path, "", "placement=nic,2+4-7,nic/0+1")
    assert [cell[PLACEMENT] for cell in plan.cells] == ["nic", "2,4-7", "nic/0-1"]


@from_file
def test_each_end_is_told_its_own_placement(
    tmp_path: Path, value: str | None, sender: object, receiver: object
) -> None:
    cell = planned(tmp_path, f"placement: {value or 'default'}\nlatency: true\nduration: 1s").cells[0]
    stream, probes = channels([cell], lambda: "0" * 32)
    how: dict[str, Any] = {"interval_ms": 100, "wait_ms": 1000}
    assert sockets(cell, stream, sends=True, **how).settings[PLACEMENT] == sender
    assert sockets(cell, stream, sends=False, **how).settings[PLACEMENT] == receiver
    assert sockets(cell, probes, sends=True, **how).settings[PLACEMENT] is None


def test_a_plan_and_a_comparison_name_the_default(tmp_path: Path) -> None:
    plan = planned(tmp_path, "matrix: {placement: [scheduler, nic], window: [default, 64K]}")
    columns = columns_by_head(plan, table_axes(plan))
    assert columns["Placement"] == ["scheduler", "scheduler", "nic", "nic"]
    assert columns["Window"] == ["default", "64K", "default", "64K"]
    assert value_text(PLACEMENT, None) == "scheduler"


def test_retest_and_until_are_read_with_their_defaults(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'repeat: 5\nretest: {when: "variation > 5%"}')
    assert (plan.retest, plan.until) == (Retest(0.05, 15), None)
    assert planned(tmp_path, 'repeat: 5\nretest: {when: " variation>2.5 %", repeat: 3}').retest == Retest(0.025, 3)
    assert planned(tmp_path, "repeat: 2\nuntil: {when: ci95 < 0.5%, most: 9}").until == Until(0.005, 9)
    plan = planned(tmp_path, 'until: "ci95 < 1%"')
    assert (plan.repeat, plan.until, plan.retest) == (2, Until(0.01, 50), None)
    assert planned(tmp_path, 'retest: "variation > 5%"').repeat == 2


def test_the_rates_after_the_options_decide_whether_there_is_a_search(tmp_path: Path) -> None:
    plan = planned(tmp_path, SEARCH, "rate=40M", repeat=15)
    assert (plan.repeat, plan.cells[0][RATE]) == (15, 40_000_000)
    assert "until: not for rate: max" in message(tmp_path, f"{SEARCH}\nuntil: ci95 < 1%")
    assert planned(tmp_path, SEARCH, repeat=1).repeat == 1
