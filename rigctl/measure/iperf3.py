"""The engine `iperf3`: convert the settings of a test to command lines of iperf3(1), and its JSON output to records.

Each pair has a server and a client. The client runs on the pair's source; with `-R` and `--bidir` the server
sends. rigctl never passes `-O` (omit the start of a test): the controller cuts the start off, as for tests by agents.

Values that iperf3 does not report are None. iperf3 reports the start of a test in whole seconds, which is too coarse,
so rigctl uses its own clock for it (`Exchange.anchor_ns`). Versions: iperf3 3.1 to 3.21.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Any, Final, Self, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from rigctl.base.texts import printable
from rigctl.base.values import least, total
from rigctl.model.frames import IP_HEADER, TCP_HEADER
from rigctl.model.window import bytes_at
from rigctl.records import Cell, Datagrams, Direction, Flow, Pair, Series, Side, TcpInfo
from rigctl.settings import CONGESTION, MSS, SETTINGS, WINDOW, Settings
from rigctl.settings.sockets import TIMESTAMPS_OPTION

_MOST_ROWS: Final = 40_000  # samples of a process over all its flows; a sample takes about 300 bytes of JSON
MOST_MESSAGE: Final = 300  # characters that are kept of an error message of iperf3
_BEGIN: Final = re.compile(r"^\{(?=\s*\")", re.MULTILINE)
"""Matches the beginning of a report. Other text may have braces, such as ${PLATFORM} in a line of ld.so."""
_SILENCE_NS: Final = 250_000_000  # a receiver that got nothing for this time lost what was sent in it


def interval_s(cell: Cell, least_s: float) -> float:
    """Return the seconds between samples: `least_s`, or more (up to 60) to have at most `_MOST_ROWS` samples."""
    flows = cell.parallel * (2 if cell.direction is Direction.BOTH else 1)
    return min(60.0, max(least_s, round(cell.duration_s * flows / _MOST_ROWS + 0.05, 1)))


def server_words(address: str, port: int, interval: float) -> Sequence[str]:
    """Return the command of a pair's server, which ends after one test."""
    return ("iperf3", "-s", "-1", "-J", "-B", address, "-p", str(port), "-i", f"{interval:g}")


def client_words(
    cell: Cell, address: str, port: int, bind: str, interval: float, rate_bps: int | None
) -> Sequence[str]:
    """Return the command of a pair's client. `rate_bps` is the rate of each flow; None for no limit."""
    words = ["iperf3", "-c", address, "-p", str(port), "-B", bind, "-J", "-i", f"{interval:g}"]
    words += ["-t", f"{cell.duration_s:g}", "-P", str(cell.parallel)]
    words += {Direction.REVERSE: ["-R"], Direction.BOTH: ["--bidir"]}.get(cell.direction, [])
    if cell.transport == "udp":
        words += ["-u", "-b", str(rate_bps or 0), "-l", str(cell.message_bytes)]
    elif rate_bps is not None:
        words += ["--fq-rate", str(rate_bps)]
    for setting in SETTINGS.values():
        asked = None if setting.iperf3 is None or (setting is WINDOW and cell.resize) else cell[setting]
        words += [] if setting.iperf3 is None or asked is None else setting.iperf3(asked)
    return words


class ReportError(ValueError):
    """Raised if an output has no report of a successful test. The message is iperf3's, if there is one."""


_MOST_COUNT: Final = 2**53
_MOST_S: Final = 1e7
_MOST_JITTER_MS: Final = 3_600_000.0  # 1 h; if a clock was set, iperf3 prints as much as 6·10⁸ ms


def _known_up_to(most: float) -> BeforeValidator:
    """Return a validator that gives None for numbers above `most` and for iperf3's unknown values (-1, -2, nan)."""
    return BeforeValidator(lambda value: value if not isinstance(value, int | float) or 0 <= value <= most else None)


