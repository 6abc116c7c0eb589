"""Judge which traffic classes disturb others, by the phases before and during the time in which those others send.

A stream may lose datagrams because its own port is full, which is no fault of the switch. It may also lose them
although both its ports have room: behind datagrams for a full port (head-of-line blocking), or because a buffer is full
that all ports share. A stream to the same receiver from a node that does not send to the full port tells them apart.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.values import divide, group_by, least, most, total
from rigctl.figures.counters import SENDER_PAUSED
from rigctl.figures.datagrams import LOSS, LOST, SENDER_DROPS
from rigctl.figures.phases import in_phase
from rigctl.figures.streams import GOODPUT
from rigctl.limits.links import DataPath, path_rate_bps, trunk_link
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.model.phases import AFTER, BEFORE, DURING, phases_of
from rigctl.records import Stream
from rigctl.results.summary import CellSummary, StreamSummary
from rigctl.results.wire import heeds_pause
from rigctl.settings import RATE

MUCH_LOSS_PCT: Final = 0.5
"""A stream is disturbed if it loses this many per cent more of its datagrams while others send than without them."""
_MUCH_LESS: Final = 0.95
"""A stream is disturbed if its goodput falls below this share of its goodput without the others."""
_FULL: Final = 0.95
"""A port is full if the goodput of all streams to it reaches this share of its ceiling."""
_OVERLOADED: Final = 1.1
_SENDER_FULL: Final = 1.02
"""More than this share of its link is more than a sender can send."""
_ROOM: Final = 0.9
"""A port has room if no more than this share of its ceiling is offered to it."""


class DisturbedBy(StrEnum):
    """Why a stream is disturbed."""

    RECEIVER = "its receiver's port is full"
    SENDER = "its sender's link is full"
    TRUNK = "the link between the switches is full"
    QUEUE = "its sender's own queue drops"
    PAUSED = "the switch stops its sender with pause frames"
    HELD = "its sender sends less than it was asked to"
    BLOCKED = "it waits behind frames for a full port"
    BUFFER = "a buffer is full that ports share"
    BLOCKED_OR_BUFFER = "it waits behind frames for a full port, or a buffer is full that ports share"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PhasedStream:
    """A stream of a class that has phases, with its results over the valid repetitions of the test."""

    cell: CellSummary
    results: StreamSummary
    times_s: dict[str, tuple[float, float]]  # start and end of each phase, in the order of time
    port_shares: dict[str, float | None]  # what is offered to the receiver in each phase ÷ the ceiling of its port

    @property
    def name(self) -> str:
        return self.cell.cell.traffic_class or ""

    @property
    def stream(self) -> Stream:
        return self.results.stream

    def loss_pct(self, phase: str) -> float | None:
        return self.results[in_phase(LOSS, phase)]

    def mbps(self, phase: str) -> float | None:
        return self.results[in_phase(GOODPUT, phase)]

    @property
    def undisturbed(self) -> str:
        """Return the name of the phase to compare with: before the others send, else after."""
        return BEFORE if BEFORE in self.times_s else AFTER

    @property
    def alone(self) -> tuple[str, ...]:
        """Return the names of the phases without the others. What is as bad in one of them is not their doing."""
        return tuple(name for name in (BEFORE, AFTER) if name in self.times_s)

    @property
    def more_loss_pct(self) -> float | None:
        """Return by how many per cent of the datagrams the loss grows while others send; None if unknown."""
        during, alone = self.loss_pct(DURING), most(self.loss_pct(name) for name in self.alone)
        return None if during is None or alone is None else during - alone

    @property
    def kept(self) -> float | None:
        """Return goodput while others send ÷ goodput without them; None if unknown."""
        during, alone = self.mbps(DURING), least(self.mbps(name) for name in self.alone)
        return None if during is None or not alone else during / alone

    @property
    def disturbed(self) -> bool:
        lost, kept = self.more_loss_pct, self.kept
        return (lost is not None and lost >= MUCH_LOSS_PCT) or (kept is not None and kept < _MUCH_LESS)

    @property
    def lost_nothing(self) -> bool:
        """Tell whether each datagram of the phase in which others send arrived."""
        return self.results[in_phase(LOST, DURING)] == 0


@dataclass(frozen=True)
class Disturbance:
    """The effect of the classes of a test on one stream of them."""

    victim: PhasedStream
    cause: DisturbedBy
    load: tuple[CellSummary, ...]  # the classes that start or stop while the victim sends
    full: PhasedStream | None = None  # a stream to the full port behind whose frames the victim waits
    shares: tuple[tuple[str, float], ...] = ()  # class and goodput (Mbit/s) of all streams to the victim's receiver


@dataclass(frozen=True)
class PhasedTest:
    """The traffic classes of a test, of which some start or stop while others send."""

    cells: tuple[CellSummary, ...]
    streams: tuple[PhasedStream, ...]  # streams with phases
    disturbances: tuple[Disturbance, ...]
    full_ports: frozenset[str]  # nodes whose ports are full while others send

    @property
    def load(self) -> tuple[CellSummary, ...]:
        """Return the classes that start or stop while others send."""
        spans_s = {phased.times_s[DURING] for phased in self.streams if DURING in phased.times_s}
        return tuple(cell for cell in self.cells if cell.cell.span_s in spans_s)

    @property
    def behind_full_ports(self) -> tuple[tuple[PhasedStream, PhasedStream], ...]:
        """Return streams to a port with room, each with a stream of the same sender to an overloaded port."""
        offered = [one for one in self.streams if (one.port_shares.get(DURING) or 0.0) >= _OVERLOADED]
        full = [one for one in offered if one.stream.receiver in self.full_ports]
        return tuple(
            (one, other)
            for one in self.streams
            for other in full
            if one.stream.sender == other.stream.sender and (one.port_shares.get(DURING) or 2.0) <= _ROOM
        )


def disturbances_of(view: RunView) -> list[PhasedTest]:
    """Return the tests whose classes start or stop at different times, each with what its streams do to each other."""
    found = []
    for cells in group_by(view.cells, lambda cell: cell.cell.first).values():
        streams = [phased for cell in cells for phased in _phased(cell, cells)]
        if streams:
            found.append(_Judge(view, cells, streams).together())
    return found


def _phased(cell: CellSummary, together: Sequence[CellSummary]) -> Iterator[PhasedStream]:
    phases = phases_of(cell.cell, [other.cell for other in together]) if cell.counted else ()
    times_s = {phase.name: (phase.start_s, phase.end_s) for phase in phases}
    for stream in cell.streams if times_s else ():
        shares = {
            name: _offered_to(_sending(together, span_s), stream.stream.receiver) for name, span_s in times_s.items()
        }
        yield PhasedStream(cell, stream, times_s, shares)


class _Judge:
    """Judges the streams of one test. A share is what is offered, or received, ÷ the ceiling of a port or link."""

    def __init__(self, view: RunView, cells: Sequence[CellSummary], phased: Sequence[PhasedStream]) -> None:
        self._view, self._cells, self._phased = view, tuple(cells), tuple(phased)
        self._by_stream = {(one.cell.cell.number, one.stream): one for one in phased}

    def together(self) -> PhasedTest:
        """Return the test with a verdict on each stream that is disturbed."""
        judged = tuple(self._judge(one) for one in self._phased if one.disturbed)
        spans_s = {one.stream.receiver: one.times_s[DURING] for one in self._phased if DURING in one.times_s}
        full = frozenset(node for node, span_s in spans_s.items() if self._is_full(_sending(self._cells, span_s), node))
        return PhasedTest(self._cells, self._phased, judged, full)

    def _judge(self, victim: PhasedStream) -> Disturbance:
        sending = _sending(self._cells, victim.times_s.get(DURING, victim.cell.cell.span_s))
        load = tuple(cell for cell in sending if cell.cell.span_s != victim.cell.cell.span_s)
        cause, full = self._cause(victim, sending)
        return Disturbance(victim, cause, load, full, self._shares(victim, sending))

    def _shares(self, victim: PhasedStream, sending: Sequence[CellSummary]) -> tuple[tuple[str, float], ...]:
        """Return what each class that sends to the victim's receiver gets meanwhile; empty if one is unknown."""
        shares: dict[str, float | None] = {}
        for cell, stream in _streams(sending):
            if stream.stream.receiver == victim.stream.receiver:
                name = cell.cell.traffic_class or ""
                shares[name] = total((shares.get(name, 0.0), self._mbps_meanwhile(cell, stream.stream)))
        known = tuple((name, mbps) for name, mbps in shares.items() if mbps is not None)
        return known if len(known) == len(shares) > 1 else ()

    def _cause(self, victim: PhasedStream, sending: Sequence[CellSummary]) -> tuple[DisturbedBy, PhasedStream | None]:
        """Return the cause, and a stream of the same sender to a full port, if any."""
        link = self._full_link(victim, sending)
        lost_pct = victim.more_loss_pct
        if link is not None or lost_pct is None:
            return link or DisturbedBy.UNKNOWN, None
        if lost_pct < MUCH_LOSS_PCT:
            return DisturbedBy.PAUSED if self._paused(victim) else DisturbedBy.HELD, None
        dropped = self._drops_at_sender(victim)
        if dropped is None or dropped > 0:
            return DisturbedBy.UNKNOWN if dropped is None else DisturbedBy.QUEUE, None
        return self._blocked(victim, sending)

    def _paused(self, victim: PhasedStream) -> bool:
        heeds = heeds_pause(self._view.info, victim.cell.cell, victim.stream.sender)
        return bool(victim.results[SENDER_PAUSED]) and heeds is not False

    def _full_link(self, victim: PhasedStream, sending: Sequence[CellSummary]) -> DisturbedBy | None:
        """Return which link on the path of a stream is full; None if all have room."""
        stream, to_receiver = victim.stream, victim.port_shares.get(DURING)
        from_sender = _sent_by(sending, stream.sender)
        if to_receiver is None or from_sender is None:
            return DisturbedBy.UNKNOWN
        if to_receiver > _ROOM or self._is_full(sending, stream.receiver):
            return DisturbedBy.RECEIVER
        if self._trunk_share(sending, stream) > _ROOM:
            return DisturbedBy.TRUNK
        return DisturbedBy.SENDER if from_sender > _SENDER_FULL else None

    def _blocked(self, victim: PhasedStream, sending: Sequence[CellSummary]) -> tuple[DisturbedBy, PhasedStream | None]:
        sender = victim.stream.sender
        alone = _sending(self._cells, victim.times_s[victim.undisturbed])
        if (_sent_by(sending, sender) or 0.0) > (_sent_by(alone, sender) or 0.0):
            return DisturbedBy.UNKNOWN, None  # a policer of the sender would do the same
        beside = [one for one in self._phased if one.stream.sender == sender]
        full = next((other for other in beside if self._is_full(sending, other.stream.receiver)), None)
        if full is None:
            return DisturbedBy.UNKNOWN, None
        receiver = full.stream.receiver
        to_full = {stream.stream.sender for _, stream in _streams(sending) if stream.stream.receiver == receiver}
        witnesses = [
            one.more_loss_pct
            for one in self._phased
            if one.stream.receiver == victim.stream.receiver and one.stream.sender not in to_full
        ]
        known = [lost_pct for lost_pct in witnesses if lost_pct is not None]
        if not known:
            return DisturbedBy.BLOCKED_OR_BUFFER, full
        return (DisturbedBy.BUFFER if max(known) >= MUCH_LOSS_PCT else DisturbedBy.BLOCKED), full

    def _is_full(self, sending: Sequence[CellSummary], receiver: str) -> bool:
        shares = [
            divide(self._mbps_meanwhile(cell, stream.stream), stream.ceiling_mbps)
            for cell, stream in _streams(sending)
            if stream.stream.receiver == receiver
        ]
        return (total(shares) or 0.0) >= _FULL

    def _mbps_meanwhile(self, cell: CellSummary, stream: Stream) -> float | None:
        phased = self._by_stream.get((cell.cell.number, stream))
        if phased is not None:
            return phased.mbps(DURING)
        own = next((one for one in cell.streams if one.stream == stream), None)
        return own.goodput_mbps.mean if own is not None and own.goodput_mbps is not None else None

    def _trunk_share(self, sending: Sequence[CellSummary], stream: Stream) -> float:
        """Return what is offered to the link between the switches, in the direction of `stream`, ÷ its rate; else 0."""
        trunk = trunk_link(self._view.plan)
        if trunk is None or (ends := trunk.switches_of(DataPath(*stream.ends, None, None))) is None:
            return 0.0
        info, offered_bps = self._view.info, 0.0
        for cell, other in _streams(sending):
            rate_bps = path_rate_bps(info, other.stream.ends, cell.cell.parallel)
            if trunk.switches_of(DataPath(*other.stream.ends, None, None)) == ends and rate_bps is not None:
                offered_bps += (_offered_share(cell, other) or 0.0) * rate_bps
        return offered_bps / trunk.rate_bps

    def _drops_at_sender(self, victim: PhasedStream) -> int | None:
        """Return how many frames the victim's node dropped in the run; None if its interface has no counters."""
        refused = victim.results[SENDER_DROPS]
        counted = {one.point: one.dropped for one in self._view.results.counters.whole}
        at_interface = counted.get(CountingPoint(PointKind.NIC_OUT, victim.stream.sender))
        return None if refused is None or at_interface is None else round(refused) + at_interface


