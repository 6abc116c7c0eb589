"""How close to the ceiling the pairs of a test came, and all of them together."""

from collections.abc import Sequence

from rigctl.analysis.summary import CellSummary
from rigctl.records import RunInfo
from rigctl.report.words.per_stream import MOST_LISTED
from rigctl.report.words.text import ceiling_text, listed, percent_text, rate_of_ceiling, rate_text


def goodput_text(info: RunInfo, cell: CellSummary) -> str:
    """`911 and 941 of 941.5 Mbit/s are 96.8 % and 99.9 % of the ceiling; together 98.4 %.`"""
    streams = [stream for stream in cell.streams if stream.goodput_mbps is not None]
    if not streams or cell.goodput_mbps is None:
        return ""
    rates_mbps = [stream.goodput_mbps.mean for stream in streams if stream.goodput_mbps is not None]
    if cell.ceiling_mbps is None:
        return _without_ceiling(info, rates_mbps)
    together = f"{' of '.join(rate_of_ceiling(cell.goodput_mbps.mean, cell.ceiling_mbps))} Mbit/s"
    share = f"{percent_text(cell.efficiency)} %"
    if len(streams) == 1:
        return f"{together} is {share} of the ceiling."
    each_mbps = [stream.ceiling_mbps for stream in streams if stream.ceiling_mbps is not None]
    differ = len({ceiling_text(mbps) for mbps in each_mbps}) > 1 or len(each_mbps) < len(streams)
    if cell.shared or differ or len(streams) > MOST_LISTED:
        why = " (they share a link)" if cell.shared else ""
        return f"The pairs achieve {_range(rates_mbps)} Mbit/s; together{why} {together} is {share} of the ceiling."
    texts = [rate_of_ceiling(rate, mbps) for rate, mbps in zip(rates_mbps, each_mbps, strict=True)]
    rates, ceiling = [rate for rate, _ in texts], max((text for _, text in texts), key=len)
    shares = [f"{percent_text(stream.efficiency)} %" for stream in streams]
    if len({*rates}) == 1:
        return f"{rates[0]} of {ceiling} Mbit/s is {share} of the ceiling, on each pair."
    each = f"{share} of the ceiling" if len({*shares}) == 1 else f"{listed(shares)} of the ceiling; together {share}"
    return f"{listed(rates)} of {ceiling} Mbit/s are {each}."


def _without_ceiling(info: RunInfo, rates_mbps: Sequence[float]) -> str:
    several = len(rates_mbps) > MOST_LISTED
    rates = _range(rates_mbps) if several else listed([rate_text(rate) for rate in rates_mbps])
    if info.plan.virtual == "loopback":
        return f"{rates} Mbit/s, unshaped, so there is no ceiling."
    return f"{rates} Mbit/s; the ceiling is unknown, as the rate of a link is. Give it in the rig file."


def _range(rates_mbps: Sequence[float]) -> str:
    low, high = rate_text(min(rates_mbps)), rate_text(max(rates_mbps))
    return low if low == high else f"{low} to {high}"
