"""Sentences made from the data: what was asked, what went over the wire, why. Their numbers come from the frames."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.bottleneck import LINE_RATE_EFFICIENCY
from rigctl.analysis.ceiling import ip_version
from rigctl.analysis.panels import matrix
from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.model.ceilings import IP_HEADER, TCP_HEADER, TIMESTAMPS_OPTION
from rigctl.model.contract import link_departures
from rigctl.records import Facts, RunInfo
from rigctl.report.sections.datagrams import datagram_words, loss_words, shaping_words
from rigctl.report.sections.matrix.words import matrix_words
from rigctl.report.sections.streams.bottleneck_words import binding_of_run, held_words, numbers_text, other_words
from rigctl.report.sections.streams.comparison import MOST_LISTED
from rigctl.report.text import (
    ceiling_text,
    count_text,
    few_text,
    listed,
    percent_text,
    plural,
    rate_text,
    settings_text,
    size_words,
)
from rigctl.units import format_duration, format_rate

MOST_STORIES: Final = 3
"""Windows that were not granted as asked, told one by one."""


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """The sentences of one cell, in the order of the table's columns."""
    if not cell.counted:
        return list(cell.notes)
    if cell.cell.transport == "udp":
        said = [goodput_words(info, cell), *datagram_words(info, cell), window_words(info, cell)]
        said += [other_words(cell), *cell.notes]
        return [sentence for sentence in said if sentence]
    said = [mss_words(info, cell), goodput_words(info, cell), window_words(info, cell), held_words(cell)]
    said += [other_words(cell), retransmit_words(cell), congestion_words(cell), *cell.notes]
    return [sentence for sentence in said if sentence]


def mss_words(info: RunInfo, cell: CellSummary) -> str:
    """Which MSS went over the wire, and why not the one that was asked for."""
    streams = [stream for stream in cell.streams if stream.mss_effective is not None]
    if not streams:
        return ""
    asked = cell.cell.tcp.mss
    began = f"MSS {asked} was asked for" if asked is not None else "No MSS was asked for"
    each = {(stream.mss_effective, stream.mtu, stream.timestamps): stream for stream in streams}
    if len(each) > 1:
        parts = listed([f"{stream.mss_effective} on {stream}" for stream in streams])
        return f"{began}; the pairs differ: {parts} went over the wire. Compare the MTUs of their nodes."
    stream = streams[0]
    said = f"{began}; {stream.mss_effective} went over the wire{_mss_because(info, asked, stream)}."
    if asked is not None and stream.mss_effective == asked:
        said = f"MSS {asked} was asked for and went over the wire."
    if any(stream.mss_differs for stream in streams):
        said += " That is the smallest: the flows of a pair differ."
    return said


def _mss_because(info: RunInfo, asked: int | None, stream: StreamSummary) -> str:
    mss, mtu = stream.mss_effective or 0, stream.mtu
    options = TIMESTAMPS_OPTION if stream.timestamps else 0
    headers = IP_HEADER[ip_version(info)] + TCP_HEADER
    if asked is not None and mss + options == asked:
        return f", because TCP timestamps take {options} bytes of every segment"
    if mtu is None:
        return ""
    if mss + options + headers == mtu:
        if asked is not None:
            return f", because the MTU is {mtu}"
        taken = f"{headers} bytes of headers" + (f" and {options} of timestamps" if options else "")
        return f": the MTU of {mtu} less {taken}"
    return f"; the MTU of {mtu} would carry {mtu - headers - options}, so something on the path lowered it"


def goodput_words(info: RunInfo, cell: CellSummary) -> str:
    """How close to the ceiling each pair came, and all of them together."""
    streams = [stream for stream in cell.streams if stream.goodput_mbps is not None]
    if not streams or cell.goodput_mbps is None:
        return ""
    speeds = [stream.goodput_mbps.mean for stream in streams if stream.goodput_mbps is not None]
    if cell.ceiling_mbps is None:
        return _without_ceiling(info, speeds)
    together = f"{rate_text(cell.goodput_mbps.mean, cell.ceiling_mbps)} of {ceiling_text(cell.ceiling_mbps)} Mbit/s"
    share = f"{percent_text(cell.efficiency)} %"
    if len(streams) == 1:
        return f"{together} is {share} of the ceiling."
    ceilings = {ceiling_text(stream.ceiling_mbps) for stream in streams}
    if cell.shared or len(ceilings) > 1 or len(streams) > MOST_LISTED:
        why = " (they share a link)" if cell.shared else ""
        return f"The pairs had {_range(speeds)} Mbit/s; together{why} {together} is {share} of the ceiling."
    rates = listed([rate_text(speed, stream.ceiling_mbps) for speed, stream in zip(speeds, streams, strict=True)])
    shares = [f"{percent_text(stream.efficiency)} %" for stream in streams]
    if len({*shares}) == 1 and len({rate_text(speed) for speed in speeds}) == 1:
        return f"{rate_text(speeds[0])} of {ceilings.pop()} Mbit/s is {shares[0]} of the ceiling, on each pair."
    return f"{rates} of {ceilings.pop()} Mbit/s are {listed(shares)} of the ceiling; together {share}."


