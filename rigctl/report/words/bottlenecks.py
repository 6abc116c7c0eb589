"""What limits a test, in a sentence: the window and what it allows, processors and how busy they were, or losses."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from rigctl.analysis.limits.evidence import window_allows_bps
from rigctl.analysis.limits.processors import PROCESSORS
from rigctl.analysis.limits.window_cause import UNSCALED_BYTES, WINDOW_SCALING, WindowCause
from rigctl.analysis.summary import CellSummary
from rigctl.base.units import size_words
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.words.limits import limit_findings, limit_text, other_link, other_text
from rigctl.report.words.per_stream import MOST_LISTED
from rigctl.report.words.text import few_text, listed, numbers_text, plural, rate_text
from rigctl.settings import WINDOW

_HALF: Final = 0.5
_SHARED: Final = "the processors of the one machine that all virtual nodes share were busy"
_OWN: Final = "processors of its node, or its agent's threads, were busy"


def bottleneck_text(cell: CellSummary) -> str:
    """Of one test; empty where its limit explains itself or is unknown, and no pair has another."""
    return " ".join(filter(None, (_bottleneck(cell), _unlike(cell))))


def _unlike(cell: CellSummary) -> str:
    """Pairs whose limits differ: each with its own, or the number that have each."""
    limits = Counter(stream.limit for stream in cell.streams)
    if len(limits) < 2:
        return ""
    if len(cell.streams) <= MOST_LISTED:
        return f"By pair: {', '.join(f'{stream} {stream.limit}' for stream in cell.streams)}."
    return f"By pair: {listed([f'{count} {limit}' for limit, count in limits.most_common()])}."


def _bottleneck(cell: CellSummary) -> str:
    if said := limit_text(cell):
        return said
    if cell.limit == "window":
        return _send_buffer(cell) if cell.window_cause and cell.window_cause.side == "send" else _window(cell)
    if cell.limit == "loss":
        return _losses(cell)
    return _busy(cell) if cell.limit in PROCESSORS else _others(cell)


def _losses(cell: CellSummary) -> str:
    share = cell.verdict.numbers.get("lost_share")
    if cell.losses is None or cell.verdict.rule != "losses":
        missing = "" if cell.verdict.numbers.get("halves") is not False else f". {_uncut(cell)}"
        return f"Limited by losses: {_lost(share)} lost{missing}." if isinstance(share, float) else ""
    return (
        f"Limited by losses: {_lost(cell.losses.lost_share)} lost, and a round trip took "
        f"{cell.losses.rtt_us / 1e3:.3g} ms. By the rule of Mathis et al. a flow then achieves about "
        f"{rate_text(cell.losses.allowed_mbps)} Mbit/s, more where several are lost at once."
    )


def _busy(cell: CellSummary) -> str:
    busy = f"{cell.busy.highest_pct:.0f} % of the time"
    if cell.limit == "machine":
        return f"Limited by processors: {_SHARED} {busy}."
    return f"Limited by the {cell.limit}: {_OWN} {busy}."


def _others(cell: CellSummary) -> str:
    if cell.limit != "unknown":
        return ""
    if cell.verdict.cause == "traffic":
        return f"Limit unknown: {other_text(cell)}."
    if cell.verdict.cause == "refuted":
        return f"Limit unknown: {_refuting(cell)}."
    if cell.verdict.cause == "above" or cell.busy.others_pct is None:
        return ""
    return (
        f"Limit unknown: processors were busy, {cell.busy.others_pct:.0f} % of them with programs that are not part of "
        "the run."
    )


def _lost(share: float) -> str:
    few = few_text(share)
    return f"{few} of the segments were" if few.endswith("%") else f"{few} segments was"


def _uncut(cell: CellSummary) -> str:
    """Under a congestion control that does not cut its window at each loss."""
    used = cell.binding.congestion if cell.binding else None
    return f"{used or 'The congestion control'} does not cut its window at each loss; what is lost is missing"


def _refuting(cell: CellSummary) -> str:
    """Losses that don't explain the goodput."""
    seen, own = cell.verdict.numbers, cell.verdict.numbers.get("goodput_mbps")
    share, allows = seen.get("lost_share"), seen.get("loss_allows")
    if not (isinstance(share, float) and isinstance(allows, float) and isinstance(own, float)):
        return "losses do not explain the goodput"
    return (
        f"{_lost(share)} lost, which by the rule of Mathis et al. allows {rate_text(allows * own)} Mbit/s, and "
        f"{rate_text(own)} Mbit/s were achieved"
    )