def _sending(cells: Iterable[CellSummary], span_s: tuple[float, float]) -> tuple[CellSummary, ...]:
    """Return the classes that send within a span of time, in s after the start of the test."""
    return tuple(cell for cell in cells if cell.cell.span_s[0] < span_s[1] and cell.cell.span_s[1] > span_s[0])


def _offered_to(sending: Sequence[CellSummary], receiver: str) -> float | None:
    return _offered(sending, lambda stream: stream.receiver == receiver)


def _sent_by(sending: Sequence[CellSummary], sender: str) -> float | None:
    return _offered(sending, lambda stream: stream.sender == sender)


def _offered(sending: Sequence[CellSummary], chosen: Callable[[Stream], bool]) -> float | None:
    """Return the sum over the chosen streams of their rate ÷ ceiling; None if a ceiling is unknown."""
    shares = [_offered_share(cell, stream) for cell, stream in _streams(sending) if chosen(stream.stream)]
    return total(shares) if shares else 0.0


def _streams(cells: Iterable[CellSummary]) -> Iterator[tuple[CellSummary, StreamSummary]]:
    return ((cell, stream) for cell in cells for stream in cell.streams)


def _offered_share(cell: CellSummary, stream: StreamSummary) -> float | None:
    """Return the requested rate of a stream ÷ its ceiling; 1 without a rate; None if the ceiling is unknown."""
    if stream.ceiling_mbps is None:
        return None
    rate_bps = cell.cell[RATE]
    if not isinstance(rate_bps, int):
        return 1.0
    return rate_bps * cell.cell.parallel / 1e6 / stream.ceiling_mbps
