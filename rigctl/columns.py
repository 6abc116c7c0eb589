"""The column table: each column is declared once and feeds table, CSV, HTML and docs (design, section 3)."""

from typing import Final

from rigctl.settings import (
    BURST,
    BUSY_POLL,
    ENGINE,
    ITERATIONS,
    PARALLEL,
    RATE,
    READ,
    SETTINGS,
    SIZE,
    TRANSPORT,
    WINDOW,
    WINDOW_TOTAL,
    WRITE,
)
from rigctl.settings.setting import BUCKETS, ONLY_FLOWS, Column, Level, measured

__all__ = ["COLUMNS", "Column", "Level", "columns_at"]

_ALL: Final = frozenset(Level)
_BYTES: Final = _ALL - {Level.HISTOGRAM}
_TCP: Final = _BYTES - {Level.BINS}
_PAIRS: Final = _ALL - {Level.CELLS}
_FLOWS: Final = frozenset({Level.FLOWS, Level.INTERVALS})
_SERIES: Final = frozenset({Level.INTERVALS, Level.BINS})
_CELLS: Final = frozenset({Level.CELLS})
_TESTS: Final = frozenset({Level.CELLS, Level.PAIRS})

_TRAFFIC: Final = (
    *(WINDOW_TOTAL, WINDOW, TRANSPORT, RATE, BURST, SIZE),
    *(ITERATIONS, BUSY_POLL, READ, WRITE, ENGINE),
)
_CONNECTION: Final = (
    *(setting for setting in SETTINGS.values() if setting not in (*_TRAFFIC, PARALLEL)),
    PARALLEL,
)

