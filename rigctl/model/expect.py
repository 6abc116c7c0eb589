"""What an application can expect at best, from a speed, a frame and its overheads: before anything is measured.

There are two speeds. A *system's*, as a bus or a driver moves frames: rate × payload ÷ frame (Table 1 of Stratus's
article). A *link's*, which also spends time on preamble and gap: rate × payload ÷ (frame + 20).
"""

from dataclasses import dataclass

from rigctl.model.ceilings import Packet, window_bps


@dataclass(frozen=True, slots=True)
class Expected:
    """One payload in one frame at several speeds; rates in bit/s, in the order of the speeds."""

    payload: int
    packet: Packet
    frame_bytes: int
    of_system_bps: tuple[float, ...]
    of_link_bps: tuple[float, ...]


def expected(rates_bps: tuple[int, ...], payload: int, packet: Packet) -> Expected:
    """The best application rates for packets of `payload` bytes each."""
    frame, wire = packet.frame_bytes(payload), packet.wire_bytes(payload)
    return Expected(
        payload,
        packet,
        frame,
        tuple(rate * payload / frame for rate in rates_bps),
        tuple(rate * payload / wire for rate in rates_bps),
    )


def windows_bps(windows: tuple[int, ...], rtts_s: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Window ÷ round-trip time, one row per window."""
    return tuple(tuple(window_bps(window, rtt_s) for rtt_s in rtts_s) for window in windows)
