"""The highest goodput that a link, a window or losses allow, and shares of it."""

import math
from dataclasses import dataclass
from typing import Final

from rigctl.model.frames import Packet, datagram_wire_bytes, effective_mss

LINE_RATE: Final = 0.98
"""From this share on, the ceiling, the shared link or the requested rate is the limit."""
_ABOVE: Final = 1.01
"""A result above this share of the ceiling is impossible: no limit is named."""


def datagram_ceiling_bps(rate_bps: float, mtu: int, payload: int, ip_version: int = 4) -> float:
    """Return the highest goodput of datagrams of `payload` bytes on a link of `rate_bps`, in bit/s."""
    return rate_bps * payload / datagram_wire_bytes(payload, mtu, ip_version)


def window_bps(window_bytes: int, rtt_s: float) -> float:
    """Return the highest goodput of a TCP flow that sends one window per round trip: window ÷ RTT, in bit/s."""
    return window_bytes * 8 / rtt_s


def loss_bps(mss: int, rtt_s: float, lost_share: float) -> float:
    """Return about what a TCP flow achieves that halves its window at each loss: MSS ÷ RTT × √(3 ÷ 2p), in bit/s.

    After Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997).

    >>> round(loss_bps(1448, 0.005, 0.0001) / 1e6)
    284
    """
    return mss * 8 / rtt_s * math.sqrt(1.5 / lost_share)


def ceiling_bps(rate_bps: float, mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> float:
    """Return the highest goodput on a link of `rate_bps` for segments of `mss` payload bytes, in bit/s.

    `mss` is the *effective* MSS; `None`, or more than the MTU can carry, means what the MTU carries.
    """
    most = effective_mss(mtu, None, ip_version, timestamps)
    payload = most if mss is None else min(mss, most)
    return rate_bps * payload / Packet("tcp", ip_version, timestamps).wire_bytes(payload)


@dataclass(frozen=True, slots=True)
class Expected:
    """The best application rates of one payload in one frame, in bit/s, in the order of the speeds.

    A *system*, as a bus or a driver, moves frames: rate × payload ÷ frame. A *link* also spends time on preamble and
    gap: rate × payload ÷ (frame + 20).
    """

    payload: int
    packet: Packet
    frame_bytes: int
    of_system_bps: tuple[float, ...]
    of_link_bps: tuple[float, ...]


def best_rates(rates_bps: tuple[int, ...], payload: int, packet: Packet) -> Expected:
    """Return the best application rates for packets of `payload` bytes each."""
    frame, wire = packet.frame_bytes(payload), packet.wire_bytes(payload)
    return Expected(
        payload,
        packet,
        frame,
        tuple(rate * payload / frame for rate in rates_bps),
        tuple(rate * payload / wire for rate in rates_bps),
    )


def windows_bps(windows: tuple[int, ...], rtts_s: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Return window ÷ round-trip time, one row per window."""
    return tuple(tuple(window_bps(window, rtt_s) for rtt_s in rtts_s) for window in windows)


def percent(share: float) -> float:
    """Return a share in per cent, as it is printed and as bounds apply to it: with one decimal."""
    return round(100 * share, 1)


def reaches(share: float, bound: float) -> bool:
    """Tell whether a share, as printed, is at least `bound`."""
    return percent(share) >= percent(bound)


def above_ceiling(efficiency: float | None) -> bool:
    """Tell whether a result, as printed, is more than its link can carry."""
    return efficiency is not None and percent(efficiency) > percent(_ABOVE)
