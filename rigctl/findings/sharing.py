"""Say what streams do to each other: who gets how much of a port, head-of-line blocking, full buffers."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.views.disturbance import MUCH_LOSS_PCT, Disturbance, DisturbedBy, PhasedStream, PhasedTest
from rigctl.base.units import digits_text
from rigctl.base.values import group_by, most
from rigctl.figures.counters import SENDER_PAUSED
from rigctl.figures.probes import LOADED_P99
from rigctl.figures.streams import FAIRNESS, GOODPUT_LEAST
from rigctl.findings import Finding, Severity, Statement, Weight, note, tests, warning
from rigctl.findings.text import UNKNOWN, count_text, join_list, mean_mbps, pct_text, rate_text, time_text, upper_first
from rigctl.model.phases import DURING
from rigctl.results.summary import CellSummary

QUEUED_AT_SENDER: Final = warning(
    "class-queue-drops",
    "{stream} lost {loss} % while {load} sent, because the queue of {sender} drops.",
    "Ask for a lower rate, or give the sender's interface a longer queue (txqueuelen).",
    Weight.BOTTLENECK,
)
PAUSED: Final = note(
    "class-paused",
    "The switch stopped {sender} with {frames} pause frames: {stream} fell from {before} to {during} Mbit/s and lost "
    "nothing (back pressure).",
    "Turn off flow control at this port, and a full port drops instead of stopping the senders of others.",
    Weight.BOTTLENECK,
)
HELD: Final = warning(
    "class-held-back",
    "{stream} fell from {before} to {during} Mbit/s while {load} sent, and lost nothing, although both its links had "
    "room: something stopped {sender}. Pause frames do this; no counter tells.",
    "Read the pause frames of the switch and the cards, as with ethtool -S.",
    Weight.BOTTLENECK,
)
UNEXPLAINED: Final = note(
    "class-disturbed",
    "{stream} lost {loss} % while {load} sent, although the links that are known had room; the cause is unknown.",
    weight=Weight.BOTTLENECK,
)
INCAST_PROBES: Final = note(
    "incast-probes",
    "With {senders} senders a probe to {receiver} and back takes up to {waits} (p99): it waits in the port's queue.",
    weight=Weight.COMPARISON,
)
SHARES: Final = note(
    "class-shares",
    "The port of {receiver} carries {shares} Mbit/s while {load} sends.",
    weight=Weight.COMPARISON,
)
BUFFER_OR_BLOCKED: Final = note(
    "class-witness",
    "Head-of-line blocking and a buffer that ports share look alike here.",
    "Add a class from a node that does not send to {full}, as in witness: {{pairs: {full} -> {receiver}, test: udp, "
    "rate: 5%}}: if it loses nothing, frames wait behind others.",
    Weight.BOTTLENECK,
)

_GRAVEST: Final = (
    DisturbedBy.BLOCKED,
    DisturbedBy.BUFFER,
    DisturbedBy.BLOCKED_OR_BUFFER,
    DisturbedBy.PAUSED,
    DisturbedBy.HELD,
    DisturbedBy.QUEUE,
    DisturbedBy.UNKNOWN,
)
"""Causes that are no fault of the senders' rates, in the order in which an answer names them."""


def disturbance_findings(test: PhasedTest) -> Iterator[Finding]:
    """Yield the answer, who disturbs whom, and what else is known of each disturbed stream."""
    found = sorted(test.disturbances, key=lambda one: (_rank(one.cause), -(one.victim.more_loss_pct or 0.0)))
    passed = [(one, full) for one, full in test.behind_full_ports if one.lost_nothing]
    if passed and not any(one.cause in _GRAVEST for one in found):
        yield _passing_answer(test, *passed[0])
    else:
        yield from [_disturbed_answer(test, found[0])] if found else _undisturbed_answer(test)
    for receiver, own in group_by(found, lambda one: one.victim.stream.receiver).items():
        if own[0].cause is DisturbedBy.RECEIVER and own[0].shares:
            shares = [f"{name} {digits_text(mbps)}" for name, mbps in own[0].shares]
            words = {"receiver": receiver, "shares": join_list(shares), "load": _load_text(own[0])}
            yield SHARES.say(tests([one.victim.cell.cell.number for one in own]), dict(own[0].shares), **words)
    for one in found:
        yield from _explanations(one)


