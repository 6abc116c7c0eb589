"""Name the limit of a pair or a test: its evidence, put before the rules of `model.limit_rules`.

Processors come before most of them: a sender whose receiver gets no processor waits for its window, too. Only where the
flows achieve what the window allows per round trip is the window the limit, however busy the nodes are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rigctl.analysis.limits.evidence import Found, of_flows
from rigctl.model.evidence import Evidence
from rigctl.model.limits import Verdict, judged, together
from rigctl.model.shares import LINE_RATE, reaches
from rigctl.model.unknowns import mean, most
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, Flow, RunInfo
from rigctl.settings import BUSY_POLL

BUSY_PCT: Final = 95.0
"""From here on processors are the limit."""
OTHERS_SHARE: Final = 0.25
"""Where other programs took more than this of a node's busy time, that it was busy says nothing about the run."""
PROCESSORS: Final = ("machine", "sender", "receiver")
"""Limits that are processors'."""

BUSY_COLUMNS: Final = (
    "cpu_source_pct",
    "cpu_destination_pct",
    "agent_cpu_source_pct",
    "agent_cpu_destination_pct",
    "busiest_cpu_source_pct",
    "busiest_cpu_destination_pct",
    "other_cpu_source_pct",
    "other_cpu_destination_pct",
)
"""In the order of the fields of `Processors`, of the sender and of the receiver in turn."""


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
        return shares["machine"] if shares["machine"] >= BUSY_PCT else max(shares.values())

    @property
    def others_pct(self) -> float | None:
        """What other programs took of the processors of a node that these kept busy; `None` where they did not."""
        if max(self._shares(by_run=False).values()) < BUSY_PCT:
            return None
        return most(end.others_pct for end in (self.sender, self.receiver) if not end.by_run)

    @property
    def agent_share(self) -> float | None:
        """Return the share of its threads' time that the busier agent used; `None` if one is unknown."""
        known = [end.agent_pct for end in (self.sender, self.receiver) if end.agent_pct is not None]
        return max(known) / 100 if len(known) == 2 else None

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


def busy_of(info: RunInfo, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> Busy:
    """Means over `rows`, streams of `cell`; nothing is known of processors that were busy waiting for messages."""
    if cell[BUSY_POLL]:
        return Busy()
    shares = [mean(row[name] for row in rows) for name in BUSY_COLUMNS]
    sender, receiver = Processors(*shares[0::2]), Processors(*shares[1::2])
    return Busy(sender, receiver, one_machine=info.plan.virtual not in (None, "machines"))


def evidence(
    efficiency_share: float | None,
    goodput_mbps: float | None = None,
    asked_mbps: float | None = None,
    flows: Sequence[Flow] = (),
    busy: Busy | None = None,
    window: CommonWindow | None = None,
    known_rtt_s: float | None = None,
    beside: Found | None = None,
    searched: bool = False,
) -> Evidence:
    """All that is known of a stream; `goodput_mbps` and `asked_mbps` are sums over `flows`, `beside` further fields.

    `searched`: the rate is what a search found, nobody requested it.
    """
    named = busy.limit if busy else None
    asked_share = goodput_mbps / asked_mbps if asked_mbps and goodput_mbps is not None else None
    seen = of_flows(flows, goodput_mbps, window, known_rtt_s)
    lost_share = seen.get("lost_share")
    passed = 1.0 - lost_share if lost_share is not None else None
    share = asked_share if asked_mbps else efficiency_share
    return Evidence(
        **seen,
        **(beside or {}),
        efficiency=efficiency_share,
        asked_share=None if searched else asked_share,
        sent_share=share / passed if share is not None and passed and seen.get("halves") is None else None,
        processors="others" if named == "unknown" else named,
        busy_pct=busy.highest_pct if busy else None,
        others_pct=busy.others_pct if busy else None,
        agent_share=busy.agent_share if busy else None,
    )


def named(streams: Iterable[tuple[Evidence, Verdict]], efficiency_share: float | None) -> Verdict:
    """The limit of a test: of its streams, of which `efficiency_share` is that of their sum."""
    seen = [(verdict, _short_mbps(own)) for own, verdict in streams]
    full = efficiency_share is not None and reaches(efficiency_share, LINE_RATE)
    whole = judged(Evidence(efficiency=efficiency_share)) if full and len(seen) > 1 else None
    return together(seen, whole)


def _short_mbps(seen: Evidence) -> float:
    """What a stream falls short of its ceiling."""
    return seen.goodput_mbps / seen.efficiency - seen.goodput_mbps if seen.goodput_mbps and seen.efficiency else 0.0
