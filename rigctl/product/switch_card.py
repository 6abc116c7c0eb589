"""Collects the card of a switch from a run with parts: what it forwards without loss, by frame, and what else is said.

Rates and shares are rounded down, delays up, so that no figure promises more than was measured. A rate that the hosts
limited is a lower bound of the switch's, and one above the line rate of a virtual link is none of a switch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.control import added_to_control
from rigctl.base.units import digits_text, format_duration
from rigctl.base.values import least_of_all
from rigctl.figures.datagrams import LOSS
from rigctl.figures.messages import ROUND_TRIP_P50, ROUND_TRIP_P99
from rigctl.findings.text import UNKNOWN, plural, span, upper_first
from rigctl.limits.limit import BY_MACHINE, LIMITS
from rigctl.model.frames import Packet
from rigctl.product.added import two_digits_up
from rigctl.product.claim import floor_to, three_digits
from rigctl.records import Cell
from rigctl.report.document import document
from rigctl.report.parts import words_of_part
from rigctl.report.sections.datagrams import SECTION, Fastest, fastest_by_size
from rigctl.report.tables.streams import packets_per_s
from rigctl.results.summary import CellSummary
from rigctl.settings.kinds import PINGPONG

_USUAL_MTU: Final = 1500
"""Assumed where the rig file has no MTU; larger datagrams are sent in fragments and are no frames."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A row of the card: rate, share and delay of frames of one size, as texts; `–` is unknown."""

    frame_bytes: int
    rate: str  # frames/s of the slowest port: `81,200`, `≥ 81,200 (senders)`
    share: str  # of the line rate: `99.9 %`, or `(virtual)` above it
    filled: float | None = None  # the same share for a bar, at most 1; None: no bar
    added: str = UNKNOWN  # what the round trip takes longer than over the control: `3.1 µs (p99 3.4)`


@dataclass(frozen=True, slots=True)
class SwitchCard:
    """The card of a switch."""

    figure: str  # share of the best row, as `99.7 % of line rate`; empty: no row is a real switch's own
    rest: str  # end of the sentence that `figure` begins, or what the rows are
    forwards: str  # head of the column of rates: `Forwards without loss`
    rows: tuple[FrameRow, ...]
    control: str  # name of the control's rig; empty: no control was measured, and no row has a delay
    lines: tuple[tuple[str, str], ...]  # what the other parts of the run say, by their names
    conditions: str  # how many ports, for how long, and the watts, which rigctl does not measure

    @property
    def summary(self) -> str:
        return upper_first(f"{self.figure} {self.rest}".strip())


def switch_card(view: RunView) -> SwitchCard | None:
    """Return the card of a run with parts; None if no part searched for the highest rate of datagrams."""
    parts = {name: own for name in view.plan.parts if (own := view.of_part(name)) is not None}
    found = next(((name, own) for name, part in parts.items() if (own := _searched(part)) is not None), None)
    if found is None:
        return None
    searched, own = found
    delay = next((name for name, part in parts.items() if _is_beside_control(part)), None)
    added = {} if delay is None else dict(_added(parts[delay]))
    control = parts[delay].control if delay is not None else None
    rows = tuple(_rows(own, added))
    figure, rest = _summary(own, rows)
    answers = ((name, document(part).findings[0]) for name, part in parts.items() if name not in (searched, delay))
    return SwitchCard(
        figure=figure,
        rest=rest,
        forwards=f"Forwards {_loss_words(own)}",
        rows=rows,
        control="" if control is None else control.plan.rig_name,
        lines=tuple((upper_first(name), words_of_part(name, answer)) for name, answer in answers),
        conditions=f"{upper_first(_ports_text(own))}, {_trial_text(own)}. Idle {UNKNOWN} W, full {UNKNOWN} W.",
    )


def _searched(part: RunView) -> RunView | None:
    """Return the view of the datagrams of a part that searches for their highest rate; None for another part."""
    own = None if part.classed else part.of_section(SECTION)
    return own if own is not None and own.searches else None


def _rows(view: RunView, added: Mapping[int, str]) -> Iterator[FrameRow]:
    """Yield a row for each size whose datagram is one frame, the smallest first."""
    best = {one.cell.cell.message_bytes: one for one in fastest_by_size(view)}
    mtu = least_of_all(view.plan.links[node].mtu for node in view.plan.nodes) or _USUAL_MTU
    packet = Packet("udp", view.plan.ip_version)
    for size in sorted({cell.message_bytes or 0 for cell in view.plan.cells}):
        if not 0 < size <= packet.largest_payload(mtu):
            continue
        frame = packet.frame_bytes(size)
        yield _row(view, frame, best.get(size), added.get(frame, UNKNOWN))


