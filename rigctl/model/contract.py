"""Check a repetition: whether requested settings are in effect, and whether the repetition is valid."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rigctl.base.values import total
from rigctl.model.bonds import bond_of_facts
from rigctl.model.trials import searched_setting
from rigctl.model.window import CommonWindow
from rigctl.records import (
    Cell,
    Connections,
    Facts,
    Flow,
    Link,
    NodeUsage,
    RequestCounts,
    Side,
    by_stream,
    connect_failures,
)
from rigctl.settings import ITERATIONS, SETTINGS, WINDOW

_LATE_SHARE: Final = 0.1
"""Late flows may shorten the measurement interval by this share of the planned time, whatever `max_skew` is."""
_FILE_PIECE: Final = 64 * 1024
"""The sender of a file counts in pieces of this many bytes (docs/reference/agent-protocol.md, "Files")."""


_SHORTER_BURSTS: Final = "Send shorter bursts, or give its queue more room (`ip link set INTERFACE txqueuelen N`)"


@dataclass(frozen=True, slots=True)
class Departure:
    """A setting of a pair or node that is not in effect as requested. Both values are texts to print."""

    where: str
    setting: str  # name of the setting in a scenario, such as "window"; for a link "link speed" or "mtu"
    requested: str
    effective: str

    def __str__(self) -> str:
        return f"{self.where}: {self.setting} {self.requested} requested, {self.effective} effective"


def departures(cell: Cell, flows: Sequence[Flow]) -> Iterator[Departure]:
    """Yield the settings of `cell` that are not in effect for a flow; the same difference only once per pair."""
    yield from dict.fromkeys(departure for flow in flows for departure in _flow_departures(cell, flow))


def _flow_departures(cell: Cell, flow: Flow) -> Iterator[Departure]:
    if flow.sender is None or flow.receiver is None:
        return
    for setting in SETTINGS.values():
        asked = cell[setting]
        if asked is None or setting.effective is None or (setting is WINDOW and cell.resize):
            continue  # a window that the kernel resizes is not checked
        for side in (flow.sender, flow.receiver):
            effective = side[setting]
            if setting.effective.ends.has(sender=side.sending) and setting.differs(asked, side, effective):
                yield Departure(str(flow.pair), setting.name, str(asked), str(effective))


def link_departures(links: dict[str, Link], facts: dict[str, Facts]) -> Iterator[Departure]:
    """Yield each link speed and MTU of a node that differs from the rig file. Skip unknown facts."""
    for node, link in links.items():
        speed_bps, mtu = facts.get(node, {}).get("speed_bps"), facts.get(node, {}).get("mtu")
        bond = bond_of_facts(facts.get(node, {}))  # the rate may be that of one card
        if speed_bps is not None and link.rate_bps not in (None, speed_bps, bond and bond.card_bps):
            yield Departure(node, "link speed", str(link.rate_bps), str(speed_bps))
        if link.mtu is not None and mtu is not None and mtu != link.mtu:
            yield Departure(node, "mtu", str(link.mtu), str(mtu))


def reason_unfinished(cell: Cell, flows: Sequence[Flow]) -> str | None:
    """Return the error text if a flow completed no message or fewer than requested; None if all flows finished."""
    own = _UNFINISHED.get(cell.test)
    if own is not None:
        return own(cell, flows)
    if cell.message_bytes is None:
        return "the plan does not give the message size"
    wanted = cell[ITERATIONS]
    for flow in flows:
        done = _messages(flow, cell.message_bytes)
        if not done or (wanted is not None and done < wanted):
            asked = "" if wanted is None else f" of {wanted:,}"
            longer = "a longer duration" if wanted is None else "a longer duration, or request fewer"
            return f"{flow.pair}: {done:,}{asked} messages in its {cell.duration_s:g} s. Give it {longer}"
    return None


def _none_connected(cell: Cell, flows: Sequence[Flow]) -> str | None:
    """Return the error text if a pair completed no connection, or fewer than requested; else None."""
    wanted = cell[ITERATIONS]
    for stream, own in by_stream(flows).items():
        senders = [flow.sender for flow in own if flow.sender is not None]
        failed = connect_failures(counts for side in senders if (counts := side.counted(Connections)) is not None)
        done = sum(side.bytes for side in senders)
        if done == 0:
            why = ", ".join(f"{count} × {name}" for name, count in failed.most_common())
            return f"{stream}: no connection was completed in {cell.sending_s:g} s{f': {why}' if why else ''}"
        asked = 0 if wanted is None else wanted * cell.parallel
        if done + failed.total() < asked:
            return f"{stream}: {done:,} of {asked:,} connections in {cell.sending_s:g} s. Give it a longer duration"
    return None


def _none_answered(cell: Cell, flows: Sequence[Flow]) -> str | None:
    """Return the error text if no request of a flow was answered, or fewer were due than requested; else None."""
    wanted = cell[ITERATIONS]
    for flow in flows:
        counts = flow.sender.counted(RequestCounts) if flow.sender is not None else None
        done = _messages(flow, cell.message_bytes or 1)
        due = done if counts is None else done + counts.unanswered + counts.unsent
        if not done and searched_setting(cell) is None:
            return f"{flow.pair}: none of {due:,} requests was answered within {cell.sending_s:g} s, or 2 s later"
        if wanted is not None and due < wanted:
            return f"{flow.pair}: {due:,} of {wanted:,} requests were due in {cell.sending_s:g} s. Give it longer"
    return None


def _none_sent(cell: Cell, flows: Sequence[Flow]) -> str | None:
    """Return the error text if a sender sent no datagram; else None."""
    for flow in flows:
        if flow.sender is not None and not flow.sender.bytes:
            return f"{flow.stream.sender} sent no datagram in {cell.sending_s:g} s"
    return None


_UNFINISHED: Final[Mapping[str, Callable[[Cell, Sequence[Flow]], str | None]]] = {
    "connect": _none_connected,
    "requests": _none_answered,
    "burst": _none_sent,
    "multicast": _none_sent,
}
"""Maps a kind of test to the function that tells why its flows have not finished; other kinds count messages."""


def broken_bursts_reason(cell: Cell, flows: Sequence[Flow], nodes: Sequence[NodeUsage]) -> str | None:
    """Return why bursts did not reach the network as sent, so that they say nothing about it; None if they did."""
    if not cell.kind.by_burst:
        return None
    for flow in flows:
        refused = flow.sender.datagrams.refused if flow.sender is not None and flow.sender.datagrams is not None else 0
        if refused:
            return f"{flow.stream.sender}: its own queue refused {refused:,} datagrams. {_SHORTER_BURSTS}"
    for stream, own in by_stream(flows).items():
        nic = next((usage.nic for usage in nodes if usage.node == stream.sender), None)
        for name in ("queue_drops", "tx_dropped") if nic is not None else ():
            if dropped := getattr(nic, name):
                return f"{stream.sender}: its own queue or card dropped {dropped:,} frames ({name}). {_SHORTER_BURSTS}"
        sent = total(flow.sender.datagrams.count for flow in own if flow.sender and flow.sender.datagrams)
        passed = None if nic is None else nic.tx_packets
        if sent is not None and passed is not None and passed < sent:
            return f"{stream.sender}: its card sent {passed:,} frames of {sent:,} datagrams"
    return None


def impossible_reason(cell: Cell, flows: Sequence[Flow]) -> str | None:
    """Return the error text if the reports on a flow contradict each other; None if they are plausible.

    A receiver cannot count more bytes than the sender handed to its kernel. The samples of a counter cannot fall, and
    cannot exceed the final total.
    """
    for flow in flows:
        sent, received = flow.sender, flow.receiver
        sender, receiver = flow.stream.ends
        for node, side in ((sender, sent), (receiver, received)):
            if side is not None and (reason := _contradictory(side)) is not None:
                return f"{node} reports {reason}. Its agent is not rigctl's"
        if sent is None or received is None or cell.kind.connects:
            continue  # a connection may be served by the thread of another flow
        pairs = [(received.bytes, _most_bytes(cell, sent), "bytes")]
        if sent.datagrams is not None and received.datagrams is not None:
            pairs.insert(0, (received.datagrams.count, sent.datagrams.count, "datagrams"))
        for arrived, left, unit in pairs:
            if arrived > left:
                return (
                    f"{receiver} reports {arrived:,} {unit} received, {sender} sent {left:,}. Another host sends to "
                    "the same port, or the agent of one of them is not rigctl's"
                )
    return None


def _contradictory(side: Side) -> str | None:
    counts = side.series.columns.get("bytes", [])
    for before, after in pairwise(counts):
        if after < before:
            return f"{after:,} bytes after {before:,}: its counter falls"
    if counts and counts[-1] > side.bytes:
        return f"{counts[-1]:,} bytes in a sample, but only {side.bytes:,} in total"
    return None


def _most_bytes(cell: Cell, sent: Side) -> int:
    """Return the most bytes that can have arrived: the sender does not count an unfinished message or file piece."""
    if sent.datagrams is not None and cell.message_bytes is not None:
        return max(sent.bytes, sent.datagrams.count * cell.message_bytes)
    if (counts := sent.counted(RequestCounts)) is not None:
        return sent.bytes + counts.unanswered * (cell.message_bytes or 0)
    unfinished = (cell.message_bytes or 0) if cell.in_messages else 0
    return sent.bytes + (min(unfinished, _FILE_PIECE) if cell.test == "file" else unfinished)


def _messages(flow: Flow, size: int) -> int:
    """Return the number of messages that a flow completed; for UDP the number sent, or 0 if none was answered."""
    side = flow.sender
    if side is None or side.bytes == 0:
        return 0
    return side.bytes // size if side.datagrams is None else side.datagrams.count


def invalid_reason(
    cell: Cell, window: CommonWindow | None, nodes: Sequence[NodeUsage], max_skew_s: float, skew_known: bool = True
) -> str | None:
    """Return why a repetition is invalid; None if it is valid.

    The start skew, if known, may be at most `max_skew_s`. The measurement interval may be shorter than planned by
    `max_skew_s` or by a tenth of the planned time, whichever is more.
    """
    if window is None:
        return "a flow transferred nothing in the measurement interval"
    if skew_known and window.skew_ns > max_skew_s * 1e9:
        skew_ms, limit_ms = window.skew_ns / 1e6, max_skew_s * 1e3
        decimals = next((count for count in (1, 3) if round(skew_ms, count) > limit_ms), 6)
        return f"start skew {skew_ms:.{decimals}f} ms exceeds the limit of {limit_ms:g} ms"
    asked_s = cell.sending_s - cell.omit_s
    least_s = asked_s - max(_LATE_SHARE * asked_s, max_skew_s)
    if window.length_s < least_s:
        return f"all flows ran together for {window.length_s:.2f} s of {asked_s:g} s (minimum {least_s:.2f} s)"
    throttled = ", ".join(usage.node for usage in nodes if usage.throttled)
    if throttled:
        return f"the firmware throttled the CPU of {throttled}. Cool the node or check its power supply"
    return None
