"""What the wire counted at the ends of a stream's links: pause frames (IEEE 802.3 Annex 31B) and damaged frames.

A switch counts them at its ports (EtherLike-MIB, RFC 3635). They are read before and after a repetition.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from rigctl.base.values import total_of_known
from rigctl.limits.links import link_rate_bps
from rigctl.model.window import CommonWindow
from rigctl.records import PortSeries, Repetition, RunInfo

_PAUSE_BITS: Final = 65535 * 512
"""Longest time for which one pause frame stops a sender, in bits of the link: 65535 quanta of 512 bits."""


class WireCounts(NamedTuple):
    """Counts at the switch ports of one node during a repetition; None if the switch does not report them."""

    ports: str  # names of the ports, as `force10 Gi1/1`
    paused: int | None = None  # pause frames that the switch sent to the node
    asks: int | None = None  # pause frames that the node sent to the switch
    damaged: int | None = None  # frames from the node with a wrong checksum or a wrong alignment


def wire_counts(info: RunInfo, repetition: Repetition, node: str) -> WireCounts | None:
    """Return what the switch counted at the ports of `node`; None if it has none, or was not read."""
    ports = {(port.switch, port.name) for port in info.plan.ports if port.node == node}
    read = [series for series in repetition.counters if (series.switch, series.port) in ports]
    if not read:
        return None
    damaged = (_rise(series, name) for series in read for name in ("fcs_errors", "alignment_errors"))
    return WireCounts(
        " and ".join(f"{series.switch} {series.port}" for series in read),
        total_of_known(_rise(series, "out_pause") for series in read),
        total_of_known(_rise(series, "in_pause") for series in read),
        total_of_known(damaged),
    )


def _rise(series: PortSeries, name: str) -> int | None:
    """Return by how much a counter rose from its first to its last reading; None if it was not read twice."""
    known = [value for value in series.columns.get(name, ()) if value >= 0]
    return max(0, known[-1] - known[0]) if len(known) > 1 else None


def pause_found(
    info: RunInfo, repetition: Repetition, sender: str, window: CommonWindow | None
) -> Iterator[tuple[str, Any]]:
    """Yield the evidence that pause frames stopped the sender: their number, and for which share of time at most."""
    counted, rate_bps = wire_counts(info, repetition, sender), link_rate_bps(info, sender)
    if counted is None or counted.paused is None:
        return
    yield "pause_frames", counted.paused
    yield "paused_by", counted.ports
    if window is not None and rate_bps:
        yield "pause_allows", min(1.0, counted.paused * _PAUSE_BITS / rate_bps / window.length_s)
