"""Sentences on the limit of a test: window, processors, losses, path or other traffic; and what would lift it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from rigctl.analysis.limits.evidence import window_allows_bps
from rigctl.analysis.limits.processors import PROCESSORS
from rigctl.analysis.limits.window_cause import UNSCALED_BYTES, WINDOW_SCALING, WindowCause
from rigctl.analysis.summary import CellSummary
from rigctl.base.units import size_words
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.words.text import FEW_SHARE, MOST_LISTED, listed, numbers_text, plural, rate_text, segments_text
from rigctl.settings import WINDOW

_WARNED: Final = ("path", "other-traffic", "sender", "receiver", "disk", "mtu")
_WHAT: Final = {
    "path": "the path",
    "shared-link": "a shared link",
    "other-traffic": "other traffic",
    "disk": "the disk",
    "mtu": "the MTU",
}
_HALF: Final = 0.5
_SHARED: Final = "the processors of the one machine that all virtual nodes share were busy"
_OWN: Final = "processors of its node, or its agent's threads, were busy"


def limit_text(cell: CellSummary) -> str:
    """Return the sentence of a test that no window, processor or loss limits; else an empty one."""
    named = _named(cell)
    return f"Limited by {named[0]}: {named[1]}." if named else ""


def limit_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield a finding for each limit and rule: its tests, and the numbers of the first."""
    groups: dict[tuple[str, str], list[CellSummary]] = {}
    for cell in cells:
        if _named(cell) is not None:
            groups.setdefault((cell.verdict.limit, cell.verdict.rule), []).append(cell)
    for own in groups.values():
        named = _named(own[0])
        if named is None:
            continue
        what, why = named
        numbers = [cell.cell.number for cell in own]
        which = numbers_text(numbers) if len(own) == 1 else f"{numbers_text(numbers)}, of which test {numbers[0]}"
        level = Severity.WARNING if own[0].verdict.limit in _WARNED else Severity.NOTE
        text = f"Limited by {what}: {which}; {why}."
        yield Finding(text, Weight.BOTTLENECK, level, tests(numbers), dict(own[0].verdict.numbers), _remedy(own[0]))


def _named(cell: CellSummary) -> tuple[str, str] | None:
    """Return the limit's name and its evidence; None if another function describes this limit."""
    if cell.verdict.rule == "quota":
        return f"the {cell.limit}", _quota(cell)
    if cell.verdict.cause == "clamp":
        return "the MSS", _clamp(cell)
    return (_WHAT[cell.limit], _WHY[cell.limit](cell)) if cell.limit in _WHAT else None


def _path(cell: CellSummary) -> str:
    seen, own = cell.verdict.numbers, cell.verdict.numbers.get("goodput_mbps")
    rate = f"{rate_text(own)} Mbit/s" if isinstance(own, float) else "an unknown rate"
    lost = _percent(seen.get("lost_share"))
    if cell.verdict.rule == "shaper":
        longer = f"round trips took {_three(seen.get('queue_ms'))} ms longer than without a queue"
        how = f"and the goodput stayed at {rate}" if "variation" in seen else f"at a goodput of {rate}"
        return f"{longer}, {how}: a shaper or a slower hop, whose queue fills"
    if cell.verdict.rule == "policer":
        how = f"while the goodput stayed at {rate}" if "unevenness" in seen else f"many at once, and {rate} passed"
        return f"{lost} of the segments were dropped {how}: a policer"
    if cell.verdict.rule == "slow interface":
        return f"{rate} left the sender at a constant rate and nothing was lost: a shaper at its interface"
    dropped = f"{rate} passed at a constant rate and {lost} of the datagrams were dropped"
    return f"{dropped}: a policer, or a shaper whose queue is full"


def _shared(cell: CellSummary) -> str:
    link, share = cell.verdict.numbers.get("shared_link"), cell.verdict.numbers.get("shared_share")
    return f"{_link(str(link))}, which other pairs use too, was {_percent(share)} full"


def _quota(cell: CellSummary) -> str:
    share = _percent(cell.verdict.numbers.get(f"quota_{cell.limit}"))
    return f"a processor quota of its control group held its agent back {share} of the time"


def _disk(cell: CellSummary) -> str:
    end, verb = ("sender", "reading") if cell.verdict.cause == "read" else ("receiver", "writing")
    return f"the {end} spent {_percent(cell.verdict.numbers.get(f'disk_{cell.verdict.cause}'))} of the time {verb}"


def _mtu(cell: CellSummary) -> str:
    return f"the line is full with frames smaller than the links' MTU; {_more(cell)}"


def _more(cell: CellSummary) -> str:
    larger = cell.verdict.numbers.get("larger_frames")
    return f"full ones would carry {_percent(larger - 1 if isinstance(larger, float) else None)} more"


def _clamp(cell: CellSummary) -> str:
    seen, mtu = cell.verdict.numbers, cell.binding.mtu if cell.binding else None
    path = f", though its path has an MTU of {mtu}" if mtu else ""
    return (
        f"segments carry {_three(seen.get('clamped_mss'))} bytes{path}: something between clamps the MSS; {_more(cell)}"
    )


