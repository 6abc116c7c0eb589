"""Compute export rows of a stored run: one row per test, per pair or per flow, for each repetition.

Rows are not stored, so that a better computation of the ceiling or the limit applies to old runs too. Columns and
levels (`cells`, `pairs`, `flows`) are declared in `rigctl.figures`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeAlias

from rigctl.analysis.rows.counters import Balance, Balances, key_of_first_class, port_octets, trunk_total
from rigctl.base.values import common_value, divide, group_by, least, total, total_of_known
from rigctl.figures import FIGURES, NAMES, FlowGroup, Level
from rigctl.figures.ceilings import CEILING, EFFICIENCY, LIMIT, LIMIT_DETAIL
from rigctl.figures.effective import WINDOW_EFFECTIVE
from rigctl.figures.streams import GOODPUT, GOODPUT_MEDIAN
from rigctl.limits.evidence import evidence, limit_of_test, other_traffic_found
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
)
from rigctl.limits.rules import Diagnosis, Evidence, diagnose
from rigctl.model.repeating import keep_deciding_trials
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, Flow, Repetition, RunInfo, RunPlan, Status, Stream, by_stream
from rigctl.settings import MAX_RATE, RATE, SETTINGS

ExportRow: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of a run, per test, pair and flow. A row has the columns of `columns_at(level)`; None if unknown.

    Rows of flows are computed on first use: the page of a large matrix shows none of its thousands of flows.
    """

    cells: list[ExportRow]
    pairs: list[ExportRow]
    derivations: list["RepetitionResults"] = field(repr=False, compare=False)
    balances: Balances = field(repr=False, compare=False)

    def by_stream(self) -> Iterator[tuple["RepetitionResults", dict[Stream | None, ExportRow]]]:
        """Yield each repetition with its rows by stream; the key None has the row of the whole test."""
        pairs = iter(self.pairs)
        for derived, whole in zip(self.derivations, self.cells, strict=True):
            rows: dict[Stream | None, ExportRow] = {None: whole}
            rows.update({stream: next(pairs) for stream in derived.cell.streams})
            yield derived, rows

    @cached_property
    def flows(self) -> list[ExportRow]:
        streams = [(derived, stream) for derived in self.derivations for stream in derived.cell.streams]
        return [derived.flow_row(flow) for derived, stream in streams for flow in derived.flows_of(stream)]


def derive(info: RunInfo, repetitions: Iterable[Repetition]) -> Rows:
    """Return the rows of `repetitions`, in the given order; within a repetition in the order of the scenario."""
    kept = tuple(repetitions)
    balances, counted = Balances(info, kept), _keys_that_count(info.plan, kept)
    cells = {cell.number: cell for cell in info.plan.cells}
    derivations = [
        RepetitionResults(info, cells[one.cell], one, balances.of(one), counted=one.key in counted) for one in kept
    ]
    for together in group_by(derivations, lambda one: key_of_first_class(one.cell, one.repetition)).values():
        for derived in together:
            derived.beside = tuple(other for other in together if other is not derived)
    pairs = [[derived.pair_row(stream) for stream in derived.cell.streams] for derived in derivations]
    whole = [derived.cell_row(own) for derived, own in zip(derivations, pairs, strict=True)]
    return Rows(whole, [*chain(*pairs)], derivations, balances)


def which_stream(info: RunInfo, cell: Cell, repetition: Repetition, stream: Stream) -> dict[str, Any]:
    """Return the columns that identify a stream and its repetition; rows of all levels have these columns."""
    return _which(info, cell, repetition) | _of_stream(stream)


def _which(info: RunInfo, cell: Cell, repetition: Repetition) -> dict[str, Any]:
    return {
        "run": info.run,
        "cell": cell.number,
        "repetition": repetition.repetition,
        "attempt": repetition.attempt,
        "status": str(repetition.status),
        "test": cell.test,
        "class": cell.traffic_class,
    }


def _of_stream(stream: Stream) -> dict[str, Any]:
    return {"source": stream.pair.source, "destination": stream.pair.destination, "direction": str(stream.direction)}


def pick_columns(level: Level, values: Mapping[str, Any]) -> ExportRow:
    """Return a row with exactly the columns of `level`, taken from `values`."""
    return {name: values[name] for name in NAMES[level]}


