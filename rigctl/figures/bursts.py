"""Figures of tests that send bursts: how many lost nothing, both rates, and the buffer of the port that follows.

A figure is of the ports to all receivers of a test, or of a stream that is the only one to its receiver. The buffer is
unknown where something else may have lost or held back frames: a full socket, a full queue of the sender, pause frames.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from rigctl.base.values import divide, mean_of_all, most, total
from rigctl.figures.figure import ComparedAs, Figure, FlowGroup
from rigctl.model.bursts import PortBursts, overlap
from rigctl.settings.setting import Level

_KIND: Final = ("burst",)
_LEVELS: Final = frozenset({Level.CELLS, Level.PAIRS})
"""A port is filled by all flows of a pair together; and what a flow sent stands in its samples, not in its counts."""
_LEAST_ERROR: Final = 1.0
"""A buffer is known within a frame at best, as a whole frame is lost or not."""


def _is_clean(group: FlowGroup) -> bool:
    """Tell whether only the port can have lost frames."""
    overflows = [side.datagrams.overflow if side.datagrams is not None else None for side in group.receivers]
    refused = [side.datagrams.refused if side.datagrams is not None else None for side in group.senders]
    return total(overflows) == 0 and total(refused) == 0 and not group.wire.paused


def _of_ports(
    of: Callable[[PortBursts], float | None], combine: Callable[[Iterable[Any]], Any], *, clean: bool = False
) -> Callable[[FlowGroup], Any]:
    """Return a function that combines a value of each port; None if it is unknown of one."""

    def value(group: FlowGroup) -> float | None:
        if not group.ports or (clean and not _is_clean(group)):
            return None
        found: float | None = combine([of(port) for port in group.ports])
        return found

    return value


def _mbps(frames_per_s: float | None, group: FlowGroup) -> float | None:
    return None if frames_per_s is None else frames_per_s * group.wire.wire_bytes(group.cell.message_bytes or 0) * 8e-6


def _rate(of: Callable[[PortBursts], float | None]) -> Callable[[FlowGroup], float | None]:
    frames_per_s = _of_ports(of, mean_of_all)
    return lambda group: _mbps(frames_per_s(group), group)


_sent_at_once = _of_ports(lambda port: most(burst.sent for burst in port.bursts), most)
_least = _of_ports(lambda port: port.least if port.lossless == len(port.bursts) else None, mean_of_all, clean=True)
_full = _of_ports(lambda port: port.full, mean_of_all, clean=True)
_passed = _of_ports(lambda port: port.passed, most, clean=True)


def _count(name: str, meaning: str, of: Callable[[FlowGroup], int | None]) -> Figure[int]:
    return Figure(name=name, unit="", levels=_LEVELS, meaning=meaning, compute=of, over_repetitions=total, kinds=_KIND)


def _buffer_bytes(group: FlowGroup) -> float | None:
    frames = _full(group)
    return None if frames is None else frames * group.wire.frame_bytes(group.cell.message_bytes or 0)


BURSTS: Final = _count(
    "bursts", "bursts that the senders sent as a whole", _of_ports(lambda port: len(port.bursts) or None, total)
)
BURSTS_LOSSLESS: Final = _count(
    "bursts_lossless",
    "bursts that arrived as a whole",
    _of_ports(lambda port: port.lossless if port.bursts else None, total),
)
BURST_LENGTH: Final = Figure(
    name="burst_length",
    unit="",
    levels=_LEVELS,
    meaning="datagrams that each flow sent at once",
    compute=_of_ports(
        lambda port: max(burst.sent for burst in port.bursts) // port.flows if port.bursts else None, most
    ),
    over_repetitions=most,
    kinds=_KIND,
)
BURST_FRAMES: Final = Figure(
    name="burst_frames",
    unit="",
    levels=_LEVELS,
    meaning="datagrams that came to a port in one burst, from all its senders together; each is a frame",
    compute=_sent_at_once,
    over_repetitions=most,
    kinds=_KIND,
)
ARRIVAL: Final = Figure(
    name="burst_arrival_mbps",
    unit="Mbit/s",
    levels=_LEVELS,
    meaning="rate at which bursts came to a port, in bits on the wire: from the first datagram to the last at the "
    "senders' interfaces, at most the rate of their links (median of the bursts)",
    digits=3,
    compute=_rate(lambda port: port.arrival),
    kinds=_KIND,
)
DRAIN: Final = Figure(
    name="burst_drain_mbps",
    unit="Mbit/s",
    levels=_LEVELS,
    meaning="rate at which bursts left the port, likewise: from the first datagram to the last at the receiver, at "
    "most the rate of its link; of bursts with loss if there were any",
    digits=3,
    compute=_rate(lambda port: port.drain),
    kinds=_KIND,
)
BUFFER: Final = Figure(
    name="buffer_bytes",
    unit="B",
    levels=_LEVELS,
    meaning="buffer of a port that bursts with loss filled (median): frames that arrived, less those that left the "
    "port while the burst came, × the size of a frame with its check sequence; the mean over the ports of a test",
    digits=0,
    compute=_buffer_bytes,
    kinds=_KIND,
    alias="buffer",
    higher_is_better=True,
    watched=True,
    compared=ComparedAs(lambda cell: cell.kind.by_burst, "buffer", "buffer", "KiB", scale=1 / 1024),
)
BUFFER_FRAMES: Final = Figure(
    name="buffer_frames",
    unit="",
    levels=_LEVELS,
    meaning="the same in frames",
    digits=1,
    compute=_full,
    kinds=_KIND,
    higher_is_better=True,
)
BUFFER_LEAST: Final = Figure(
    name="buffer_least_frames",
    unit="",
    levels=_LEVELS,
    meaning="frames that the buffer of a port holds at least, if no burst of the test lost any: those of a burst less "
    "those that left the port while it came; empty unless bursts came faster than the port drains",
    digits=1,
    compute=_least,
    over_repetitions=most,
    kinds=_KIND,
    higher_is_better=True,
)
BUFFER_ERROR: Final = Figure(
    name="buffer_error_frames",
    unit="",
    levels=_LEVELS,
    meaning="error of buffer_frames: the frames that left the port while a burst came, at least one",
    digits=1,
    compute=lambda group: most((_passed(group), _LEAST_ERROR)) if _full(group) is not None else None,
    over_repetitions=most,
    kinds=_KIND,
)
BURSTS_TOGETHER: Final = Figure(
    name="bursts_together_pct",
    unit="%",
    levels=frozenset({Level.CELLS}),
    meaning="time in which bursts came to all ports of a test at once, as a share of the shortest of them (median); "
    "empty of a single port",
    digits=1,
    compute=lambda group: None if (share := overlap(group.ports)) is None else 100 * share,
    kinds=_KIND,
)
BURST_LOSS: Final = Figure(
    name="burst_loss_pct",
    unit="%",
    levels=_LEVELS,
    meaning="share of the datagrams of whole bursts that did not arrive",
    digits=4,
    compute=_of_ports(
        lambda port: divide(
            100.0 * sum(burst.sent - burst.received for burst in port.bursts), sum(burst.sent for burst in port.bursts)
        ),
        mean_of_all,
    ),
    kinds=_KIND,
    alias="burst_loss",
)
BURST_FIGURES: Final = (
    BURSTS,
    BURSTS_LOSSLESS,
    BURST_LENGTH,
    BURST_FRAMES,
    BURST_LOSS,
    ARRIVAL,
    DRAIN,
    BUFFER,
    BUFFER_FRAMES,
    BUFFER_LEAST,
    BUFFER_ERROR,
    BURSTS_TOGETHER,
)
"""Figures of tests that send bursts, in the order of the column table."""
