"""The bounds of every value in a scenario: both ends are taken, what lies beyond is refused, with what is expected."""

from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

from rigctl.records import Cell
from rigctl.records.flat import flattened
from rigctl.settings import ITERATIONS, READ, WRITE


def only_cell(folder: Path, text: str) -> Cell:
    (cell,) = planned(folder, text).cells
    return cell


UDP = "test: udp\nmatrix: {rate: %s, size: 100}"
FILE = "test: file\nmatrix: {size: %s}"


@from_file
def test_both_ends_of_a_range_are_taken(tmp_path: Path, text: str, field: str, value: object) -> None:
    assert flattened(only_cell(tmp_path, text))[field] == value


@from_file
def test_what_lies_beyond_is_refused_with_what_is_expected(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


def test_shares_and_times_of_a_plan_are_taken_up_to_their_ends(tmp_path: Path) -> None:
    assert planned(tmp_path, "max_loss: 0%").max_loss == 0.0
    assert planned(tmp_path, "max_loss: 99.9 %").max_loss == pytest.approx(0.999)
    assert planned(tmp_path, "max_skew: 1us").max_skew_s == pytest.approx(1e-6)
    assert planned(tmp_path, "max_skew: 2").max_skew_s == 2.0
    assert planned(tmp_path, "repeat: 1000").repeat == 1000
    heads = planned(tmp_path, f"heads: {{Mean: {'x' * 40}, RTT mean: RTT}}").heads
    assert heads == (("Mean", "x" * 40), ("RTT mean", "RTT"))


def test_left_out_the_bounds_of_a_run_are_those_of_the_documentation(tmp_path: Path) -> None:
    plan = planned(tmp_path, "heads:")
    assert (plan.max_skew_s, plan.max_loss, plan.repeat, plan.heads) == (0.1, 0.001, 1, ())


def test_a_folder_may_be_255_bytes_long(tmp_path: Path) -> None:
    longest = "/" + "x" * 254
    text = "test: file\nfolder: %s\nmatrix: {size: 1M}"
    assert only_cell(tmp_path, text % longest).folder == longest
    assert "expected an absolute path of at most 255 bytes, as in /var/tmp." in message(tmp_path, text % f"{longest}x")
    assert "expected an absolute path of at most 255 bytes" in message(tmp_path, text % '"/var\\n/tmp"')


class TestFiles:
    def test_a_file_goes_from_disk_to_disk_where_nothing_else_is_said(self, tmp_path: Path) -> None:
        cell = only_cell(tmp_path, FILE % "1M")
        assert (cell[READ], cell[WRITE], cell.folder) == ("disk", "disk", "/var/tmp")
        assert (cell[ITERATIONS], cell.message_bytes) == (1, 2**20)

    def test_each_end_may_be_memory_and_the_folder_another_disk(self, tmp_path: Path) -> None:
        text = "test: file\nfolder: /mnt/x\nmatrix: {size: 1M, read: [memory, disk], write: [disk, memory]}"
        cells = planned(tmp_path, text).cells
        assert [(cell[READ], cell[WRITE]) for cell in cells] == [
            ("memory", "disk"), ("memory", "memory"), ("disk", "disk"), ("disk", "memory"),
        ]  # fmt: skip
        assert {cell.folder for cell in cells} == {"/mnt/x"}

    def test_of_another_test_there_is_no_file(self, tmp_path: Path) -> None:
        cell = only_cell(tmp_path, "matrix: {window: 64K}")
        assert (cell[READ], cell[WRITE]) == (None, None)
        assert cell[ITERATIONS] is None
        said = message(tmp_path, "matrix: {read: memory}")
        assert "s.yaml:3:16: read: only for test: file (test 1)." in said


class TestBins:
    def test_a_bin_s_width_reaches_every_test_in_whole_microseconds(self, tmp_path: Path) -> None:
        cells = planned(tmp_path, "bins: 0.5ms\nmatrix: {parallel: [1, 2]}").cells
        assert [cell.bin_us for cell in cells] == [500, 500]

    @pytest.mark.parametrize("test", ["pingpong", "blast"])
    def test_messages_have_none(self, tmp_path: Path, test: str) -> None:
        said = message(tmp_path, f"test: {test}\nbins: 1ms\nmatrix: {{size: 64}}")
        assert "s.yaml:4:7: bins: only for test: tcp, udp or file (test 1)." in said

    def test_more_than_4_million_over_all_flows_are_refused(self, tmp_path: Path) -> None:
        most = "bins: 0.1ms\nduration: 100s\nmatrix: {parallel: %d}"
        assert only_cell(tmp_path, most % 4).bin_us == 100
        said = message(tmp_path, most % 5)
        assert "s.yaml:3:7: bins: 5,000,000 bins over all flows; at most 4,000,000. Make them wider, or the " in said

    def test_where_no_duration_is_given_it_is_10_s(self, tmp_path: Path) -> None:
        assert only_cell(tmp_path, "bins: 0.1ms\nmatrix: {parallel: 40}").parallel == 40
        assert "bins: 4,100,000 bins over" in message(tmp_path, "bins: 0.1ms\nmatrix: {parallel: 41}")

    def test_the_flows_of_all_pairs_count(self, tmp_path: Path) -> None:
        head = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
        said = message(tmp_path, "bins: 0.1ms\nduration: 100s\nmatrix: {parallel: 3}", head=head)
        assert "bins: 6,000,000 bins over all flows" in said
