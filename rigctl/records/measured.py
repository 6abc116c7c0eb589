"""Records of what was granted and counted: flows and their sides, nodes, switch ports, captures."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rigctl.records.cell import Pair, Stream
from rigctl.settings import MPTCP, NO_SETTINGS, Counts, Direction, Setting, Settings, Subflows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Datagrams:
    """The counts of the datagrams of a UDP flow, seen from one side; None: that side cannot know."""

    count: int  # handed to the kernel by the sender; at the receiver each one once
    refused: int | None = None  # refused by the sender's own kernel, whose queue was full
    duplicates: int | None = None
    reordered: int | None = None  # came after a later one (RFC 4737)
    strays: int | None = None  # of another flow, or older than the window
    highest: int | None = None  # highest sequence number seen, plus 1
    overflow: int | None = None  # dropped at the receiver's full socket buffer; a larger piece counts as one
    jitter_ns: int | None = None  # RFC 3550, as it stood at the end …
    jitter_max_ns: int | None = None  # … and at its largest
    burst: int | None = None  # of a sender with a rate: most datagrams ahead of an even flow at that rate
    segmented: bool | None = None  # of a sender: the kernel cut larger pieces into datagrams


@dataclass(frozen=True, slots=True)
class Bins:
    """The bytes that a receiver took in equal, consecutive times: `bytes[i]` from `start_ns` + i × `width_us` on."""

    start_ns: int
    width_us: int
    bytes: tuple[int, ...]  # up to the last that is not 0


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one side of one flow: columns of equal length, cumulative counters and gauges at `t_ns`.

    Always `t_ns` and `bytes`. The sender's side also has `retransmits`, `rtt_us`, `cwnd` (segments), `mss`, and
    `advertised_window` where its kernel says it.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The TCP_INFO (linux/tcp.h) of one end of a connection."""

    mss: int | None = None  # tcpi_snd_mss: payload of a full segment on the wire
    rcv_mss: int | None = None  # tcpi_rcv_mss, the receiver's estimate
    advmss: int | None = None
    pmtu: int | None = None
    rtt_us: int | None = None
    rtt_min_us: int | None = None
    retransmits: int | None = None  # segments
    retransmitted_bytes: int | None = None
    cwnd: int | None = None  # segments
    busy_us: int | None = None  # time with data to send …
    rwnd_limited_us: int | None = None  # … of which held back by the receiver's window …
    sndbuf_limited_us: int | None = None  # … or by the send buffer
    advertised_window_bytes: int | None = None  # tcpi_snd_wnd, the window the peer advertised last
    timestamps: bool | None = None  # RFC 7323 timestamps in use: 12 bytes of every segment
    segs_out: int | None = None  # tcpi_segs_out: segments sent in all, those again and pure acknowledgements included
    segs_in: int | None = None  # tcpi_segs_in
    delivered: int | None = None  # tcpi_delivered: segments that arrived
    delivered_ce: int | None = None  # tcpi_delivered_ce: of these, acknowledged with the echo of a mark (ECN)
    received_ce: int | None = None  # tcpi_received_ce: segments that arrived marked (Linux 6.18)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The round trips of a ping-pong's sender: how many, and the sum, least and largest of their times."""

    count: int
    sum_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DiskTimes:
    """The times of the disk at one side of a file transfer."""

    disk_us: int | None = None  # time in read(2) or write(2) of the file …
    sync_us: int | None = None  # … and of a receiver until it was safe on the disk, after its acknowledgement


@dataclass(frozen=True, slots=True)
class Copying:
    """The sends of a TCP stream, and how many the kernel did not copy."""

    sends: int | None = None
    uncopied_sends: int | None = None  # sends that the kernel did not copy; None: zerocopy was not requested


@dataclass(frozen=True, slots=True)
class Numa:
    """NUMA nodes at one side of a flow: that in which its thread ran most often, and that of the data interface."""

    node: int | None = None
    card: int | None = None  # None: also of a virtual interface


@dataclass(frozen=True, slots=True)
class Side:
    """The counts of one agent for one flow, and what its kernel granted.

    `side[MSS]` is the value in effect of any setting; None: not known.
    """

    bytes: int  # application bytes sent or received in all, from first to last
    first_byte_ns: int | None  # before the first send, after the first receive; None: no byte moved
    last_byte_ns: int | None
    sndbuf_bytes: int | None = None  # SO_SNDBUF as read back: Linux doubles what was set (socket(7))
    rcvbuf_bytes: int | None = None
    tcp: TcpInfo = TcpInfo()
    copying: Copying = Copying()
    numa: Numa = Numa()
    round_trips: RoundTrips | None = None
    disk: DiskTimes | None = None
    # Buckets of model.histogram with their counts in rising order: of a ping-pong's sender, of its round trips; of a
    # UDP receiver, of datagrams lost in a row.
    histogram: tuple[tuple[int, int], ...] = ()
    datagrams: Datagrams | None = None  # of a UDP flow
    bins: Bins | None = None  # of a stream's receiver, where Cell.bin_us asks for them
    series: Series = field(default_factory=Series)
    granted: Settings = NO_SETTINGS  # values that the agent read back, where the side has no field for them
    sending: bool = True  # False: a receiver; `Flow` sees to it

    def __getitem__(self, setting: Setting[T]) -> T | None:
        """Return the value in effect at this side."""
        effective = setting.effective
        if effective is None:
            return None
        if effective.of is not None:
            return effective.of(self)
        value: Any = self.granted[setting]
        if effective.counted is not None and isinstance(value, Counts):
            value = ", ".join(value.by(effective.counted.name)) or None
        return cast("T | None", value)

    @property
    def subflows(self) -> Subflows | None:
        """Return the subflows of Multipath TCP, empty after a fallback; None: not requested, or not known."""
        return cast("Subflows | None", self.granted[MPTCP])

    @property
    def elapsed_ns(self) -> int | None:
        """Return the time from its first byte to its last; None if one of them is unknown."""
        if self.first_byte_ns is None or self.last_byte_ns is None:
            return None
        return self.last_byte_ns - self.first_byte_ns

    def counts(self, setting: Setting[Any]) -> Counts | None:
        """Return what was seen of a setting and how often; None if that was not counted."""
        value = self.granted[setting]
        return value if isinstance(value, Counts) else None


