"""TCP streams: the comparison table, the answer and findings of a run, and each test explained."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.base.units import size_words
from rigctl.figures.effective import SUBFLOWS, ZEROCOPY_EFFECTIVE
from rigctl.figures.probes import IDLE, LOADED, RISE
from rigctl.findings import RUN, Finding, Severity, Weight, tests
from rigctl.limits.hosts import UNSCALED_BYTES, WINDOW_SCALING
from rigctl.model.frames import IP_HEADER, TCP_HEADER
from rigctl.model.latency import has_grown
from rigctl.records import Facts, RunInfo
from rigctl.report.blocks import Part, Table
from rigctl.report.tables import requested
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import ColumnOf, significant, table_of, to_digits, words
from rigctl.report.words.goodput import excess_findings, goodput_findings
from rigctl.report.words.limits import bottleneck_findings, bottleneck_text
from rigctl.report.words.repetitions import excluded_findings
from rigctl.report.words.text import (
    FEW_SHARE,
    MOST_LISTED,
    UNKNOWN,
    listed,
    numbers_text,
    plural,
    segments_text,
)
from rigctl.settings import CONGESTION, MPTCP, MSS, WINDOW, ZEROCOPY
from rigctl.settings.sockets import TIMESTAMPS_OPTION

SECTION = "streams"
_METHOD = (
    "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran (the "
    "measurement interval); retransmits are TCP segments retransmitted in that time."
)
_ZEROCOPY: Final = (
    "Effective zerocopy: share of the sends that the kernel did not copy; it copies what stays on one machine."
)
MOST_WINDOWS: Final = 3
"""Windows that were not granted as requested, reported one by one."""
FEW_RETRANSMITS: Final = 10
"""Fewer, of less than 0.01 % of the segments, are no finding."""
ETHERNET_MTU: Final = 1500
PROBE_RTT_S: Final = 10.0
"""bbr measures the round trip anew about so often (tcp_bbr.c: bbr_min_rtt_win_sec)."""


def part(run: RunView) -> Part | None:
    """Return the part of a run of TCP streams; None for any other run."""
    view = run.of_section(SECTION)
    if view is None:
        return None
    return Part(
        findings=tuple(stream_findings(view)),
        results=comparison(view.info, view.cells),
        details=columns.details(view, lambda cell: explain(view.info, cell)),
        method=(_METHOD,),
    )


def comparison(info: RunInfo, cells: Sequence[CellSummary]) -> Table:
    """Return the table of a run: settings, goodput and retransmits of each pair, what was granted, ceiling, limit."""
    zerocopy = any(cell.cell[ZEROCOPY] for cell in cells)
    table_columns: list[ColumnOf[CellSummary]] = [
        *(setting.of for setting in requested.STREAMS),
        columns.total_goodput,
        columns.goodput,
        columns.RETRANSMITS,
        *columns.latency_columns(),
        columns.effective(
            "Effective window",
            "KiB",
            lambda stream: stream.window_effective_bytes,
            lambda size: significant(size / 1024, 5),
            lambda cell, stream: stream.window_effective_bytes == cell.cell[WINDOW],
        ),
        columns.effective(
            "Effective MSS",
            "B",
            lambda stream: stream.mss_effective,
            as_asked=_full_segment,
            phrase="MSS {} on the wire",
        ),
        words(
            "Effective congestion control",
            lambda cell: (stream.congestion for stream in cell.streams),
            lambda cell: cell.cell[CONGESTION] is None,
            "{} by default",
        ),
        words(
            "Effective MPTCP",
            lambda cell: (_subflows_text(stream[SUBFLOWS]) for stream in cell.streams),
            lambda cell: bool(cell.cell[MPTCP]),
        ),
        *([_EFFECTIVE_ZEROCOPY] if zerocopy else []),
        *columns.OF_CEILING,
    ]
    legend = columns.legend(cells, "Retransmits: of all pairs.")
    table = table_of(cells, table_columns, columns.head_of(info), [*legend, *([_ZEROCOPY] if zerocopy else [])])
    return columns.with_streams(table, cells)


def _full_segment(cell: CellSummary, stream: StreamSummary) -> bool:
    """Tell whether segments have the requested MSS, less TCP's timestamps."""
    taken = TIMESTAMPS_OPTION if stream.timestamps else 0
    return stream.mss_effective is not None and stream.mss_effective + taken == cell.cell[MSS]


