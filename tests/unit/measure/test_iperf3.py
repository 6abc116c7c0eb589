"""A test as command lines of iperf3, and what two versions of it printed as the records of any engine."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import builders
import pytest
from known import known

from rigctl.measure.iperf3 import Exchange, ReportError, client_words, flows, interval_s, report, server_words
from rigctl.records import Cell, Direction, Flow, Pair, Side
from rigctl.settings import CONGESTION, MSS, NODELAY, RATE, WINDOW, Settings

FIXTURES = Path(__file__).parents[1] / "fixtures" / "iperf3"
CELL = Cell(1, "tcp", (Pair("a", "b"),), 10.0, 0.0, 1)
START_NS = 5 * 10**9
OTHERS = "-M 1460 -C cubic -N"
versions = pytest.mark.parametrize("version", ["3.9", "3.12"])


def printed(version: str, name: str, end: str) -> bytes:
    return (FIXTURES / version / f"{name}.{end}.json").read_bytes()


def measured(version: str, name: str, cell: Cell = CELL) -> list[Flow]:
    """The flows of a recorded test of one second between two namespaces, shaped to 200 Mbit/s."""
    client, server = (report(printed(version, name, end)) for end in ("client", "server"))
    assert client.start.version == f"iperf {version}"
    return list(flows(Exchange(Pair("a", "b"), client, server, START_NS), cell))


def ends(flow: Flow) -> tuple[Side, Side]:
    return known(flow.sender), known(flow.receiver)


SET = Settings({WINDOW: 65536, MSS: 1460, CONGESTION: "cubic", NODELAY: True})
UDP = replace(CELL, test="udp", transport="udp", message_bytes=1448)


@pytest.mark.parametrize(
    ("cell", "rate_bps", "options"),
    [
        (CELL, None, "-P 1"),
        (CELL, 10**8, "-P 1 --fq-rate 100000000"),  # the kernel keeps a stream to its rate
        (replace(CELL, parallel=3, direction=Direction.REVERSE, settings=SET), None, f"-P 3 -R -w 65536 {OTHERS}"),
        (replace(CELL, direction=Direction.BOTH, settings=SET, resize=True), None, f"-P 1 --bidir {OTHERS}"),
        (UDP, 20_000_000, "-P 1 -u -b 20000000 -l 1448"),
        (UDP, None, "-P 1 -u -b 0 -l 1448"),
    ],
)
def test_what_was_asked_for_has_its_option_and_no_other(cell: Cell, rate_bps: int | None, options: str) -> None:
    words = client_words(cell, "10.0.0.2", 5301, "10.0.0.1", 0.1, rate_bps)
    assert " ".join(words) == f"iperf3 -c 10.0.0.2 -p 5301 -B 10.0.0.1 -J -i 0.1 -t 10 {options}"
    assert " ".join(server_words("10.0.0.2", 5301, 0.1)) == "iperf3 -s -1 -J -B 10.0.0.2 -p 5301 -i 0.1"


@pytest.mark.parametrize(("duration_s", "parallel", "expected"), [(10.0, 1, 0.1), (60.0, 128, 0.2), (86400.0, 128, 60)])
def test_samples_are_fewer_where_there_are_many_flows(duration_s: float, parallel: int, expected: float) -> None:
    cell = builders.cell(duration_s=duration_s, parallel=parallel)
    assert interval_s(cell, 0.1) == expected


@versions
def test_one_flow_has_both_sides_on_the_controllers_clock_and_quotes_the_senders_kernel(version: str) -> None:
    (flow,) = measured(version, "tcp")
    sender, receiver = ends(flow)
    assert (flow.pair, flow.direction, flow.number) == (Pair("a", "b"), Direction.FORWARD, 1)
    assert 0 < receiver.bytes <= sender.bytes
    assert receiver.first_byte_ns == START_NS
    assert 0.99e9 < (receiver.last_byte_ns or 0) - START_NS < 1.1e9
    assert receiver.bytes * 8e-6 == pytest.approx(191, rel=0.03)  # 200 Mbit/s less headers
    assert receiver.series.columns["t_ns"] == sorted(receiver.series.columns["t_ns"])
    assert receiver.series.columns["bytes"][-1] == receiver.bytes
    tcp = sender.tcp
    assert (tcp.mss, tcp.timestamps, tcp.pmtu, sender[CONGESTION]) == (1448, True, 1500, "cubic")
    assert tcp.retransmits == sender.series.columns["retransmits"][-1]
    assert tcp.rtt_us is not None
    assert 1000 < fmean(sender.series.columns["rtt_us"]) < 20_000
    assert tcp.cwnd == sender.series.columns["cwnd"][-1] > 10
    assert ("advertised_window" in sender.series.columns) == (version == "3.12")
    # Buffers that nobody asked for are unknown: it tells those of a new socket, which the kernel has since resized.
    assert (sender.sndbuf_bytes, receiver.rcvbuf_bytes) == (None, None)


@versions
def test_many_flows_have_their_numbers_windows_and_the_mss_that_was_granted(version: str) -> None:
    cell = builders.cell(settings=Settings({WINDOW: 65536, MSS: 1000}))
    found = measured(version, "many", cell)
    assert [flow.number for flow in found] == [1, 2, 3]
    for sender, receiver in map(ends, found):
        # It reports the 1000 that were requested; 12 bytes of them are timestamps.
        assert (sender.tcp.mss, sender.tcp.timestamps) == (988, True)
        assert (sender.sndbuf_bytes, receiver.rcvbuf_bytes) == (131072, 131072)
        assert receiver.bytes <= sender.bytes


@versions
def test_reversed_data_are_the_destinations_and_both_directions_are_told_apart(version: str) -> None:
    reverse, both = measured(version, "reverse"), measured(version, "bidir")
    assert [(flow.direction, flow.number) for flow in reverse] == [(Direction.REVERSE, 1), (Direction.REVERSE, 2)]
    expected = [(way, number) for way in (Direction.FORWARD, Direction.REVERSE) for number in (1, 2)]
    assert [(flow.direction, flow.number) for flow in both] == expected
    for sender, receiver in map(ends, reverse):
        assert (sender[CONGESTION], sender.tcp.mss) == ("reno", 1448)
        assert "rtt_us" not in receiver.series.columns
    assert all(0 < receiver.bytes <= sender.bytes for sender, receiver in map(ends, [*reverse, *both]))


@pytest.mark.parametrize(
    ("version", "name", "sent", "received"),
    [("3.9", "udp", 1725, 1725), ("3.12", "udp", 1725, 1725), ("3.12", "udp-lossy", 16852, 16848)],
)
def test_datagrams_are_counted_by_both_sides(version: str, name: str, sent: int, received: int) -> None:
    cell = builders.cell(test="udp", transport="udp", settings=Settings({RATE: 20_000_000}))
    sender, receiver = ends(measured(version, name, cell)[0])
    counted = known(receiver.datagrams)
    assert (known(sender.datagrams).count, counted.count) == (sent, received)
    assert receiver.bytes == received * 1448 or name == "udp-lossy"
    assert counted.jitter_ns is not None
    assert counted.highest is None  # the longest loss burst is not known
    assert sender.tcp.mss is None


@versions
def test_the_processors_time_is_that_of_the_process_and_a_test_that_did_not_run_is_refused(version: str) -> None:
    found = report(printed(version, "tcp", "client"))
    assert 0 < (found.cpu_us or 0) < 1_000_000
    assert found.seconds == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ReportError, match="refused" if version == "3.12" else "no output"):
        report(printed(version, "refused", "client"))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (b"", "no output"),
        (b"timeout: failed to run command 'iperf3': No such file or directory\n\n", "No such file"),
        (b'{"intervals": "none"}', "no output"),
        (b'{"end": ' * 90_000 + b"}", "no output"),
        (b'iperf3: error\n{"start": {}, "intervals": []}\n', "iperf3: error"),
    ],
)
def test_what_is_no_report_is_an_error_with_what_was_said(output: bytes, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        report(output)
