"""Define records of what kernels granted and agents counted: flows with both sides, nodes, switch ports, captures."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rigctl.base.values import group_by
from rigctl.records.kind_counts import GroupSent, KindCounts, MulticastCounts
from rigctl.records.plan import Pair, Stream
from rigctl.settings import MPTCP, NO_SETTINGS, Counts, Direction, Setting, Settings, Subflows

_T = TypeVar("_T")
_Counts = TypeVar("_Counts", bound=KindCounts)


@dataclass(frozen=True, slots=True)
class Datagrams:
    """Counts of datagrams at one side of a UDP flow; None if this side cannot know a count."""

    count: int  # sender: datagrams given to the kernel; receiver: received, without duplicates
    refused: int | None = None  # datagrams that the sender's kernel refused, as its queue was full
    duplicates: int | None = None
    reordered: int | None = None  # datagrams that arrived after one with a higher number (RFC 4737)
    strays: int | None = None  # datagrams of another flow, or so late that they may be duplicates
    highest: int | None = None  # highest sequence number that the receiver got, plus 1
    overflow: int | None = None  # datagrams dropped at the full receive buffer; a GRO packet counts once
    jitter_ns: int | None = None  # receiver: interarrival jitter at the end of the flow (RFC 3550)
    jitter_max_ns: int | None = None  # largest interarrival jitter
    burst: int | None = None  # sender with a rate: most datagrams sent ahead of the rate
    segmented: bool | None = None  # sender: True if the kernel split larger sends into datagrams (GSO)


@dataclass(frozen=True, slots=True)
class Bins:
    """The bytes that a receiver read in successive bins of time. Bin i begins at `start_ns` + i × `width_us`."""

    start_ns: int
    width_us: int
    bytes: tuple[int, ...]  # bytes per bin; empty bins at the end are left out


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one side of a flow as columns of equal length: the times `t_ns`, and the values at these times.

    All series have `t_ns` and `bytes`. A receiver of numbered datagrams also has `highest`: the highest sequence number
    plus one. A sender of TCP also has `retransmits`, `rtt_us`, `cwnd` (segments), `mss`, and
    `advertised_window` if its kernel reports this window.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """TCP_INFO (linux/tcp.h) at one end of a connection, when the flow ended; None if the kernel does not report it."""

    mss: int | None = None  # tcpi_snd_mss: payload of a full segment in bytes
    rcv_mss: int | None = None  # tcpi_rcv_mss: payload of received segments in bytes, as the kernel estimates
    advmss: int | None = None
    pmtu: int | None = None
    rtt_us: int | None = None
    rtt_min_us: int | None = None
    retransmits: int | None = None  # retransmitted segments
    retransmitted_bytes: int | None = None
    cwnd: int | None = None  # congestion window in segments
    busy_us: int | None = None  # tcpi_busy_time: time in which TCP had data to send
    rwnd_limited_us: int | None = None  # part of `busy_us` in which the window of the receiver was full
    sndbuf_limited_us: int | None = None  # part of `busy_us` in which the send buffer was full
    advertised_window_bytes: int | None = None  # tcpi_snd_wnd: the window that the peer advertised last
    timestamps: bool | None = None  # True: RFC 7323 timestamps take 12 bytes of every segment
    segs_out: int | None = None  # tcpi_segs_out: segments sent, with retransmits and pure acknowledgements
    segs_in: int | None = None  # tcpi_segs_in: segments received
    delivered: int | None = None  # tcpi_delivered: segments that the peer acknowledged
    delivered_ce: int | None = None  # tcpi_delivered_ce: segments acknowledged as marked on the way (ECN)
    received_ce: int | None = None  # tcpi_received_ce: segments received with an ECN mark (since Linux 6.18)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Round trips that the sender of a pingpong test measured: how many, and the sum, least and largest time."""

    count: int
    sum_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DiskTimes:
    """Times that disk access took at one side of a file transfer."""

    disk_us: int | None = None  # time that the agent spent in read(2) or write(2) on the file
    sync_us: int | None = None  # receiver: time of fdatasync(2), after it acknowledged the last byte


@dataclass(frozen=True, slots=True)
class Copying:
    """How many sends a TCP sender made, and of how many the kernel did not copy the data (zerocopy)."""

    sends: int | None = None
    uncopied_sends: int | None = None  # sends without a copy; None if zerocopy was not requested