class _Row(Mapping[str, Any]):
    """A row with the columns of `level`. A value that is not in `known` is computed when it is first read."""

    __slots__ = ("_known", "_make", "_names")

    def __init__(self, level: Level, known: dict[str, Any], make: Callable[[str], Any]) -> None:
        self._names, self._known, self._make = NAMES[level], known, make

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 — columns have values of any type
        if name not in self._known:
            self._known[name] = self._make(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class StreamResult:
    """The result of a stream, or of one flow of the stream, in a repetition: path, goodput, evidence and limit."""

    def __init__(
        self, derived: "RepetitionResults", stream: Stream, flows: Sequence[Flow], *, whole: bool = True
    ) -> None:
        self._derived, self.stream, self.flows = derived, stream, flows
        repetition = derived.repetition
        probes = [probes for probes in repetition.probes if probes.stream == stream]
        self.group = FlowGroup(derived.cell, flows, whole, probes, repetition.window_ns)

    def figure(self, name: str) -> Any:  # noqa: ANN401 — figures have values of any type
        figure = FIGURES[name]
        if figure.compute is not None:
            return figure.of(self.group)
        if name in _OF_STREAM:
            return _OF_STREAM[name](self)
        return (self.busy if name in BUSY_COLUMNS else self._octets)[name]

    @property
    def window_bytes(self) -> int | None:
        """Return the effective window in bytes; None if unknown."""
        return effective_window(self._derived.info, self._derived.cell, self.stream, self.flows)

    @cached_property
    def _octets(self) -> dict[str, int | None]:
        """Return the columns for octets counted by the switch ports of sender and receiver."""
        return port_octets(self._derived.balance, self.path.sender, self.path.receiver)

    @cached_property
    def goodput_mbps(self) -> float | None:
        return GOODPUT.of(self.group)

    @property
    def efficiency(self) -> float | None:
        return divide(self.goodput_mbps, self.path.ceiling_mbps)

    @cached_property
    def path(self) -> DataPath:
        info, cell = self._derived.info, self._derived.cell
        if cell.transport == "udp":
            return datagram_path(info, self.stream.ends, cell)
        if several_links(cell, self.flows):
            return DataPath(*self.stream.ends, None, None)
        senders = self.group.senders
        timestamps = common_value(side.tcp.timestamps for side in senders)
        mtu, mss = least(side.tcp.pmtu for side in senders), least(side.tcp.mss for side in senders)
        return data_path(info, self.stream.ends, mtu, mss, timestamps)

    @cached_property
    def busy(self) -> dict[str, Any]:
        """Return the columns for the CPU use of sender and receiver, in per cent."""
        ends = [self._derived.processors(node) for node in (self.path.sender, self.path.receiver)]
        return dict(zip(BUSY_COLUMNS, chain(*zip(*ends, strict=True)), strict=True))

    @cached_property
    def verdict(self) -> Diagnosis:
        return diagnose(self.evidence)

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
                "beside_classes": bool(derived.beside) or None,
                "quota_sender": quotas[0],
                "quota_receiver": quotas[1],
                "clamped_mss": mss_below_mtu(info, cell, stream, flows),
                **other_traffic_found(info, path, others, derived.links, derived.taken),
            },
            searched=cell[RATE] == MAX_RATE,
        )


_OF_STREAM: Final[Mapping[str, Callable[[StreamResult], Any]]] = {
    WINDOW_EFFECTIVE.name: attrgetter("window_bytes"),
    CEILING.name: attrgetter("path.ceiling_mbps"),
    EFFICIENCY.name: attrgetter("efficiency"),
    LIMIT.name: attrgetter("verdict.limit"),
    LIMIT_DETAIL.name: attrgetter("verdict.detail"),
}
"""Maps the name of a figure to the function that reads the figure from a result."""