def _without_ceiling(info: RunInfo, speeds: Sequence[float]) -> str:
    rates = listed([rate_text(speed) for speed in speeds]) if len(speeds) <= MOST_LISTED else _range(speeds)
    if info.plan.virtual == "loopback":
        return f"{rates} Mbit/s, unshaped, so there is no ceiling."
    return f"{rates} Mbit/s; the rate of a link is not known, so neither is the ceiling. Give its rate in the rig file."


def _range(speeds: Sequence[float]) -> str:
    low, high = rate_text(min(speeds)), rate_text(max(speeds))
    return low if low == high else f"{low} to {high}"


def window_words(info: RunInfo, cell: CellSummary) -> str:
    """Where the kernel granted another window than was asked for, and the setting that did it."""
    asked = cell.cell.window.bytes
    if asked is None:
        return ""
    if cell.cell.window.resize:
        return f"The window of {size_words(asked)} is where the buffers of a flow begin; the kernel resizes them."
    granted = {stream.window_effective_bytes for stream in cell.streams} - {None, asked}
    if not granted:
        return ""
    effective = min(size for size in granted if size is not None)
    which = [str(s) for s in cell.streams if s.window_effective_bytes not in (None, asked)]
    where = "" if len(which) == len(cell.streams) else f" on {listed(which)}"
    said = f"A window of {size_words(asked)} was asked for; {size_words(effective)} was granted{where}"
    if effective > asked:
        return f"{said}: the kernel grants no less."
    binding = [found for node in _nodes(cell) for found in _binding(info.facts.get(node, {}), node, effective)]
    if binding:
        return f"{said}, because of {listed(binding)}. Raise it there with sysctl to have more."
    return f"{said}: the kernel cuts it at net.core.wmem_max of the sender and net.core.rmem_max of the receiver."


def _nodes(cell: CellSummary) -> list[str]:
    return sorted({node for pair in cell.cell.pairs for node in (pair.source, pair.destination)})


def _binding(facts: Facts, node: str, effective: int) -> Iterator[str]:
    """The sysctls of `node` that are just what was granted (socket(7): SO_SNDBUF is cut at wmem_max)."""
    sysctls = facts.get("sysctls")
    for name in ("net.core.wmem_max", "net.core.rmem_max"):
        value = sysctls.get(name) if isinstance(sysctls, dict) else None
        if value is not None and str(value).strip() == str(effective):
            yield f"{name} = {effective} on {node}"


def retransmit_words(cell: CellSummary) -> str:
    """How many segments were sent again, of how many."""
    if cell.retransmits is None:
        return ""
    if cell.retransmits == 0:
        return "Nothing was sent again."
    if len(cell.streams) > 1 and len(cell.cell.pairs) <= MOST_LISTED:
        counts = [("none" if one.retransmits == 0 else count_text(one.retransmits), one) for one in cell.streams]
        said = f"Segments sent again: {listed([f'{count} on {stream}' for count, stream in counts])}"
    else:
        said = f"Segments sent again: {count_text(cell.retransmits)}"
    share = _lost_share([cell])
    return f"{said}{f', {share}' if share else ''}."


def _lost_share(cells: Sequence[CellSummary]) -> str:
    """Segments sent again as a share of all: `0.014 % of those sent`, of very few `1 in 1,200,000`."""
    again = sent = 0.0
    for cell in cells:
        for stream in cell.streams:
            if stream.retransmits is None or stream.bytes is None or not stream.mss_effective:
                return ""
            again += stream.retransmits
            sent += stream.bytes / stream.mss_effective
    if not sent or not again:
        return ""
    few = few_text(again / sent)
    return f"{few} of those sent" if few.endswith("%") else few


def congestion_words(cell: CellSummary) -> str:
    """Where another congestion control ran than was asked for."""
    asked = cell.cell.tcp.congestion
    other = {stream.congestion for stream in cell.streams} - {None, asked}
    if asked is None or not other:
        return ""
    found = listed(sorted(name for name in other if name is not None))
    return f"Congestion control {asked} was asked for; {found} was used. Load its kernel module on the sender."


def answer(info: RunInfo, cells: Sequence[CellSummary]) -> list[str]:
    """The run in one paragraph: the best, what set the ceiling, line rate or not, losses, and what went wrong."""
    found = matrix(info.plan, cells)
    said = [*(matrix_words(info, found) if found else ()), *_best(info, cells), *_mss_of_run(info, cells)]
    said += [*_line_rate(cells), *_losses(cells), *loss_words(cells), *binding_of_run(cells), *_windows(info, cells)]
    return [*said, *_trouble(info, cells), *rig_words(info), *shaping_words(info)]