def _explanations(one: Disturbance) -> Iterator[Finding]:
    """Yield what is known of the cause of one disturbance, besides full links, which limits explain."""
    victim, about = one.victim, tests([one.victim.cell.cell.number])
    words = {"stream": str(victim.stream), "sender": victim.stream.sender, "load": _load_text(one)}
    loss = {"loss_pct": victim.loss_pct(DURING)}
    before, during = _rates(victim)
    match one.cause:
        case DisturbedBy.QUEUE:
            yield QUEUED_AT_SENDER.say(about, loss, loss=_loss_text(victim), **words)
        case DisturbedBy.PAUSED:
            frames = victim.results[SENDER_PAUSED]
            numbers = {"sender_paused": frames}
            yield PAUSED.say(about, numbers, frames=count_text(frames), before=before, during=during, **words)
        case DisturbedBy.HELD:
            yield HELD.say(about, before=before, during=during, **words)
        case DisturbedBy.UNKNOWN if victim.more_loss_pct is not None:
            yield UNEXPLAINED.say(about, loss, loss=_loss_text(victim), **words)
        case DisturbedBy.BLOCKED_OR_BUFFER if one.full is not None:
            yield BUFFER_OR_BLOCKED.say(about, full=one.full.stream.receiver, receiver=victim.stream.receiver)


def _rank(cause: DisturbedBy) -> int:
    return _GRAVEST.index(cause) if cause in _GRAVEST else len(_GRAVEST)


def _disturbed_answer(test: PhasedTest, worst: Disturbance) -> Finding:
    """Return the answer on the stream that is disturbed most, and why."""
    stream, load = worst.victim.stream, _load_text(worst)
    port, receiver = worst.victim.port_shares.get(DURING), stream.receiver
    lost = f"{stream} lost {_loss_text(worst.victim)} %"
    room = f"although the port of {receiver} was {_share_text(port)} full"
    behind = f"frames to {receiver} wait behind those to {worst.full.stream.receiver}" if worst.full else ""
    brief, text = {
        DisturbedBy.BLOCKED: (f"head-of-line blocking, {lost}", f"{room}; {behind}"),
        DisturbedBy.BUFFER: (f"a shared buffer is full, {lost}", f"{room}, as do frames to it from elsewhere"),
        DisturbedBy.BLOCKED_OR_BUFFER: (
            f"{lost} while {load} sent",
            f"{room}: {behind}, or a buffer that ports share is full",
        ),
        DisturbedBy.PAUSED: (_kept_text(worst), f"the switch stops {stream.sender} with pause frames (back pressure)"),
        DisturbedBy.TRUNK: (_kept_text(worst), "the link between the switches is full"),
        DisturbedBy.RECEIVER: (_kept_text(worst), f"the port of {receiver} is {_share_text(port)} loaded"),
    }.get(worst.cause, (_kept_text(worst), ""))
    about = tests([cell.cell.number for cell in test.cells])
    numbers = {"loss_pct": worst.victim.loss_pct(DURING), "port_share": port}
    holds = Statement(brief, [worst.victim], lambda one: one.disturbed, [worst.victim])
    whole = f"{upper_first(brief)}{text and f', {text}'}"
    return Finding("disturbance", whole, Weight.ANSWER, Severity.NOTE, about, numbers, None, brief, (holds,))


def _kept_text(worst: Disturbance) -> str:
    before, during = _rates(worst.victim)
    return f"{worst.victim.stream} falls from {before} to {during} Mbit/s while {_load_text(worst)} sends"


def _rates(one: PhasedStream) -> tuple[str, str]:
    """Return the goodput without the load and beside it, in Mbit/s."""
    alone, during = (rate_text(one.mbps(phase) or 0.0) for phase in (one.undisturbed, DURING))
    return alone, during


def _load_text(one: Disturbance) -> str:
    return join_list([cell.cell.traffic_class or "" for cell in one.load])