_EFFECTIVE_ZEROCOPY: Final = columns.effective(
    "Effective zerocopy", "%", lambda stream: stream[ZEROCOPY_EFFECTIVE], lambda share: significant(100 * share, 3)
)


def _subflows_text(subflows: int | None) -> str:
    return UNKNOWN if subflows is None else plural(subflows, "subflow") if subflows else "TCP"


def stream_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings of a run; findings of equal weight keep this order."""
    info, cells = view.info, view.cells
    if not view.meshes:
        yield from goodput_findings(info, cells, _round_trips(cells))
    yield from _mss(info, cells)
    yield from _retransmits(info, cells)
    if not view.classed:  # all classes together have them
        small = any(mesh.small for mesh in view.meshes)  # the mesh and the matrix say more of these limits
        yield from bottleneck_findings(cells, without="shared-link" if view.matrix else "mtu" if small else "")
    yield from _windows(info, cells)
    yield from _congestion(cells)
    yield from excess_findings(info, cells)
    yield from excluded_findings(cells)


def _mss(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield that one MSS went over the wire in all tests, or each distinct reason for an MSS once."""
    counted = [cell for cell in cells if cell.counted]
    effective = {stream.mss_effective for cell in counted for stream in cell.streams}
    if len(effective) == 1 and None not in effective and len({cell.cell[MSS] for cell in counted}) > 1:
        mss = next(iter(effective))
        asked = [(cell.cell[MSS], stream) for cell in counted for stream in cell.streams]
        known = [(wanted, mss_cause(info, wanted, stream)) for wanted, stream in asked if wanted is not None]
        large = max((one for one in known if "MTU" in one[1]), default=None)
        text = f"MSS {mss} went over the wire in every test: the MSS requested made no difference."
        if large is not None:
            text = f"MSS {large[0]} never went over the wire: {large[1]}."
            text += " No jumbo frames here." if large[0] > ETHERNET_MTU else f" Every test used {mss}."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, numbers={"mss_effective": mss})
        return
    reasons = _numbers_by([cell for cell in counted if cell.cell[MSS] is not None], lambda cell: mss_text(info, cell))
    for reason, numbers in reasons.items():
        where = "" if len(reasons) == 1 else f"{numbers_text(numbers).capitalize()}: "
        yield Finding(f"{where}{reason}", Weight.GRANTED, subject=tests(numbers))


def _numbers_by(cells: Sequence[CellSummary], text: Callable[[CellSummary], str]) -> dict[str, list[int]]:
    """Return the numbers of the tests by their texts, without those that have none."""
    named = grouped([(text(cell), cell.cell.number) for cell in cells], lambda item: item[0])
    return {reason: [number for _, number in own] for reason, own in named.items() if reason}


def _round_trips(cells: Sequence[CellSummary]) -> str:
    """Return how long round trips take under load, for the end of the answer; empty without probes."""
    known = [(loaded_us, one) for cell in cells for one in cell.streams if (loaded_us := one[LOADED])]
    if not known:
        return ""
    _, worst = max(known, key=lambda one: one[0])
    loaded_ms = [loaded_us / 1e3 for loaded_us, _ in known]
    grown = has_grown(worst[IDLE], worst[RISE])
    return f"; round trips {'grow to' if grown else 'stay within'} {to_digits(3, 3)(loaded_ms)(max(loaded_ms))} ms"


