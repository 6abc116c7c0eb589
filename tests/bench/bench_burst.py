"""Bursts: the buffer that rigctl computes against queues of known size.

`python tests/bench/bench_burst.py buffers [NAME…]`, as root. Hosts are network namespaces around a bridge
(tests/support/port_queue.py); the queueing discipline of the bridge's port to the receiver is the buffer. The numbers
come from the agents' reports, through the figures that a run prints and the search of `length: max`.

A token bucket (tbf) lets the frames pass at once for which it has tokens, and its queue keeps as many frames as its
limit has bytes for. It begins to send a frame when it has tokens for all of it, so that no frame is in flight besides:
the expectation is limit + bucket, each in whole frames. It is written here, before the first run.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from bench import ROOT, table
from port_queue import RECEIVER, Switched, address_of, switched
from talk import Report, Talk, begin, connecting

from rigctl.figures import FlowGroup
from rigctl.figures import bursts as figures
from rigctl.figures.figure import Wire
from rigctl.model.search import search
from rigctl.model.trials import LENGTH_OF_BURSTS, Trial
from rigctl.records import Cell, Datagrams, Direction, Flow, Pair, Repetition, Series, Side, Status
from rigctl.settings import LENGTH, MAX, Settings

AGENT: Final = ROOT / "agents" / "build" / "rigctl-agent"
HEADERS: Final = 14 + 20 + 8  # of a frame, as the kernel's queues count it: without its check sequence
BURSTS: Final = 5
MOST_TRIALS: Final = 12


@dataclass(frozen=True)
class Case:
    """A port with a known queue of `expected` frames. `senders`: rate of each; None: as fast as it can."""

    name: str
    rate: int  # drain in bit/s of frames as the kernel counts them
    size: int
    expected: int
    port: tuple[tuple[str, ...], ...]  # words of tc(8) for the port, and for its inner queue
    senders: tuple[int | None, ...] = (None,)


def _tbf(rate: int, bucket: int, limit: int) -> tuple[str, ...]:
    return "tbf", "rate", f"{rate}bit", "burst", f"{bucket}b", "limit", f"{limit}b"


def own_queue(rate: int, size: int, bucket: int, limit: int, senders: tuple[int | None, ...] = (None,)) -> Case:
    """Return a port with a token bucket, whose own queue takes `limit` bytes. `bucket` too is in bytes."""
    frame = size + HEADERS
    expected = limit // frame + bucket // frame
    name = f"tbf {rate / 1e6:g}M, {frame} B, limit {limit}, bucket {bucket}"
    return Case(name + _of(senders), rate, size, expected, (_tbf(rate, bucket, limit),), senders)


def inner(kind: str, rate: int, size: int, bucket: int, limit: int, senders: tuple[int | None, ...] = (None,)) -> Case:
    """Return a port with a token bucket above a queue: bfifo with `limit` bytes, or pfifo with `limit` packets."""
    frame = size + HEADERS
    expected = (limit // frame if kind == "bfifo" else limit) + bucket // frame
    name = f"{kind} {limit} below tbf {rate / 1e6:g}M, {frame} B, bucket {bucket}"
    words = (_tbf(rate, bucket, 10**7), (kind, "limit", str(limit)))
    return Case(name + _of(senders), rate, size, expected, words, senders)


def _of(senders: Sequence[int | None]) -> str:
    rates = [f"{rate / 1e6:g}M" for rate in senders if rate is not None]
    return f", from {' and '.join(rates)}" if rates else ""


CASES: Final = (
    own_queue(500_000, 1458, 3_000, 15_000),  # 10 + 2
    own_queue(1_000_000, 1458, 4_500, 30_000),  # 20 + 3
    own_queue(1_000_000, 458, 1_500, 20_000),  # 40 + 3
    own_queue(2_000_000, 1458, 3_000, 60_000),  # 40 + 2
    own_queue(2_000_000, 958, 5_000, 32_500),  # 32 + 5
    inner("bfifo", 1_000_000, 1458, 3_000, 22_500),  # 15 + 2
    inner("bfifo", 2_000_000, 210, 2_520, 25_200),  # 100 + 10
    inner("pfifo", 1_000_000, 1458, 3_000, 25),  # 25 + 2
    inner("pfifo", 2_000_000, 458, 1_500, 64),  # 64 + 3
    inner("pfifo", 2_000_000, 86, 1_280, 150),  # 150 + 10
    own_queue(5_000_000, 1458, 6_000, 75_000),  # 50 + 4
    own_queue(10_000_000, 1458, 6_152, 132_572),  # 88 + 4: a virtual link of 10 Mbit/s
    inner("bfifo", 20_000_000, 1458, 12_000, 150_000),  # 100 + 8
    inner("pfifo", 50_000_000, 958, 20_000, 200),  # 200 + 20
    inner("pfifo", 100_000_000, 1458, 30_000, 300),  # 300 + 20
    own_queue(200_000_000, 1458, 60_000, 600_000),  # 400 + 40
    inner("pfifo", 10_000_000, 1458, 6_000, 60, (20_000_000,)),  # 60 + 4, filled at twice the drain
    inner("bfifo", 10_000_000, 958, 4_000, 50_000, (40_000_000,)),  # 50 + 4, at four times the drain
    inner("pfifo", 10_000_000, 1458, 6_000, 50, (10_000_000, 10_000_000)),  # 50 + 4, two senders at 100 %
    inner("pfifo", 10_000_000, 1458, 6_000, 40, (10_000_000, 3_000_000)),  # 40 + 4, 100 % and 30 %
)


@dataclass(frozen=True)
class Measured:
    """Bursts of one length, as figures read them."""

    cell: Cell
    repetition: Repetition
    wire: Wire

    def __getitem__(self, figure: Any) -> Any:
        return figure.of(FlowGroup(self.cell, self.repetition.flows, wire=self.wire))


def wire_of(case: Case) -> Wire:
    """Return what a rig file tells of links: only that of the receiver, where senders do not end together."""
    frame = case.size + HEADERS
    alike = len(set(case.senders)) == 1
    return Wire() if alike else Wire({"receiver": case.rate * (frame + 24) // frame})


def cell_of(case: Case, length: int | str) -> Cell:
    pairs = tuple(Pair(f"sender {number}", "receiver") for number in range(len(case.senders)))
    asked = Settings({LENGTH: length})
    return Cell(1, "burst", pairs, 1.0, 0.0, 1, transport="udp", message_bytes=case.size, settings=asked)


def side_of(report: Report) -> Side:
    totals, counts = report.totals[0], report.datagrams[0]
    columns = dict(zip(report.columns, map(list, zip(*report.rows[0], strict=True)), strict=True))
    return Side(
        totals["bytes"],
        totals["first_byte_ns"],
        totals["last_byte_ns"],
        datagrams=Datagrams(counts["datagrams"], counts["refused"], overflow=counts["overflow"]),
        series=Series(columns),
    )


def joined(receiver: Talk, sender: Talk, number: int, how: Mapping[str, Any], window: int | None = None) -> None:
    """Connect endpoint 1 of a sender to an endpoint of the receiver that has the sender's number."""
    keys = connecting(0, **how).partition("bind=127.0.0.1")[2]
    more = "" if window is None else f"window={window}"
    answer = receiver.ask(f"listen endpoint={number + 1} address={RECEIVER} {keys} {more}")
    assert answer["ok"], answer
    side = f"address={RECEIVER} port={answer['port']} bind={address_of(number)}"
    answer = sender.ask(f"connect endpoint=1 {side}{keys}")
    assert answer["ok"], answer
    assert receiver.ask(f"ready endpoint={number + 1}")["ok"]


