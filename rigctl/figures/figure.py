"""A figure of a test: one record, `Figure`, says all that rigctl knows of what came out.

Exports, tables, `--json`, `expect`, comparisons and nights all iterate over these records, as what was asked has
`rigctl.settings`. A figure is computed when it is first read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from rigctl.model.latency import Buckets, Phase, merge_histograms, probes_before_load, probes_under_load
from rigctl.model.unknowns import mean
from rigctl.records import Cell, Datagrams, Flow, Probes, Side
from rigctl.settings.setting import MEASURED, Column, Ends, Level

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Combine = Callable[[Iterable[Any]], Any]
ALL_LEVELS: Final = frozenset(Level)
TESTS: Final = frozenset({Level.CELLS, Level.PAIRS})
TCP: Final = frozenset({*MEASURED, Level.INTERVALS})
TCP_AND_UDP: Final = ("tcp", "udp")


@dataclass(frozen=True)
class FlowGroup:
    """Flows of a test that are taken together: one flow, those of a stream, or all of the test.

    `probes` are those beside these flows, `window_ns` is the measurement interval.
    """

    cell: Cell
    flows: Sequence[Flow]
    whole: bool = True  # no flow's report is missing
    probes: Sequence[Probes] = ()
    window_ns: tuple[int, int] | None = None

    @cached_property
    def senders(self) -> list[Side]:
        """Return the ends that sent and reported, in the order of the flows."""
        return [flow.sender for flow in self.flows if flow.sender is not None]

    @cached_property
    def receivers(self) -> list[Side]:
        """Return the ends that received and reported, in the order of the flows."""
        return [flow.receiver for flow in self.flows if flow.receiver is not None]

    @cached_property
    def sides(self) -> list[Side]:
        """Return both ends of each flow."""
        return [side for flow in self.flows for side in (flow.sender, flow.receiver) if side is not None]

    def of_ends(self, ends: Ends) -> list[Side]:
        """Return the sides at these ends."""
        return {Ends.SENDER: self.senders, Ends.RECEIVER: self.receivers, Ends.BOTH: self.sides}[ends]

    @cached_property
    def datagrams(self) -> list[tuple[Datagrams | None, Datagrams | None]]:
        """Return what the sender and the receiver of each flow counted; empty for TCP, or if a flow is missing."""
        ends = ((flow.sender, flow.receiver) for flow in self.flows)
        counted = [
            (None if sender is None else sender.datagrams, None if receiver is None else receiver.datagrams)
            for sender, receiver in ends
        ]
        return counted if self.whole and any(sent for sent, _ in counted) else []

    @cached_property
    def trips(self) -> Buckets:
        """Return the histogram of the round trips of all flows."""
        return merge_histograms(side.histogram for side in self.senders)

    @cached_property
    def idle(self) -> Phase:
        """Return the probes before the streams."""
        return _phases(probes_before_load(probes) for probes in self.probes)

    @cached_property
    def loaded(self) -> Phase:
        """Return the probes beside the streams; empty without a measurement interval."""
        window_ns = self.window_ns
        return (
            _phases(probes_under_load(probes, *window_ns) for probes in self.probes)
            if window_ns is not None
            else Phase()
        )


def _phases(several: Iterable[Phase]) -> Phase:
    together = Phase()
    for phase in several:
        together += phase
    return together


@dataclass(frozen=True, slots=True, eq=False)
class Figure(Column, Generic[T_co]):
    """One figure of a test: a column, and how its value is made of stored records."""

    compute: Callable[[FlowGroup], T_co | None] | None = None  # None: rigctl.analysis makes it of paths and processors
    over_streams: Combine | None = None  # a test's value from those of its streams; None: from all its flows
    over_repetitions: Combine = mean
    kinds: tuple[str, ...] = ()  # kinds of tests in which it can be expected
    alias: str = ""  # in `expect`, beside its own name
    higher_is_better: bool = False  # of those that runs are compared by
    watched: bool = False  # told to programs that watch benchmarks
    is_text: bool = False

    def of(self, group: FlowGroup) -> T_co | None:
        """Return the value that flows have together; None if it is unknown, or not made of flows alone."""
        return None if self.compute is None else self.compute(group)

    def __hash__(self) -> int:
        return hash(self.name)


def combine_streams(figure: Figure[T], values: Iterable[T | None]) -> T | None:
    """Return the value of a figure over streams, or over single flows; None if it is not made of theirs."""
    combined: T | None = None if figure.over_streams is None else figure.over_streams(values)
    return combined


def combine_repetitions(figure: Figure[T], values: Iterable[T | None]) -> T | None:
    """Return the value of a figure over repetitions: the mean, or the extreme of a minimum or maximum."""
    combined: T | None = figure.over_repetitions(values)
    return combined