COLUMNS: Final[tuple[Column, ...]] = (
    Column("run", "", _ALL, "id of the run"),
    Column("cell", "", _ALL, "number of the test in the scenario's order, from 1"),
    Column("repetition", "", _ALL, "number of the repetition, from 1"),
    Column("attempt", "", _ALL, "2 where the repetition was measured once more after an invalid one"),
    Column("status", "", _ALL, "ok, invalid, failed or interrupted"),
    measured(
        "counted",
        "",
        "whether the results table averages the row: status ok, no repetition of a retest, and of a search for the "
        "highest rate only the trial that decides it",
    ),
    measured("reason", "", "why the status is not ok; of ok, which pairs were not measured, and why"),
    Column("test", "", _ALL, "kind of test, as tcp"),
    measured("class", "", "class of traffic that was measured beside others; empty: the scenario has none"),
    measured("condition", "", "host settings under which it was measured; empty: the nodes as they are"),
    Column("pairs", "", _CELLS, "number of node pairs at once"),
    Column("source", "", _PAIRS, "source node of the pair"),
    Column("destination", "", _PAIRS, "destination node of the pair"),
    Column("direction", "", _ALL, "forward: source to destination; reverse: destination to source; both (level cells)"),
    Column("flow", "", _FLOWS | BUCKETS, "number of the flow within its pair and direction, from 1"),
    Column(
        "t_s", "s", _SERIES, "end of the interval or bin, from the start of the measurement interval or of a file", 4
    ),
    *(column for setting in _TRAFFIC for column in setting.columns),
    Column("messages", "", ONLY_FLOWS, "messages sent; of ping-pong those that were answered"),
    Column("elapsed_s", "s", ONLY_FLOWS, "from the sender's first send to the last answer or acknowledgement", 6),
    Column("throughput_bytes_per_s", "B/s", ONLY_FLOWS, "bytes of all messages, one way, over elapsed_s", 1),
    Column("read_share", "", ONLY_FLOWS, "of elapsed_s the share that the sender spent in reading the file", 4),
    Column("write_share", "", ONLY_FLOWS, "of elapsed_s the share that the receiver spent in writing it", 4),
    Column("sync_s", "s", ONLY_FLOWS, "from the acknowledgement until the file was safe on the receiver's disk", 6),
    Column("app_rtt_mean_us", "us", ONLY_FLOWS, "mean round trip of a message", 3),
    Column("app_rtt_min_us", "us", ONLY_FLOWS, "least round trip of a message", 3),
    Column("app_rtt_p50_us", "us", ONLY_FLOWS, "half of the round trips took no longer", 3),
    Column("app_rtt_p90_us", "us", ONLY_FLOWS, "90 % of the round trips took no longer", 3),
    Column("app_rtt_p99_us", "us", ONLY_FLOWS, "99 % of the round trips took no longer", 3),
    Column("app_rtt_p999_us", "us", ONLY_FLOWS, "99.9 % of the round trips took no longer", 3),
    Column("app_rtt_max_us", "us", ONLY_FLOWS, "largest round trip of a message", 3),
    Column("app_rtt_bucket_low_us", "us", BUCKETS, "least round trip of a message that the bucket holds", 3),
    Column("app_rtt_bucket_high_us", "us", BUCKETS, "largest round trip of a message that the bucket holds", 3),
    Column("loss_burst_low", "", BUCKETS, "lower bound of the bucket: datagrams in a loss burst"),
    Column("loss_burst_high", "", BUCKETS, "upper bound of the bucket: datagrams in a loss burst"),
    Column("count", "", BUCKETS, "round trips, or runs of lost datagrams, in the bucket; empty buckets have no row"),
    *(column for setting in _CONNECTION for column in setting.columns),
    measured("duration_s", "s", "length of the measurement interval: all flows ran, the omitted start not counted", 3),
    Column("bytes", "B", _BYTES, "application bytes received in the measurement interval"),
    Column("goodput_mbps", "Mbit/s", _BYTES, "application bits per second at the receiver", 1),
    Column("cumulative_mbps", "Mbit/s", frozenset({Level.BINS}), "goodput from the start to the end of the bin", 1),
    Column(
        "goodput_median_mbps", "Mbit/s", _CELLS, "median over intervals of the sum of all flows at common instants", 1
    ),
    measured("sent_mbps", "Mbit/s", "UDP payload handed to the senders' kernels, over their own time", 1),
    measured("datagrams_sent", "", "UDP datagrams handed to the senders' kernels"),
    measured("datagrams_lost", "", "of these, datagrams that did not arrive"),
    measured("loss_pct", "%", "datagrams lost, of those sent", 4),
    measured("loss_burst_max", "", "datagrams in the longest loss burst"),
    measured("reordered", "", "datagrams that arrived after a later one (RFC 4737)"),
    measured("duplicates", "", "datagrams that arrived more than once; each counts once"),
    measured("jitter_us", "us", "interarrival jitter at the end (RFC 3550), mean over flows", 1),
    measured("jitter_max_us", "us", "interarrival jitter at its largest", 1),
    measured("sender_drops", "", "datagrams that the senders' own queues refused; not among those sent"),
    measured("receiver_drops", "", "drops at the receivers' full socket buffers, as their kernels count them"),
    Column("retransmits", "", _TCP, "TCP segments retransmitted in the measurement interval"),
    Column("rtt_us", "us", _TCP, "smoothed round-trip time at the end, mean over flows", 0),
    measured("rtt_min_us", "us", "smallest round-trip time seen", 0),
    measured(
        "ce_pct",
        "%",
        "packets that arrived marked CE (ECN), of those that arrived: TCP segments as the receiver's kernel counts "
        "them (Linux 6.18), UDP datagrams with dscp; empty: not known, or without ECN",
        4,
    ),
    measured(
        "ce_echo_pct",
        "%",
        "TCP segments that were acknowledged with the echo of a mark (tcpi_delivered_ce), of those delivered: with the "
        "ECN of RFC 3168 all of a round trip in which one was marked; empty: not known, or without ECN",
        4,
    ),
    Column("cwnd", "", _FLOWS, "congestion window, segments"),
    Column("busy_us", "us", ONLY_FLOWS, "time the sender had data to send"),
    Column("rwnd_limited_us", "us", ONLY_FLOWS, "of which limited by the advertised window"),
    Column("sndbuf_limited_us", "us", ONLY_FLOWS, "of which limited by the send buffer"),
    Column("latency_idle_p50_us", "us", _TESTS, "round trip of the probes before the streams, median", 1),
    Column("latency_idle_p99_us", "us", _TESTS, "… that 99 % of them did not exceed", 1),
    Column("latency_loaded_p50_us", "us", _TESTS, "round trip of the probes beside the streams, median", 1),
    Column("latency_loaded_p99_us", "us", _TESTS, "… that 99 % of them did not exceed", 1),
    Column("latency_rise_us", "us", _TESTS, "latency_loaded_p50_us less latency_idle_p50_us", 1),
    Column(
        "latency_rpm",
        "",
        _TESTS,
        "round trips per minute under load: 60 s over the mean round trip of the probes without the longest 5 %",
        0,
    ),
    Column("latency_lost_pct", "%", _TESTS, "probes under load that were not answered, of those sent", 2),
    measured("start_skew_us", "us", "spread of the first-byte times over the flows of the test", 0),
    measured("ceiling_mbps", "Mbit/s", "highest goodput the link allows for that frame size", 1),
    measured("efficiency", "", "goodput / ceiling", 3),
    measured(
        "limit",
        "",
        "bottleneck: of a pair its own, of a test that of its pair furthest below its ceiling; line-rate, shared-link, "
        "other-traffic (not the run's, on a link of the path), path (a shaper or policer on the way), window, loss, "
        "sender or receiver (their processors or quota), machine (the processors that all nodes of a virtual rig "
        "share), disk, rate (the one requested), mtu (frames smaller than the links allow), or unknown",
    ),
    measured("limit_detail", "", "the rule that named the limit, and the numbers it looked at"),
    measured(
        "cpu_source_pct",
        "%",
        "busy time of the sender's node, all CPUs, softirq included, of its capacity; empty below 0.2 s",
        1,
    ),
    measured("cpu_destination_pct", "%", "busy time of the receiver's node, likewise", 1),
    measured("busiest_cpu_source_pct", "%", "busy time of the busiest CPU of the sender's node; empty below 0.2 s", 1),
    measured("busiest_cpu_destination_pct", "%", "busy time of the busiest CPU of the receiver's node, likewise", 1),
    measured(
        "other_cpu_source_pct",
        "%",
        "CPU time on the sender's node that neither agents nor interrupts took, of its capacity; on a virtual rig, of "
        "the machine's that all agents did not take; empty below 0.2 s",
        1,
    ),
    measured("other_cpu_destination_pct", "%", "… on the receiver's node, likewise", 1),
    measured(
        "agent_cpu_source_pct",
        "%",
        "CPU time of the sender's agent, of what its threads, one for each flow, could have used",
        1,
    ),
    measured("agent_cpu_destination_pct", "%", "CPU time of the receiver's agent, likewise", 1),
    Column(
        "trunk_octets", "B", _CELLS, "octets that the switches counted on their trunk, in the direction of the data"
    ),
    Column("trunk_expected_octets", "B", _CELLS, "payload, retransmits and headers that the flows sent over it"),
    Column(
        "counters_difference_pct",
        "%",
        _CELLS,
        "octets counted against those expected: on the trunk, else at the senders' switch ports",
        2,
    ),
    Column("source_port_octets", "B", frozenset({Level.PAIRS}), "octets received by the switch at the sender's port"),
    Column(
        "destination_port_octets", "B", frozenset({Level.PAIRS}), "octets sent by the switch at the receiver's port"
    ),
)
BY_NAME: Final = {column.name: column for column in COLUMNS}


def columns_at(level: Level) -> tuple[Column, ...]:
    """Return the columns of `level`, in table order."""
    return tuple(column for column in COLUMNS if level in column.levels)
