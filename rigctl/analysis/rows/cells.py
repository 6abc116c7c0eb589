"""Rows of the column table (rigctl.columns) at the levels of cells, pairs and flows, derived from a stored run.

Nothing here is stored: a better ceiling explains last year's runs too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.analysis.limits.ceiling import (
    clamped_mss,
    data_path,
    datagram_path,
    efficiency,
    larger_frames,
    link_rate_bps,
    several_links,
)
from rigctl.analysis.limits.evidence import evidence, named, other_traffic_found
from rigctl.analysis.limits.hosts import BUSY_COLUMNS, busy_of, effective_window, processors
from rigctl.analysis.rows.counters import Balance, Balances, measured_as, port_octets, trunk_total
from rigctl.analysis.rows.flows import asked_mbps, flow_values, latency_values, message_values
from rigctl.columns import Level, columns_at
from rigctl.model.limits.ceilings import DataPath, Links, Taken, trunk_link
from rigctl.model.limits.rules import Evidence, Verdict, judged
from rigctl.model.search import decided
from rigctl.model.unknowns import agreed, known_total, least, mean, most, total
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, Flow, Repetition, RunInfo, RunPlan, Status, Stream, by_stream
from rigctl.settings import MAX_RATE, RATE, SETTINGS

Row: TypeAlias = dict[str, Any]
Item = TypeVar("Item")
Key = TypeVar("Key")

_EXTREMES: Final[Mapping[str, Callable[[Iterable[float | None]], float | None]]] = {
    **dict.fromkeys(("rtt_min_us", "mss_effective", "window_effective_bytes", "mtu"), least),
    **dict.fromkeys(("loss_burst_max", "jitter_max_us", "burst_effective"), most),
}
_NAMES: Final = {level: tuple(column.name for column in columns_at(level)) for level in Level}


@dataclass(frozen=True)
class Rows:
    """The rows of a run; each has exactly the columns of `columns_at(level)`, unknown ones None.

    The rows of flows are made on first use: the page of a large matrix shows none of its thousands.
    """

    cells: list[Row]
    pairs: list[Row]
    derivations: list["Derived"] = field(repr=False, compare=False)
    balances: Balances = field(repr=False, compare=False)

    def by_stream(self) -> Iterator[tuple["Derived", dict[Stream | None, Row]]]:
        """Yield each repetition with the rows of its streams and, under None, that of its test."""
        pairs = iter(self.pairs)
        for derived, whole in zip(self.derivations, self.cells, strict=True):
            rows: dict[Stream | None, Row] = {None: whole}
            rows.update({stream: next(pairs) for stream in derived.cell.streams})
            yield derived, rows

    @cached_property
    def flows(self) -> list[Row]:
        streams = [(derived, stream) for derived in self.derivations for stream in derived.cell.streams]
        return [derived.flow_row(flow) for derived, stream in streams for flow in derived.flows_of(stream)]


def derive(info: RunInfo, repetitions: Iterable[Repetition]) -> Rows:
    """Return the rows of `repetitions`, in their order; pairs and flows in the scenario's order."""
    kept = tuple(repetitions)
    rows = Rows([], [], [], Balances(info, kept))
    cells = {cell.number: cell for cell in info.plan.cells}
    counted = _counted_keys(info.plan, kept)
    for repetition in kept:
        is_counted = repetition.key in counted
        balance = rows.balances.of(repetition)
        rows.derivations.append(Derived(info, cells[repetition.cell], repetition, balance, counted=is_counted))
    for together in grouped(rows.derivations, lambda one: measured_as(one.cell, one.repetition)).values():
        for derived in together:
            derived.beside = tuple(other for other in together if other is not derived)
    for derived in rows.derivations:
        own = [derived.pair_row(stream) for stream in derived.cell.streams]
        rows.pairs.extend(own)
        rows.cells.append(derived.cell_row(own))
    return rows


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def combined(rows: Iterable[Row], column: str) -> float | None:
    """Return the value of a column over repetitions or pairs: the mean, or the extreme of a minimum or maximum."""
    return _EXTREMES.get(column, mean)(row[column] for row in rows)