def _best(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[str]:
    known = [cell for cell in cells if cell.goodput_mbps is not None]
    if not known:
        yield "Nothing was measured that counts."
        return
    best = max(known, key=lambda cell: cell.goodput_mbps.mean if cell.goodput_mbps else 0.0)
    settings = settings_text(best.cell, pairs=len({len(cell.cell.pairs) for cell in cells}) > 1)
    began = f"Test {best.cell.number} ({settings})"
    if len(known) > 1:
        began = f"The fastest of {plural(len(known), 'test')} is test {best.cell.number} ({settings})"
    yield f"{began}. {goodput_words(info, best)}"


def _mss_of_run(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[str]:
    """Each distinct story of an MSS once, with the tests it holds for."""
    stories: dict[str, list[int]] = {}
    for cell in cells:
        if cell.counted and cell.cell.tcp.mss is not None and (said := mss_words(info, cell)):
            stories.setdefault(said, []).append(cell.cell.number)
    for said, tests in stories.items():
        where = f"In {'test' if len(tests) == 1 else 'tests'} {listed([str(test) for test in tests])}: "
        yield said if len(stories) == 1 else where + said
    effective = {stream.mss_effective for cell in cells if cell.counted for stream in cell.streams}
    asked = {cell.cell.tcp.mss for cell in cells if cell.counted}
    if len(effective) == 1 and len(asked) > 1 and None not in effective:
        yield "So all tests filled the same frames: the MSS that was asked for made no difference."


def _line_rate(cells: Sequence[CellSummary]) -> Iterator[str]:
    known = [cell for cell in cells if cell.efficiency is not None and not isinstance(cell.cell.datagrams.rate, int)]
    if len(known) < 2:
        return
    reached = sum(cell.efficiency is not None and cell.efficiency >= LINE_RATE_EFFICIENCY for cell in known)
    worst = min(known, key=lambda cell: cell.efficiency or 0.0)
    count = "All" if reached == len(known) else "None" if reached == 0 else str(reached)
    share = f"{100 * LINE_RATE_EFFICIENCY:g} % of the ceiling or more"
    yield (
        f"{count} of {plural(len(known), 'test')} reached line rate ({share}); "
        f"the slowest, test {worst.cell.number}, had {percent_text(worst.efficiency)} %."
    )


def _losses(cells: Sequence[CellSummary]) -> Iterator[str]:
    known = [cell for cell in cells if cell.retransmits is not None]
    if not known:
        return
    total = sum(cell.retransmits or 0.0 for cell in known)
    share = _lost_share(known)
    if total == 0:
        yield "No segment was sent again in any test."
    else:
        yield f"In all, {count_text(total)} segments were sent again{f', {share}' if share else ''}."


def _windows(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[str]:
    stories = dict.fromkeys(window_words(info, cell) for cell in cells if cell.counted and not cell.cell.window.resize)
    told = [said for said in stories if said]
    yield from told[:MOST_STORIES]
    if len(told) > MOST_STORIES:
        more = len(told) - MOST_STORIES
        yield f"{plural(more, 'more window was', 'more windows were')} not granted as asked; the table has them."


def _trouble(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[str]:
    """How many tests have nothing to show, and how the run ended."""
    empty = [cell for cell in cells if not cell.counted]
    partly = [cell for cell in cells if cell.counted and cell.notes]
    if empty:
        yield f"{numbers_text(empty).capitalize()} gave no result that counts; the notes say why."
    if partly:
        yield f"Some measurements of {numbers_text(partly)} are not counted; the notes say why."
    if info.status == "interrupted":
        yield "The run was interrupted."
    if info.status == "running":
        yield "The run has not ended, or it died."


def rig_words(info: RunInfo) -> list[str]:
    """What the rig is, and where its links are not as the rig file says."""
    said = []
    if info.plan.virtual == "namespaces":
        said.append("The rig is virtual: network namespaces with shaped links on one machine.")
        far = [f"{node} ({format_duration(link.rtt_s)})" for node, link in info.plan.links.items() if link.rtt_s]
        if far:
            said.append(f"A relay holds the frames of {listed(far)}, so that a round trip takes so long.")
    if info.plan.virtual == "loopback":
        said.append("The rig is the loopback interface of one machine: no link and no switch is in these figures.")
        return said
    for departure in link_departures(info.plan.links, info.facts):
        if departure.setting == "link speed":
            asked, found = format_rate(float(departure.requested)), format_rate(float(departure.effective))
            said.append(f"The link of {departure.where} runs at {found}; the rig file says {asked}.")
        else:
            said.append(
                f"The MTU of {departure.where} is {departure.effective}; the rig file says {departure.requested}."
            )
    return said