def _window(cell: CellSummary) -> str:
    """What the window allows per round trip, and that nearly all of it was achieved."""
    stream = cell.binding
    if stream is None or cell.held_share is None:
        return ""
    if not (stream.advertised_bytes and stream.rtt_min_us and stream.goodput_mbps):
        return ""
    advertised, rtt_us = round(stream.advertised_bytes), stream.rtt_min_us
    mss = stream.mss_effective or 1
    allowed = cell.cell.parallel * window_allows_bps(advertised, mss, rtt_us) / 1e6
    flows = "" if cell.cell.parallel == 1 else f" on each of {cell.cell.parallel} flows"
    which = "" if len(cell.streams) == 1 else f" on {stream}"
    whole = advertised // mss
    sum_text = f" ({size_words(whole * mss)})" if whole * mss != advertised else ""
    filled = f", {plural(whole, 'whole segment')} of {mss} bytes{sum_text}" if whole else ""
    return (
        f"Limited by the window: the sender waited for it {100 * cell.held_share:.0f} % of the time. The receiver "
        f"advertised {size_words(advertised)}{flows}{which}{filled}, and a round trip took {rtt_us / 1e3:.3g} ms at "
        f"least: window ÷ round trip = {rate_text(allowed)} Mbit/s."
        f"{_bounded(cell.window_cause)}"
    )


def _send_buffer(cell: CellSummary) -> str:
    """How much was in flight, and why not more."""
    cause, rate = cell.window_cause, cell.binding.goodput_mbps if cell.binding else None
    if cause is None or rate is None:
        return ""
    size = "of an unknown size" if cause.buffer_bytes is None else f"of {size_words(cause.buffer_bytes)}"
    return (
        f"Limited by the window: the sender's buffer {size} was full, while the congestion window and the receiver's "
        f"window were not, at {rate_text(rate.mean)} Mbit/s.{_bounded(cause)}"
    )


def _bounded(cause: WindowCause | None) -> str:
    if cause is None or cause.sysctl is None:
        return ""
    value = f' is "{cause.value}"' if cause.value is not None else " bounds it"
    return f" The kernel of {cause.node} allows no more: {cause.sysctl}{value}."


def bottleneck_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Which tests the window limits, which processors do, and which losses."""
    yield from _windows([cell for cell in cells if cell.limit == "window"])
    yield from limit_findings(cells)
    for limit in PROCESSORS:
        bound = [cell for cell in cells if cell.limit == limit and cell.verdict.rule == "processors"]
        if not bound:
            continue
        shares = [cell.busy.highest_pct for cell in bound]
        busy = f"{_from_to(shares)} % of the time"
        which = numbers_text(_numbers(bound))
        text = (
            f"Limited by processors: {which}; {_SHARED} {busy}."
            if limit == "machine"
            else f"Limited by the {limit}: {which}; {_OWN} {busy}."
        )
        remedy = "Nodes with processors of their own may achieve more." if limit == "machine" else None
        numbers = {"busy_pct": max(shares)}
        yield Finding(text, Weight.BOTTLENECK, Severity.WARNING, tests(_numbers(bound)), numbers, remedy)
    yield from _disturbed(cells)
    yield from _unexplained(cells)
    lossy = [cell for cell in cells if cell.limit == "loss"]
    if lossy:
        yield from _lossy(lossy)


def _lossy(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """One for tests whose congestion control cuts its window at each loss, and one for the others."""
    groups: dict[str, list[CellSummary]] = {}
    for cell in cells:
        halves = cell.verdict.numbers.get("halves")
        why = "each loss cuts the congestion window of its flow" if halves else "what is lost is missing"
        if halves is False:
            why = _uncut(cell)
        groups.setdefault(why, []).append(cell)
    for why, own in groups.items():
        text = f"Limited by losses: {numbers_text(_numbers(own))}; {why}."
        yield Finding(text, Weight.BOTTLENECK, Severity.WARNING, tests(_numbers(own)))


def _unexplained(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Tests whose limit is unknown because other traffic, or losses, may or may not be it."""
    for cell in cells:
        if cell.limit != "unknown" or cell.verdict.cause not in ("traffic", "refuted"):
            continue
        why, remedy = _refuting(cell), "Measure longer."
        if cell.verdict.cause == "traffic":
            why, remedy = other_text(cell), f"Measure while {other_link(cell)} carries nothing else."
        text = f"Limit unknown: test {cell.cell.number}; {why}."
        numbers = dict(cell.verdict.numbers)
        yield Finding(text, Weight.BOTTLENECK, Severity.NOTE, tests([cell.cell.number]), numbers, remedy)


