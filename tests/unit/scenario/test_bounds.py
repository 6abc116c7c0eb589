"""The bounds of every value in a scenario: both ends are taken, what lies beyond is refused, with what is expected."""

from pathlib import Path

import pytest
from planning import message, planned

from rigctl.records import Cell
from rigctl.records.flat import flattened
from rigctl.settings import ITERATIONS, READ, WRITE


def only_cell(folder: Path, text: str) -> Cell:
    (cell,) = planned(folder, text).cells
    return cell


UDP = "test: udp\nmatrix: {rate: %s, size: 100}"
FILE = "test: file\nmatrix: {size: %s}"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("matrix: {window: 1K}", "window_bytes", 1024),
        ("matrix: {window: 1024M}", "window_bytes", 2**30),
        ("matrix: {window: default}", "window_bytes", None),
        ("matrix: {window_total: 1K}", "window_total_bytes", 1024),
        ("matrix: {mss: 88}", "mss", 88),
        ("matrix: {mss: 32767}", "mss", 32767),
        ("matrix: {mss: default}", "mss", None),
        ("matrix: {parallel: 1}", "parallel", 1),
        ("matrix: {parallel: 128}", "parallel", 128),
        ("matrix: {congestion: abcdefghijklmno}", "congestion", "abcdefghijklmno"),
        ("matrix: {congestion: default}", "congestion", None),
        ("matrix: {nodelay: false}", "nodelay", False),
        ("matrix: {nodelay: yes}", "nodelay", True),
        ("matrix: {nodelay: default}", "nodelay", None),
        ("test: pingpong\nmatrix: {size: 1, busy_poll: on}", "busy_poll", True),
        ("test: pingpong\nmatrix: {size: 1, busy_poll: off}", "busy_poll", False),
        ("test: pingpong\nmatrix: {size: 1}", "message_bytes", 1),
        ("test: pingpong\nmatrix: {size: 16M}", "message_bytes", 2**24),
        ("test: blast\nmatrix: {size: 8, iterations: 1}", "iterations", 1),
        ("test: blast\nmatrix: {size: 8, iterations: 1000000000}", "iterations", 10**9),
        (UDP % "1k", "rate", 1000),
        (UDP % "1T", "rate", 10**12),
        (UDP % "max", "rate", "max"),
        (UDP % "unlimited", "rate", "unlimited"),
        ("test: udp\nmatrix: {rate: 1M, size: 16}", "message_bytes", 16),
        ("test: udp\nmatrix: {rate: 1M, size: 65507}", "message_bytes", 65507),
        (FILE % 1, "message_bytes", 1),
        (FILE % "1048576M", "message_bytes", 2**40),
        ("duration: 100ms", "duration_s", 0.1),
        ("duration: 24h", "duration_s", 86400.0),
        ("omit: 0", "omit_s", 0.0),
        ("omit: 9999 ms", "omit_s", 9.999),
        ("bins: 0.1ms", "bin_us", 100),
        ("bins: 1s", "bin_us", 1_000_000),
        ("bins:", "bin_us", None),
    ],
)
def test_both_ends_of_a_range_are_taken(tmp_path: Path, text: str, field: str, value: object) -> None:
    assert flattened(only_cell(tmp_path, text))[field] == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("matrix: {window: 1023}", ':3:18: window "1023": expected 1K to 1024M, as in 64K.'),
        ("matrix: {window: 1073741825}", 'window "1073741825": expected 1K to 1024M, as in 64K.'),
        ("matrix: {window: true}", "window: expected a number with a unit, as in 64K, found true."),
        ("matrix: {parallel: 129}", ':3:20: parallel "129": expected 1 to 128, as in 5.'),
        (
            "matrix: {congestion: abcdefghijklmnop}",
            'congestion "abcdefghijklmnop": expected a name of 1 to 15 of a-z, 0-9, _ and -, as in cubic.',
        ),
        ("parallel: [1, 4]", "as in 5, found a list. Several values stand under matrix."),
        ("matrix: {congestion: [[cubic]]}", "congestion: expected a congestion control, as in cubic, found a list."),
        ("matrix: {direction: up}", 'direction "up": expected forward, reverse or both.'),
        ("matrix: {pairs: 1001}", 'pairs "1001": expected 1 to 1000, as in 4; or N sources each to M destinations,'),
        ("test: pingpong\nmatrix: {size: 0}", ':4:16: size "0": expected 1 to 1048576M, as in 64K.'),
        (
            "test: pingpong\nmatrix: {size: 16777217}",
            "size: 16777217 bytes are more than the 16M of a message (test 1).",
        ),
        (FILE % 2**41, 'size "2199023255552": expected 1 to 1048576M, as in 64K.'),
        (FILE % "[[1]]", "size: expected a number with a unit, as in 64K, found a list."),
        ("test: blast\nmatrix: {size: 8, iterations: 0}", 'iterations "0": expected 1 to 1000000000, as in 10000.'),
        ("test: blast\nmatrix: {size: 8, iterations: 1000000001}", 'iterations "1000000001": expected 1 to'),
        (UDP % 999, 'rate "999": expected 1k to 1T bit/s, max or unlimited, as in 100M.'),
        (UDP % "1001G", 'rate "1001G": expected 1k to 1T bit/s, max or unlimited, as in 100M.'),
        (UDP % "[[1M]]", "rate: expected a number with a unit, as in 100M, found a list; or max, or unlimited."),
        (
            "test: udp\nmatrix: {rate: 1M, size: 15}",
            "s.yaml:4:26: size: 15 bytes are not the payload of a datagram, which has 16 to 65507 (test 1).",
        ),
        (
            "test: udp\nmatrix: {rate: 1M, size: 65508}",
            "size: 65508 bytes are not the payload of a datagram, which has 16 to 65507 (test 1).",
        ),
        ("test: file", "size: test: file needs one, as in size: 1 or size: 64K"),
        (
            "test: file\nmatrix: {size: 1M, iterations: 3}",
            "only for test: pingpong or blast. To measure more often use repeat",
        ),
        ("test: file\nmatrix: {size: 1M, read: tape}", ':4:26: read "tape": expected disk or memory.'),
        ("test: file\nmatrix: {size: 1M, write: [[a]]}", "write: expected disk or memory, found a list."),
        ("test: pingpong\nmatrix: {size: 1, transport: [[a]]}", "transport: expected tcp or udp, found a list."),
        ("omit: true", "omit: expected a number with a unit, as in 2s, found true."),
        ("duration: true", "duration: expected a number with a unit, as in 10s, found true."),
        ("max_skew: 0", 's.yaml:3:11: max_skew "0": expected more than 0, as in 10ms.'),
        ("max_skew: true", "max_skew: expected a number with a unit, as in 10ms, found true."),
        ("bins: 0.09ms", 's.yaml:3:7: bins "0.09ms": expected 0.1 ms to 1 s, as in 0.5ms.'),
        ("bins: 1001ms", 'bins "1001ms": expected 0.1 ms to 1 s, as in 0.5ms.'),
        ("bins: true", "bins: expected a number with a unit, as in 0.5ms, found true."),
        ("repeat: 1001", 'repeat "1001": expected 1 to 1000, as in 3.'),
        ("repeat: 1.5", 'repeat "1.5": expected a whole number from 1 to 1000, as in 3.'),
        ("test: 5", "test: expected one of: tcp, udp, pingpong, blast, file, found the number 5."),
        ("test: up", 'test "up": unknown. Did you mean "udp"?'),
        ("max_loss: 100%", 'max_loss "100%": expected a share below 100 %, as in 0.1%.'),
        ("folder: tmp", 's.yaml:3:9: folder "tmp": expected an absolute path of at most 255 bytes, as in /var/tmp.'),
        (f"folder: /{'ä' * 100}{'x' * 55}", "expected an absolute path of at most 255 bytes, as in /var/tmp."),
        ("folder: 5", "folder: expected a folder, as in /var/tmp, found the number 5."),
        (
            "heads: {Mean: %s}" % ("x" * 41),
            f'heads "{"x" * 41}": expected at most 40 characters, as in {{RTT mean: RTT}}.',
        ),
        ("heads: {Mean: 5}", "heads: expected titles of columns, as in {RTT mean: RTT}, found the number 5."),
        ("test: pingpong\nmatrix: {latency: true, size: 64}", "latency: only for test: tcp or udp"),
    ],
)
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
