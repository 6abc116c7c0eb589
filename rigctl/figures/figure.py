"""A figure is a result of a test, such as goodput. One record of `Figure` has all that rigctl knows of a figure.

Exports, `--json`, `expect`, comparisons and nights iterate over these records, and tables over those with `shown`.
Columns that need more than a number of each pair are made in `rigctl.report.tables`. `rigctl.settings` has the records
of what is requested.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from rigctl.base.values import group_by, mean
from rigctl.model.bursts import PortBursts, port_bursts
from rigctl.model.frames import Packet
from rigctl.model.latency import Buckets, Phase, merge_histograms, probes_before_load, probes_under_load
from rigctl.records import Cell, Datagrams, Flow, Probes, Side
from rigctl.settings.setting import MEASURED, DataColumn, Ends, Level

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
Combine = Callable[[Iterable[Any]], Any]
ALL_LEVELS: Final = frozenset(Level)
TESTS: Final = frozenset({Level.CELLS, Level.PAIRS})
TCP_LEVELS: Final = frozenset({*MEASURED, Level.INTERVALS})
TCP_AND_UDP: Final = ("tcp", "udp")


@dataclass(frozen=True, slots=True)
class Wire:
    """The links of a group's flows, as far as they are known besides the reports on the flows."""

    links_bps: Mapping[str, int | None] = field(default_factory=dict)  # rate of each node's link
    packet: Packet = field(default_factory=lambda: Packet("udp"))
    paused: bool = False  # True if a card or a switch port counted pause frames meanwhile

    def frame_bytes(self, payload: int) -> int:
        """Return the size of a datagram's frame as switches count it."""
        return self.packet.frame_bytes(payload)

    def wire_bytes(self, payload: int) -> int:
        return self.packet.wire_bytes(payload)


@dataclass(frozen=True)
class FlowGroup:
    """The flows from which a value is computed: a single flow, the flows of a stream, or all flows of a test.

    `probes` ran at the same time; `window_ns` is the start and the end of the measurement interval.
    """

    cell: Cell
    flows: Sequence[Flow]
    whole: bool = True  # False if the report of a flow is missing
    probes: Sequence[Probes] = ()
    window_ns: tuple[int, int] | None = None
    wire: Wire = Wire()

    @cached_property
    def senders(self) -> list[Side]:
        """Return the sending sides that reported, in the order of the flows."""
        return [flow.sender for flow in self.flows if flow.sender is not None]

    @cached_property
    def receivers(self) -> list[Side]:
        """Return the receiving sides that reported, in the order of the flows."""
        return [flow.receiver for flow in self.flows if flow.receiver is not None]

    @cached_property
    def sides(self) -> list[Side]:
        """Return both ends of each flow, without ends that did not report."""
        return [side for flow in self.flows for side in (flow.sender, flow.receiver) if side is not None]

    def of_ends(self, ends: Ends) -> list[Side]:
        """Return the senders, the receivers or both, without ends that did not report."""
        return {Ends.SENDER: self.senders, Ends.RECEIVER: self.receivers, Ends.BOTH: self.sides}[ends]

    @cached_property
    def joining(self) -> list[Flow]:
        """Return the flows without those to nodes that did not join the group of a multicast test."""
        return [flow for flow in self.flows if flow.stream not in self.cell.unjoined]

    @cached_property
    def sent_once(self) -> list[Side | None]:
        """Return the sending sides: of a multicast test, whose datagrams are sent once, one for each repetition."""
        if not self.cell.kind.multicast:
            return [flow.sender for flow in self.flows]
        first = self.flows[0].stream if self.flows else None
        return [flow.sender for flow in self.flows if flow.stream == first]

    @cached_property
    def datagrams(self) -> list[tuple[Datagrams | None, Datagrams | None]]:
        """Return each flow's datagram counts (sender, receiver); empty for TCP, or if a flow's report is missing.

        A flow to a node that did not join the group of a multicast test is left out.
        """
        counted = [
            (flow.sender.datagrams if flow.sender else None, flow.receiver.datagrams if flow.receiver else None)
            for flow in self.joining
        ]
        return counted if self.whole and any(sent for sent, _ in counted) else []

    @cached_property
    def ports(self) -> list[PortBursts]:
        """Return the bursts to each receiver; empty if a flow to one of them is not in this group."""
        size = self.cell.message_bytes
        if not self.cell.kind.by_burst or not size or not self.whole:
            return []
        by_receiver = group_by(self.flows, lambda flow: flow.stream.receiver)
        for receiver, own in by_receiver.items():
            senders = [stream for stream in self.cell.streams if stream.receiver == receiver]
            if len(own) != len(senders) * self.cell.parallel:
                return []
        bits = 8 * self.wire.wire_bytes(size)
        return [port_bursts(own, size, bits, self.wire.links_bps) for own in by_receiver.values()]

    @cached_property
    def repetitions(self) -> float | None:
        """Return how many repetitions the sending sides are of, as a mean over the flows; None without a report."""
        sent = [(flow.stream, flow.number) for flow in self.flows if flow.sender is not None]
        return len(sent) / len(set(sent)) if sent else None

    @cached_property
    def trips(self) -> Buckets:
        """Return the histogram of round-trip times over all flows."""
        return merge_histograms(side.histogram for side in self.senders)

    @cached_property
    def idle(self) -> Phase:
        """Return the results of the probes before the streams started."""
        return sum((probes_before_load(probes) for probes in self.probes), Phase())

    @cached_property
    def loaded(self) -> Phase:
        """Return the results of the probes in the measurement interval; empty if there is no interval."""
        if self.window_ns is None:
            return Phase()
        return sum((probes_under_load(probes, *self.window_ns) for probes in self.probes), Phase())


