"""Makes the head of a report, which a reader can post: request, one sentence, slowest and fastest test, a warning."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.used import used_requests
from rigctl.base.units import format_duration, local_text
from rigctl.base.values import most
from rigctl.figures.datagrams import LOSS
from rigctl.figures.streams import GOODPUT
from rigctl.findings.text import (
    few_text,
    how_pairs_differ,
    link_name,
    percent_text,
    plural,
    rate_decimals,
    span,
    texts_that_vary,
)
from rigctl.limits.links import path_rate_bps
from rigctl.model.statistics.comparing import LEAST_REPETITIONS
from rigctl.records import Direction, RunPlan
from rigctl.report.blocks import Brief
from rigctl.report.sections.streams import retransmit_share
from rigctl.report.tables.streams import many
from rigctl.results.summary import CellSummary, Estimate, Results
from rigctl.settings import RATE

_ALIKE: Final = 0.03
"""Results that differ by at most this share of the highest have one mean."""
_LONGEST: Final = 44
"""Most characters of the settings beside a figure; longer settings are replaced by the number of the test."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """Goodput of a pair, or of all pairs of a test together, with the words that tell it from others."""

    rate: Estimate
    name: str
    results: Results


def brief_of(view: RunView, answer: str, parts: tuple[str, ...]) -> Brief:
    """Return the head of the report of a run. `answer` is the run's answer, which names the unit of the facts.

    `parts` has a line for each part of the run; empty for a run without parts.
    """
    about = f"{_rig_kind(view.plan)} · {local_text(view.info.started_at, '%-d %b %Y')}"
    if parts:
        return Brief(f"{plural(len(view.plan.cells), 'test')} in {plural(len(parts), 'part')}", about, parts=parts)
    cells = [cell for cell in view.cells if cell.goodput_mbps is not None and not cell.cell.in_messages]
    if view.matrix:  # the total of fewer pairs is lower, whatever the settings are
        pairs = max((len(cell.cell.pairs) for cell in cells), default=0)
        cells = [cell for cell in cells if len(cell.cell.pairs) == pairs]
    figures = _figures(view, cells)
    mean = _mean_text(view, cells, figures)
    return Brief(
        request=_request_text(view.plan),
        about=about,
        mean=mean,
        facts=() if view.classed else tuple(_facts(view, cells, figures, answer, spreads=not mean)),
    )


def _rig_kind(plan: RunPlan) -> str:
    if plan.imported:
        return f"imported from {plan.scenario_name}"
    return {None: plan.rig_name, "loopback": "loopback of one machine"}.get(plan.virtual, "virtual rig")


def _request_text(plan: RunPlan) -> str:
    """Return what was requested: `7 settings × 4 × 5 s, both pairs at once`."""
    parts = [plural(len(plan.cells), "setting")]
    durations = {cell.duration_s for cell in plan.cells}
    if plan.until is None:
        parts.append(str(plan.repeat))
    if not plan.in_messages and len(durations) == 1:
        (duration_s,) = durations
        parts.append(f"{duration_s:g} s" if duration_s <= 60 else format_duration(duration_s))
    return ", ".join(filter(None, [" × ".join(parts), _at_once(plan)]))


def _at_once(plan: RunPlan) -> str:
    counts = sorted({len(cell.pairs) for cell in plan.cells})
    both = " in both directions" if any(cell.direction is Direction.BOTH for cell in plan.cells) else ""
    if counts == [1]:
        return both.strip()
    if counts == [2]:
        return f"both pairs at once{both}"
    return f"{span(map(str, (counts[0], counts[-1])))} pairs at once{both}"


def _figures(view: RunView, cells: Sequence[CellSummary]) -> list[_Figure]:
    """Return the goodput of each pair, or of all pairs together; not of tests that a requested rate bounds."""
    requests = used_requests(cells)
    varied = texts_that_vary(requests, how_pairs_differ(cell.cell for cell in view.cells)) if requests else []
    found = []
    for cell, words in zip(cells, varied, strict=True):
        own = f"test {cell.cell.number}" if len(words) > _LONGEST else words
        parts = [("", cell)] if many(cells) else [(str(one), one) for one in cell.streams]
        found += [
            _Figure(part.goodput_mbps, own or (stream if len(parts) > 1 else ""), part.results)
            for stream, part in parts
            if part.goodput_mbps is not None and not isinstance(cell.cell[RATE], int)
        ]
    return found


def _mean_text(view: RunView, cells: Sequence[CellSummary], figures: Sequence[_Figure]) -> str:
    """Return the mean and the standard deviation of all repetitions as a sentence.

    It is empty if the tests differ, if some test has fewer than 4 repetitions, or if there is no common ceiling.
    """
    streams = [stream for cell in cells for stream in cell.streams]
    rates = {path_rate_bps(view.info, one.stream.ends, cell.cell.parallel) for cell in cells for one in cell.streams}
    ceilings = {round(one.ceiling_mbps or 0.0, 1) for one in streams}
    if len(cells) < len(view.cells) or view.classed or many(cells) or not _are_alike(figures):
        return ""
    if any(cell.counted < LEAST_REPETITIONS or cell.shared or cell.above_ceiling for cell in cells):
        return ""
    if len(rates) > 1 or len(ceilings) > 1:
        return ""
    values = [mbps for own in figures for mbps in own.results.each(GOODPUT) if mbps is not None]
    each = " on each pair" if len(cells[0].streams) > 1 else ""
    spread = stdev(values)
    text = f"{_estimate_text(Estimate(fmean(values), spread), int(spread < 1))} Mbit/s{each}"
    (ceiling,), (rate_bps,) = ceilings, rates
    if not rate_bps or not ceiling:
        return text
    return f"{text} = {percent_text(fmean(values) / ceiling)} % of what {link_name(rate_bps)} allows"


def _are_alike(figures: Sequence[_Figure]) -> bool:
    means = [own.rate.mean for own in figures]
    return bool(means) and min(means) >= (1 - _ALIKE) * max(means)


def _estimate_text(rate: Estimate, decimals: int) -> str:
    """Return a rate with `decimals` and its deviation as the results table prints it."""
    if rate.spread is None:
        return f"{rate.mean:.{decimals}f}"
    return f"{rate.mean:.{decimals}f} ± {rate.spread:.{max(decimals, int(rate.spread < 1))}f}"


def _facts(
    view: RunView, cells: Sequence[CellSummary], figures: Sequence[_Figure], answer: str, *, spreads: bool
) -> Iterator[str]:
    """Yield the slowest and the fastest result, and the share of segments or datagrams that were lost."""
    ranked = sorted(figures, key=lambda own: own.rate.mean)
    factor, unit = (1, "") if "Mbit/s" in answer else (1000, "") if "Gbit/s" in answer else (1, " Mbit/s")
    parts = view.cells if many(cells) else [stream for cell in view.cells for stream in cell.streams]
    decimals = 2 if factor > 1 else rate_decimals((part.goodput_mbps, part.ceiling_mbps) for part in parts)
    judged = spreads and all(cell.counted >= LEAST_REPETITIONS for cell in cells)

    def text(own: _Figure, *, named: bool) -> str:
        spread = own.rate.spread / factor if judged and own.rate.spread is not None else None
        rate = _estimate_text(Estimate(own.rate.mean / factor, spread), decimals)
        return f"{rate}{unit}{f' ({own.name})' if own.name and named else ''}"

    if ranked and text(ranked[0], named=False) != text(ranked[-1], named=False):
        yield f"slowest {text(ranked[0], named=True)}"
        yield f"fastest {text(ranked[-1], named=not _are_alike(figures))}"
    if any(cell.cell.transport == "udp" for cell in cells):
        loss_pct = most(stream[LOSS] for cell in cells for stream in cell.streams)
        if loss_pct is not None:
            yield f"loss {few_text(loss_pct / 100)} at most" if loss_pct else "no loss"
    elif ranked and (share := retransmit_share(cells)) is not None:
        yield f"retransmits {few_text(share)}" if share else "no retransmits"
