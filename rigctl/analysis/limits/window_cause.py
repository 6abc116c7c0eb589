"""The cause of a window that is the limit: whose it is, whether it was requested, and which sysctl bounds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.model.limits.rules import Verdict
from rigctl.model.unknowns import least
from rigctl.records import Cell, Flow, RunInfo, Stream
from rigctl.settings import WINDOW

WINDOW_SCALING: Final = "net.ipv4.tcp_window_scaling"
UNSCALED_BYTES: Final = 65535
"""The largest window that the TCP header holds (RFC 9293); scaling (RFC 7323) is off for both ends if it is for one."""


@dataclass(frozen=True, slots=True)
class WindowCause:
    """The end whose window it is. `sysctl` bounds it, with its value; None if no sysctl does."""

    side: str  # "receive" or "send"
    node: str
    buffer_bytes: int | None  # as granted
    requested: bool
    sysctl: str | None = None
    value: str | None = None


def effective_window(info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow]) -> int | None:
    """Return the smallest window of the flows, at most what can be advertised without scaling."""
    granted = least(_granted_bytes(flow) for flow in flows)
    if granted is None or granted <= UNSCALED_BYTES or unscaled_node(info, cell, stream) is None:
        return granted
    return UNSCALED_BYTES


def _granted_bytes(flow: Flow) -> int | None:
    """Return half the smaller buffer: Linux doubles what it grants, for its own bookkeeping (socket(7))."""
    if flow.sender is None or flow.receiver is None:
        return None
    granted = (flow.sender.sndbuf_bytes, flow.receiver.rcvbuf_bytes)
    return None if granted[0] is None or granted[1] is None else min(granted[0], granted[1]) // 2


def unscaled_node(info: RunInfo, cell: Cell, stream: Stream) -> str | None:
    """Return the end that has window scaling off, the receiver first: then no window can exceed 65,535 bytes."""
    return next(
        (node for node in (stream.receiver, stream.sender) if sysctl_value(info, cell, node, WINDOW_SCALING) == "0"),
        None,
    )


def window_cause(
    info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow], verdict: Verdict, sndbuf_share: float | None
) -> WindowCause:
    """Return the cause of the window of a stream that `verdict` says is limited by it."""
    if (unscaled := unscaled_node(info, cell, stream)) is not None and verdict.cause != "send":
        held = [flow.sender.tcp.advertised_window_bytes for flow in flows if flow.sender is not None]
        known = [size for size in held if size is not None]
        granted = least(flow.receiver.rcvbuf_bytes for flow in flows if flow.receiver is not None)
        if known and max(known) <= UNSCALED_BYTES and (granted or 0) // 2 >= UNSCALED_BYTES:
            return WindowCause("receive", unscaled, granted, False, WINDOW_SCALING, "0")
    sends = verdict.cause == "send" or (sndbuf_share or 0.0) > 0.5
    side, node = ("send", stream.sender) if sends else ("receive", stream.receiver)
    ends = [flow.sender if sends else flow.receiver for flow in flows]
    granted = least((end.sndbuf_bytes if sends else end.rcvbuf_bytes) for end in ends if end is not None)
    asked = cell[WINDOW]
    letter = "w" if sends else "r"
    if asked is not None:
        cut = granted is not None and granted < 2 * asked  # Linux doubles what it grants (socket(7))
        name = f"net.core.{letter}mem_max"
        return WindowCause(side, node, granted, not cut, *((name, sysctl_value(info, cell, node, name)) if cut else ()))
    name = f"net.ipv4.tcp_{letter}mem"
    value = sysctl_value(info, cell, node, name)
    words = (value or "").split()
    bounds = granted is not None and len(words) == 3 and words[2].isdigit() and granted >= 0.95 * int(words[2])
    return WindowCause(side, node, granted, False, *((name, value) if bounds else ()))


def sysctl_value(info: RunInfo, cell: Cell, node: str, name: str) -> str | None:
    """Return the value of a sysctl as the condition sets it, else as the node had it."""
    for condition in info.plan.conditions:
        for setting in condition.settings:
            if condition.name == cell.condition and setting.kind == "sysctl" and setting.name == name:
                return setting.value
    found = (info.facts.get(node, {}).get("sysctls") or {}).get(name)
    return None if found is None else " ".join(str(found).split())
