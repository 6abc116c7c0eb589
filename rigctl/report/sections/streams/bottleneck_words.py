"""Sentences of what binds: the window and what it allows, processors and how busy they were, or losses."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.bottleneck import PROCESSORS, window_allows_bps
from rigctl.analysis.summary import CellSummary
from rigctl.report.text import few_text, listed, plural, rate_text, size_words

MOST_TESTS: Final = 10
"""More tests are counted, not named."""

_SHARED: Final = "those of the one machine that all nodes of the virtual rig share were busy"


def held_words(cell: CellSummary) -> str:
    """Where the window is what limits: what it allows per round trip, and that nearly all of it came."""
    streams = [stream for stream in cell.streams if stream.offered_bytes and stream.rtt_min_us and stream.goodput_mbps]
    if cell.limit != "window" or not streams or cell.held_share is None:
        return ""
    stream = streams[0]
    offered, rtt_us, mss = round(stream.offered_bytes or 0), stream.rtt_min_us or 0.0, stream.mss_effective or 1
    allowed = cell.cell.parallel * window_allows_bps(offered, mss, rtt_us) / 1e6
    flows = "" if cell.cell.parallel == 1 else f" on each of {cell.cell.parallel} flows"
    which = "" if len(cell.streams) == 1 else f" on {stream}"
    return (
        f"The window is what limits: {100 * cell.held_share:.0f} % of the time the sender waited for it. The receiver "
        f"offered {size_words(offered)}{flows}{which}, {plural(offered // mss, 'segment')}, and a round trip took "
        f"{rtt_us / 1e3:.3g} ms at least: window ÷ round trip = {rate_text(allowed)} Mbit/s."
    )


def other_words(cell: CellSummary) -> str:
    """Where losses are what limits, or processors: whose, and how busy they were."""
    if cell.limit == "loss" and cell.losses is not None:
        return (
            f"Losses are what limits: {few_text(cell.losses.lost_share)} of the segments were lost, and a round trip "
            f"took {cell.losses.rtt_us / 1e3:.3g} ms. By the rule of Mathis et al. a flow then brings about "
            f"{rate_text(cell.losses.allowed_mbps)} Mbit/s, more where several are lost at once."
        )
    if cell.limit not in PROCESSORS:
        return ""
    busy = f"{cell.busy.highest_pct:.0f} % of the time"
    if cell.limit == "machine":
        return f"Processors are what limits: {_SHARED} {busy}."
    return f"The {cell.limit} is what limits: processors of its node, or its agent's threads, were busy {busy}."


def binding_of_run(cells: Sequence[CellSummary]) -> Iterator[str]:
    """In which tests the window is what limits, in which processors are, and in which losses."""
    held = [cell for cell in cells if cell.limit == "window"]
    if held:
        yield f"In {numbers_text(held)} the window is what limits: the sender waited for it half of its time or more."
    for limit in PROCESSORS:
        bound = [cell for cell in cells if cell.limit == limit]
        if not bound:
            continue
        shares = [cell.busy.highest_pct for cell in bound]
        busy = f"{' to '.join(dict.fromkeys(f'{pct:.0f}' for pct in (min(shares), max(shares))))} % of the time"
        if limit == "machine":
            said = f"processors are what limits: {_SHARED} {busy}. Nodes of their own may do more"
        else:
            said = f"the {limit} is what limits: processors of its node, or its agent's threads, were busy {busy}"
        yield f"In {numbers_text(bound)} {said}."
    cut = [cell for cell in cells if cell.limit == "loss"]
    if cut:
        yield f"In {numbers_text(cut)} losses are what limits: each cuts the congestion window of its flow."


def numbers_text(cells: Sequence[CellSummary]) -> str:
    """`test 3`, `tests 3 and 4`, `tests 1, 2, … and 5 more`."""
    named = [str(cell.cell.number) for cell in cells]
    if len(named) > MOST_TESTS:
        named = [*named[:MOST_TESTS], f"{len(named) - MOST_TESTS} more"]
    return f"test{'s' if len(cells) > 1 else ''} {listed(named)}"