Whole: TypeAlias = Annotated[int, Field(ge=-1, le=_MOST_COUNT)]
Count: TypeAlias = Annotated[int | None, _known_up_to(_MOST_COUNT)]
"""A number that iperf3 may not know; on BSDs and macOS iperf3 prints -1 for the path MTU and other values."""
Difference: TypeAlias = Annotated[int | None, Field(ge=-_MOST_COUNT, le=_MOST_COUNT)]
Seconds: TypeAlias = Annotated[float, Field(ge=0, le=_MOST_S, allow_inf_nan=False)]


class _Connection(BaseModel):
    socket: int
    local_port: int
    remote_port: int
    local_host: str = ""
    remote_host: str = ""


class _Timestamp(BaseModel):
    timesecs: Annotated[int, Field(ge=0, le=2**33)]


class _Host(BaseModel):
    host: str


class _TestStart(BaseModel):
    protocol: str
    num_streams: Annotated[int, Field(ge=1, le=10_000)]
    blksize: Whole
    omit: Annotated[int, Field(ge=0, le=10**6)] = 0
    duration: Annotated[int, Field(ge=0, le=10**7)]
    bytes: Whole = 0
    blocks: Whole = 0
    reverse: int = 0
    tos: Annotated[int, Field(ge=0, le=255)] = 0  # reported since iperf3 3.2
    target_bitrate: Count = None  # reported since iperf3 3.10
    fqrate: Count = None
    bidir: int = 0  # reported since iperf3 3.17


class _Start(BaseModel):
    connected: list[_Connection] = []
    version: str = ""
    system_info: str = ""
    timestamp: _Timestamp | None = None
    connecting_to: _Host | None = None  # address of the server, only in a client's report
    accepted_connection: _Host | None = None  # address of the client, only in a server's report
    cookie: str = ""
    test_start: _TestStart | None = None
    target_bitrate: Count = None
    fq_rate: Count = None
    tcp_mss: Count = None  # requested MSS
    tcp_mss_default: Count = None  # MSS of the control connection; None: an MSS was requested; 0: a server's report
    sock_bufsize: Whole = 0
    sndbuf_actual: Count = None
    rcvbuf_actual: Count = None


class Sample(BaseModel):
    socket: int
    start: Seconds = 0.0
    end: Seconds
    bytes: Annotated[int, Field(ge=0, le=2**53)]
    sender: bool | None = None  # reported since iperf3 3.7
    omitted: bool = False
    packets: Count = None  # UDP; a receiver's: by how much the highest sequence number rose
    lost_packets: Difference = None  # UDP receiver; below 0 if more datagrams came late than were missed
    retransmits: Count = None
    snd_cwnd: Count = None  # congestion window in bytes: segments × MSS
    snd_wnd: Count = None  # advertised window in bytes, since iperf3 3.11
    rtt: Count = None
    pmtu: Count = None


class Interval(BaseModel):
    streams: list[Sample]


class _Sum(BaseModel):
    end: Seconds
    bytes: Annotated[int, Field(ge=0, le=2**53)]
    packets: Count = None  # UDP; of a receiver since iperf3 3.11: the highest sequence numbers of its flows


class Total(_Sum):
    socket: int
    retransmits: Count = None
    lost_packets: Count = None
    out_of_order: Count = None
    jitter_ms: Annotated[float | None, _known_up_to(_MOST_JITTER_MS)] = None

    @property
    def arrived(self) -> int:
        return max(0, (self.packets or 0) - (self.lost_packets or 0))

    @property
    def jitter_ns(self) -> int | None:
        return None if self.jitter_ms is None else round(self.jitter_ms * 1e6)


class EndOfStream(BaseModel):
    sender: Total | None = None
    receiver: Total | None = None
    udp: Total | None = None


class _Processor(BaseModel):
    host_total: Annotated[float | None, _known_up_to(_MOST_COUNT)] = None


class _End(BaseModel):
    streams: list[EndOfStream] = []
    sum_received: _Sum | None = None
    cpu_utilization_percent: _Processor | None = None
    sender_tcp_congestion: str | None = Field(None, max_length=16)


