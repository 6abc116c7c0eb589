"""From an agent's report to records: the node's clock becomes the controller's, the protocol's names become ours."""

from rigctl.protocol import EndpointReport, FlowDatagrams, FlowReport, FlowTotals
from rigctl.records import Bins, Copying, Datagrams, DiskTimes, RoundTrips, Series, Side, TcpInfo


def sides(report: EndpointReport, offset_ns: int, at_ns: int = 0) -> tuple[Side, ...]:
    """One side per flow of `report`, by number from 0. `offset_ns`: the node's clock minus the controller's.

    `at_ns`: when the flows were started, on the controller's clock; bins count from there.
    """
    return tuple(_side(flow, offset_ns, at_ns) for flow in report.flows)


def _side(flow: FlowReport, offset_ns: int, at_ns: int) -> Side:
    counted = flow.totals
    columns = dict(flow.columns)
    if "t_ns" in columns:
        columns["t_ns"] = [t_ns - offset_ns for t_ns in columns["t_ns"]]
    return Side(
        bytes=counted.bytes,
        first_byte_ns=_moved(counted.first_byte_ns, offset_ns),
        last_byte_ns=_moved(counted.last_byte_ns, offset_ns),
        sndbuf_bytes=counted.sndbuf,
        rcvbuf_bytes=counted.rcvbuf,
        tcp=_tcp(counted),
        copying=Copying(counted.sends, counted.uncopied_sends),
        granted=counted.granted,
        round_trips=_round_trips(counted),
        disk=_disk(counted),
        histogram=flow.buckets,
        datagrams=None if flow.datagrams is None else _datagrams(flow.datagrams),
        bins=None if flow.bin_us is None else Bins(at_ns, flow.bin_us, flow.bins),
        series=Series(columns),
    )


def _tcp(counted: FlowTotals) -> TcpInfo:
    return TcpInfo(
        mss=counted.mss,
        rcv_mss=counted.rcv_mss,
        advmss=counted.advmss,
        pmtu=counted.pmtu,
        rtt_us=counted.rtt_us,
        rtt_min_us=counted.rtt_min_us,
        retransmits=counted.retransmits,
        retransmitted_bytes=counted.retransmitted_bytes,
        cwnd=counted.cwnd,
        busy_us=counted.busy_us,
        rwnd_limited_us=counted.rwnd_limited_us,
        sndbuf_limited_us=counted.sndbuf_limited_us,
        advertised_window_bytes=counted.advertised_window,
        timestamps=counted.timestamps,
        segs_out=counted.segs_out,
        segs_in=counted.segs_in,
    )


def _round_trips(counted: FlowTotals) -> RoundTrips | None:
    if counted.round_trips is None:
        return None
    return RoundTrips(counted.round_trips, counted.rtt_sum_ns, counted.rtt_min_ns, counted.rtt_max_ns)


def _disk(counted: FlowTotals) -> DiskTimes | None:
    if counted.disk_us is None and counted.sync_us is None:
        return None
    return DiskTimes(counted.disk_us, counted.sync_us)


def _datagrams(counted: FlowDatagrams) -> Datagrams:
    return Datagrams(
        count=counted.datagrams,
        refused=counted.refused,
        duplicates=counted.duplicates,
        reordered=counted.reordered,
        strays=counted.strays,
        highest=counted.highest,
        overflow=counted.overflow,
        jitter_ns=counted.jitter_ns,
        jitter_max_ns=counted.jitter_max_ns,
        burst=counted.burst,
        segmented=counted.segmented,
    )


def _moved(t_ns: int | None, offset_ns: int) -> int | None:
    return None if t_ns is None else t_ns - offset_ns