def _row(view: RunView, frame_bytes: int, best: Fastest | None, added: str) -> FrameRow:
    if best is None:
        return FrameRow(frame_bytes, UNKNOWN, UNKNOWN, added=added)
    if best.above:
        above = "(virtual)" if view.plan.virtual is not None else "above line rate"
        return FrameRow(frame_bytes, UNKNOWN, above, added=added)
    frames = packets_per_s(_slowest_mbps(best.cell), best.cell)
    known = UNKNOWN if frames is None else f"{three_digits(frames):,.0f}"
    hosts = _hosts_that_limit(best)
    share: float | None = least_of_all(stream.efficiency for stream in best.cell.streams)
    return FrameRow(
        frame_bytes,
        f"≥ {known} ({hosts})" if hosts and frames is not None else known,
        UNKNOWN if share is None else f"{'≥ ' if hosts else ''}{floor_to(100 * share, 1):g} %",
        share if share is None else min(1.0, share),
        added,
    )


def _slowest_mbps(cell: CellSummary) -> float | None:
    return least_of_all(None if stream.goodput_mbps is None else stream.goodput_mbps.mean for stream in cell.streams)


def _hosts_that_limit(best: Fastest) -> str:
    """Return which hosts limited a rate, so that the switch may forward more; empty if none is known to have."""
    end = LIMITS[best.cell.limit].end
    if best.sent or end is not None:
        return f"{'sender' if best.sent else end}s"
    return "hosts" if best.cell.limit == BY_MACHINE.word else ""


def _is_beside_control(part: RunView) -> bool:
    return part.control is not None and all(cell.kind is PINGPONG for cell in part.plan.cells)


def _added(part: RunView) -> Iterator[tuple[int, str]]:
    """Yield for each size of frames what the round trip takes longer than over the control, on the slowest pair."""
    amounts: dict[int, dict[str, float]] = {}
    for one in added_to_control(part, part.control) if part.control is not None else ():
        if one.figure in (ROUND_TRIP_P50, ROUND_TRIP_P99) and one.cell.message_bytes and one.told:
            own = amounts.setdefault(_frame_bytes(one.cell, part.plan.ip_version), {})
            own[one.figure.name] = max(one.amount, own.get(one.figure.name, one.amount))
    for frame, own in amounts.items():
        median = own.get(ROUND_TRIP_P50.name, 0.0)
        if median > 0:
            p99 = own.get(ROUND_TRIP_P99.name, 0.0)
            late = f" (p99 {digits_text(two_digits_up(p99))})" if p99 > 0 else ""
            yield frame, f"{digits_text(two_digits_up(median))} µs{late}"


def _frame_bytes(cell: Cell, ip_version: int) -> int:
    packet = Packet("udp" if cell.transport == "udp" else "tcp", ip_version)
    return packet.frame_bytes(cell.message_bytes or 0)


def _loss_words(view: RunView) -> str:
    lost = any(stream[LOSS] for one in fastest_by_size(view) for stream in one.cell.streams)
    return f"with at most {100 * view.plan.max_loss:g} % loss" if lost else "without loss"


def _summary(view: RunView, rows: tuple[FrameRow, ...]) -> tuple[str, str]:
    """Return the share of the best row that is the switch's own, and its conditions; else what the rows are."""
    known = [row for row in rows if row.filled is not None and not row.rate.startswith("≥")]
    if not known or view.plan.virtual is not None:  # a virtual rig has no switch to boast of
        return "", f"frames per second {_loss_words(view)}, by their size, {_ports_text(view)}"
    best = max(known, key=lambda row: row.filled or 0.0)
    rest = f"{_loss_words(view)} with frames of {best.frame_bytes} bytes, {_ports_text(view)}"
    return f"{best.share} of line rate", rest


def _ports_text(view: RunView) -> str:
    streams = [stream for cell in view.plan.cells for stream in cell.streams]
    senders, receivers = {one.sender for one in streams}, {one.receiver for one in streams}
    both = ", both directions" if senders == receivers else ""
    return f"{plural(len(senders | receivers), 'port')} at once{both}"


def _trial_text(view: RunView) -> str:
    times = sorted({cell.duration_s - cell.omit_s for cell in view.plan.cells})
    return f"trials of {span(format_duration(time) for time in (times[0], times[-1]))}"
