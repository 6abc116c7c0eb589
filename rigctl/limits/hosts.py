"""Hosts as a limit: how busy the run and other programs kept their processors, and which end's window is too small.

The rules on processors precede most others, as a sender waits for a window also if the receiver gets no processor.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rigctl.base.values import divide, least, least_of_all, mean, most
from rigctl.limits.rules import Diagnosis, Evidence
from rigctl.records import Cell, Flow, NodeUsage, RunInfo, Stream, host_system
from rigctl.settings import BUSY_POLL, WINDOW
from rigctl.settings.kinds import AGENT

_BUSY_PCT: Final = 95.0  # processors that are busy for at least this share of the time are the limit
_OTHERS_SHARE: Final = 0.25
"""If other programs took a larger share of a node's busy time, they and not the run kept the node busy."""
PROCESSORS: Final = ("machine", "sender", "receiver")
"""The limits that mean busy processors: of the machine of a virtual rig, of the sender, of the receiver."""

BUSY_COLUMNS: Final = tuple(
    f"{busy}_{end}_pct"
    for busy in ("cpu", "agent_cpu", "busiest_cpu", "other_cpu")
    for end in ("source", "destination")
)
"""Columns of processor use: for each field of `Processors` the sender's column, then the receiver's."""
_LEAST_SPAN_US: Final = 200_000
"""Shortest time over which processor use is computed, as /proc/stat counts ticks of 10 ms: a tick is at most 5 %."""


class Processors(NamedTuple):
    """How busy a node's processors were, in per cent of their capacity; None if unknown."""

    node_pct: float | None = None  # mean over all processors
    agent_pct: float | None = None  # CPU time of the agent ÷ (elapsed time × its threads, at most one per processor)
    busiest_pct: float | None = None  # use of the busiest processor
    others_pct: float | None = None  # share of all processors that programs outside the run took

    @property
    def by_run(self) -> bool:
        """Tell whether the run, more than other programs, kept the processors busy; False if unknown."""
        if self.node_pct is None or self.others_pct is None:
            return False
        return self.others_pct <= _OTHERS_SHARE * self.node_pct


class ProcessorUse(NamedTuple):
    """How busy the processors at both ends of a stream were."""

    sender: Processors = Processors()
    receiver: Processors = Processors()
    one_machine: bool = False  # True if the nodes are virtual and share the processors of one machine
    by_agents: bool = False  # True if agents measured the test; other engines do not read processors
    polls: bool = False  # True if the test uses busy polling, which keeps processors busy

    @property
    def is_known(self) -> bool:
        """Tell whether it is known if processors were busy."""
        ends = [end.node_pct is not None and end.others_pct is not None for end in (self.sender, self.receiver)]
        return self.limit is not None or (any(ends) if self.one_machine else all(ends))

    @property
    def limit(self) -> str | None:
        """Return `machine`, `sender` or `receiver`: the processors that the run kept busiest, if at least 95 % busy.

        Return `unknown` if only other programs kept processors that busy, and None if nothing did.
        """
        name, pct = self._busiest
        return name if pct >= _BUSY_PCT else None if self.others_pct is None else "unknown"

    @property
    def highest_pct(self) -> float:
        """Return how busy the run kept the busiest processor of its nodes, in per cent."""
        return self._busiest[1]

    @property
    def _busiest(self) -> tuple[str, float]:
        shares = self._shares(by_run=True)
        name = "machine" if shares["machine"] >= _BUSY_PCT else max(shares, key=lambda name: shares[name])
        return name, shares[name]

    @property
    def others_pct(self) -> float | None:
        """Return how many per cent of a node's processors other programs took; None if they kept no node busy."""
        if max(self._shares(by_run=False).values()) < _BUSY_PCT:
            return None
        return most(end.others_pct for end in (self.sender, self.receiver) if not end.by_run)

    @property
    def agent_share(self) -> float | None:
        """Return `agent_pct` of the busier agent as a share (1: fully busy); None if unknown for either agent."""
        known = [end.agent_pct for end in (self.sender, self.receiver) if end.agent_pct is not None]
        return max(known) / 100 if len(known) == 2 else None

    def _shares(self, by_run: bool) -> dict[str, float]:
        """Return how busy (%) the run, or other programs, kept the machine, the sender and the receiver.

        The agent's threads belong to the run. On a virtual rig the busiest processor is ignored: all nodes share it.
        """
        shares = dict.fromkeys(PROCESSORS, 0.0)
        for name, end in (("sender", self.sender), ("receiver", self.receiver)):
            own = [end.agent_pct] if by_run else []
            if end.by_run == by_run and self.one_machine:
                shares["machine"] = max(shares["machine"], end.node_pct or 0.0)
            elif end.by_run == by_run:
                own += [end.node_pct, end.busiest_pct]
            shares[name] = most(own) or 0.0
        return shares