@dataclass(frozen=True, slots=True)
class ShownAs:
    """The column with which results tables show a figure of each pair, if a test has a value."""

    title: str
    unit: str = ""
    per_unit: float = 1.0  # the figure's value ÷ the number shown
    short: str | None = None  # title in a narrow terminal
    minor: int = 0  # from -1 (the last to be left out where there is no room) to 2


@dataclass(frozen=True, slots=True)
class ComparedAs:
    """In which tests runs and nights are compared by a figure, and the words for it in sentences and tables."""

    applies: Callable[[Cell], bool]
    name: str
    short: str
    unit: str
    scale: float = 1.0  # the figure's value × this is in `unit`


@dataclass(frozen=True, slots=True, eq=False)
class Figure(DataColumn, Generic[_T_co]):
    """A figure of a test: a column, and how its value is computed from stored records."""

    compute: Callable[[FlowGroup], _T_co | None] | None = None  # if None, `rigctl.analysis` computes the figure
    over_streams: Combine | None = None  # combines the values of streams; None: `compute` takes all flows
    over_repetitions: Combine = mean  # combines the values of repetitions
    kinds: tuple[str, ...] = ()  # kinds of tests in which `expect` may name the figure
    alias: str = ""  # second name of the figure in `expect`
    higher_is_better: bool = False  # False: lower is better when runs are compared
    watched: bool = False  # True: in the exports for benchmark services
    compared: ComparedAs | None = None  # None: runs and nights are not compared by the figure
    is_text: bool = False
    shown: ShownAs | None = None  # the figure's column in results tables; None: it has none, or one made by hand

    def of(self, group: FlowGroup) -> _T_co | None:
        """Return the figure's value for a group of flows; None if unknown, or if flows alone do not determine it."""
        return None if self.compute is None else self.compute(group)

    def __hash__(self) -> int:
        return hash(self.name)


def combine_streams(figure: Figure[_T], values: Iterable[_T | None]) -> _T | None:
    """Combine the values of streams or flows; return None if one is unknown, or if the figure cannot be combined."""
    combined: _T | None = None if figure.over_streams is None else figure.over_streams(values)
    return combined


@dataclass(frozen=True, slots=True)
class FiguresOfTest:
    """The known figures of a test, or of one of its streams, by name."""

    test: int
    pair: str | None  # None: the whole test
    figures: dict[str, Any]