def which_stream(info: RunInfo, cell: Cell, repetition: Repetition, stream: Stream) -> Row:
    """Return the columns that every row of a stream begins with, at any level."""
    return _which(info, cell, repetition) | _of_stream(stream)


def _which(info: RunInfo, cell: Cell, repetition: Repetition) -> Row:
    return {
        "run": info.run,
        "cell": cell.number,
        "repetition": repetition.repetition,
        "attempt": repetition.attempt,
        "status": str(repetition.status),
        "test": cell.test,
        "class": cell.traffic_class,
    }


def _of_stream(stream: Stream) -> Row:
    return {"source": stream.pair.source, "destination": stream.pair.destination, "direction": str(stream.direction)}


def picked(level: Level, values: Mapping[str, Any]) -> Row:
    """Return the row of `values` with exactly the columns of `level`."""
    return {name: values[name] for name in _NAMES[level]}


class Derived:
    """The rows and the evidence of one repetition."""

    def __init__(
        self, info: RunInfo, cell: Cell, repetition: Repetition, balance: Balance | None, *, counted: bool
    ) -> None:
        self.cell, self.counted = cell, counted
        self.beside: tuple[Derived, ...] = ()  # of the other classes, measured at the same time
        self._info, self.repetition, self._balance = info, repetition, balance
        self._usage = {usage.node: usage for usage in repetition.nodes}
        self._agents_us = total(usage.agent_cpu_us for usage in repetition.nodes)
        self._window_s = repetition.window_s
        self._window = CommonWindow(*repetition.window_ns, 0) if repetition.window_ns else None
        self.seen: dict[Stream, Evidence] = {}
        self._verdicts: dict[Stream, Verdict] = {}
        self._flows = {
            stream: sorted(own, key=lambda flow: flow.number) for stream, own in by_stream(repetition.flows).items()
        }
        self._shared: Row = {
            **_which(info, cell, repetition),
            "counted": counted,
            "reason": repetition.reason,
            "pairs": len(cell.pairs),
            "condition": cell.condition,
            **{setting.requested: cell[setting] for setting in SETTINGS.values() if setting.requested is not None},
            "rate_mbps": asked_mbps(cell, repetition),
            "duration_s": self._window_s,
            "start_skew_us": repetition.start_skew_us,
        }

    def flows_of(self, stream: Stream) -> list[Flow]:
        return self._flows.get(stream, [])

    def flow_row(self, flow: Flow) -> Row:
        sender, receiver = flow.sender, flow.receiver
        own = {
            "flow": flow.number,
            "sndbuf_bytes": sender and sender.sndbuf_bytes,
            "rcvbuf_bytes": receiver and receiver.rcvbuf_bytes,
            "cwnd": sender and sender.tcp.cwnd,
            "busy_us": sender and sender.tcp.busy_us,
            "rwnd_limited_us": sender and sender.tcp.rwnd_limited_us,
            "sndbuf_limited_us": sender and sender.tcp.sndbuf_limited_us,
        } | message_values(self.cell, flow)
        achieved = self._path(flow.stream, [flow]), self._rate_mbps([flow], whole=True)
        return picked(Level.FLOWS, self._stream(flow.stream, [flow], achieved) | own)

    def pair_row(self, stream: Stream) -> Row:
        flows = self.flows_of(stream)
        # Without the report of one flow, the sum of the pair is unknown.
        whole = len(flows) == self.cell.parallel
        values = self._stream(stream, flows, self._achieved[stream], whole)
        return picked(Level.PAIRS, values | latency_values(self.repetition, stream))

    def cell_row(self, rows: Sequence[Row]) -> Row:
        """Return the row of the cell; `rows` are those of its pairs."""
        streams, median_bps = self.cell.streams, self.repetition.goodput_median_bps
        ceiling_mbps = self._links.together_mbps([path for path, _ in self._achieved.values()])
        goodput_mbps = total(row["goodput_mbps"] for row in rows)
        share = efficiency(goodput_mbps, ceiling_mbps)
        flows = [flow for own in self._flows.values() for flow in own]
        streams_seen = zip(self.seen.values(), self._verdicts.values(), strict=True)
        verdict = named(streams_seen, share)
        summed = {
            **flow_values(self.cell, flows, complete=len(flows) == len(streams) * self.cell.parallel),
            "direction": str(self.cell.direction),
            "bytes": total(row["bytes"] for row in rows),
            "goodput_mbps": goodput_mbps,
            "goodput_median_mbps": median_bps and median_bps / 1e6,
            "retransmits": total(row["retransmits"] for row in rows),
            **{name: combined(rows, name) for name in ("window_effective_bytes", "mtu", "rtt_us", "rtt_min_us")},
            "ceiling_mbps": ceiling_mbps,
            "efficiency": share,
            "limit": verdict.limit,
            "limit_detail": verdict.detail,
            **{name: most(row[name] for row in rows) for name in BUSY_COLUMNS},
            **trunk_total(self._balance),
            **latency_values(self.repetition),
        }
        return picked(Level.CELLS, self._shared | summed)

    def _stream(
        self, stream: Stream, flows: Sequence[Flow], achieved: tuple[DataPath, float | None], whole: bool = True
    ) -> Row:
        path, goodput_mbps = achieved
        share = efficiency(goodput_mbps, path.ceiling_mbps)
        senders = [flow.sender for flow in flows if flow.sender is not None]
        busy = self._busy(path)
        seen = self._evidence(stream, path, busy, flows, goodput_mbps, share)
        verdict = judged(seen)
        if len(flows) == self.cell.parallel:
            self.seen[stream], self._verdicts[stream] = seen, verdict
        return (
            self._shared
            | flow_values(self.cell, flows, complete=whole)
            | _of_stream(stream)
            | {
                "bytes": total(flow.bytes for flow in flows) if whole else None,
                "goodput_mbps": goodput_mbps,
                "retransmits": total(flow.retransmits for flow in flows) if whole else None,
                "window_effective_bytes": effective_window(self._info, self.cell, stream, flows),
                "mtu": least(side.tcp.pmtu for side in senders),
                "rtt_us": mean(side.tcp.rtt_us for side in senders),
                "rtt_min_us": least(side.tcp.rtt_min_us for side in senders),
                "ceiling_mbps": path.ceiling_mbps,
                "efficiency": share,
                "limit": verdict.limit,
                "limit_detail": verdict.detail,
                **busy,
                **port_octets(self._balance, path.sender, path.receiver),
            }
        )

    def _evidence(
        self,
        stream: Stream,
        path: DataPath,
        busy: Row,
        flows: Sequence[Flow],
        goodput_mbps: float | None,
        share: float | None,
    ) -> Evidence:
        """Return the evidence on `flows`, all or one of those of `stream`, on `path` with the processors `busy`."""
        links = self._info.plan.links
        rtts_s = [links[node].rtt_s for node in stream.ends if node in links]
        others = self._balance.others_on(path.sender, path.receiver) if self._balance is not None else {}
        load, quotas = self._links.load(path, self._taken), [self._throttled(node) for node in stream.ends]
        return evidence(
            share,
            goodput_mbps,
            None if self._shared["rate_mbps"] is None else self._shared["rate_mbps"] * len(flows),
            flows,
            busy_of(self._info, self.cell, [busy]),
            self._window,
            known_total(rtts_s),
            {
                "larger_frames": larger_frames(self._info, self.cell, stream, path, flows),
                "shared_share": load.share if load else None,
                "shared_link": load.link if load else None,
                "beside_classes": bool(self.beside) or None,
                "quota_sender": quotas[0],
                "quota_receiver": quotas[1],
                "clamped_mss": clamped_mss(self._info, self.cell, stream, flows),
                **other_traffic_found(self._info, path, others, self._links, self._taken),
            },
            searched=self.cell[RATE] == MAX_RATE,
        )

    @cached_property
    def _achieved(self) -> dict[Stream, tuple[DataPath, float | None]]:
        """Return the path and the goodput of each stream."""
        flows = [(stream, self.flows_of(stream)) for stream in self.cell.streams]
        parallel = self.cell.parallel
        return {stream: (self._path(stream, own), self._rate_mbps(own, len(own) == parallel)) for stream, own in flows}

    @cached_property
    def _links(self) -> Links:
        """Return the links of all nodes that send or receive."""
        nodes = {node for path, _ in self._achieved.values() for node in (path.sender, path.receiver)}
        return Links({node: link_rate_bps(self._info, node) for node in nodes}, trunk_link(self._info.plan))

    @cached_property
    def _taken(self) -> Taken:
        """Return what the streams of all classes take of each link."""
        return self._links.taken([each for one in (self, *self.beside) for each in one._achieved.values()])

    @cached_property
    def _threads(self) -> Counter[str]:
        """Return the threads of each node's agent: those of all classes."""
        flows = [flow for derived in (self, *self.beside) for flow in derived.repetition.flows]
        return Counter(node for flow in flows for node in (flow.pair.source, flow.pair.destination))

    def _rate_mbps(self, flows: Sequence[Flow], whole: bool) -> float | None:
        received = total(flow.bytes for flow in flows) if whole else None
        return received * 8e-6 / self._window_s if received is not None and self._window_s else None

    def _throttled(self, node: str) -> float | None:
        """Return the share of its time in which a quota held back the agent of `node`."""
        usage = self._usage.get(node)
        if usage is None or usage.throttled_us is None or not usage.span_us or not usage.cpus:
            return None
        # Version 1 of control groups sums the time over the CPUs of the agent's threads.
        threads = min(max(1, self._threads[node]), usage.cpus)
        return min(1.0, usage.throttled_us / (usage.span_us * threads))

    def _busy(self, path: DataPath) -> Row:
        ends = [
            processors(self._usage.get(node), self._threads[node], self._run_us(node))
            for node in (path.sender, path.receiver)
        ]
        return dict(zip(BUSY_COLUMNS, chain(*zip(*(end.shares for end in ends), strict=True)), strict=True))

    def _run_us(self, node: str) -> float | None:
        """Return the CPU time that the run took on the machine of `node`: of its agents and, on real nodes, interrupts.

        The links of a virtual rig have no interrupts: their work is charged to the agent that sends.
        """
        if self._info.plan.virtual not in (None, "machines"):
            return self._agents_us
        usage = self._usage.get(node)
        return None if usage is None or usage.agent_cpu_us is None else usage.agent_cpu_us + (usage.node_irq_us or 0)

    def _path(self, stream: Stream, flows: Sequence[Flow]) -> DataPath:
        """Return the path of `flows`, all or one of those of `stream`."""
        if self.cell.transport == "udp":
            return datagram_path(self._info, stream.ends, self.cell)
        if several_links(self.cell, flows):
            return DataPath(*stream.ends, None, None)
        senders = [flow.sender for flow in flows if flow.sender is not None]
        timestamps = agreed(side.tcp.timestamps for side in senders)
        mtu, mss = least(side.tcp.pmtu for side in senders), least(side.tcp.mss for side in senders)
        return data_path(self._info, stream.ends, mtu, mss, timestamps)


def planned(plan: RunPlan, repetitions: Sequence[Repetition]) -> tuple[Repetition, ...]:
    """Return `repetitions` without those of a retest, which are shown separately."""
    if plan.retest is None:
        return tuple(repetitions)
    return tuple(repetition for repetition in repetitions if repetition.repetition <= plan.repeat)


def _counted_keys(plan: RunPlan, repetitions: Sequence[Repetition]) -> frozenset[tuple[int, int, int]]:
    """Return the keys of the repetitions with a valid result; of a search only of the trial that decides it."""
    kept = decided(plan, planned(plan, repetitions))
    return frozenset(repetition.key for repetition in kept if repetition.status is Status.OK)
