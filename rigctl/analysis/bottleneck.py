"""What limits a cell or a pair: the line, the rate requested, processors, the window, losses, or an unknown cause.

Processors come before the window: a sender whose receiver gets no processor waits for its window, too. Only where the
flows achieve what the window allows per round trip is the window the limit, however busy the nodes are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from rigctl.model.ceilings import loss_bps, window_bps
from rigctl.model.unknowns import most
from rigctl.records import Flow, Side

LINE_RATE_EFFICIENCY: Final = 0.98
"""From this share of the ceiling on, the line is the limit."""
WINDOW_SHARE: Final = 0.5
"""From this share of a sender's busy time on, the window is the limit."""
WINDOW_REACHED: Final = 0.9
"""From this share of window ÷ round trip on, the window is the limit even on a busy node."""
BUSY_PCT: Final = 95.0
"""From here on processors are the limit."""
OTHERS_SHARE: Final = 0.25
"""Where other programs took more than this of a node's busy time, that it was busy says nothing about the run."""
SENDING_SHARE: Final = 0.5
"""From this share of its time on, in which a sender had data to send and no full window, losses can be the limit."""
MOST_ALLOWED: Final = 2.0
"""Losses that allow more than this multiple of the goodput explain nothing: the rule is a rough one."""
_NOT_BY_LOSS: Final = ("bbr", "cdg", "nv", "vegas")
"""How the names of congestion controls begin that do not halve their window at each loss."""
PROCESSORS: Final = ("machine", "sender", "receiver")
"""Limits that are processors'."""


@dataclass(frozen=True, slots=True)
class Processors:
    """How busy those of a node were, in per cent of what they could do; `None`: not known."""

    node_pct: float | None = None  # all of them
    agent_pct: float | None = None  # of what the agent's threads, one for each flow, could have used at most
    busiest_pct: float | None = None  # the busiest of them
    others_pct: float | None = None  # what programs other than the run's took, of all

    @property
    def by_run(self) -> bool:
        """Whether they were busy with the run."""
        if self.node_pct is None or self.others_pct is None:
            return False
        return self.others_pct <= OTHERS_SHARE * self.node_pct


@dataclass(frozen=True, slots=True)
class Busy:
    """How busy the processors at both ends of a stream were."""

    sender: Processors = Processors()
    receiver: Processors = Processors()
    one_machine: bool = field(default=False, kw_only=True)  # the nodes are virtual: they have the same processors

    @property
    def limit(self) -> str | None:
        """`machine`, `sender` or `receiver`, whichever the run kept busiest of those at `BUSY_PCT` or more; `unknown`
        where none was, but one with other programs.
        """
        shares = self._shares(by_run=True)
        if shares["machine"] >= BUSY_PCT:
            return "machine"
        busiest = max(shares, key=lambda name: shares[name])
        if shares[busiest] >= BUSY_PCT:
            return busiest
        return None if self.others_pct is None else "unknown"

    @property
    def highest_pct(self) -> float:
        """What made it the limit."""
        shares = self._shares(by_run=True)
        return shares["machine"] if self.limit == "machine" else max(shares.values())

    @property
    def others_pct(self) -> float | None:
        """What other programs took of the processors of a node that these kept busy; `None` where they did not."""
        if max(self._shares(by_run=False).values()) < BUSY_PCT:
            return None
        return most(end.others_pct for end in (self.sender, self.receiver) if not end.by_run)

    def _shares(self, by_run: bool) -> dict[str, float]:
        """How busy what can be the limit was, where the run kept it busy, or where something else did.

        An agent's threads are the run's. On a virtual rig all nodes share the busiest processor: it says nothing.
        """
        shares = dict.fromkeys(PROCESSORS, 0.0)
        for name, end in (("sender", self.sender), ("receiver", self.receiver)):
            known = [(name, end.agent_pct)] if by_run else []
            if end.by_run == by_run:
                known += (
                    [("machine", end.node_pct)] if self.one_machine else [(name, end.node_pct), (name, end.busiest_pct)]
                )
            for whose, pct in known:
                shares[whose] = max(shares[whose], pct or 0.0)
        return shares


def limit(
    efficiency_share: float | None,
    goodput_mbps: float | None = None,
    asked_mbps: float | None = None,
    flows: Sequence[Flow] = (),
    busy: Busy | None = None,
) -> str:
    """The limit: `line-rate`, `rate` (the one requested), `machine`, `sender`, `receiver`, `window`, `loss`, or
    `unknown`.

    `goodput_mbps` and `asked_mbps` are sums over `flows`.
    """
    if efficiency_share is not None and efficiency_share >= LINE_RATE_EFFICIENCY:
        return "line-rate"
    if asked_mbps and goodput_mbps is not None and goodput_mbps >= LINE_RATE_EFFICIENCY * asked_mbps:
        return "rate"
    share = window_share(flows)
    held = share is not None and share >= WINDOW_SHARE
    processors = busy.limit if busy else None
    if processors and not (held and _reaches_window(goodput_mbps, flows)):
        return processors
    if held:
        return "window"
    return "loss" if _cut_by_losses(goodput_mbps, flows) else "unknown"


