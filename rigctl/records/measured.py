"""Records of what was granted and counted: flows with both sides, nodes, switch ports, captures."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rigctl.base.values import group_by
from rigctl.records.plan import Pair, Stream
from rigctl.settings import MPTCP, NO_SETTINGS, Counts, Direction, Setting, Settings, Subflows

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Datagrams:
    """Counts of one side of a UDP flow, in datagrams; None if this side cannot know."""

    count: int  # handed to the sender's kernel; or received, without duplicates
    refused: int | None = None  # refused by the sender's kernel, as its queue was full
    duplicates: int | None = None
    reordered: int | None = None  # arrived after a later datagram (RFC 4737)
    strays: int | None = None  # of another flow, or too old to be told from duplicates
    highest: int | None = None  # highest sequence number received, plus 1
    overflow: int | None = None  # dropped at the receiver's full socket buffer; a GRO packet counts once
    jitter_ns: int | None = None  # interarrival jitter at the end (RFC 3550)
    jitter_max_ns: int | None = None  # largest interarrival jitter
    burst: int | None = None  # sender with a rate: most datagrams ahead of a steady flow
    segmented: bool | None = None  # sender: True if the kernel cut larger pieces into datagrams (GSO)


@dataclass(frozen=True, slots=True)
class Bins:
    """The bytes that a receiver took in consecutive bins: bin i begins at `start_ns` + i × `width_us`."""

    start_ns: int
    width_us: int
    bytes: tuple[int, ...]  # without empty bins at the end


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one side of a flow: columns of equal length, with counters and gauges at the times `t_ns`.

    All series have `t_ns` and `bytes`. A sender also has `retransmits`, `rtt_us`, `cwnd` (segments), `mss`, and
    `advertised_window` if its kernel reports it.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The TCP_INFO (linux/tcp.h) of one end of a connection."""

    mss: int | None = None  # tcpi_snd_mss: payload of a full segment on the wire
    rcv_mss: int | None = None  # tcpi_rcv_mss: estimate of the MSS of received segments
    advmss: int | None = None
    pmtu: int | None = None
    rtt_us: int | None = None
    rtt_min_us: int | None = None
    retransmits: int | None = None  # retransmitted segments
    retransmitted_bytes: int | None = None
    cwnd: int | None = None  # congestion window in segments
    busy_us: int | None = None  # tcpi_busy_time: time with data to send
    rwnd_limited_us: int | None = None  # part of `busy_us` with a full receiver's window
    sndbuf_limited_us: int | None = None  # part of `busy_us` with a full send buffer
    advertised_window_bytes: int | None = None  # tcpi_snd_wnd: the window that the peer advertised last
    timestamps: bool | None = None  # timestamps in use (RFC 7323), which take 12 bytes of every segment
    segs_out: int | None = None  # tcpi_segs_out: segments sent, with retransmits and pure acknowledgements
    segs_in: int | None = None  # tcpi_segs_in: segments received
    delivered: int | None = None  # tcpi_delivered: segments that were acknowledged
    delivered_ce: int | None = None  # tcpi_delivered_ce: segments acknowledged with the echo of a mark (ECN)
    received_ce: int | None = None  # tcpi_received_ce: segments that arrived marked (Linux 6.18)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The round trips of a pingpong sender: their number, and the sum, least and largest of their times."""

    count: int
    sum_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DiskTimes:
    """Times that the disk took at one side of a file transfer."""

    disk_us: int | None = None  # time in read(2) or write(2) of the file
    sync_us: int | None = None  # receiver: time from the acknowledgement until the file is safe on the disk


@dataclass(frozen=True, slots=True)
class Copying:
    """The number of sends of a TCP stream, and how many of them the kernel did not copy."""

    sends: int | None = None
    uncopied_sends: int | None = None  # None if zerocopy was not requested