@dataclass(frozen=True, slots=True)
class Numa:
    """NUMA nodes at one side of a flow: `node` ran its thread most, `card` has the data interface."""

    node: int | None = None
    card: int | None = None  # NUMA node of the interface; None if unknown or virtual


@dataclass(frozen=True, slots=True)
class Side:
    """The sender's or the receiver's side of a flow: what the agent counted, and what the kernel granted.

    `side[MSS]` is the effective value of a setting; None if unknown.
    """

    bytes: int  # application bytes sent or received, from start to end of the flow
    first_byte_ns: int | None  # time just before the first send, or just after the first receive
    last_byte_ns: int | None
    sndbuf_bytes: int | None = None  # SO_SNDBUF as the kernel reports it: Linux doubles the value set (socket(7))
    rcvbuf_bytes: int | None = None
    tcp: TcpInfo = TcpInfo()
    copying: Copying = Copying()
    numa: Numa = Numa()
    round_trips: RoundTrips | None = None
    disk: DiskTimes | None = None
    # Histogram as (bucket, count) in rising order (rigctl.model.latency): round-trip times at a pingpong sender, those
    # of connections or requests at their sender, or numbers of datagrams lost in a row at a UDP receiver.
    histogram: tuple[tuple[int, int], ...] = ()
    datagrams: Datagrams | None = None  # counts of datagrams; None for TCP
    kind_counts: KindCounts | None = None  # counts that only this kind of test has; None: this side has none
    bins: Bins | None = None  # bytes per bin at a receiver, if Cell.bin_us requests bins; else None
    series: Series = field(default_factory=Series)
    granted: Settings = NO_SETTINGS  # effective values of settings that have no field here
    sending: bool = True  # True for the sender of data; `Flow` sets False for the receiver
    buffers_doubled: bool = True  # False: the buffers have the sizes that were set, as on FreeBSD and Windows

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
        """Return the Multipath TCP subflows (none after a fallback to TCP); None if not requested, or if unknown."""
        return cast("Subflows | None", self.granted[MPTCP])

    @property
    def elapsed_ns(self) -> int | None:
        """Return the time from the first byte to the last byte in ns; None if a time is unknown."""
        if self.first_byte_ns is None or self.last_byte_ns is None:
            return None
        return self.last_byte_ns - self.first_byte_ns

    def counted(self, kind: type[_Counts]) -> _Counts | None:
        """Return the counts of this kind of test; None if this side has none, or those of another kind."""
        return self.kind_counts if isinstance(self.kind_counts, kind) else None

    def counts(self, setting: Setting[Any]) -> Counts | None:
        """Return how many packets had each value of a setting (such as DSCP); None if this side did not count."""
        value = self.granted[setting]
        return value if isinstance(value, Counts) else None


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow (TCP connection or UDP flow) of a pair. A side is None if its report is missing.

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
    def membership(self) -> MulticastCounts | None:
        """Return what a receiver of a multicast test counted of the group; None in other tests."""
        return None if self.receiver is None else self.receiver.counted(MulticastCounts)

    @property
    def datagrams_due(self) -> int | None:
        """Return how many datagrams were to arrive: those sent; in multicast, those from the first to the leave."""
        sent, came = (None if side is None else side.datagrams for side in (self.sender, self.receiver))
        own = self.membership
        if sent is None or came is None or own is None:
            return None if sent is None else sent.count
        then = self.sender.counted(GroupSent) if self.sender is not None else None
        if own.first_number is None or came.highest is None:
            return None if then is None or then.joined is None or then.left is None else then.left - then.joined
        return max(came.highest, (then and then.left) or 0) - own.first_number

    @property
    def fell_back(self) -> bool:
        """Tell whether one side reports that the connection fell back from Multipath TCP to TCP."""
        return any(side is not None and side[MPTCP] is False for side in (self.sender, self.receiver))


def by_stream(flows: Iterable[Flow]) -> dict[Stream, list[Flow]]:
    """Return flows grouped by stream (pair and direction); the flows of a stream keep their order."""
    return group_by(flows, lambda flow: flow.stream)


