"""Condense a run once: compute all figures and the evidence of each repetition from its flows, samples and readings.

A repetition cannot be condensed alone: traffic classes are measured together, counters are compared with what flows
sent before, and how often a switch refreshes its counters is learnt from the whole run. Columns and levels (`cells`,
`pairs`, `flows`) are declared in `rigctl.figures`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.base.values import common_value, divide, group_by, least, total, total_of_known
from rigctl.figures import FIGURES, Figure, FlowGroup, Level, combine_streams
from rigctl.figures.ceilings import CEILING, EFFICIENCY, LIMIT, LIMIT_DETAIL
from rigctl.figures.effective import WINDOW_EFFECTIVE
from rigctl.figures.figure import Wire
from rigctl.figures.messages import THROUGHPUT, over_flows
from rigctl.figures.streams import FAIRNESS, GOODPUT, GOODPUT_LEAST, GOODPUT_MEDIAN, LONGEST_GAP
from rigctl.limits.hosts import BUSY_COLUMNS, Processors, busy_of, effective_window, processors_of_node
from rigctl.limits.links import (
    DataPath,
    Links,
    LinkShares,
    data_path,
    datagram_path,
    larger_frames,
    link_rate_bps,
    mss_below_mtu,
    several_links,
    trunk_link,
    vlan_tags,
)
from rigctl.limits.rules import Evidence
from rigctl.model.frames import Packet
from rigctl.model.repeating import value_of
from rigctl.model.trials import at_load, searched_setting, trial_of
from rigctl.model.window import CommonWindow, cut_to_window
from rigctl.records import Cell, Flow, Repetition, RepetitionHead, RunInfo, Stream, by_stream
from rigctl.results.condensed import CondensedRun, Details, FiguresOfRepetition, FigureValues, Gap, StreamNotes
from rigctl.results.counters import Balance, Balances, key_of_first_class, port_octets, trunk_total
from rigctl.results.evidence import evidence, other_traffic_found
from rigctl.results.gaps import gaps_of_repetition
from rigctl.results.phases import phases_of_repetition
from rigctl.results.wire import pause_found, wire_counts
from rigctl.settings import RATE


def condense(info: RunInfo, repetitions: Iterable[Repetition]) -> CondensedRun:
    """Return what is kept of a run; details are computed on first use. Raise `InputError` for inconsistent records."""
    measured = tuple(repetitions)
    _check(info, measured)
    balances = Balances(info, measured)
    derived = {one.repetition.key: one for one in derive(info, measured, balances)}
    return CondensedRun(
        {key: one.figures for key, one in derived.items()},
        lambda: {key: one.details for key, one in derived.items()},
        balances.condensed,
    )


def derive(info: RunInfo, repetitions: Sequence[Repetition], balances: Balances) -> list["Derivation"]:
    """Return the computation of each repetition, in the given order, linked to the classes measured with it."""
    cells = {cell.number: cell for cell in info.plan.cells}
    derived = [Derivation(info, cells[one.cell], one, balances.of(one)) for one in repetitions]
    for together in group_by(derived, lambda one: key_of_first_class(one.cell, one.repetition)).values():
        for one in together:
            one.beside = tuple(other for other in together if other is not one)
    return derived


def _check(info: RunInfo, repetitions: Iterable[RepetitionHead]) -> None:
    planned = {cell.number for cell in info.plan.cells}
    for repetition in repetitions:
        if repetition.cell not in planned:
            what = "the run's plan has no such test"
        elif repetition.window_s is not None and repetition.window_s <= 0:
            what = "its measurement interval ends before it begins"
        else:
            continue
        raise InputError(
            f"run {info.run}, test {repetition.cell}, repetition {repetition.repetition}: {what}. The store is "
            "damaged, or another program changed it. Name another run, or an older copy with --store"
        )


class StreamDerivation:
    """Computes the results of a stream, or of one flow of the stream, in a repetition: path, goodput, evidence."""

    def __init__(self, derived: "Derivation", stream: Stream, flows: Sequence[Flow], *, whole: bool = True) -> None:
        self._derived, self.stream, self.flows = derived, stream, flows
        repetition = derived.repetition
        probes = [probes for probes in repetition.probes if probes.stream == stream]
        self.group = FlowGroup(derived.tried, flows, whole, probes, repetition.window_ns, derived.wire)

    def figure(self, figure: Figure[Any]) -> Any:  # noqa: ANN401 — figures have values of any type
        """Return the value of a figure; None if it is unknown, or if it is not a figure of a stream."""
        if figure.compute is not None:
            return figure.of(self.group)
        if figure.name in _OF_STREAM:
            return _OF_STREAM[figure.name](self)
        return (self.busy if figure.name in BUSY_COLUMNS else self._octets).get(figure.name)

    @property
    def notes(self) -> StreamNotes:
        senders = self.group.senders
        return StreamNotes(
            mss=tuple(sorted({side.tcp.mss for side in senders if side.tcp.mss is not None})),
            timestamps=common_value(side.tcp.timestamps for side in senders),
            probed=bool(self.group.probes),
        )

    @property
    def window_bytes(self) -> int | None:
        """Return the effective window in bytes; None if unknown."""
        return effective_window(self._derived.info, self._derived.cell, self.stream, self.flows)

    @cached_property
    def _octets(self) -> dict[str, int | None]:
        """Return the columns for octets counted by the switch ports of sender and receiver."""
        counted = port_octets(self._derived.balance, self.path.sender, self.path.receiver)
        ends = (wire_counts(self._derived.info, self._derived.repetition, node) for node in self.stream.ends)
        sender, receiver = ends
        return counted | {
            "sender_paused": None if sender is None else sender.paused,
            "receiver_asks_pause": None if receiver is None else receiver.asks,
            "damaged_frames": total_of_known(None if end is None else end.damaged for end in (sender, receiver)),
        }

    @cached_property
    def goodput_mbps(self) -> float | None:
        if not self._derived.cell.kind.files:
            return GOODPUT.of(self.group)
        return _mbps(over_flows(THROUGHPUT, [FlowGroup(self._derived.cell, [flow]) for flow in self.flows]))

    @property
    def efficiency(self) -> float | None:
        return divide(self.goodput_mbps, self.path.ceiling_mbps)

    @property
    def longest_gap_s(self) -> float | None:
        """Return the longest time without data; None for messages, or without a measurement interval."""
        if self._derived.cell.in_messages or self._derived.window is None or not self.group.whole:
            return None
        return max((gap.length_s for gap in self._derived.gaps if gap.stream == self.stream), default=0.0)

    @cached_property
    def path(self) -> DataPath:
        info, cell, flows = self._derived.info, self._derived.cell, max(1, len(self.flows))
        if cell.transport == "udp":
            return datagram_path(info, self.stream.ends, flows, cell)
        if several_links(cell, self.flows):
            return DataPath(*self.stream.ends, None, None)
        senders = self.group.senders
        timestamps = common_value(side.tcp.timestamps for side in senders)
        mtu, mss = least(side.tcp.pmtu for side in senders), least(side.tcp.mss for side in senders)
        return data_path(info, self.stream.ends, flows, mtu, mss, timestamps)

    @cached_property
    def busy(self) -> dict[str, Any]:
        """Return the columns for the CPU use of sender and receiver, in per cent."""
        ends = [self._derived.processors(node) for node in (self.path.sender, self.path.receiver)]
        return dict(zip(BUSY_COLUMNS, chain(*zip(*ends, strict=True)), strict=True))

    @cached_property
    def evidence(self) -> Evidence:
        derived, stream, path, flows = self._derived, self.stream, self.path, self.flows
        info, cell, balance = derived.info, derived.cell, derived.balance
        rtts_s = [info.plan.links[node].rtt_s for node in stream.ends if node in info.plan.links]
        others = balance.others_on(path.sender, path.receiver) if balance is not None else {}
        load, quotas = derived.links.load(path, derived.taken), [derived.throttled_share(node) for node in stream.ends]
        return evidence(
            self.efficiency,
            self.goodput_mbps,
            None if derived.asked_mbps is None else derived.asked_mbps * len(flows),
            flows,
            busy_of(info, cell, [self.busy]),
            derived.window,
            total_of_known(rtts_s),
            {
                "larger_frames": larger_frames(info, cell, stream, path, flows),
                "shared_share": load[0] if load else None,
                "shared_link": load[1] if load else None,
                "beside_classes": derived.shares_time or None,
                "quota_sender": quotas[0],
                "quota_receiver": quotas[1],
                "clamped_mss": mss_below_mtu(info, cell, stream, flows),
                **dict(pause_found(info, cell, derived.repetition, path.sender, derived.window)),
                **other_traffic_found(info, path, others, derived.links, derived.taken),
            },
            searched=searched_setting(cell) is not None,
        )


_OF_STREAM: Final[Mapping[str, Callable[[StreamDerivation], Any]]] = {
    WINDOW_EFFECTIVE.name: attrgetter("window_bytes"),
    CEILING.name: attrgetter("path.ceiling_mbps"),
    LONGEST_GAP.name: attrgetter("longest_gap_s"),
    EFFICIENCY.name: attrgetter("efficiency"),
}
"""Maps the name of a figure to the function that reads the figure from a stream's derivation."""
KEPT_FIGURES: Final = tuple(figure for figure in FIGURES.values() if figure not in (LIMIT, LIMIT_DETAIL))
"""The figures that are kept. Limits follow from the evidence on reading."""