class ProcessReport(BaseModel):
    """The JSON report of one iperf3 process."""

    start: _Start = _Start()
    intervals: list[Interval] = []
    end: _End = _End()
    error: str | None = None

    @model_validator(mode="after")
    def _set_senders(self) -> Self:
        """Set `sender` of samples, which iperf3 before 3.7 lacks: the client sends, but the server with `-R`."""
        if self.start.test_start is not None:
            sends = (self.start.connecting_to is not None) != bool(self.start.test_start.reverse)
            for interval in self.intervals:
                for sample in interval.streams:
                    sample.sender = sends if sample.sender is None else sample.sender
        return self

    @property
    def seconds(self) -> float:
        """Return the length of the test in s, by the end of the last sample."""
        return max((sample.end for interval in self.intervals for sample in interval.streams), default=0.0)

    @property
    def cpu_us(self) -> int | None:
        """Return the user and system time of the process during the test; None if unknown."""
        used = self.end.cpu_utilization_percent
        if used is None or used.host_total is None:
            return None
        return round(used.host_total / 100 * self.seconds * 1e6)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The reports of both ends of a pair. `anchor_ns` is the start of the test on the controller's clock."""

    pair: Pair
    client: ProcessReport
    server: ProcessReport
    anchor_ns: int


def report(output: bytes) -> ProcessReport:
    """Return the report in `output`, which includes standard error. Raise `ReportError` if the test failed."""
    text = output.decode("utf-8", "replace")
    match = _BEGIN.search(text)
    begin, end = (len(text), -1) if match is None else (match.start(), text.rfind("}"))
    words = [line.strip() for line in f"{text[:begin]}\n{text[max(begin, end + 1) :]}".splitlines()]
    last_words = printable(next((line for line in reversed(words) if line), "no output")[:MOST_MESSAGE])
    try:
        found = ProcessReport.model_validate(json.JSONDecoder().raw_decode(text, begin)[0])
    except (ValidationError, ValueError, RecursionError):
        raise ReportError(last_words) from None
    if found.error is not None or not found.intervals:
        raise ReportError(printable(found.error[:MOST_MESSAGE]) if found.error else last_words)
    return found


def flows_of_pair(exchange: Exchange, cell: Cell) -> Iterator[Flow]:
    """Yield the flows of a pair, numbered from 1 for each direction, in the order of their connections."""
    client, server = exchange.client, exchange.server
    server_sockets = {(end.remote_port, end.local_port): end.socket for end in server.start.connected}
    numbers = {Direction.FORWARD: 0, Direction.REVERSE: 0}
    for place, end in enumerate(client.start.connected):
        at_server = server_sockets.get((end.local_port, end.remote_port))
        if at_server is None and place < len(server.start.connected):  # NAT changed the ports: match by position
            at_server = server.start.connected[place].socket
        sends = any(sample.sender for sample in _samples(client, end.socket))
        direction = Direction.FORWARD if sends else Direction.REVERSE
        numbers[direction] += 1
        ends = [_FlowEnd(client, end.socket, exchange.anchor_ns), _FlowEnd(server, at_server, exchange.anchor_ns)]
        sender, receiver = ends if sends else reversed(ends)
        tcp = _tcp(sender, cell, client.start.tcp_mss_default, 6 if ":" in end.remote_host else 4)
        sent, received = sender.side(cell, sends=True, tcp=tcp), receiver.side(cell, sends=False, tcp=TcpInfo())
        if cell.transport == "udp":
            sent = cut_sender(sent, received, receiver.lost)
        yield Flow(exchange.pair, direction, numbers[direction], sent, received)