@dataclass(frozen=True, slots=True)
class Probes:
    """Round-trip times of small datagrams (probes), which the sender of a stream sends at regular intervals.

    The columns of `series` have a row for each probe: `t_ns` (time sent, on the controller's clock), `answered`
    (number of answered probes up to this row), `rtt_ns` (round-trip time; without an answer, as in the row before).
    """

    pair: Pair
    direction: Direction  # direction of the data: FORWARD or REVERSE
    started_ns: int  # start of the stream; probes before it are the idle baseline
    series: Series = field(default_factory=Series)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NicCounters:
    """By how much the counters of a node's data interface rose, from before the first byte until all flows ended.

    Sources: rtnl_link_stats64 (linux/if_link.h); for `queue_drops` the queueing disciplines (tc -s qdisc); from
    `rx_pause` on the card that carries the interface's frames (ethtool --include-statistics, ethtool -S).
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
    rx_pause: int | None = None  # pause frames that asked the card to stop (IEEE 802.3 Annex 31B)
    tx_pause: int | None = None  # pause frames that the card sent
    fcs_errors: int | None = None  # received frames with a wrong checksum
    alignment_errors: int | None = None  # received frames with a wrong checksum that do not end with a whole byte
    late_collisions: int | None = None
    symbol_errors: int | None = None
    fec_corrected: int | None = None  # blocks that forward error correction repaired
    fec_uncorrectable: int | None = None  # blocks that it could not repair


@dataclass(frozen=True, slots=True)
class StackCounters:
    """By how much the counters of a node's network stack rose meanwhile. Source: TcpExt of /proc/net/netstat."""

    syn_retransmits: int | None = None  # SYN and SYN-ACK segments sent again (TCPSynRetrans)
    listen_overflows: int | None = None  # connections that found the queue of a listening socket full
    listen_drops: int | None = None  # SYNs dropped for lack of room, overflows among them
    cookies_sent: int | None = None  # SYN-ACKs with a cookie: the queue of half-open connections is full, or always
    conntrack_failures: int | None = None  # packets that connection tracking dropped, clashes among them (nf_conntrack)
    conntrack_clashes: int | None = None  # packets whose connection clashed with another one, as after NAT


@dataclass(frozen=True, slots=True)
class PortSeries:
    """Readings of the counters of a switch port, from the last before a repetition to the first after the repetition.

    Columns of equal length have the values as the switch reports them: `t_ns` (controller's clock, half-way between
    request and answer), `took_ns` (time from request to answer), `in_octets`, `out_octets`, `in_packets`,
    `out_packets`, `in_discards`, `out_discards`, `in_errors`, `out_errors`, `discontinuity` (in 10 ms,
    ifCounterDiscontinuityTime); before and after the traffic also `in_pause`, `out_pause` (frames), `fcs_errors`,
    `alignment_errors`, `late_collisions`. "In" is into the switch. A value of -1 is unknown; a column without known
    values is left out.
    """

    switch: str  # key of the switch in the rig file
    port: str  # name of the port on the switch
    source: str  # how the counters were read: "snmp" or "cli"
    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """A pcap file with headers of the frames of one pair and direction, captured at the source or the destination."""

    node: str
    pair: Pair
    direction: Direction  # direction of the data: FORWARD or REVERSE
    file: str  # name of the pcap file, in the folder of the report
    frames: int  # number of frames that passed
    lost: int | None  # number of frames that the kernel missed; None if unknown
    cut: bool  # True if the file was full before the last frame
    retransmits_seen: int | None = None  # TCP sender: number of retransmits in the capture, by sequence numbers
    retransmits: int | None = None  # TCP sender: number of retransmits that TCP reports (tcpi_total_retrans)

    @property
    def stream(self) -> Stream:
        return Stream(self.pair, self.direction)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """CPU use and interface counters of a node during a repetition. Sources: getrusage(2), /proc/stat."""

    node: str
    span_us: int | None = None  # wall time that these counters cover
    agent_cpu_us: int | None = None  # user and system CPU time of the agent
    node_busy_us: int | None = None  # CPU time of all CPUs, softirq included, without idle and iowait
    cpus: int | None = None
    throttled: bool | None = None  # Raspberry Pi: True if the firmware throttled the CPU; None for other nodes
    strangers: int = 0  # number of connections that the agent dropped, as they did not send the test's token
    nic: NicCounters | None = None
    stack: StackCounters | None = None
    busiest_cpu_us: int | None = None  # CPU time of the busiest CPU, which may be full of interrupts
    node_irq_us: int | None = None  # part of `node_busy_us` spent in interrupts (irq and softirq)
    throttled_us: int | None = None  # time in which a CPU quota held back the agent (cpu.stat)
