"""The search for the highest rate: every trial, and the answer in the words of RFC 2544.

Zero loss is a no drop rate (NDR); with some loss allowed it is a partial drop rate (PDR), named with its loss and the
time of a trial, as RFC 2544, section 26.1, asks for zero loss and trials of 60 s.
"""

from collections.abc import Iterator, Sequence

from rigctl.analysis.limits.ceiling import datagram_path
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_duration, format_rate
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.limits.shares import LINE_RATE, reaches
from rigctl.model.search import Search, Trial
from rigctl.records import Cell, RunInfo
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.sections.datagrams.words import STEADY
from rigctl.report.words.text import UNKNOWN, ceiling_text, count_text, percent_text, plural


def rate_name(view: RunView, cell: Cell) -> str:
    """`NDR`, or `PDR (loss 0.1 %, trials of 5 s)`."""
    trial = f"trials of {format_duration(cell.duration_s)}"
    if view.plan.max_loss == 0:
        return f"NDR ({trial})"
    return f"PDR (loss {100 * view.plan.max_loss:g} %, {trial})"


def search_findings(view: RunView) -> Iterator[Finding]:
    """The answer of each search: the total rate, in bits and in datagrams, and what is lost above it."""
    cells = {cell.number: cell for cell in view.plan.cells}
    for number, found in view.searches.items():
        if found.trials:
            yield _finding(view, cells[number], found)


def _finding(view: RunView, cell: Cell, found: Search) -> Finding:
    which = f"Test {cell.number} (datagrams of {cell.message_bytes} bytes)"
    trials, subject = plural(len(found.trials), "trial"), tests([cell.number])
    blank = [trial for trial in found.trials if trial.sent_bps is None]
    best = found.best
    if best is None or best.sent_bps is None:
        if len(blank) == len(found.trials):
            text = f"{which}: no rate was found: no trial could be measured ({trials}); the notes give the reasons."
            return Finding(text, Weight.MISSING, Severity.ERROR, subject)
        least = min((trial.asked_bps for trial in found.trials if trial.asked_bps), default=None)
        tried = f" down to {format_rate(least)} per flow" if least else ""
        text = f"{which}: no {rate_name(view, cell)}: no rate{tried} passed, in {trials}{_not_measured(blank)}."
        return Finding(text, Weight.COMPARISON, Severity.WARNING, subject)
    flows = len(cell.streams) * cell.parallel
    total_bps = best.sent_bps * flows
    packets = total_bps / 8 / (cell.message_bytes or 1)
    pairs = f" in all over {plural(len(cell.pairs), 'pair')}" if len(cell.pairs) > 1 else ""
    text = f"{which}: {rate_name(view, cell)} is {format_rate(total_bps)} of payload sent{pairs}"
    text += f", {packets:,.0f} datagrams/s"
    if best.burst is not None:
        text += f" in bursts of at most {plural(best.burst, 'datagram')}"
    numbers = {"goodput_bps": total_bps, "datagrams_per_s": packets, "trials": len(found.trials)}
    text += _beyond(view, cell, found, best) + _not_measured(blank)
    level = Severity.WARNING if blank else Severity.NOTE
    return Finding(f"{text}.", Weight.COMPARISON, level, subject, numbers, remedy=_shorter(view, cell, best))


def _shorter(view: RunView, cell: Cell, best: Trial) -> str | None:
    """Return the setting for a path that drops bursts: a policer, or a buffer for few datagrams."""
    if best.burst is None or best.burst < 2 or _is_all(view.info, cell, best):
        return None
    return f"burst: {best.burst // 2} repeats it with shorter bursts, which a policer or a small buffer may pass."


def _not_measured(blank: Sequence[Trial]) -> str:
    """Trials that failed count as rates that did not pass."""
    return f"; {plural(len(blank), 'trial')} could not be measured and did not count as passed" if blank else ""


def _beyond(view: RunView, cell: Cell, found: Search, best: Trial) -> str:
    """What comes above it."""
    flows = len(cell.streams) * cell.parallel
    if best.asked_bps is not None and (best.sent_bps or 0.0) < STEADY * best.asked_bps:
        asked = format_rate(best.asked_bps * flows)
        return f"; {asked} were requested in that trial and the senders fell short: the network may carry more"
    above = [trial for trial in found.trials if not trial.passed(view.plan.max_loss) and trial.sent_bps is not None]
    if above:
        nearest = min(above, key=lambda trial: trial.sent_bps or 0.0)
        rate = format_rate((nearest.sent_bps or 0.0) * flows)
        return f"; at {rate} the loss is {percent_text(nearest.loss)} %"
    if _is_all(view.info, cell, best):
        return ", which is what the links carry"
    return ", which is all that the senders achieve: the network may carry more"


def _is_all(info: RunInfo, cell: Cell, best: Trial) -> bool:
    """Whether a rate is what the narrowest link of its pairs carries."""
    paths = [datagram_path(info, (stream.sender, stream.receiver), cell) for stream in cell.streams]
    ceilings = [path.ceiling_mbps for path in paths if path.ceiling_mbps is not None]
    own = (best.sent_bps or 0.0) * cell.parallel / 1e6
    return bool(ceilings) and reaches(own / min(ceilings), LINE_RATE)


def search_table(view: RunView) -> Table | None:
    """Every trial of every search; `None` where nothing was searched."""
    rows = [
        _row(number, trial, view.plan.max_loss) for number, found in view.searches.items() for trial in found.trials
    ]
    if not rows:
        return None
    columns = (
        Column("Test", "", "requested"),
        Column("Trial", "", "requested"),
        Column("Offered", "Mbit/s", "requested"),
        Column("Sent", "Mbit/s"),
        Column("Received", "Mbit/s"),
        Column("Longest burst sent"),
        Column("Loss", "%"),
        Column("Passed", "", "derived", words=True),
    )
    return Table(columns, tuple(rows), legend=("Rates are payload rates of one flow.",), label="Trials")


def _row(number: int, trial: Trial, most_loss: float) -> Row:
    offered = Entry("unlimited") if trial.asked_bps is None else _rate(trial.asked_bps)
    loss = Entry(UNKNOWN) if trial.loss is None else Entry(f"{100 * trial.loss:.3f}", 100 * trial.loss)
    passed = Entry(UNKNOWN) if trial.loss is None else Entry("yes" if trial.passed(most_loss) else "no")
    entries = (Entry(str(number), number), Entry(str(trial.number), trial.number), offered)
    burst = Entry(count_text(trial.burst), trial.burst)
    measured: Sequence[Entry] = (_rate(trial.sent_bps), _rate(trial.arrived_bps), burst)
    return Row((*entries, *measured, loss, passed), number, counted=trial.sent_bps is not None)


def _rate(rate_bps: float | None) -> Entry:
    return Entry(UNKNOWN) if rate_bps is None else Entry(ceiling_text(rate_bps / 1e6), rate_bps / 1e6)