class RepetitionResults:
    """The rows of one repetition, and the evidence on what limits its goodput."""

    def __init__(
        self, info: RunInfo, cell: Cell, repetition: Repetition, balance: Balance | None, *, counted: bool
    ) -> None:
        self.info, self.cell, self.repetition, self.balance, self.counted = info, cell, repetition, balance, counted
        self.beside: tuple[RepetitionResults, ...] = ()  # results of other traffic classes, measured at the same time
        self.asked_mbps = requested_mbps(cell, repetition)
        self.window = CommonWindow(*repetition.window_ns, 0) if repetition.window_ns else None
        self._usage = {usage.node: usage for usage in repetition.nodes}
        self._flows = {
            stream: sorted(own, key=lambda flow: flow.number) for stream, own in by_stream(repetition.flows).items()
        }
        self._shared = {
            **_which(info, cell, repetition),
            "counted": counted,
            "reason": repetition.reason,
            "pairs": len(cell.pairs),
            "condition": cell.condition,
            **{setting.requested: cell[setting] for setting in SETTINGS.values() if setting.requested is not None},
            "rate_mbps": self.asked_mbps,
            "duration_s": repetition.window_s,
            "start_skew_us": repetition.start_skew_us,
        }

    def flows_of(self, stream: Stream) -> list[Flow]:
        return self._flows.get(stream, [])

    @cached_property
    def streams(self) -> dict[Stream, StreamResult]:
        """Return the result of each stream. Its sums over flows are None if a flow report is missing."""
        flows = [(stream, self.flows_of(stream)) for stream in self.cell.streams]
        return {stream: StreamResult(self, stream, own, whole=len(own) == self.cell.parallel) for stream, own in flows}

    @cached_property
    def seen(self) -> dict[Stream, Evidence]:
        """Return the evidence for what limits each stream; streams that lack a flow report are left out."""
        return {stream: one.evidence for stream, one in self.streams.items() if len(one.flows) == self.cell.parallel}

    def flow_row(self, flow: Flow) -> ExportRow:
        known = self._shared | _of_stream(flow.stream) | {"flow": flow.number}
        return _Row(Level.FLOWS, known, StreamResult(self, flow.stream, [flow]).figure)

    def pair_row(self, stream: Stream) -> ExportRow:
        return _Row(Level.PAIRS, self._shared | _of_stream(stream), self.streams[stream].figure)

    def cell_row(self, rows: Sequence[ExportRow]) -> ExportRow:
        """Return the row of the whole test; `rows` are the rows of its streams."""
        repetition, streams = self.repetition, self.cell.streams
        flows = [flow for own in self._flows.values() for flow in own]
        whole = len(flows) == len(streams) * self.cell.parallel
        group = FlowGroup(self.cell, flows, whole, repetition.probes, repetition.window_ns)
        counters, median_bps = trunk_total(self.balance), repetition.goodput_median_bps
        made: dict[str, Callable[[], Any]] = {
            GOODPUT_MEDIAN.name: lambda: divide(median_bps, 1e6),
            CEILING.name: lambda: self._ceiling_mbps,
            EFFICIENCY.name: lambda: divide(row[GOODPUT.name], self._ceiling_mbps),
            LIMIT.name: lambda: self._limit(row[EFFICIENCY.name]).limit,
            LIMIT_DETAIL.name: lambda: self._limit(row[EFFICIENCY.name]).detail,
            **{name: partial(counters.get, name) for name in counters},
        }

        def figure_of_test(name: str) -> Any:  # noqa: ANN401 — figures have values of any type
            figure = FIGURES[name]
            if figure.over_streams is not None:
                return figure.over_streams(own[name] for own in rows)
            return made[name]() if figure.compute is None else figure.of(group)

        row = _Row(Level.CELLS, self._shared | {"direction": str(self.cell.direction)}, figure_of_test)
        return row

    @cached_property
    def _ceiling_mbps(self) -> float | None:
        return self.links.together_mbps([one.path for one in self.streams.values()])

    def _limit(self, share: float | None) -> Diagnosis:
        return limit_of_test(((seen, self.streams[stream].verdict) for stream, seen in self.seen.items()), share)

    @cached_property
    def links(self) -> Links:
        """Return the links of all nodes that send or receive, and the link between the switches (trunk)."""
        nodes = {node for one in self.streams.values() for node in (one.path.sender, one.path.receiver)}
        return Links({node: link_rate_bps(self.info, node) for node in nodes}, trunk_link(self.info.plan))

    @cached_property
    def taken(self) -> LinkShares:
        """Return the share of each link that each stream takes, streams of all traffic classes included."""
        streams = [each for one in (self, *self.beside) for each in one.streams.values()]
        return self.links.taken([(each.path, each.goodput_mbps) for each in streams])

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


def requested_mbps(cell: Cell, repetition: Repetition) -> float | None:
    """Return the rate in Mbit/s that was requested for each flow; None without a request, or if unlimited."""
    rate = repetition.rate_bps if repetition.rate_bps is not None else cell[RATE]
    return rate / 1e6 if isinstance(rate, int) else None


def without_retest(plan: RunPlan, repetitions: Sequence[Repetition]) -> tuple[Repetition, ...]:
    """Return the repetitions without those of a retest, which reports show separately."""
    if plan.retest is None:
        return tuple(repetitions)
    return tuple(repetition for repetition in repetitions if repetition.repetition <= plan.repeat)


def _keys_that_count(plan: RunPlan, repetitions: Sequence[Repetition]) -> frozenset[tuple[int, int, int]]:
    """Return the keys of the valid repetitions; of a search for the highest rate only that of the deciding trial."""
    kept = keep_deciding_trials(plan, without_retest(plan, repetitions))
    return frozenset(repetition.key for repetition in kept if repetition.status is Status.OK)
