"""Counts of the wire at both ends of a stream's links: pause frames (IEEE 802.3 Annex 31B) and damaged frames.

A switch counts them at its ports (EtherLike-MIB, RFC 3635), read before and after a repetition. A card counts them too;
the agent reads them where the driver tells (agents/wire-linux.c).
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from rigctl.base.values import most, total_of_known
from rigctl.limits.links import link_rate_bps
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, NicCounters, PortSeries, Repetition, RunInfo

_PAUSE_BITS: Final = 65535 * 512
"""Longest time for which one pause frame stops a sender, in bits of the link: 65535 quanta of 512 bits."""


class WireCounts(NamedTuple):
    """Counts at both ends of one node's cable during a repetition; None if no end tells."""

    ports: str  # the other end of the cable, as `force10 Gi1/1`
    paused: int | None = None  # pause frames to the node, by its switch ports or by its card, whichever counted more
    asks: int | None = None  # pause frames from the node
    damaged: int | None = None  # frames with a wrong checksum or a wrong alignment, in both directions


def wire_counts(info: RunInfo, repetition: Repetition, node: str) -> WireCounts | None:
    """Return what was counted at both ends of the cable of `node`; None if neither the switch nor the card was read."""
    nic = next((usage.nic for usage in repetition.nodes if usage.node == node), None)
    ports = [port for port in info.plan.ports if port.node == node]
    names = {(port.switch, port.name) for port in ports}
    read = [series for series in repetition.counters if (series.switch, series.port) in names]
    if not read and nic is None:
        return None
    nic = nic or NicCounters()
    damaged = [_rise(series, name) for series in read for name in ("fcs_errors", "alignment_errors")]
    if nic.fcs_errors is not None:
        damaged += [nic.fcs_errors, nic.alignment_errors]
    return WireCounts(
        " and ".join(f"{port.switch} {port.name}" for port in ports) or f"the other end of the cable of {node}",
        most((total_of_known(_rise(series, "out_pause") for series in read), nic.rx_pause)),
        most((total_of_known(_rise(series, "in_pause") for series in read), nic.tx_pause)),
        total_of_known(damaged),
    )


def _rise(series: PortSeries, name: str) -> int | None:
    """Return by how much a counter rose from its first to its last reading; None if it was not read twice."""
    known = [value for value in series.columns.get(name, ()) if value >= 0]
    return max(0, known[-1] - known[0]) if len(known) > 1 else None


def pause_found(
    info: RunInfo, cell: Cell, repetition: Repetition, sender: str, window: CommonWindow | None
) -> Iterator[tuple[str, Any]]:
    """Yield the evidence that pause frames stopped the sender: their number, and for which share of time at most.

    A card that does not heed them is not stopped.
    """
    counted, rate_bps = wire_counts(info, repetition, sender), link_rate_bps(info, sender)
    if counted is None or counted.paused is None or heeds_pause(info, cell, sender) is False:
        return
    yield "pause_frames", counted.paused
    yield "paused_by", counted.ports
    if window is not None and rate_bps:
        yield "pause_allows", min(1.0, counted.paused * _PAUSE_BITS / rate_bps / window.length_s)


def heeds_pause(info: RunInfo, cell: Cell, node: str) -> bool | None:
    """Tell whether the node's card heeds pause frames, by the test's condition or else by itself; None if unknown."""
    asked = {setting.name: setting.value for setting in info.plan.settings_of(cell) if setting.kind == "pause"}
    if asked:
        return {"on": True, "off": False}.get(asked.get("rx", ""))
    heeds: bool | None = (info.facts.get(node, {}).get("pause") or {}).get("rx")
    return heeds