def busy_of(info: RunInfo, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> ProcessorUse:
    """Return the mean processor use of `rows`, the streams of `cell`; all None if the test uses busy polling."""
    if cell[BUSY_POLL]:
        return ProcessorUse(polls=True)
    shares = [mean(row[name] for row in rows) for name in BUSY_COLUMNS]
    sender, receiver = Processors(*shares[0::2]), Processors(*shares[1::2])
    one_machine = info.plan.virtual not in (None, "machines")
    return ProcessorUse(sender, receiver, one_machine, by_agents=cell.engine == AGENT)


def processors_of_node(usage: NodeUsage | None, threads: int, run_us: float | None) -> Processors:
    """Return how busy a node's processors were. The agent had `threads` threads; the run took `run_us` of CPU time.

    The kernel may charge a softirq to two processes. So the share of other programs is kept at 0 or more.
    """
    if usage is None or not usage.span_us:
        return Processors()
    span_us, cpus, node_us, agent_us = usage.span_us, usage.cpus, usage.node_busy_us, usage.agent_cpu_us

    def busy_pct(busy_us: float | None, count: int | None) -> float | None:
        if busy_us is None or not count or span_us < _LEAST_SPAN_US:
            return None
        return min(100.0, 100 * busy_us / count / span_us)

    others_us = None if node_us is None or run_us is None else max(0.0, node_us - run_us)
    most_us = span_us * min(threads, cpus or 0)
    return Processors(
        busy_pct(node_us, cpus),
        100 * agent_us / most_us if agent_us is not None and most_us else None,
        busy_pct(usage.busiest_cpu_us, 1),
        busy_pct(others_us, cpus),
    )


WINDOW_SCALING: Final = "net.ipv4.tcp_window_scaling"
UNSCALED_BYTES: Final = 65535
"""Largest window without scaling (RFC 9293). Scaling (RFC 7323) works only if both ends have it on."""


class BufferBound(NamedTuple):
    """The sysctls that bound a socket buffer: one whose size the kernel adapts, and one of a requested size."""

    autotuned: str
    requested: str


BUFFER_BOUNDS: Final[Mapping[str, Mapping[str, BufferBound]]] = {
    "Linux": {  # tcp(7), socket(7)
        "receive": BufferBound("net.ipv4.tcp_rmem", "net.core.rmem_max"),
        "send": BufferBound("net.ipv4.tcp_wmem", "net.core.wmem_max"),
    },
    "FreeBSD": {  # tcp(4), setsockopt(2)
        "receive": BufferBound("net.inet.tcp.recvbuf_max", "kern.ipc.maxsockbuf"),
        "send": BufferBound("net.inet.tcp.sendbuf_max", "kern.ipc.maxsockbuf"),
    },
}
"""Maps an operating system to the bounds of its receive and send buffers. Windows has no sysctls."""


@dataclass(frozen=True, slots=True)
class WindowCause:
    """The end whose buffer limits the window, and the sysctl (with its value) that limits the buffer, if any."""

    side: str  # whose buffer: "receive" or "send"
    node: str
    buffer_bytes: float | None  # smallest buffer size that the kernel granted
    sysctl: str | None = None
    value: str | None = None


def effective_window(info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow]) -> int | None:
    """Return the smallest granted window of the flows in bytes, at most 65,535 without window scaling, or None."""
    ends = ((flow.sender, flow.receiver) for flow in flows)
    granted = least(least_of_all(side[WINDOW] if side else None for side in both) for both in ends)
    if granted is None or granted <= UNSCALED_BYTES or node_without_scaling(info, cell, stream) is None:
        return granted
    return UNSCALED_BYTES


def node_without_scaling(info: RunInfo, cell: Cell, stream: Stream) -> str | None:
    """Return the node of a stream that has window scaling off, the receiver first; None if both have it on."""
    return next(
        (node for node in (stream.receiver, stream.sender) if sysctl_value(info, cell, node, WINDOW_SCALING) == "0"),
        None,
    )


def window_cause(info: RunInfo, cell: Cell, stream: Stream, seen: Evidence, verdict: Diagnosis) -> WindowCause:
    """Return which buffer and which sysctl limit the window, for a stream whose `verdict` is the limit `window`."""
    unscaled = node_without_scaling(info, cell, stream) if verdict.cause != "send" else None
    if unscaled is not None and (seen.window_bytes or math.inf) <= UNSCALED_BYTES <= (seen.receive_window_bytes or 0):
        return WindowCause("receive", unscaled, seen.rcvbuf_bytes, WINDOW_SCALING, "0")
    waits_for_buffer = (divide(seen.sndbuf_share, seen.held_share) or 0.0) > 0.5
    sends = verdict.cause == "send" or waits_for_buffer
    side, node = ("send", stream.sender) if sends else ("receive", stream.receiver)
    granted = seen.sndbuf_bytes if sends else seen.rcvbuf_bytes
    asked, bounds = cell[WINDOW], BUFFER_BOUNDS.get(host_system(info.facts.get(node, {})) or "Linux", {})
    if granted is None or side not in bounds:
        return WindowCause(side, node, granted)
    name = bounds[side].autotuned if asked is None else bounds[side].requested
    value = sysctl_value(info, cell, node, name)
    if asked is None:
        words = (value or "").split()  # Linux has the largest size as the third number
        is_bound = len(words) in (1, 3) and words[-1].isdigit() and granted >= 0.95 * int(words[-1])
    else:
        window = seen.send_window_bytes if sends else seen.receive_window_bytes
        is_bound = window is not None and window < asked
    return WindowCause(side, node, granted, *((name, value) if is_bound else ()))


def sysctl_value(info: RunInfo, cell: Cell, node: str, name: str) -> str | None:
    """Return the value of a sysctl in a test: as its condition sets it, or else as the node had it; None if unknown.

    FreeBSD and Windows lack the sysctls that rigctl asks for by Linux's names, so a condition cannot set them there.
    """
    own = info.facts.get(node, {})
    for condition in info.plan.conditions if host_system(own) in (None, "Linux") else ():
        for setting in condition.settings:
            if condition.name == cell.condition and setting.kind == "sysctl" and setting.name == name:
                return setting.value
    found = (own.get("sysctls") or {}).get(name)
    return None if found is None else " ".join(str(found).split())