def _retransmits(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield the retransmits of all tests together; nothing about a few of very many segments."""
    known = [cell for cell in cells if cell.retransmits is not None]
    total = sum(cell.retransmits or 0.0 for cell in known)
    share = lost_share(known)
    if not total or (total < FEW_RETRANSMITS and share is not None and share < FEW_SHARE):
        return
    several = ", the mean of the repetitions" if info.plan.repeat > 1 else ""
    count = f"{max(1, round(total))}{f', {segments_text(share)}' if share else ''}{several}"
    text = f"Retransmits in all measurement intervals together: {count}."
    yield Finding(text, Weight.LOSS, numbers={"retransmits": total})


def _windows(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    fixed = [cell for cell in cells if cell.counted and not cell.cell.resize]
    reasons = _numbers_by(fixed, lambda cell: window_text(info, cell))
    for reason, numbers in list(reasons.items())[:MOST_WINDOWS]:
        yield Finding(reason, Weight.GRANTED, Severity.WARNING, tests(numbers))
    if left := [number for numbers in list(reasons.values())[MOST_WINDOWS:] for number in numbers]:
        text = f"Further windows were not granted as requested: {numbers_text(left)}."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, tests(left))


def _congestion(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield which congestion control ran where none was requested, and why goodput dips with bbr."""
    unasked = [cell for cell in cells if cell.counted and cell.cell[CONGESTION] is None]
    names = sorted({stream.congestion for cell in unasked for stream in cell.streams if stream.congestion})
    if names:
        used = f"default, {names[0]}, was" if len(names) == 1 else f"defaults, {listed(names)}, were"
        text = f"No congestion control was requested; the nodes' {used} used."
        remedy = "Set `congestion:` to compare with results from elsewhere."
        of_all = all(cell.cell[CONGESTION] is None for cell in cells)
        subject = RUN if of_all else tests(cell.cell.number for cell in unasked)
        yield Finding(text, Weight.DETAIL, subject=subject, remedy=remedy)
    long = [cell for cell in cells if cell.counted and cell.cell.duration_s >= PROBE_RTT_S]
    probing = [
        cell.cell.number for cell in long if any((stream.congestion or "").startswith("bbr") for stream in cell.streams)
    ]
    if probing:
        text = (
            f"Dips of goodput about every 10 s are expected with bbr ({numbers_text(probing)}): it lowers its window "
            "for about 0.2 s to measure the round trip (PROBE_RTT)."
        )
        yield Finding(text, Weight.DETAIL, subject=tests(probing), remedy="cubic has no such dips.")
    asking = [cell for cell in cells if cell.cell[CONGESTION] is not None]
    for (asked, used), own in grouped(asking, lambda cell: (cell.cell[CONGESTION], _other_congestion(cell))).items():
        if used:
            numbers = [cell.cell.number for cell in own]
            text = f"{asked} was requested, {used} was used: {numbers_text(numbers)}."
            remedy = f"Load its kernel module on the senders: `modprobe tcp_{asked}`."
            yield Finding(text, Weight.GRANTED, Severity.WARNING, tests(numbers), remedy=remedy)


def _other_congestion(cell: CellSummary) -> str:
    """Return the congestion control that ran in place of the requested one; empty if it was that one."""
    return listed(sorted({stream.congestion for stream in cell.streams if stream.congestion} - {cell.cell[CONGESTION]}))


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """Return what only this test has to say: why it has its limit, and of an MSS that nobody requested."""
    if not cell.counted:
        return []
    lowered = any(_mss_lowered(info, stream) for stream in cell.streams)
    unusual = lowered or len({stream.mss_effective for stream in cell.streams}) > 1
    mss = mss_text(info, cell) if unusual and cell.cell[MSS] is None else ""
    return list(filter(None, [mss, bottleneck_text(cell)]))


def mss_text(info: RunInfo, cell: CellSummary) -> str:
    """Return which MSS went over the wire, and why it is not the requested one."""
    streams = [stream for stream in cell.streams if stream.mss_effective is not None]
    if not streams:
        return ""
    asked = cell.cell[MSS]
    request = f"MSS {asked} was requested" if asked is not None else "No MSS was requested"
    by_mss = grouped(streams, lambda stream: stream.mss_effective)
    if len(by_mss) > 1:
        parts = listed([f"{mss} on {_which(own)}" for mss, own in by_mss.items()])
        return f"{request}; the pairs differ: {parts} went over the wire. Compare the MTUs of their nodes."
    stream = streams[0]
    text = f"{request}; {stream.mss_effective} went over the wire{_mss_because(info, asked, stream)}."
    if asked is not None and stream.mss_effective == asked:
        text = f"{request} and went over the wire."
    if any(other.mss_differs for other in streams):
        apart = "flows" if cell.cell.parallel > 1 else "repetitions"
        text += f" That is the smallest: the {apart} of a pair differ."
    return text


def _which(streams: Sequence[StreamSummary]) -> str:
    """Return the pairs by name; of many how many they are."""
    return listed([str(stream) for stream in streams]) if len(streams) <= MOST_LISTED else f"{len(streams)} pairs"


def mss_cause(info: RunInfo, asked: int, stream: StreamSummary) -> str:
    """Return why the MSS is not the requested one, as `the MTU is 1500`; empty if it is, or the cause is unknown."""
    mss, (headers, options) = stream.mss_effective or 0, _taken(info, stream)
    if mss == asked:
        return ""
    if mss + options == asked:
        return f"TCP timestamps take {TIMESTAMPS_OPTION} bytes of every segment"
    return f"the MTU is {stream.mtu}" if mss + headers + options == stream.mtu else ""


def _mss_because(info: RunInfo, asked: int | None, stream: StreamSummary) -> str:
    mss, mtu, (headers, options) = stream.mss_effective or 0, stream.mtu, _taken(info, stream)
    cause = mss_cause(info, asked, stream) if asked is not None else ""
    if cause:
        return f", because {cause}"
    if mtu is None:
        return ""
    full = mtu - headers - options
    if mss == full:
        taken = f"{headers} bytes of headers" + (f" and {options} of timestamps" if options else "")
        return f": the MTU of {mtu} less {taken}"
    if stream.window_effective_bytes is not None and stream.window_effective_bytes < 2 * full:
        return f"; the MTU of {mtu} would carry {full}, but no segment takes more than half of a window"
    return f"; the MTU of {mtu} would carry {full}, so something on the path lowered it"


def _mss_lowered(info: RunInfo, stream: StreamSummary) -> bool:
    """Tell whether segments are smaller than the MTU of the path allows, or not all of one size."""
    full = None if stream.mtu is None else stream.mtu - sum(_taken(info, stream))
    return stream.mss_differs or (full is not None and stream.mss_effective not in (None, full))


def _taken(info: RunInfo, stream: StreamSummary) -> tuple[int, int]:
    """Return the bytes of headers in a packet of a stream, and those of TCP's options."""
    return IP_HEADER[info.ip_version] + TCP_HEADER, TIMESTAMPS_OPTION if stream.timestamps else 0


def window_text(info: RunInfo, cell: CellSummary) -> str:
    """Return the window that the kernel granted instead of the requested one, and the setting that caused it."""
    asked = cell.cell[WINDOW]
    if asked is None:
        return ""
    granted = {stream.window_effective_bytes for stream in cell.streams} - {None, asked}
    if not granted:
        return ""
    effective = min(size for size in granted if size is not None)
    which = [stream for stream in cell.streams if stream.window_effective_bytes in granted]
    where = "" if len(which) == len(cell.streams) else f" on {_which(which)}"
    text = f"A window of {size_words(asked)} was requested; {size_words(effective)} was granted{where}"
    if effective > asked:
        return f"{text}: the kernel grants no less."
    causes = [
        cause for node in sorted(cell.cell.nodes) for cause in _cutting(info.facts.get(node, {}), node, effective)
    ]
    if causes:
        return f"{text}, because of {listed(causes)}. Raise it there with sysctl to have more."
    return f"{text}: the kernel cuts it at net.core.wmem_max of the sender and net.core.rmem_max of the receiver."


def _cutting(facts: Facts, node: str, effective: int) -> Iterator[str]:
    """Yield the sysctls of `node` that equal what was granted (socket(7): SO_SNDBUF is cut at wmem_max)."""
    sysctls = facts.get("sysctls")
    for name in ("net.core.wmem_max", "net.core.rmem_max"):
        value = sysctls.get(name) if isinstance(sysctls, dict) else None
        if value is not None and str(value).strip() == str(effective):
            yield f"{name} = {effective} on {node}"
    if effective == UNSCALED_BYTES and isinstance(sysctls, dict) and str(sysctls.get(WINDOW_SCALING)).strip() == "0":
        yield f"{WINDOW_SCALING} = 0 on {node}"


def lost_share(cells: Sequence[CellSummary]) -> float | None:
    """Return retransmits as a share of all segments; None if there are none, or a number is unknown."""
    retransmits = sent = 0.0
    for cell in cells:
        for stream in cell.streams:
            if stream.retransmits is None or stream.bytes is None or not stream.mss_effective:
                return None
            retransmits += stream.retransmits
            sent += stream.bytes / stream.mss_effective
    return retransmits / sent if sent and retransmits else None