def cut_sender(sender: Side | None, receiver: Side | None, lost: int | None) -> Side | None:
    """Return a UDP sender with the datagrams sent up to the last one that the receiver counted, `lost` among them.

    The two ends stop counting at different times: with `-R` the server sends for a round trip after its client's end.
    What was on the way at that time is neither received nor lost. But if the receiver got nothing for 0.25 s until its
    end, all datagrams of that time are lost. Without samples of the receiver, the sender's mean rate tells that time.
    """
    if sender is None or sender.datagrams is None or receiver is None:
        return sender
    if receiver.datagrams is None or lost is None:
        return replace(sender, datagrams=None)
    seen, sent = receiver.datagrams.count + lost, sender.datagrams.count
    begin_ns, end_ns = receiver.first_byte_ns or 0, receiver.last_byte_ns or 0
    times, counts = receiver.series.columns.get("t_ns", []), receiver.series.columns.get("bytes", [])
    last_ns = next((at for at, count in zip(times, counts, strict=True) if count == counts[-1]), None)
    if last_ns is None or counts[-1] == 0:
        last_ns = begin_ns + round((sender.elapsed_ns or 0) * min(1.0, seen / sent)) if sent else end_ns
    at_s = np.array([last_ns - begin_ns, end_ns - begin_ns]) / 1e9
    before, until = (bytes_at(sender, begin_ns, at_s) * sent / max(1, sender.bytes)).tolist()
    silent = end_ns - last_ns >= _SILENCE_NS and until - before > 1
    return replace(sender, datagrams=replace(sender.datagrams, count=max(seen, round(until)) if silent else seen))


def _samples(found: ProcessReport, socket: int | None) -> list[Sample]:
    return [sample for interval in found.intervals for sample in interval.streams if sample.socket == socket]


def lost_datagrams(found: ProcessReport, socket: int | None) -> int | None:
    """Return how many datagrams up to the highest sequence number did not reach a UDP receiver; None if unknown."""
    lost = total(sample.lost_packets for sample in _samples(found, socket))
    return None if lost is None else max(0, lost)


class _FlowEnd:
    def __init__(self, found: ProcessReport, socket: int | None, anchor_ns: int) -> None:
        self.report, self._socket, self._anchor_ns = found, socket, anchor_ns
        self.samples = _samples(found, socket)
        sides = ((end, end.sender, end.receiver, end.udp) for end in found.end.streams)
        self._end = next((end for end, *own in sides if any(each and each.socket == socket for each in own)), None)

    @property
    def seen(self) -> int | None:
        """Return the highest sequence number, from 1, that a UDP receiver counted; None if unknown."""
        return total(sample.packets for sample in self.samples)

    @property
    def lost(self) -> int | None:
        return lost_datagrams(self.report, self._socket)

    def total(self, *, sends: bool) -> Total | None:
        end = self._end
        return None if end is None else end.udp or (end.sender if sends else end.receiver)

    def side(self, cell: Cell, *, sends: bool, tcp: TcpInfo) -> Side | None:
        """Return the `Side` with what this end counted; None if it has no samples of the flow, or wrong ones."""
        if not self.samples or (not sends and self.contradicts(cell)):
            return None
        counts = list(accumulate(sample.bytes for sample in self.samples))
        total, counted, last_s = self.total(sends=sends), counts[-1], self.samples[-1].end
        # A server may omit its last, shorter interval, so a total above the samples' sum is used instead. In UDP the
        # receiver's total is ignored, because it is what the sender sent, or 0 (iperf3 3.9).
        if total is not None and total.bytes > counted and (sends or cell.transport == "tcp"):
            counted, last_s = total.bytes, max(total.end, last_s)
        start, udp = self.report.start, cell.transport == "udp"
        asked = start.sock_bufsize > 0  # else iperf3 reports buffer sizes at the start only, which the kernel adapts
        return Side(
            bytes=counted,
            first_byte_ns=self._anchor_ns,
            last_byte_ns=self._at_ns(last_s),
            sndbuf_bytes=start.sndbuf_actual if asked else None,
            rcvbuf_bytes=start.rcvbuf_actual if asked else None,
            buffers_doubled=start.system_info.partition(" ")[0] in ("", "Linux"),
            tcp=tcp,
            granted=Settings({CONGESTION: self.report.end.sender_tcp_congestion} if sends and not udp else {}),
            datagrams=self._datagrams(total, sends, counted, cell) if udp and total is not None else None,
            series=Series(self._columns(counts, tcp.mss)),
        )

    def contradicts(self, cell: Cell) -> bool:
        """Tell whether a UDP receiver's bytes and datagrams cannot both be true, as with `--skip-rx-copy`."""
        if cell.transport != "udp" or self.seen is None or self.lost is None:
            return False
        return contradicting(sum(sample.bytes for sample in self.samples), self.seen, self.lost, cell)

    def _datagrams(self, end: Total, sends: bool, counted: int, cell: Cell) -> Datagrams | None:
        """Return the datagram counts of this end; None if unknown. A receiver's count follows from those it missed."""
        if sends:
            return None if end.packets is None else Datagrams(count=end.packets)
        if self.seen is None or self.lost is None:
            return None
        most = counted // cell.message_bytes if cell.message_bytes else self.seen
        return Datagrams(min(self.seen - self.lost, most), reordered=end.out_of_order, jitter_ns=end.jitter_ns)

    def _at_ns(self, seconds: float) -> int:
        return self._anchor_ns + round(seconds * 1e9)

    def _columns(self, counts: list[int], mss: int | None) -> dict[str, list[int]]:
        retransmits = [sample.retransmits for sample in self.samples]
        gauges: dict[str, list[Any]] = {
            "retransmits": retransmits if None in retransmits else list(accumulate(each or 0 for each in retransmits)),
            "rtt_us": [sample.rtt for sample in self.samples],
            "cwnd": [_segments(sample.snd_cwnd, mss) for sample in self.samples],
            "advertised_window": [sample.snd_wnd for sample in self.samples],
        }
        columns = {"t_ns": [self._at_ns(sample.end) for sample in self.samples], "bytes": counts}
        return columns | {name: values for name, values in gauges.items() if None not in values}