@dataclass(frozen=True, slots=True)
class Flow:
    """One TCP connection of a pair, both sides. `sender`/`receiver` are of the data, whatever the direction.

    `bytes`, `retransmits` are cut to the repetition's common window from the raw series (`model.common_window`);
    `None` where the repetition failed before they could be.
    """

    pair: Pair
    direction: Direction  # FORWARD or REVERSE, never BOTH
    number: int  # 1 … parallel
    sender: Side | None
    receiver: Side | None
    bytes: int | None = None
    retransmits: int | None = None

    def __post_init__(self) -> None:
        if self.receiver is not None and self.receiver.sending:
            object.__setattr__(self, "receiver", replace(self.receiver, sending=False))

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)

    @property
    def fell_back(self) -> bool:
        """Tell whether an end knows that the connection fell back from Multipath TCP to TCP."""
        return any(side is not None and side[MPTCP] is False for side in (self.sender, self.receiver))


def by_stream(flows: Iterable[Flow]) -> dict[Stream, list[Flow]]:
    """Return the flows of each stream, in their order."""
    found: dict[Stream, list[Flow]] = {}
    for flow in flows:
        found.setdefault(flow.stream, []).append(flow)
    return found


@dataclass(frozen=True, slots=True)
class Probes:
    """Round trips of small datagrams beside the streams of one pair and direction, sent at a steady pace.

    Columns of equal length, a row for each probe: `t_ns` (when it was sent, on the controller's clock), `answered`
    (answered probes up to this row), `rtt_ns` (round trip; without an answer that of the row before).
    """

    pair: Pair
    direction: Direction  # FORWARD or REVERSE
    started_ns: int  # when the streams were; probes before are the idle baseline
    series: Series = field(default_factory=Series)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NicCounters:
    """How far the counters of a node's data interface rose, from before the first byte until all flows had ended.

    From rtnl_link_stats64 (linux/if_link.h); `queue_drops` from its queueing disciplines (tc -s qdisc).
    """

    rx_bytes: int | None = None
    rx_packets: int | None = None
    rx_dropped: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_packets: int | None = None
    tx_dropped: int | None = None
    tx_errors: int | None = None
    queue_drops: int | None = None
    carrier_changes: int | None = None  # of the link: it went away, or came back


@dataclass(frozen=True, slots=True)
class PortSeries:
    """Counters of one switch port during one repetition, from the last reading before it to the first after it.

    Columns of equal length, raw and absolute as the switch gave them: `t_ns` (controller's clock, half-way between
    request and answer), `took_ns` (from one to the other), `in_octets`, `out_octets`, `in_packets`, `out_packets`,
    `in_discards`, `out_discards`, `in_errors`, `out_errors`, `discontinuity` (ifCounterDiscontinuityTime, hundredths of
    a second). In and out as the switch sees them. A column whose value is unknown throughout is left out; -1 marks a
    single unknown value.
    """

    switch: str  # its key in the rig file
    port: str  # interface name on the switch
    source: str  # "snmp" or "cli"
    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """The frames of one pair and direction as one of its nodes saw them, in a pcap file of their headers."""

    node: str
    pair: Pair
    direction: Direction  # FORWARD or REVERSE
    file: str  # its name, beside the report
    frames: int  # that passed
    lost: int | None  # by the node's kernel; None: it does not say
    cut: bool  # some passed when the file was full
    retransmits_seen: int | None = None  # of a TCP sender: segments sent again, from the capture's sequence numbers …
    retransmits: int | None = None  # … and as its TCP counts them (tcpi_total_retrans)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """CPU time on one node during one repetition, from getrusage(2) and /proc/stat."""

    node: str
    span_us: int | None = None  # the wall time these cover
    agent_cpu_us: int | None = None  # user + system of the agent's process
    node_busy_us: int | None = None  # all CPUs, all but idle and iowait, softirq included
    cpus: int | None = None
    throttled: bool | None = None  # Raspberry Pi: get_throttled changed or set during it; None: not a Pi
    strangers: int = 0  # connections without the token, dropped
    nic: NicCounters | None = None
    busiest_cpu_us: int | None = None  # of the CPU that was busy longest: one core full of interrupts shows here
    node_irq_us: int | None = None  # of `node_busy_us`, irq and softirq
    throttled_us: int | None = None  # a quota of its control group kept the agent from the CPUs (cgroups(7), cpu.stat)
