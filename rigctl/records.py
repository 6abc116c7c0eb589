"""Frozen records: what is asked, what was granted, what was counted. They are the seam between all rooms.

Asked and granted travel together. `None` means unknown (or, in a request, "not asked for"); it is never 0.
Times named `_ns` are nanoseconds on the *controller's* monotonic clock, after correction by the measured clock offset,
unless a docstring says otherwise.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

Facts: TypeAlias = dict[str, Any]
"""Host facts as `probe` gives them: plain JSON, keyed by the names in `rigctl.probe.facts`."""


class Direction(StrEnum):
    """Which way the data of a pair flow; connections are opened by the sender of the data."""

    FORWARD = "forward"  # source -> destination
    REVERSE = "reverse"  # destination -> source
    BOTH = "both"  # at once


class Status(StrEnum):
    """What became of a repetition. Only `OK` is averaged."""

    OK = "ok"
    INVALID = "invalid"  # measured, but outside the contract; the reason says why
    FAILED = "failed"  # not measured
    INTERRUPTED = "interrupted"  # ended by the user


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"  # every cell measured
    PARTIAL = "partial"  # some cell failed
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Pair:
    """Source node → destination node, by their names in the rig file."""

    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One host setting of a condition, as the agent applies it (docs/agent-protocol.md, `set`)."""

    kind: str  # "mtu", "sysctl", "offload", "governor"
    value: str
    name: str | None = None  # of a sysctl (net.ipv4.tcp_rmem) or an offload (gro); None for the others


@dataclass(frozen=True, slots=True)
class Condition:
    """Host settings that hold on all nodes of the rig during a group of cells; old values are back afterwards."""

    name: str
    settings: tuple[Setting, ...] = ()
    # True: a cell's window is only where the kernel's buffers *start* (the middle value of tcp_rmem and tcp_wmem), and
    # it resizes them; False: SO_SNDBUF and SO_RCVBUF are set, which locks them (tcp(7), tcp_moderate_rcvbuf).
    resize: bool = False

    @property
    def mtu(self) -> int | None:
        """The MTU it gives every node; `None`: the nodes' own."""
        return next((int(setting.value) for setting in self.settings if setting.kind == "mtu"), None)


MESSAGE_TESTS: Final = frozenset({"pingpong", "blast", "file"})
"""Tests that count messages of one size; a file is one message."""
UNLIMITED: Final = "unlimited"
"""As a rate: as fast as the sender can."""
MAX_RATE: Final = "max"
"""As a rate: the highest with a loss within RunPlan.max_loss, found by search."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: one row of the table. `None` for a setting: not asked for, the node's default holds."""

    number: int  # 1, 2, … in the scenario's order
    test: str  # a key of rigctl.measure.TESTS, as "tcp"
    pairs: tuple[Pair, ...]
    duration_s: float  # what the senders run, the omitted start included
    omit_s: float  # cut off the start by the controller, from raw counters
    parallel: int  # flows per pair and direction
    window_bytes: int | None = None
    mss: int | None = None
    congestion: str | None = None
    nodelay: bool | None = None
    direction: Direction = Direction.FORWARD
    condition: str | None = None  # name of one of RunPlan.conditions; None: the nodes as they are
    window_total_bytes: int | None = None  # asked for over all flows of a pair; window_bytes is then its share
    resize: bool = False  # its condition's: the window is where buffers start, the kernel resizes them
    transport: str = "tcp"  # or "udp": of "udp", and of "pingpong" where asked for
    rate: int | str | None = None  # of "udp", each flow: payload bit/s, UNLIMITED or MAX_RATE
    message_bytes: int | None = None  # of "pingpong" and "blast"; of "udp" the payload of a datagram; of "file" it all
    iterations: int | None = None  # messages of each flow; None: as many as the duration allows
    busy_poll: bool | None = None  # of "pingpong": waits without sleeping
    read: str | None = None  # of "file": where its sender has it, "disk" or "memory" …
    write: str | None = None  # … and its receiver puts it
    folder: str | None = None  # of "file": for files on disks, on every node
    capture: bool = False  # the frames of its flows are kept, headers only
    bin_us: int | None = None  # of streams: receivers count their bytes in bins of that width, too

    @property
    def in_messages(self) -> bool:
        """Whether it is messages that are counted, not a stream cut to a common window."""
        return self.test in MESSAGE_TESTS


