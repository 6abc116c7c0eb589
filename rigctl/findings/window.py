"""Sentences on windows and socket buffers: their upper bounds, and the sizes that kernels granted."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rigctl.base.units import digits_text, size_words
from rigctl.base.values import group_by
from rigctl.findings import Finding, Weight, good, note, tests, warning
from rigctl.findings.text import numbers_text, plural, rate_text
from rigctl.limits.ceilings import window_allows_bps, window_bps
from rigctl.limits.hosts import UNSCALED_BYTES, WINDOW_SCALING
from rigctl.settings import WINDOW

if TYPE_CHECKING:
    from rigctl.results.summary import CellSummary

SCALING_OFF: Final = warning(
    "window-scaling-off",
    "{sysctl} is 0: no flow to or from the node has more than 64 KiB in flight{at_most}.",
    "On the node, as root: sysctl -w {sysctl}=1",
)
WINDOW_CUT: Final = warning(
    "window-cut",
    "{option} is limited to {limit} by {sysctl}; {asking} up to {most}.",
    "On the node, as root: sysctl -w {sysctl}={most_bytes}",
)
BUFFERS: Final = good("buffers", "socket buffers may grow to what the links need.")
_GROW: Final = "{way} buffers grow to {most} at most ({sysctl})"
_RAISE: Final = "On the node, as root: sysctl -w {sysctl}='{values}'"
BUFFERS_SMALL: Final = warning(
    "buffers-small", f"{_GROW}: at a round trip of {{rtt_ms}} ms one flow gets about {{rate}}.", _RAISE
)
BUFFERS_UNLIKE: Final = warning(
    "buffers-unlike", f"{_GROW}, on another node to {{usual}}: a flow may be limited under load.", _RAISE
)
_GRANTED: Final = "A window of {asked} was requested; {granted} was granted{where}"
GRANTED_MORE: Final = warning("window-larger", f"{_GRANTED}: the kernel grants no less.", weight=Weight.GRANTED)
WINDOW_BOUND: Final = warning(
    "window-bound",
    f"{_GRANTED}, because of {{causes}}. Raise it there with sysctl for a larger window.",
    weight=Weight.GRANTED,
)
CUT_BY_KERNEL: Final = warning(
    "window-smaller",
    f"{_GRANTED}: the kernel cuts it at net.core.wmem_max of the sender and net.core.rmem_max of the receiver.",
    weight=Weight.GRANTED,
)
CUT_BY_SYSTEM: Final = warning("window-smaller", f"{_GRANTED}: no more is granted on {{nodes}}.", weight=Weight.GRANTED)
MORE_NOT_GRANTED: Final = warning(
    "windows-not-granted", "Further windows were not granted as requested: {tests}.", weight=Weight.GRANTED
)
LARGER_WINDOW: Final = "A larger window lifts this limit."
_LIMIT_WINDOW: Final = note("limit-window", "Limited by the {window}: {tests}; {why}.", "{remedy}", Weight.BOTTLENECK)


def window_limit_text(cell: "CellSummary") -> str:
    """Return the evidence that the window limits a test; empty if the evidence is incomplete."""
    cause, stream = cell.window_cause, cell.binding
    bounded = ""
    if cause is not None and cause.sysctl is not None:
        value = f' is "{cause.value}"' if cause.value is not None else " bounds it"
        bounded = f" The kernel of {cause.node} allows no more: {cause.sysctl}{value}."
    if stream is None or stream.goodput_mbps is None:
        return ""
    if cause is not None and cause.side == "send":
        size = "of an unknown size" if cause.buffer_bytes is None else f"of {size_words(round(cause.buffer_bytes))}"
        return (
            f"Limited by the window: the sender's buffer {size} was full, while the congestion window and the "
            f"receiver's window were not, at {rate_text(stream.goodput_mbps.mean)} Mbit/s.{bounded}"
        )
    seen, rtt_us, mss = stream.evidence, stream.rtt_min_us, stream.mss_effective or 1
    if seen.held_share is None or not (seen.window_bytes and rtt_us):
        return ""
    advertised = round(seen.window_bytes)
    allowed = cell.cell.parallel * window_allows_bps(advertised, mss, rtt_us) / 1e6
    flows = "" if cell.cell.parallel == 1 else f" on each of {cell.cell.parallel} flows"
    which = "" if len(cell.streams) == 1 else f" on {stream}"
    whole = advertised // mss
    sum_text = f" ({size_words(whole * mss)})" if whole * mss != advertised else ""
    filled = f", {plural(whole, 'whole segment')} of {mss} bytes{sum_text}" if whole else ""
    return (
        f"Limited by the window: the sender waited for it {100 * seen.held_share:.0f} % of the time. The receiver "
        f"advertised {size_words(advertised)}{flows}{which}{filled}, and a round trip took {digits_text(rtt_us / 1e3)} "
        f"ms at least: window ÷ round trip = {rate_text(allowed)} Mbit/s.{bounded}"
    )


def window_formula(cell: "CellSummary") -> str:
    """Return `8 KiB ÷ 5.01 ms = 13.1 Mbit/s`; empty if the receiver's window is unknown or not the limit."""
    stream, cause = cell.binding, cell.window_cause
    if stream is None or (cause is not None and cause.side == "send"):
        return ""
    advertised, rtt_us, flows = stream.evidence.window_bytes, stream.rtt_min_us, cell.cell.parallel
    if not (advertised and rtt_us):
        return ""
    size = (cell.cell[WINDOW] and stream.window_effective_bytes) or round(advertised)
    mbps = flows * window_bps(size, rtt_us / 1e6) / 1e6
    sizes = f"{f'{flows} × ' if flows > 1 else ''}{size_words(size)}"
    return f"{sizes} ÷ {digits_text(rtt_us / 1e3)} ms = {rate_text(mbps)} Mbit/s"


