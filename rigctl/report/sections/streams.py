"""Report part on TCP streams: results table, findings, and the explanation of each test."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.units import size_words
from rigctl.base.values import divide, group_by, most, total
from rigctl.figures.effective import MSS_EFFECTIVE, SUBFLOWS, WINDOW_EFFECTIVE, ZEROCOPY_EFFECTIVE
from rigctl.figures.probes import IDLE, LOADED, LOADED_P99, RISE
from rigctl.figures.streams import FAIRNESS, GOODPUT_LEAST
from rigctl.findings import RUN, Finding, Sentence, connections, loss, mtu, tests, window
from rigctl.findings.goodput import excess_findings, goodput_findings
from rigctl.findings.limits import bottleneck_findings, bottleneck_text
from rigctl.findings.repetitions import findings_on_exclusions
from rigctl.findings.sharing import incast_findings, is_incast
from rigctl.findings.text import (
    FEW_SHARE,
    MOST_LISTED,
    UNKNOWN,
    join_list,
    mean_mbps,
    numbers_text,
    part_text,
    plural,
    some,
)
from rigctl.limits.hosts import BUFFER_BOUNDS, UNSCALED_BYTES, WINDOW_SCALING
from rigctl.limits.limit import BY_MTU, BY_SHARED_LINK
from rigctl.model.frames import IP_HEADER, TCP_HEADER
from rigctl.model.latency import has_grown
from rigctl.records import RunInfo, host_system
from rigctl.report.blocks import Part, Table
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import ColumnOf, number_column, significant, to_decimals, to_digits, words
from rigctl.report.tables.requested import STREAM_COLUMNS
from rigctl.results.summary import CellSummary, StreamSummary
from rigctl.settings import CONGESTION, MPTCP, MSS, WINDOW, ZEROCOPY
from rigctl.settings.sockets import TIMESTAMPS_OPTION

SECTION: Final = "streams"
_METHOD: Final = "Retransmits are TCP segments that were sent again in the measurement interval."
_ZEROCOPY: Final = (
    "Effective zerocopy: share of the sends that the kernel did not copy; within one machine, it copies all."
)
_MOST_WINDOWS: Final = 3
"""At most this number of windows that were not granted have a finding each; one more finding lists the other tests."""
_FEW_RETRANSMITS: Final = 10
"""Fewer retransmits than this, if below 0.01 % of the segments, are not reported."""
_ETHERNET_MTU: Final = 1500
_PROBE_RTT_S: Final = 10.0
"""bbr measures the round-trip time again after about this time (tcp_bbr.c: bbr_min_rtt_win_sec)."""


_INCAST: Final[tuple[ColumnOf[CellSummary], ...]] = (
    number_column("In all", "Mbit/s", lambda cell: mean_mbps(cell.goodput_mbps), to_digits(3, 2), minor=-1),
    number_column("Slowest", "Mbit/s", lambda cell: cell.results[GOODPUT_LEAST], to_digits(3, 2), minor=-1),
    number_column("Jain's index", "", lambda cell: cell.results[FAIRNESS], to_decimals(3), minor=-1),
    number_column(
        "Loaded p99",
        "ms",
        lambda cell: divide(most(stream[LOADED_P99] for stream in cell.streams), 1e3),
        to_digits(3, 2),
        minor=-1,
    ),
)


def part(view: RunView) -> Part:
    """Return the report part on TCP streams; `view` has only these."""
    return Part(
        findings=tuple(stream_findings(view)),
        results=comparison(view.cells),
        details=columns.details(view, lambda cell: explain(view.info, cell)),
        method=(columns.GOODPUT_METHOD, _METHOD),
    )


def comparison(cells: Sequence[CellSummary]) -> Table:
    """Return the results table: settings, goodput and retransmits of each pair, granted values, ceiling, limit."""
    own: list[ColumnOf[CellSummary]] = [
        columns.RETRANSMITS_COLUMN,
        *(_INCAST if is_incast(cells) else columns.shown_columns()),
        columns.effective(
            "Effective window",
            "KiB",
            WINDOW_EFFECTIVE,
            lambda size: significant(size / 1024, 5),
            lambda cell, stream: stream.window_effective_bytes == cell.cell[WINDOW],
        ),
        columns.effective(
            "Effective MSS",
            "B",
            MSS_EFFECTIVE,
            as_asked=lambda cell, stream: stream.has_mss(cell.cell[MSS]),
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
    ]
    notes = []
    if any(cell.cell[ZEROCOPY] for cell in cells):
        copied = columns.effective(
            "Effective zerocopy", "%", ZEROCOPY_EFFECTIVE, lambda share: significant(100 * share, 3)
        )
        own, notes = [*own, copied], [_ZEROCOPY]
    return columns.stream_table(cells, STREAM_COLUMNS, own, "Retransmits are those of all pairs.", notes)


def _subflows_text(subflows: int | None) -> str:
    return UNKNOWN if subflows is None else plural(subflows, "subflow") if subflows else "TCP"


def stream_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings on TCP streams; findings of equal weight keep this order."""
    info, cells = view.info, view.cells
    if is_incast(cells):
        yield from incast_findings(cells)
    if not view.meshes:
        yield from goodput_findings(info, cells, _round_trips(cells))
    yield from _mss(info, cells)
    yield from _retransmits(info, cells)
    if not view.classed:  # the part on traffic classes yields these findings
        small = any(mesh.small for mesh in view.meshes)  # meshes report `mtu`, a matrix reports `shared-link`
        yield from bottleneck_findings(cells, BY_SHARED_LINK if view.matrix else BY_MTU if small else None)
    yield from _windows(info, cells)
    yield from _congestion(info, cells)
    yield from excess_findings(info, cells)
    yield from findings_on_exclusions(cells)