@dataclass(frozen=True, slots=True)
class Datagrams:
    """What became of the datagrams of a UDP flow, seen from one side; `None`: that side cannot know."""

    count: int  # handed to the kernel by the sender; at the receiver each one once
    refused: int | None = None  # by the sender's own kernel, whose queue was full
    duplicates: int | None = None
    reordered: int | None = None  # came after a later one (RFC 4737)
    strays: int | None = None  # too late to tell, or not of this flow
    highest: int | None = None  # sequence number seen, and one
    overflow: int | None = None  # dropped at the receiver's full socket buffer; a larger piece counts as one
    jitter_ns: int | None = None  # RFC 3550, as it stood at the end …
    jitter_max_ns: int | None = None  # … and at its largest
    segmented: bool | None = None  # of a sender: the kernel cut larger pieces into datagrams


@dataclass(frozen=True, slots=True)
class Bins:
    """What a receiver took in equal, consecutive times: `bytes[i]` from `start_ns` + i × `width_us` on."""

    start_ns: int
    width_us: int
    bytes: tuple[int, ...]  # up to the last that is not 0


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one side of one flow: columns of equal length, cumulative counters and gauges at `t_ns`.

    Always `t_ns` and `bytes`. The sender's side also has `retransmits`, `rtt_us`, `cwnd` (segments), `mss`, and
    `peer_window` where its kernel says it.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Side:
    """What one agent counted and its kernel granted for one flow. From TCP_INFO (linux/tcp.h) and getsockopt(2)."""

    bytes: int  # application bytes sent or received in all, from first to last
    first_byte_ns: int | None  # before the first send, after the first receive; None: no byte moved
    last_byte_ns: int | None
    sndbuf_bytes: int | None = None  # SO_SNDBUF as read back: Linux doubles what was set (socket(7))
    rcvbuf_bytes: int | None = None
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
    peer_window_bytes: int | None = None  # tcpi_snd_wnd, the window the peer offered last
    timestamps: bool | None = None  # RFC 7323 timestamps in use: 12 bytes of every segment
    congestion: str | None = None
    nodelay: bool | None = None
    segs_out: int | None = None  # tcpi_segs_out: segments sent in all, those again and pure acknowledgements included
    segs_in: int | None = None  # tcpi_segs_in
    # Of a ping-pong's sender: round trips, the sum, least and largest of their times. The histogram, buckets of
    # model.histogram with their counts in rising order: of these times; of a UDP receiver, of datagrams lost in a row.
    round_trips: int | None = None
    rtt_sum_ns: int | None = None
    rtt_min_ns: int | None = None
    rtt_max_ns: int | None = None
    disk_us: int | None = None  # of a file transfer: time in read(2) or write(2) of the file …
    sync_us: int | None = None  # … and of a receiver until it was safe on the disk, after its acknowledgement
    histogram: tuple[tuple[int, int], ...] = ()
    datagrams: Datagrams | None = None  # of a UDP flow
    bins: Bins | None = None  # of a stream's receiver, where Cell.bin_us asks for them
    series: Series = field(default_factory=Series)


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
    resent: int | None = None  # of a TCP sender: segments sent again, from the capture's sequence numbers …
    retransmits: int | None = None  # … and as its TCP counts them (tcpi_total_retrans)


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