def measured(host: Switched, case: Case, length: int, number: int = 1, window: int | None = None) -> Measured:
    """Send `BURSTS` bursts of this length from each sender; return what came of them."""
    frame_s = 8 * (case.size + HEADERS) / case.rate
    every_ms = max(100, math.ceil(2000 * frame_s * length * len(case.senders)))
    how = {"extra": f"transport=udp test=burst size={case.size} length={length}", "interval_ms": every_ms}
    with ExitStack() as stack:
        receiver, *senders = (
            stack.enter_context(Talk([*end.enter, str(AGENT)], enter=end.enter))
            for end in (host.receiver, *host.senders)
        )
        for place, sender in enumerate(senders):
            joined(receiver, sender, place, how, window)
        at_ns = begin(senders[0], how=f"iterations={BURSTS}")
        for sender in senders[1:]:
            begin(sender, how=f"iterations={BURSTS}", at_ns=at_ns)
        for place in range(len(senders)):
            answer = receiver.ask(f"start endpoint={place + 1} at_ns={at_ns} duration_ms=300000")
            assert answer["ok"], answer
        for agent in (*senders, *(receiver for _ in senders)):
            event = agent.event("ended")
            assert event["error"] is None, event
        sent = [report_at(sender, 1) for sender in senders]
        came = [report_at(receiver, place + 1) for place in range(len(senders))]
    cell = cell_of(case, length)
    flows = [
        Flow(pair, Direction.FORWARD, 1, side_of(one), side_of(other))
        for pair, one, other in zip(cell.pairs, sent, came, strict=True)
    ]
    made = Repetition(1, number, 1, Status.OK, None, 0.0, 0.0, flows=tuple(flows), load=length)
    return Measured(cell, made, wire_of(case))