def _passing_answer(test: PhasedTest, one: PhasedStream, full: PhasedStream) -> Finding:
    """Return the answer that a stream lost nothing although its sender also sends to an overloaded port."""
    brief = f"no head-of-line blocking, {one.stream} lost nothing"
    share = full.port_shares.get(DURING)
    text = f"{upper_first(brief)} while the port of {full.stream.receiver} was {_share_text(share)} loaded"
    holds = Statement(brief, [one], lambda own: own.lost_nothing, [one])
    about = tests([cell.cell.number for cell in test.cells])
    return Finding("no-blocking", text, Weight.ANSWER, Severity.OK, about, {"port_share": share}, None, brief, (holds,))


def _undisturbed_answer(test: PhasedTest) -> Iterator[Finding]:
    """Yield the answer that no stream is disturbed; nothing if a phase was too short to tell."""
    if any(one.kept is None for one in test.streams):
        return
    about, streams = tests([cell.cell.number for cell in test.cells]), test.streams
    load = join_list([cell.cell.traffic_class or "" for cell in test.load])
    brief, sends = (
        (f"{load} disturbs nobody", f"{load} sends") if load else ("no class disturbs another", "others send")
    )
    most_pct = max((one.more_loss_pct or 0.0 for one in streams), default=0.0)
    text = f"{upper_first(brief)}; none loses {MUCH_LOSS_PCT:g} % more or 5 % of its goodput while {sends}"
    holds = Statement(brief, streams, lambda own: not own.disturbed, streams)
    numbers = {"more_loss_pct": most_pct}
    yield Finding("undisturbed", text, Weight.ANSWER, Severity.OK, about, numbers, None, brief, (holds,))


def _loss_text(one: PhasedStream) -> str:
    return pct_text(one.loss_pct(DURING) or 0.0)


def _share_text(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.0f} %"


_EVEN: Final = 0.95
"""From this Jain's index on, the senders share the port evenly."""


def is_incast(cells: Sequence[CellSummary]) -> bool:
    """Tell whether all tests send to one node, some of them from several nodes; traffic classes are no incast."""
    receivers = {stream.stream.receiver for cell in cells for stream in cell.streams}
    several = any(len({stream.stream.sender for stream in cell.streams}) > 1 for cell in cells)
    return len(receivers) == 1 and several and all(cell.cell.traffic_class is None for cell in cells)


def incast_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield the answer: what the most senders get together, the slowest of them, and how fair that is."""
    counted = [cell for cell in cells if cell.counted and len(cell.streams) > 1 and cell.goodput_mbps is not None]
    if not counted:
        return
    largest = max(counted, key=lambda cell: len(cell.streams))
    least_mbps, fairness = largest.results[GOODPUT_LEAST], largest.results[FAIRNESS]
    if least_mbps is None or fairness is None:
        return
    receiver, whole_mbps = largest.streams[0].stream.receiver, mean_mbps(largest.goodput_mbps) or 0.0
    how = "evenly" if fairness >= _EVEN else "unevenly"
    brief = f"{len(largest.streams)} senders share the port of {receiver} {how}"
    text = f"{brief}: {rate_text(whole_mbps)} Mbit/s in all, {rate_text(least_mbps)} for the slowest"
    text += f" (Jain's index {fairness:.3f})"
    holds = Statement(brief, largest.streams, lambda one: (mean_mbps(one.goodput_mbps) or 0.0) >= 0.999 * least_mbps)
    numbers = {"goodput_mbps": whole_mbps, "goodput_min_mbps": least_mbps, "fairness": fairness}
    subject = tests([largest.cell.number])
    yield Finding("incast", text, Weight.ANSWER, subject=subject, numbers=numbers, brief=brief, statements=(holds,))
    waits_us = most(stream[LOADED_P99] for stream in largest.streams)
    if waits_us is not None:
        words = {"receiver": receiver, "senders": len(largest.streams), "waits": time_text(waits_us)}
        yield INCAST_PROBES.say(subject, {"latency_loaded_p99_us": waits_us}, **words)