@dataclass(frozen=True, slots=True)
class Repetition:
    """One measurement of a cell, as stored. `attempt` 2 is the one re-measurement after an invalid one."""

    cell: int  # Cell.number
    repetition: int  # 1 … repeat; beyond: wanted by RunPlan.retest or RunPlan.until
    attempt: int
    status: Status
    reason: str | None  # of anything but OK: which node or pair, what happened
    started_at: float  # Unix time, seconds
    wall_s: float  # what it took in all, preparing and collecting included
    window_start_ns: int | None = None  # the common window: latest start + omit …
    window_end_ns: int | None = None  # … to the earliest end of any flow
    start_skew_us: float | None = None  # spread of first_byte_ns over the flows, receiver side
    clock_error_us: float | None = (
        None  # half the round trip of the worst clock exchange: the bound of that skew's error
    )
    # Interval analysis (model.intervals): all flows' goodput summed at common instants, median over the intervals.
    goodput_median_bps: float | None = None
    rate_bps: int | None = None  # of each flow in the search for Cell.rate MAX_RATE; None: as fast as it can
    flows: tuple[Flow, ...] = ()
    nodes: tuple[NodeUsage, ...] = ()
    counters: tuple[PortSeries, ...] = ()  # of the switch ports that answered
    counters_missing: tuple[str, ...] = ()  # switches that did not, each with why: one sentence
    captures: tuple[Capture, ...] = ()


@dataclass(frozen=True, slots=True)
class Retest:
    """Cells whose repetitions vary by more than `variation`, a share of the mean, are measured `repeat` times more."""

    variation: float
    repeat: int


@dataclass(frozen=True, slots=True)
class Until:
    """Cells are measured until half the 95 % confidence interval is below `ci95`, a share of the mean: `most` times."""

    ci95: float
    most: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run was asked to do, stored with it before the first cell."""

    title: str
    notes: str
    scenario_name: str  # as given on the command line, without folder and .yaml
    scenario_yaml: str  # the text as read, with overrides named in `overrides`
    rig_name: str
    rig_yaml: str
    overrides: tuple[str, ...]  # as given: "--set window=64K"
    repeat: int
    cells: tuple[Cell, ...]
    links: dict[str, "Link"] = field(default_factory=dict)  # by node name
    virtual: str | None = None  # "namespaces", "loopback"; None: real hardware
    max_skew_s: float = 0.010  # a repetition whose start skew is above this is invalid
    conditions: tuple[Condition, ...] = ()  # in the order of their cells
    ports: tuple["Port", ...] = ()  # of the rig's switches, as far as the rig file names them
    trunk: "Trunk | None" = None
    retest: Retest | None = None  # repetitions beyond `repeat` are then those of the retest
    until: Until | None = None
    max_loss: float = 0.001  # share of datagrams, of the search for the highest rate

    @property
    def in_messages(self) -> bool:
        """Whether its cells count messages: a scenario has one test."""
        return any(cell.in_messages for cell in self.cells)

    def condition_mtu(self, name: str | None) -> int | None:
        """The MTU that a condition gives every node; `None`: the nodes' own."""
        return next((one.mtu for one in self.conditions if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Link:
    """A node's link to the switch. `None`: the rig file does not say; rate and MTU the node must be asked."""

    rate_bps: int | None
    mtu: int | None
    switch: str | None = None  # its key in the rig file
    rtt_s: float | None = None  # of a virtual rig: what a round trip over it is to take; None: what it takes


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch and what is behind it: a node, or (the trunk) another switch."""

    switch: str  # its key in the rig file
    name: str  # interface name as the switch has it, as GigabitEthernet1/1
    node: str | None = None
    peer: str | None = None  # the other switch's key


@dataclass(frozen=True, slots=True)
class Trunk:
    """The link between the rig's two switches. `rate_bps` None: the rig file does not say."""

    ends: tuple[str, str]  # keys of the switches
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A stored run. `facts` maps node name → host facts; `versions` rigctl, Python, agent protocol, agent SHA-256."""

    run: str  # its id: sorts by time, as 20261120-214501-3f9a
    plan: RunPlan
    status: RunStatus
    started_at: float
    ended_at: float | None
    versions: dict[str, str]
    facts: dict[str, Facts]
