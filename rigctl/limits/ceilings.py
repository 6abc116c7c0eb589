"""The highest goodput that a link, a window or losses allow, and the share of this goodput that was achieved."""

import math
from dataclasses import dataclass
from typing import Final

from rigctl.model.frames import Packet, datagram_wire_bytes, effective_mss

LINE_RATE: Final = 0.98
"""A stream is limited by its ceiling, a shared link or the requested rate if it reaches this share of that rate.

An answer says “line rate” only of tests that reach this share of their ceiling.
"""
_ABOVE: Final = 1.01  # goodput above this share of the ceiling is impossible, so rigctl names no limit


def datagram_ceiling_bps(rate_bps: float, mtu: int, payload: int, ip_version: int = 4, tags: int = 0) -> float:
    """Return the highest goodput of datagrams of `payload` bytes on a link of `rate_bps`, in bit/s."""
    return rate_bps * payload / datagram_wire_bytes(payload, mtu, ip_version, tags)


def window_bps(window_bytes: int, rtt_s: float) -> float:
    """Return the highest goodput of a TCP flow that sends one window per round trip: window ÷ RTT, in bit/s."""
    return window_bytes * 8 / rtt_s


def window_allows_bps(advertised: float, mss: int | None, rtt_us: float) -> float:
    """Return the highest goodput in bit/s: one window of whole segments per round trip. `advertised` is in bytes."""
    filled = advertised // mss * mss if mss and advertised >= mss else advertised
    return window_bps(round(filled), rtt_us / 1e6)


def loss_bps(mss: int, rtt_s: float, lost_share: float) -> float:
    """Return about the goodput (bit/s) of a TCP flow that loses a share p of its segments: MSS ÷ RTT × √(3 ÷ 2p).

    The flow halves its window at each loss. Source: Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the
    TCP congestion avoidance algorithm" (1997).

    >>> round(loss_bps(1448, 0.005, 0.0001) / 1e6)
    284
    """
    return mss * 8 / rtt_s * math.sqrt(1.5 / lost_share)


def losses_allow_mbps(mss: int | None, rtt_ms: float | None, lost_share: float | None) -> float | None:
    """Return the goodput that a flow can achieve with losses, by the rule of Mathis et al.; None without losses."""
    return loss_bps(mss, rtt_ms / 1e3, lost_share) / 1e6 if mss and rtt_ms and lost_share else None


def ceiling_bps(
    rate_bps: float, mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True, tags: int = 0
) -> float:
    """Return the highest goodput on a link of `rate_bps` for segments of `mss` payload bytes, in bit/s.

    `mss` is the *effective* MSS. If it is None or exceeds what the MTU can carry, full frames are assumed. Each frame
    has `tags` VLAN tags.
    """
    most = effective_mss(mtu, None, ip_version, timestamps)
    payload = most if mss is None else min(mss, most)
    return rate_bps * payload / Packet("tcp", ip_version, timestamps, tags).wire_bytes(payload)


@dataclass(frozen=True, slots=True)
class FrameRates:
    """The highest application rates for packets of `payload` bytes, in bit/s, one for each speed.

    A *system*, such as a bus or a driver, moves frames: rate × payload ÷ frame. A *link* also spends time on preamble
    and gap: rate × payload ÷ (frame + 20).
    """

    payload: int
    packet: Packet
    frame_bytes: int
    of_system_bps: tuple[float, ...]
    of_link_bps: tuple[float, ...]


def best_rates(rates_bps: tuple[int, ...], payload: int, packet: Packet) -> FrameRates:
    """Return the highest application rates at the link speeds `rates_bps`, for packets of `payload` bytes."""
    frame, wire = packet.frame_bytes(payload), packet.wire_bytes(payload)
    of_system_bps, of_link_bps = (tuple(rate * payload / size for rate in rates_bps) for size in (frame, wire))
    return FrameRates(payload, packet, frame, of_system_bps, of_link_bps)


def windows_bps(windows: tuple[int, ...], rtts_s: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Return window ÷ round-trip time in bit/s: a row for each window, with a value for each round-trip time."""
    return tuple(tuple(window_bps(window, rtt_s) for rtt_s in rtts_s) for window in windows)


def percent(share: float) -> float:
    """Return a share in per cent, rounded to one decimal as in print, so that bounds agree with printed values."""
    return round(100 * share, 1)


def reaches(share: float, bound: float) -> bool:
    """Tell whether a share is at least `bound`, both rounded as in print."""
    return percent(share) >= percent(bound)


def above_ceiling(efficiency: float | None) -> bool:
    """Tell whether goodput ÷ ceiling (`efficiency`), rounded as in print, is more than a link can carry."""
    return efficiency is not None and percent(efficiency) > percent(_ABOVE)