def _other_traffic(cell: CellSummary) -> str:
    link, share = other_link(cell), cell.verdict.numbers.get("link_share")
    full = "full" if isinstance(share, float) and share >= 1 else f"{_percent(share)} full"
    return f"{other_text(cell)}, and {link} was {full}"


def other_link(cell: CellSummary) -> str:
    """Return the name of the link that carries other traffic."""
    return _link(str(cell.verdict.numbers.get("other_link")))


def other_text(cell: CellSummary) -> str:
    """Return `pc3's eth0 received 31.1 Mbit/s more than this run sent to it`."""
    seen = cell.verdict.numbers
    kind, _, node = str(seen.get("other_link")).partition(" ")
    owner, _, name = str(seen.get("other_counter")).partition(" ")
    rate = seen.get("other_mbps")
    more = f"{rate_text(rate)} Mbit/s more than this run" if isinstance(rate, float) else "more than this run"
    if owner == node and name:
        return f"{node}'s {name} received {more} sent to it" if kind == "to" else f"{node}'s {name} sent {more}"
    return f"{seen.get('other_counter')} counted {more} sent there"


_WHY: Final[dict[str, Callable[[CellSummary], str]]] = {
    "path": _path,
    "shared-link": _shared,
    "other-traffic": _other_traffic,
    "disk": _disk,
    "mtu": _mtu,
}


def _remedy(cell: CellSummary) -> str | None:
    ends = f"{cell.binding.stream.sender} and {cell.binding.stream.receiver}" if cell.binding else "both ends"
    if cell.verdict.rule == "quota":
        return (
            f"Raise the quota (cpu.max, cpu.cfs_quota_us) of the control group that the {cell.limit}'s agent runs in."
        )
    if cell.verdict.cause == "clamp":
        return (
            f"Look for a rule that sets the MSS (TCPMSS, maxseg) in routers and firewalls between {ends}, and for a "
            "route with advmss."
        )
    remedies = {
        "path": f"Look for the shaper, policer or slower link between {ends}, or correct the rate in the rig file.",
        "shared-link": "Fewer pairs on this link, or a faster link, lift this limit.",
        "other-traffic": f"Stop the other traffic on {other_link(cell)}, or measure while there is none.",
        "disk": "Compare with a transfer from memory to memory.",
        "mtu": f"Give {ends} the same MTU, and check what lies between them.",
    }
    return remedies.get(cell.limit)


def _link(name: str) -> str:
    kind, _, node = name.partition(" ")
    return f"the trunk from {node}" if kind == "trunk" else f"the link {kind} {node}"


def _percent(share: object) -> str:
    return f"{100 * share:.3g} %" if isinstance(share, float | int) else "an unknown share"


def _three(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else "–"


def bottleneck_text(cell: CellSummary) -> str:
    """Return what limits a test; empty if the limit needs no words and all pairs have the same."""
    return " ".join(filter(None, (_bottleneck(cell), _unlike(cell))))


def _unlike(cell: CellSummary) -> str:
    """Return the limit of each pair where they differ; of many pairs the number that have each."""
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
    return f"{segments_text(share)} {'was' if share < FEW_SHARE else 'were'}"


def _uncut(cell: CellSummary) -> str:
    used = cell.binding.congestion if cell.binding else None
    return f"{used or 'The congestion control'} does not cut its window at each loss; what is lost is missing"


def _refuting(cell: CellSummary) -> str:
    seen, own = cell.verdict.numbers, cell.verdict.numbers.get("goodput_mbps")
    share, allows = seen.get("lost_share"), seen.get("loss_allows")
    if not (isinstance(share, float) and isinstance(allows, float) and isinstance(own, float)):
        return "losses do not explain the goodput"
    return (
        f"{_lost(share)} lost, which by the rule of Mathis et al. allows {rate_text(allows * own)} Mbit/s, and "
        f"{rate_text(own)} Mbit/s were achieved"
    )


def _window(cell: CellSummary) -> str:
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
    """Yield which tests are limited by the window, by processors, by losses or by something else."""
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
    """Yield a finding for tests whose congestion control cuts its window at each loss, and one for the others."""
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
    """Yield the tests whose limit is unknown because other traffic, or losses, may or may not be it."""
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
    """Yield a finding for each side whose window limits, and one for each sysctl that bounds it."""
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
    """Return `95 to 99`, or one number where both print the same."""
    return " to ".join(dict.fromkeys(f"{pct:.0f}" for pct in (min(shares_pct), max(shares_pct))))


def _larger(held: Sequence[CellSummary]) -> str | None:
    asked = any(cell.cell[WINDOW] is not None for cell in held)
    return "A larger window lifts this limit." if asked else None


def _numbers(cells: Sequence[CellSummary]) -> list[int]:
    return [cell.cell.number for cell in cells]