def _tcp(sender: _FlowEnd, cell: Cell, default_mss: int | None, ip_version: int) -> TcpInfo:
    """Return the TCP values of a flow, from the last sample and the totals of its sender."""
    if cell.transport == "udp" or not sender.samples:
        return TcpInfo()
    last, total = sender.samples[-1], sender.total(sends=True)
    mss, timestamps = segment(sender.samples, default_mss, cell[MSS], ip_version)
    return TcpInfo(
        mss=mss,
        pmtu=last.pmtu or None,
        rtt_us=last.rtt,
        retransmits=None if total is None else total.retransmits,
        cwnd=_segments(last.snd_cwnd, mss),
        advertised_window_bytes=last.snd_wnd,
        timestamps=timestamps,
    )


def segment(
    samples: Sequence[Sample], default: int | None, asked: int | None, ip_version: int
) -> tuple[int | None, bool | None]:
    """Return the MSS of a flow, and whether its segments carry TCP timestamps; None if unknown.

    iperf3 reports the MSS requested or the MSS of its control connection, not of the flow. But each congestion window
    in a report is a multiple of the MSS. So the result is the first of these that divides all congestion windows:
    `default`; the largest size that `asked` and the path MTU allow, with timestamps; the same without timestamps.
    """
    pmtu = next((sample.pmtu for sample in reversed(samples) if sample.pmtu), None)
    full = least((asked, pmtu - IP_HEADER[ip_version] - TCP_HEADER if pmtu else None))
    possible = [default or 0, *([full - TIMESTAMPS_OPTION, full] if full is not None else [])]
    windows = [sample.snd_cwnd for sample in samples if sample.snd_cwnd]
    if not windows:
        return None, None
    mss = next((size for size in possible if size > 0 and all(window % size == 0 for window in windows)), None)
    if mss is None or full is None:
        return mss, None
    return mss, {full: False, full - TIMESTAMPS_OPTION: True}.get(mss)


def _segments(window: int | None, mss: int | None) -> int | None:
    return window // mss if window and mss else None


def receivers_contradict(found: ProcessReport, cell: Cell) -> bool:
    """Tell whether a UDP receiver in this report has bytes and datagrams that cannot both be true."""
    return any(_FlowEnd(found, opened.socket, 0).contradicts(cell) for opened in found.start.connected)


def contradicting(received: int, seen: int, lost: int, cell: Cell) -> bool:
    """Tell whether `received` bytes cannot be those of the datagrams up to number `seen` without those `lost`.

    More bytes are possible, because a datagram may come twice.
    """
    size = cell.message_bytes or 0
    return size > 0 and (received % size > 0 or received < max(0, seen - lost) * size or (received > 0 and seen == 0))