@dataclass(frozen=True, slots=True)
class Numa:
    """NUMA nodes at one side of a flow: where its thread ran most (`node`), and of the data interface (`card`)."""

    node: int | None = None
    card: int | None = None  # None if unknown, or for a virtual interface


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a flow: what the agent counted, and what the kernel granted.

    `side[MSS]` is the effective value of a setting; None if unknown.
    """

    bytes: int  # all application bytes sent or received
    first_byte_ns: int | None  # time before the first send, or after the first receive
    last_byte_ns: int | None
    sndbuf_bytes: int | None = None  # SO_SNDBUF as read back; Linux doubles the value set (socket(7))
    rcvbuf_bytes: int | None = None
    tcp: TcpInfo = TcpInfo()
    copying: Copying = Copying()
    numa: Numa = Numa()
    round_trips: RoundTrips | None = None
    disk: DiskTimes | None = None
    # Buckets (rigctl.model.latency) and their counts, in rising order: round-trip times at a pingpong sender, or
    # numbers of datagrams lost in a row at a UDP receiver.
    histogram: tuple[tuple[int, int], ...] = ()
    datagrams: Datagrams | None = None  # only of UDP flows
    bins: Bins | None = None  # only of a stream's receiver, if Cell.bin_us requests bins
    series: Series = field(default_factory=Series)
    granted: Settings = NO_SETTINGS  # effective values that have no field in this record
    sending: bool = True  # False for a receiver; set by `Flow`

    def __getitem__(self, setting: Setting[_T]) -> _T | None:
        """Return the effective value of a setting at this side; None if unknown."""
        effective = setting.effective
        if effective is None:
            return None
        if effective.of is not None:
            return effective.of(self)
        value: Any = self.granted[setting]
        if effective.counted is not None and isinstance(value, Counts):
            value = ", ".join(value.by(effective.counted.name)) or None
        return cast("_T | None", value)

    @property
    def subflows(self) -> Subflows | None:
        """Return the subflows of Multipath TCP, empty after a fallback to TCP; None if not requested, or unknown."""
        return cast("Subflows | None", self.granted[MPTCP])

    @property
    def elapsed_ns(self) -> int | None:
        """Return the time from the first byte to the last byte in ns; None if a time is unknown."""
        if self.first_byte_ns is None or self.last_byte_ns is None:
            return None
        return self.last_byte_ns - self.first_byte_ns

    def counts(self, setting: Setting[Any]) -> Counts | None:
        """Return how often each value of a setting was counted at this side; None if the agent did not count."""
        value = self.granted[setting]
        return value if isinstance(value, Counts) else None


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow (TCP connection or UDP flow) of a pair, with its sender and its receiver of data.

    `bytes` and `retransmits` count only within the measurement interval (`rigctl.model.window.cut_to_window`); None if
    the repetition has no such interval.
    """

    pair: Pair
    direction: Direction  # direction of the data: FORWARD or REVERSE
    number: int  # number of the flow, from 1 to Cell.parallel
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
        """Tell whether one side reports that the connection fell back from Multipath TCP to TCP."""
        return any(side is not None and side[MPTCP] is False for side in (self.sender, self.receiver))


def by_stream(flows: Iterable[Flow]) -> dict[Stream, list[Flow]]:
    """Return flows grouped by stream; the flows of a stream keep their order."""
    return group_by(flows, lambda flow: flow.stream)


@dataclass(frozen=True, slots=True)
class Probes:
    """Round-trip times of small datagrams (probes), sent at a steady pace beside the streams of a pair and direction.

    The columns of `series` have a row for each probe: `t_ns` (time sent, on the controller's clock), `answered`
    (number of answered probes up to this row), `rtt_ns` (round-trip time; without an answer, as in the row before).
    """

    pair: Pair
    direction: Direction  # direction of the streams' data: FORWARD or REVERSE
    started_ns: int  # start of the streams; earlier probes are the idle baseline
    series: Series = field(default_factory=Series)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NicCounters:
    """The rise of the counters of a node's data interface, from before the first byte until all flows ended.

    Sources: rtnl_link_stats64 (linux/if_link.h), and for `queue_drops` the queueing disciplines (tc -s qdisc).
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
    carrier_changes: int | None = None  # how often the link went down or came up


@dataclass(frozen=True, slots=True)
class PortSeries:
    """Readings of the counters of a switch port, from the last before a repetition to the first after it.

    Columns have equal length and the absolute values of the switch: `t_ns` (controller's clock, half-way between
    request and answer), `took_ns` (time from request to answer), `in_octets`, `out_octets`, `in_packets`,
    `out_packets`, `in_discards`, `out_discards`, `in_errors`, `out_errors`, `discontinuity` (in 10 ms,
    ifCounterDiscontinuityTime). "In" and "out" are as the switch sees them. A column without known values is left
    out; -1 stands for an unknown value.
    """

    switch: str  # key of the switch in the rig file
    port: str  # name of the port on the switch
    source: str  # how the counters were read: "snmp" or "cli"
    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """A pcap file with the headers of the frames of one pair and direction, captured at one of its nodes."""

    node: str
    pair: Pair
    direction: Direction  # direction of the data: FORWARD or REVERSE
    file: str  # name of the file, in the folder of the report
    frames: int  # number of frames that passed
    lost: int | None  # frames that the kernel did not capture; None if unknown
    cut: bool  # True if frames passed after the file was full
    retransmits_seen: int | None = None  # TCP sender: retransmits by sequence numbers in the capture
    retransmits: int | None = None  # TCP sender: retransmits by TCP (tcpi_total_retrans)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The CPU use of a node during a repetition, from getrusage(2) and /proc/stat."""

    node: str
    span_us: int | None = None  # wall time that the counters cover
    agent_cpu_us: int | None = None  # user and system time of the agent
    node_busy_us: int | None = None  # time of all CPUs without idle and iowait; with softirq
    cpus: int | None = None
    throttled: bool | None = None  # Raspberry Pi: get_throttled was set meanwhile; None for other nodes
    strangers: int = 0  # dropped connections that did not send the token
    nic: NicCounters | None = None
    busiest_cpu_us: int | None = None  # busy time of the busiest CPU, which shows a CPU full of interrupts
    node_irq_us: int | None = None  # part of `node_busy_us` in irq and softirq
    throttled_us: int | None = None  # time in which a control group's quota held back the agent (cpu.stat)