class Derivation:
    """Computes the results of one repetition from its flows, samples, readings and probes."""

    def __init__(self, info: RunInfo, cell: Cell, repetition: Repetition, balance: Balance | None) -> None:
        self.info, self.cell, self.repetition, self.balance = info, cell, repetition, balance
        self.tried = at_load(cell, repetition.load)
        self.beside: tuple[Derivation, ...] = ()  # derivations of other traffic classes, measured at the same time
        self.asked_mbps = requested_mbps(cell, repetition)
        self.window = CommonWindow(*repetition.window_ns, 0) if repetition.window_ns else None
        self._usage = {usage.node: usage for usage in repetition.nodes}
        self._flows = {
            stream: sorted(own, key=lambda flow: flow.number) for stream, own in by_stream(repetition.flows).items()
        }

    def flows_of(self, stream: Stream) -> list[Flow]:
        return self._flows.get(stream, [])

    @cached_property
    def streams(self) -> dict[Stream, StreamDerivation]:
        """Return the derivation of each stream. Its sums over flows are None if a flow report is missing."""
        flows = [(stream, self.flows_of(stream)) for stream in self.cell.streams]
        return {
            stream: StreamDerivation(self, stream, own, whole=len(own) == self.cell.parallel) for stream, own in flows
        }

    @property
    def figures(self) -> FiguresOfRepetition:
        """Return the figures that are kept of each stream and, under the key None, of the whole test."""
        of_streams = {stream: self._figures_of(one) for stream, one in self.streams.items()}
        figures: dict[Stream | None, FigureValues] = {stream: own for stream, own in of_streams.items()}  # noqa: C416
        figures[None] = self._figures_of_test(list(of_streams.values()))
        return figures

    @property
    def details(self) -> Details:
        """Return what is kept besides the figures."""
        streams = self.streams
        return Details(
            evidence={stream: one.evidence for stream, one in streams.items() if len(one.flows) == self.cell.parallel},
            notes={stream: one.notes for stream, one in streams.items()},
            gaps=self.gaps,
            value=value_of(self.cell, self.repetition),
            trial=trial_of(self.info.plan, self.cell, self.repetition),
            phases=phases_of_repetition(self.cell, self._together, self.repetition, self._flows),
        )

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        return gaps_of_repetition(self.cell, self.repetition)

    @property
    def _together(self) -> list[Cell]:
        """Return the traffic classes that are measured at the same time, this one included."""
        return [cell for cell in self.info.plan.cells if cell.first == self.cell.first]

    def _figures_of(self, one: StreamDerivation) -> dict[str, Any]:
        found = {figure.name: one.figure(figure) for figure in KEPT_FIGURES if Level.PAIRS in figure.levels}
        if self.cell.in_messages:
            flows = [FlowGroup(self.tried, [flow]) for flow in one.flows]
            own = [figure for figure in KEPT_FIGURES if figure.compute is not None and figure.over_streams is not None]
            found |= {figure.name: over_flows(figure, flows) for figure in own if figure.name not in found}
        return found

    def _figures_of_test(self, of_streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the figures of the whole test; `of_streams` has those of each stream."""
        repetition, streams = self.repetition, self.cell.streams
        flows = [flow for own in self._flows.values() for flow in own]
        whole = len(flows) == len(streams) * self.cell.parallel
        group = FlowGroup(self.tried, flows, whole, repetition.probes, repetition.window_ns, self.wire)
        made: dict[str, Any] = {
            GOODPUT_MEDIAN.name: divide(repetition.goodput_median_bps, 1e6),
            **_spread([own[GOODPUT.name] for own in of_streams]),
            CEILING.name: self.links.together_mbps([one.path for one in self.streams.values()]),
            **trunk_total(self.balance),
        }

        def value(figure: Figure[Any]) -> Any:  # noqa: ANN401 — figures have values of any type
            if figure.over_streams is not None:
                return combine_streams(figure, (own[figure.name] for own in of_streams))
            return made.get(figure.name) if figure.compute is None else figure.of(group)

        found = {
            figure.name: value(figure)
            for figure in KEPT_FIGURES
            if Level.CELLS in figure.levels
            or (figure.over_streams is not None and all(figure.name in own for own in of_streams))
        }
        goodput_mbps = _mbps(found[THROUGHPUT.name]) if self.cell.kind.files else found[GOODPUT.name]
        return found | {EFFICIENCY.name: divide(goodput_mbps, made[CEILING.name])}

    def flow_figures(self, flow: Flow) -> dict[str, Any]:
        """Return the figures of a single flow."""
        one = StreamDerivation(self, flow.stream, [flow])
        return {figure.name: one.figure(figure) for figure in KEPT_FIGURES if Level.FLOWS in figure.levels}

    @cached_property
    def links(self) -> Links:
        """Return the links of all nodes that send or receive, and the link between the switches (trunk)."""
        nodes = {node for one in self.streams.values() for node in (one.path.sender, one.path.receiver)}
        return Links({node: link_rate_bps(self.info, node) for node in nodes}, trunk_link(self.info.plan))

    @cached_property
    def wire(self) -> Wire:
        """Return what is known of the links of a test's flows. Only figures of bursts ask for it."""
        if not self.cell.kind.by_burst:
            return Wire()
        nodes = self.cell.nodes
        counted = [wire_counts(self.info, self.repetition, node) for node in nodes]
        tags = max(vlan_tags(self.info, node) for node in nodes)
        return Wire(
            {node: link_rate_bps(self.info, node) for node in nodes},
            Packet("udp", self.info.ip_version, tags=tags),
            any(each is not None and (each.paused or each.asks) for each in counted),
        )

    @cached_property
    def taken(self) -> LinkShares:
        """Return the share of each link that each stream takes, streams of all traffic classes included."""
        own = [(each.path, each.goodput_mbps) for each in self.streams.values()]
        others = [(each.path, self._mbps_meanwhile(one, each)) for one in self.beside for each in one.streams.values()]
        return self.links.taken([*own, *others])

    def _mbps_meanwhile(self, other: "Derivation", stream: StreamDerivation) -> float | None:
        """Return the goodput of a stream of another class during the measurement interval of this class."""
        if self.window is None or other.cell.span_s == self.cell.span_s:
            return stream.goodput_mbps
        cut = [cut_to_window(flow, self.window) for flow in stream.flows]
        return GOODPUT.of(FlowGroup(other.cell, cut, stream.group.whole, (), self.repetition.window_ns))

    @property
    def shares_time(self) -> bool:
        """Tell whether another traffic class sends at the same time as this class."""
        start_s, stop_s = self.cell.span_s
        return any(one.cell.span_s[0] < stop_s and one.cell.span_s[1] > start_s for one in self.beside)

    @cached_property
    def _threads(self) -> Counter[str]:
        """Return the number of agent threads on each node: one per flow, over all traffic classes."""
        flows = [flow for derived in (self, *self.beside) for flow in derived.repetition.flows]
        return Counter(node for flow in flows for node in (flow.pair.source, flow.pair.destination))

    def throttled_share(self, node: str) -> float | None:
        """Return the share of time in which a CPU quota held back the agent of `node`; None if unknown."""
        usage = self._usage.get(node)
        if usage is None or usage.throttled_us is None or not usage.span_us or not usage.cpus:
            return None
        # Control groups (version 1) add up the throttled time of the CPUs that run the agent, at most one per thread.
        threads = min(max(1, self._threads[node]), usage.cpus)
        return min(1.0, usage.throttled_us / (usage.span_us * threads))

    def processors(self, node: str) -> Processors:
        """Return the CPU use of `node` during the repetition."""
        return processors_of_node(self._usage.get(node), self._threads[node], self._run_us(node))

    def _run_us(self, node: str) -> float | None:
        """Return the CPU time in µs that the traffic took on the machine of `node`; None if unknown.

        On a machine of its own: the time of its agent and of interrupts. On a machine that all nodes share: the time
        of all agents, which includes the work of the virtual links.
        """
        if self.info.plan.virtual not in (None, "machines"):
            return total(usage.agent_cpu_us for usage in self.repetition.nodes)
        usage = self._usage.get(node)
        return None if usage is None or usage.agent_cpu_us is None else usage.agent_cpu_us + (usage.node_irq_us or 0)


def _spread(goodputs_mbps: Sequence[float | None]) -> dict[str, float | None]:
    """Return the least goodput, and Jain's index of fairness (DEC-TR-301, 1984); None if one is unknown."""
    known = [mbps for mbps in goodputs_mbps if mbps is not None]
    if not known or len(known) < len(goodputs_mbps):
        return {}
    squares = sum(mbps * mbps for mbps in known)
    fairness = sum(known) ** 2 / (len(known) * squares) if len(known) > 1 and squares else None
    return {GOODPUT_LEAST.name: min(known), FAIRNESS.name: fairness}


def _mbps(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else 8 * bytes_per_s / 1e6


def requested_mbps(cell: Cell, repetition: RepetitionHead) -> float | None:
    """Return the rate in Mbit/s that was requested for each flow; None without a request, or if unlimited."""
    rate = at_load(cell, repetition.load)[RATE]
    return rate / 1e6 if isinstance(rate, int) else None