def slowest_with_window(held: Sequence["CellSummary"]) -> "CellSummary | None":
    """Return the test with the lowest goodput whose window and round trip are known; None if there is none."""
    known = [(cell.goodput_mbps.mean, cell) for cell in held if cell.goodput_mbps and window_formula(cell)]
    return min(known, key=lambda one: one[0])[1] if known else None


def window_findings(held: Sequence["CellSummary"], advised: bool) -> Iterator[Finding]:
    """Yield findings on windows that limit tests: one for each side (send, receive), and for each sysctl of a node."""

    def key(cell: "CellSummary") -> tuple[str, ...]:
        cause = cell.window_cause
        return () if cause is None else (cause.side, *((cause.node, cause.sysctl) if cause.sysctl else ()))

    for own in group_by(held, key).values():
        cause = own[0].window_cause
        nodes = {cell.window_cause.node for cell in own if cell.window_cause}
        window = f"{cause.side} window" if cause else "window"
        why = "the sender waited for it half the time or more"
        if any(((cell.binding and cell.binding.evidence.held_share) or 0.0) < 0.5 for cell in own):
            why = "the bytes in flight filled it"
        remedy = LARGER_WINDOW if any(cell.cell[WINDOW] for cell in own) else None
        if cause is not None and cause.sysctl is not None:
            why += f", and {cause.sysctl} of {cause.node} allows no more"
            remedy = raise_sysctl(cause.sysctl, cause.node)
        elif len(nodes) == 1:
            window += f" of {nodes.pop()}"
        if slowest := slowest_with_window(own):
            which = "" if len(own) == 1 else f"in test {slowest.cell.number}: "
            why += f"; {which}{window_formula(slowest)}"
        numbers = [cell.cell.number for cell in own]
        sentence = _LIMIT_WINDOW.advising(advised and remedy is not None)
        words = {"window": window, "tests": numbers_text(numbers), "why": why, "remedy": remedy}
        yield sentence.say(tests(numbers), dict(own[0].verdict.numbers), **words)


def raise_sysctl(sysctl: str, node: str) -> str:
    """Return the remedy for a window that the value of a sysctl bounds."""
    if sysctl == WINDOW_SCALING:
        return f"Set {sysctl} to 1 on {node}: without it no window exceeds {UNSCALED_BYTES:,} bytes."
    return f"Raise {sysctl}{' (its third value)' if sysctl.startswith('net.ipv4') else ''} on {node}."