def window_share(flows: Iterable[Flow]) -> float | None:
    """Of the time with data to send, that in which the kernel held them back for a full window or buffer.

    The mean over the flows' senders; `None` where their kernels do not report it (tcpi_busy_time, Linux 4.10).
    """
    senders = [flow.sender for flow in flows if flow.sender is not None]
    shares = [held / side.tcp.busy_us for side in senders if side.tcp.busy_us and (held := _held_us(side)) is not None]
    return sum(shares) / len(shares) if shares and len(shares) == len(senders) else None


def _held_us(side: Side) -> int | None:
    """How long a sender was held back by the receiver's window or its own send buffer."""
    if side.tcp.rwnd_limited_us is None or side.tcp.sndbuf_limited_us is None:
        return None
    return side.tcp.rwnd_limited_us + side.tcp.sndbuf_limited_us


def advertised_bytes(senders: Sequence[Side]) -> float | None:
    """The window the receivers advertised (tcpi_snd_wnd): the median over the samples of all flows.

    While they sent, where there are samples: at the end nothing is on its way, and the window is open wide.
    """
    sampled = [value for side in senders for value in side.series.columns.get("advertised_window", ()) if value > 0]
    if sampled:
        return median(sampled)
    last = [side.tcp.advertised_window_bytes for side in senders if side.tcp.advertised_window_bytes is not None]
    return fmean(last) if last else None


def window_allows_bps(advertised: float, mss: int | None, rtt_us: float) -> float:
    """What a flow can achieve at most: the whole segments of the window `advertised`, in bytes, once per round trip."""
    filled = advertised // mss * mss if mss and advertised >= mss else advertised
    return window_bps(round(filled), rtt_us / 1e6)


def _reaches_window(goodput_mbps: float | None, flows: Sequence[Flow]) -> bool:
    senders = [flow.sender for flow in flows if flow.sender is not None]
    advertised = [advertised_bytes([side]) for side in senders]
    allowed = [
        window_allows_bps(window, side.tcp.mss, side.tcp.rtt_min_us) / 1e6
        for window, side in zip(advertised, senders, strict=True)
        if window and side.tcp.rtt_min_us
    ]
    return goodput_mbps is not None and len(allowed) == len(flows) and goodput_mbps >= WINDOW_REACHED * sum(allowed)


@dataclass(frozen=True, slots=True)
class Losses:
    """What the flows of a stream lost, and what one of them can achieve with that loss."""

    lost_share: float  # of the segments
    rtt_us: float  # while they sent, the median over samples (tcpi_rtt)
    allowed_mbps: float  # each flow, by the rule of Mathis et al.


def losses_of(flows: Sequence[Flow]) -> Losses | None:
    """`None` where nothing was lost, something is not known, or a congestion control does not halve its window."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    if len(senders) < len(flows) or any((side.tcp.congestion or "bbr").startswith(_NOT_BY_LOSS) for side in senders):
        return None
    again = [flow.retransmits for flow in flows if flow.retransmits is not None]
    segments = [
        flow.bytes / side.tcp.mss for flow, side in zip(flows, senders, strict=True) if flow.bytes and side.tcp.mss
    ]
    sampled = [value for side in senders for value in side.series.columns.get("rtt_us", ()) if value > 0]
    rtts = sampled or [side.tcp.rtt_us for side in senders if side.tcp.rtt_us]
    if not len(again) == len(segments) == len(flows) or not sum(again) or not rtts:
        return None
    share, rtt_us = sum(again) / sum(segments), median(rtts)
    mss = min(side.tcp.mss for side in senders if side.tcp.mss)
    return Losses(share, rtt_us, loss_bps(mss, rtt_us / 1e6, share) / 1e6)


def _cut_by_losses(goodput_mbps: float | None, flows: Sequence[Flow]) -> bool:
    """Whether congestion windows, cut at losses, explain the goodput.

    The senders had data to send, other windows were not full, and what losses allow is not far above what came.
    """
    senders = [flow.sender for flow in flows if flow.sender is not None]
    sending = [
        (side.tcp.busy_us - held) * 1e3 / (side.last_byte_ns - side.first_byte_ns)
        for side in senders
        if side.tcp.busy_us is not None
        and (held := _held_us(side)) is not None
        and side.first_byte_ns is not None
        and side.last_byte_ns is not None
        and side.last_byte_ns > side.first_byte_ns
    ]
    if not flows or goodput_mbps is None or len(sending) < len(flows) or fmean(sending) < SENDING_SHARE:
        return False
    losses = losses_of(flows)
    return losses is not None and losses.allowed_mbps * len(flows) <= MOST_ALLOWED * goodput_mbps