def report_at(agent: Talk, endpoint: int) -> Report:
    return Report(agent.answer(agent.send(f"report endpoint={endpoint}")))


def searched(host: Switched, case: Case) -> Iterator[Measured]:
    """Yield the trials of the search for the longest burst without loss; the first is three times the expectation."""
    length: int | None = 3 * case.expected // len(case.senders)
    trials: list[Trial] = []
    while length is not None and len(trials) < MOST_TRIALS:
        one = measured(host, case, length, len(trials) + 1)
        yield one
        trials.append(LENGTH_OF_BURSTS.trial(_plan(case), cell_of(case, MAX), one.repetition))
        length = search(LENGTH_OF_BURSTS, trials).following


def _plan(case: Case) -> Any:
    from builders import plan

    return replace(plan((cell_of(case, MAX),)), ip_version=4)


def shape(host: Switched, case: Case) -> None:
    first, *below = case.port
    host.queue("handle", "1:", *first)
    for words in below:
        host.switch.run("tc", "qdisc", "add", "dev", "p1", "parent", "1:1", *words)
    for number, rate in enumerate(case.senders):
        if rate is not None:
            host.limit(number, *_tbf(rate, 2 * (case.size + HEADERS), 10**7))


HEADS: Final = ("port", "expected", "longest", "at least", "buffer", "off", "±", "all with loss", "arrival", "drain")


def row_of(case: Case, every: Sequence[Measured]) -> tuple[bool, Sequence[str]]:
    """Return whether the buffer is within its error, and the row of a port; rates are in Mbit/s on the wire."""
    lossy = [one for one in every if one[figures.BUFFER_FRAMES] is not None]
    whole = [one for one in every if one[figures.BURST_LOSS] == 0]
    best = min(lossy, key=lambda one: float(one[figures.BUFFER_ERROR]))
    found = [one[figures.BUFFER_FRAMES] for one in lossy]
    off, error = best[figures.BUFFER_FRAMES] - case.expected, best[figures.BUFFER_ERROR]
    return abs(off) <= error, (
        case.name,
        str(case.expected),
        str(max((one[figures.BURST_LENGTH] for one in whole), default=0)),
        f"{max((one[figures.BUFFER_LEAST] or 0.0 for one in whole), default=0.0):.1f}",
        f"{best[figures.BUFFER_FRAMES]:.1f}",
        f"{off:+.1f}",
        f"{error:.1f}",
        f"{min(found):.1f}-{max(found):.1f} of {len(found)}",
        f"{best[figures.ARRIVAL]:.4g}",
        f"{best[figures.DRAIN]:.4g}",
    )


def buffers(names: Sequence[str]) -> None:
    good = []

    def rows() -> Iterator[Sequence[str]]:
        for case in CASES:
            if names and not any(name in case.name for name in names):
                continue
            with switched(len(case.senders)) as host:
                shape(host, case)
                within, row = row_of(case, list(searched(host, case)))
            good.append(within)
            yield row

    table("Buffers", HEADS, rows())
    print(f"{sum(good)} of {len(good)} within their error")


if __name__ == "__main__":
    what, *chosen = sys.argv[1:] or ["buffers"]
    {"buffers": buffers}[what](chosen)