def _windows(held: Sequence[CellSummary]) -> Iterator[Finding]:
    """One for each side whose window was requested or is the kernel's own, one for each sysctl that bounds others."""
    by_cause: dict[tuple[str, ...], list[CellSummary]] = {}
    for cell in held:
        cause = cell.window_cause
        key: tuple[str, ...] = (cause.side,) if cause else ()
        if cause is not None and cause.sysctl is not None:
            key = (cause.side, cause.node, cause.sysctl)
        by_cause.setdefault(key, []).append(cell)
    for own in by_cause.values():
        which, cause, numbers = numbers_text(_numbers(own)), own[0].window_cause, dict(own[0].verdict.numbers)
        nodes = {cell.window_cause.node for cell in own if cell.window_cause}
        window = f"{cause.side} window" if cause else "window"
        why = "the sender waited for it half the time or more"
        if any((cell.held_share or 0.0) < _HALF for cell in own):
            why = "the bytes in flight filled it"
        remedy = _larger(own)
        if cause is not None and cause.sysctl is not None:
            why += f", and {cause.sysctl} of {cause.node} allows no more"
            remedy = _raised(cause.sysctl, cause.node)
        elif len(nodes) == 1:
            window += f" of {nodes.pop()}"
        text = f"Limited by the {window}: {which}; {why}."
        yield Finding(text, Weight.BOTTLENECK, subject=tests(_numbers(own)), numbers=numbers, remedy=remedy)


def _raised(sysctl: str, node: str) -> str:
    if sysctl == WINDOW_SCALING:
        return f"Set {sysctl} to 1 on {node}: without it no window exceeds {UNSCALED_BYTES:,} bytes."
    return f"Raise {sysctl}{' (its third value)' if sysctl.startswith('net.ipv4') else ''} on {node}."


def _disturbed(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Tests whose limit is unknown because other programs kept processors busy."""
    unknown = [cell for cell in cells if cell.limit == "unknown" and cell.verdict.cause in (None, "others")]
    found = {cell.cell.number: cell.busy.others_pct for cell in unknown}
    others = {number: pct for number, pct in found.items() if pct is not None}
    if not others:
        return
    taken = _from_to(others.values())
    text = (
        f"Limit unknown: {numbers_text(list(others))}; programs that are not part of the run took {taken} % of the "
        "processors, which were busy all the time."
    )
    numbers = {"others_pct": max(others.values())}
    remedy = "Measure again while nothing else runs."
    yield Finding(text, Weight.SUSPECT, Severity.WARNING, tests(list(others)), numbers, remedy)


def _from_to(shares_pct: Collection[float]) -> str:
    """`95 to 99`, or one number where they are alike."""
    return " to ".join(dict.fromkeys(f"{pct:.0f}" for pct in (min(shares_pct), max(shares_pct))))


def _larger(held: Sequence[CellSummary]) -> str | None:
    asked = any(cell.cell[WINDOW] is not None for cell in held)
    return "A larger window lifts this limit." if asked else None


def _numbers(cells: Sequence[CellSummary]) -> list[int]:
    return [cell.cell.number for cell in cells]