def _mss(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield one finding if all tests used the same MSS, else one per reason for another MSS."""
    counted = [cell for cell in cells if cell.counted]
    asked = [(cell.cell[MSS], stream) for cell in counted for stream in cell.streams]
    mss, *others = {stream.mss_effective for _, stream in asked} or {None}
    if mss is not None and not others and len({cell.cell[MSS] for cell in counted}) > 1:
        cut = [(own, stream.mtu) for own, stream in asked if own and _mss_cause(info, own, stream) is mtu.MSS_MTU]
        large = max(cut, default=None)
        if large is None:
            yield mtu.MSS_ALIKE.say(RUN, {"mss_effective": mss})
            return
        used = "No jumbo frames here." if large[0] > _ETHERNET_MTU else f"Every test used {mss}."
        yield mtu.MSS_UNUSED.say(RUN, {"mss_effective": mss}, asked=large[0], mtu=large[1], used=used)
        return
    found = _by_text(info, [cell for cell in counted if cell.cell[MSS] is not None], effective_mss_finding)
    for each in found:
        where = "" if len(found) == 1 else f"{numbers_text(list(map(int, each.subject.names))).capitalize()}: "
        yield replace(each, text=f"{where}{each.text}")


def _by_text(
    info: RunInfo, cells: Sequence[CellSummary], finding_of: Callable[[RunInfo, CellSummary], Finding | None]
) -> list[Finding]:
    """Return one finding per test, but a single finding for all tests whose findings have equal texts."""
    found = [(each, cell.cell.number) for cell in cells if (each := finding_of(info, cell)) is not None]
    alike = group_by(found, lambda item: item[0].text)
    return [replace(own[0][0], subject=tests(number for _, number in own)) for own in alike.values()]


def _round_trips(cells: Sequence[CellSummary]) -> str:
    """Return a phrase on round trips under load, which ends the answer; empty without latency probes."""
    known = [(loaded_us, one) for cell in cells for one in cell.streams if (loaded_us := one[LOADED])]
    if not known:
        return ""
    _, worst = max(known, key=lambda one: one[0])
    loaded_ms = [loaded_us / 1e3 for loaded_us, _ in known]
    grown = has_grown(worst[IDLE], worst[RISE])
    return f"; round trips {'grow to' if grown else 'stay within'} {to_digits(3, 3)(loaded_ms)(max(loaded_ms))} ms"


def _retransmits(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield a finding on the retransmits of all tests, unless they are few and a tiny share of the segments."""
    known = [cell for cell in cells if cell.retransmits is not None]
    every = sum(cell.retransmits or 0.0 for cell in known)
    share = retransmit_share(known)
    if not every or (every < _FEW_RETRANSMITS and share is not None and share < FEW_SHARE):
        return
    several = ", the mean of the repetitions" if info.plan.repeat > 1 else ""
    words = {"count": max(1, round(every)), "share": f", {part_text(share)}" if share else "", "several": several}
    yield loss.RETRANSMITS_SUM.say(RUN, {"retransmits": every}, **words)


def _windows(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    fixed = [cell for cell in cells if cell.counted and not cell.cell.resize]
    found = _by_text(info, fixed, window_finding)
    yield from found[:_MOST_WINDOWS]
    if left := [int(number) for each in found[_MOST_WINDOWS:] for number in each.subject.names]:
        yield window.MORE_NOT_GRANTED.say(tests(left), tests=numbers_text(left))


def _congestion(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield findings on the default congestion control, on one that was not granted, and on dips caused by bbr."""
    unasked = [cell for cell in cells if cell.counted and cell.cell[CONGESTION] is None]
    names = sorted(set[str]().union(*map(_congestion_of, unasked)))
    if names:
        used = f"default, {names[0]}, was" if len(names) == 1 else f"defaults, {join_list(names)}, were"
        of_all = all(cell.cell[CONGESTION] is None for cell in cells)
        subject = RUN if of_all else tests(cell.cell.number for cell in unasked)
        yield connections.CONGESTION_DEFAULT.say(subject, used=used)
    long = [cell for cell in cells if cell.counted and cell.cell.duration_s >= _PROBE_RTT_S]
    if probing := [cell.cell.number for cell in long if any(name.startswith("bbr") for name in _congestion_of(cell))]:
        yield connections.PROBE_RTT.say(tests(probing), tests=numbers_text(probing))
    asking = [(cell.cell[CONGESTION], cell) for cell in cells if cell.cell[CONGESTION] is not None]
    alike = group_by(asking, lambda own: (own[0], join_list(sorted(_congestion_of(own[1]) - {own[0]}))))
    for (asked, used), own in alike.items():
        if used:
            numbers = [cell.cell.number for _, cell in own]
            systems = {host_system(info.facts.get(each.stream.sender, {})) for _, cell in own for each in cell.streams}
            load = "kldload cc_" if systems == {"FreeBSD"} else "modprobe tcp_"
            words = {"asked": asked, "used": used, "tests": numbers_text(numbers), "load": load}
            yield connections.CONGESTION_NOT_GRANTED.say(tests(numbers), **words)


def _congestion_of(cell: CellSummary) -> set[str]:
    return {stream.congestion for stream in cell.streams if stream.congestion}


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """Return sentences on one test: the cause of its limit, and of an unusual MSS that nobody requested."""
    if not cell.counted:
        return []
    lowered = any(_mss_lowered(info, stream) for stream in cell.streams)
    unusual = lowered or len({stream.mss_effective for stream in cell.streams}) > 1
    mss = effective_mss_finding(info, cell) if unusual and cell.cell[MSS] is None else None
    return list(filter(None, [mss.text if mss else None, bottleneck_text(cell)]))


def effective_mss_finding(info: RunInfo, cell: CellSummary) -> Finding | None:
    """Return a finding on the MSS that was used and why it is not the requested one; None if no MSS is known."""
    streams = [stream for stream in cell.streams if stream.mss_effective is not None]
    if not streams:
        return None
    asked, first = cell.cell[MSS], streams[0]
    words: dict[str, object] = {"request": f"MSS {asked} was requested" if asked else "No MSS was requested"}
    by_mss = group_by(streams, lambda stream: stream.mss_effective)
    if len(by_mss) > 1:
        parts = join_list([f"{mss} on {_which(own)}" for mss, own in by_mss.items()])
        return mtu.MSS_OF_PAIRS.say(parts=parts, **words)
    apart = "flows" if cell.cell.parallel > 1 else "repetitions"
    differ = any(other.mss_differs for other in streams)
    words["smallest"] = f" This is the smallest MSS: the {apart} of a pair differ." if differ else ""
    headers, options = _header_bytes(info, first)
    taken = f"{headers} bytes of headers{f' and {options} of timestamps' if options else ''}"
    words |= {"mtu": first.mtu, "full": (first.mtu or 0) - headers - options, "taken": taken}
    return _mss_because(info, asked, first).say(mss=first.mss_effective, options=TIMESTAMPS_OPTION, **words)


def _which(streams: Sequence[StreamSummary]) -> str:
    """Return the names of the pairs, or their number if there are many."""
    return join_list([str(stream) for stream in streams]) if len(streams) <= MOST_LISTED else f"{len(streams)} pairs"


def _mss_cause(info: RunInfo, asked: int, stream: StreamSummary) -> Sentence | None:
    """Return the sentence on why the MSS is not the requested one; None if it is, or if the cause is unknown."""
    mss, (headers, options) = stream.mss_effective or 0, _header_bytes(info, stream)
    if mss not in (asked, 0) and mss + options == asked:
        return mtu.MSS_TIMESTAMPS
    return mtu.MSS_MTU if mss != asked and mss + headers + options == stream.mtu else None


def _mss_because(info: RunInfo, asked: int | None, stream: StreamSummary) -> Sentence:
    mss, path_mtu = stream.mss_effective or 0, stream.mtu
    if asked is not None and (cause := _mss_cause(info, asked, stream)) is not None:
        return cause
    if mss == asked or path_mtu is None:
        return mtu.MSS_AS_ASKED if mss == asked else mtu.MSS_UNEXPLAINED
    full = path_mtu - sum(_header_bytes(info, stream))
    if mss == full:
        return mtu.MSS_FULL
    is_half = stream.window_effective_bytes is not None and stream.window_effective_bytes < 2 * full
    return mtu.MSS_HALF_WINDOW if is_half else mtu.MSS_LOWERED


def _mss_lowered(info: RunInfo, stream: StreamSummary) -> bool:
    """Tell whether segments are smaller than the path's MTU allows, or differ in size."""
    full = None if stream.mtu is None else stream.mtu - sum(_header_bytes(info, stream))
    return stream.mss_differs or (full is not None and stream.mss_effective not in (None, full))


def _header_bytes(info: RunInfo, stream: StreamSummary) -> tuple[int, int]:
    """Return the bytes of the IP and TCP headers of a packet, and of its TCP timestamps option."""
    return IP_HEADER[info.ip_version] + TCP_HEADER, TIMESTAMPS_OPTION if stream.timestamps else 0


def window_finding(info: RunInfo, cell: CellSummary) -> Finding | None:
    """Return a finding on a window that was not granted as requested, with the sysctl that bounds the window."""
    asked = cell.cell[WINDOW]
    granted = {stream.window_effective_bytes for stream in cell.streams} - {None, asked}
    if asked is None or not granted:
        return None
    effective = min(size for size in granted if size is not None)
    which = [stream for stream in cell.streams if stream.window_effective_bytes in granted]
    where = "" if len(which) == len(cell.streams) else f" on {_which(which)}"
    words = {"asked": size_words(asked), "granted": size_words(effective), "where": where}
    if effective > asked:
        return window.GRANTED_MORE.say(**words)
    nodes = _granting(which, effective)
    causes = [cause for node in nodes for cause in _cutting(info, node, asked, effective)]
    if causes:
        return window.WINDOW_BOUND.say(causes=join_list(causes), **words)
    foreign = any(host_system(info.facts.get(node, {})) not in (None, "Linux") for node in nodes)
    return (window.CUT_BY_SYSTEM if foreign else window.CUT_BY_KERNEL).say(nodes=some(nodes), **words)


def _granting(streams: Sequence[StreamSummary], effective: int) -> list[str]:
    """Return the nodes that granted the window `effective`; all ends if none did, as without window scaling."""
    ends = [
        end
        for stream in streams
        for end in (
            (stream.stream.sender, stream.evidence.send_window_bytes),
            (stream.stream.receiver, stream.evidence.receive_window_bytes),
        )
    ]
    return sorted({node for node, granted in ends if granted == effective} or {node for node, _ in ends})


def _cutting(info: RunInfo, node: str, asked: int, effective: int) -> Iterator[str]:
    """Yield the sysctls of `node` that bound the granted window (socket(7): wmem_max bounds SO_SNDBUF)."""
    facts = info.facts.get(node, {})
    sysctls, system = facts.get("sysctls") or {}, host_system(facts) or "Linux"
    bounds = BUFFER_BOUNDS.get(system, {}).values()
    for name in sorted({bound.requested for bound in bounds}, reverse=True):
        value = str(sysctls.get(name)).strip()
        # FreeBSD refuses what exceeds its bound, and the agent halves the window until it is granted.
        halved = system == "FreeBSD" and value.isdigit() and effective <= int(value) <= 2 * max(asked, effective)
        if value == str(effective) or halved:
            yield f"{name} = {value} on {node}"
    if effective == UNSCALED_BYTES and str(sysctls.get(WINDOW_SCALING)).strip() == "0":
        yield f"{WINDOW_SCALING} = 0 on {node}"


def retransmit_share(cells: Sequence[CellSummary]) -> float | None:
    """Return retransmits as a share of all segments, from 0 to 1; None if a number is unknown."""
    streams = [stream for cell in cells for stream in cell.streams]
    segments = total(divide(stream.bytes, stream.mss_effective) for stream in streams)
    return divide(total(stream.retransmits for stream in streams), segments)
