"""Datagrams: what was sent, what arrived and how; the highest rate with a given loss."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rigctl.analysis.limits.ceiling import datagram_path
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, DatagramSummary, StreamSummary
from rigctl.analysis.views.shaping import shaped_mbps
from rigctl.base.units import format_duration, format_rate
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.limits.ceilings import LINE_RATE, Packet, reaches
from rigctl.model.search import Search, Trial
from rigctl.records import Cell, RunInfo
from rigctl.report.blocks import Column, Entry, Part, Row, Section, Table
from rigctl.report.tables import requested
from rigctl.report.tables.columns import ColumnOf, Filled, Head, decimals_of, table_of
from rigctl.report.tables.streams import (
    bottleneck,
    ceiling,
    details,
    each_pair,
    efficiency,
    goodput,
    idle_round_trip,
    legend,
    loaded_round_trip,
    of_cell,
    per_minute,
    total_goodput,
)
from rigctl.report.words.above_ceiling import excess_findings, excess_note
from rigctl.report.words.goodput import goodput_answer, goodput_text
from rigctl.report.words.limits import bottleneck_findings, bottleneck_text
from rigctl.report.words.missing import excluded_findings, exclusion_text
from rigctl.report.words.text import (
    UNKNOWN,
    ceiling_text,
    count_text,
    listed,
    numbers_text,
    percent_text,
    plural,
    rate_text,
)

SECTION = "datagrams"
_METHOD = (
    "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran (the "
    "measurement interval); a duplicate counts once. Loss, order and jitter are of all that a test sent.",
    "Each datagram carries a number and the time it was handed over. Jitter is that of RFC 3550 as it stood at the "
    "end; datagrams that a kernel handed over together arrived at one instant.",
)


def part(view: RunView) -> Part | None:
    """Of a run of UDP streams; `None` of any other."""
    if view.section != SECTION:
        return None
    trials = search_table(view)
    title = "The search for the highest rate, trial by trial"
    return Part(
        findings=tuple(datagram_findings(view)),
        results=datagram_table(view.info, view.cells),
        sections=(Section(title, (trials,), brief=True),) if trials is not None else (),
        details=details(view, lambda cell: explain(view.info, cell)),
        method=_METHOD,
    )


_REQUESTED: Final = (
    requested.TEST,
    requested.CONDITION,
    requested.PAIRS,
    requested.SENDING,
    requested.WINDOW,
    requested.PARALLEL,
    requested.DATAGRAM,
    requested.LOAD,
    requested.BURST,
    requested.DIRECTION,
    requested.ENGINE,
    requested.LATENCY,
)


def datagram_table(info: RunInfo, cells: Sequence[CellSummary]) -> Table:
    """The results of a run; of many pairs loss, order and jitter are those of the worst."""
    columns: list[ColumnOf[CellSummary]] = [
        *(of_cell(setting) for setting in _REQUESTED),
        total_goodput,
        goodput,
        _burst_sent,
        _of_each("Loss", "%", lambda counted: counted.loss_pct),
        _counts("Longest loss burst", lambda counted: counted.burst_max),
        _counts("Reordered", lambda counted: counted.reordered),
        _counts("Duplicates", lambda counted: counted.duplicates),
        _of_each("Jitter", "µs", lambda counted: counted.jitter_us),
        idle_round_trip,
        loaded_round_trip,
        per_minute,
        ceiling,
        efficiency,
        bottleneck,
    ]

    def head(cell: CellSummary) -> Head:
        notes = [*map(exclusion_text, cell.exclusions), *excess_note(info, cell)]
        return Head(cell.cell.number, tuple(notes), cell.counted > 0)

    return table_of(cells, columns, head, legend(cells, "Loss, order and jitter: of the worst pair."))


def _of_each(title: str, unit: str, value: Callable[[DatagramSummary], float | None]) -> ColumnOf[CellSummary]:
    """A measured quantity, all rows with the same decimals."""

    def column(cells: Sequence[CellSummary]) -> Filled:
        every = [_value(stream, value) for cell in cells for stream in cell.streams]
        decimals = decimals_of(every, digits=2, most=3)

        def text(number: float | None) -> str:
            return UNKNOWN if number is None else f"{number:.{decimals}f}"

        return _column(cells, Column(title, unit), value, text)

    return column


def _counts(title: str, value: Callable[[DatagramSummary], float | None]) -> ColumnOf[CellSummary]:
    return lambda cells: _column(cells, Column(title), value, count_text)


def _burst_sent(cells: Sequence[CellSummary]) -> Filled | None:
    """Beside the burst requested; without one the trials of a search and the notes give it."""
    if all(cell.cell.datagrams.burst is None for cell in cells):
        return None
    return _counts("Longest burst sent", lambda counted: counted.sent_burst)(cells)


def _column(
    cells: Sequence[CellSummary],
    column: Column,
    value: Callable[[DatagramSummary], float | None],
    text: Callable[[float | None], str],
) -> Filled:
    def worst(cell: CellSummary) -> Entry:
        known = [found for stream in cell.streams if (found := _value(stream, value)) is not None]
        largest = max(known, default=None)
        return Entry(text(largest), largest)

    return each_pair(
        cells, column, lambda stream: _value(stream, value), lambda stream: text(_value(stream, value)), worst
    )


def _value(stream: StreamSummary, value: Callable[[DatagramSummary], float | None]) -> float | None:
    return None if stream.datagrams is None else value(stream.datagrams)


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


def datagram_findings(view: RunView) -> Iterator[Finding]:
    """All of them, the answer first."""
    if not view.meshes and (answer := goodput_answer(view.info, view.cells)):
        yield answer
    yield from search_findings(view)
    yield from _losses(view.cells)
    yield from _load(view.cells)
    yield from bottleneck_findings(view.cells)
    yield from excess_findings(view.info, view.cells)
    yield from excluded_findings(view.cells)
    shaped = shaping_text(view.info)
    if shaped:
        yield Finding(shaped, Weight.RIG)


def _losses(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Over all tests: what was lost, and where most of it."""
    known = {cell.cell.number: share for cell in cells if (share := _lost_share(cell)) is not None}
    if not known:
        return
    if not any(known.values()):
        yield Finding("No datagram was lost in any test.", Weight.LOSS, Severity.OK, numbers={"loss_pct": 0.0})
        return
    worst = max(known, key=lambda number: known[number])
    some = [number for number, share in known.items() if share > 0]
    of_all = plural(len(known), "test")
    text = f"Datagrams were lost in {len(some)} of {of_all}, most in test {worst}: {100 * known[worst]:.2g} %."
    yield Finding(text, Weight.LOSS, Severity.WARNING, tests(some), {"loss_pct": 100 * known[worst]})
    full = [cell.cell.number for cell in cells if any(_overflowed(stream) for stream in cell.streams)]
    if full:
        text = f"Socket buffers of receivers were full in {numbers_text(full)}: a loss at the host, not in the network."
        remedy = "A larger window sets a larger buffer."
        yield Finding(text, Weight.LOSS, Severity.WARNING, tests(full), remedy=remedy)


def _lost_share(cell: CellSummary) -> float | None:
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    sent, lost = (sum(getattr(datagrams, name) or 0.0 for datagrams in counted) for name in ("sent", "lost"))
    return lost / sent if sent and all(datagrams.lost is not None for datagrams in counted) else None


def _overflowed(stream: StreamSummary) -> bool:
    return stream.datagrams is not None and bool(stream.datagrams.receiver_drops)


def _load(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    short = [cell.cell.number for cell in cells if cell.counted and load_text(cell)]
    if short:
        text = f"The senders did not achieve the offered load in {numbers_text(short)}."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, tests(short))


def shaping_text(info: RunInfo) -> str:
    """Where a virtual link carries more of such datagrams than a wire does: it is shaped for full frames."""
    if info.plan.virtual != "namespaces":
        return ""
    cells = {cell.message_bytes: cell for cell in info.plan.cells if cell.datagrams.rate is not None}
    said = [words for cell in cells.values() if (words := _shaped(info, cell))]
    began = "The virtual links are shaped for full frames and carry more of smaller datagrams"
    return f"{began}: in Mbit/s {listed(said)}." if said else ""


def _shaped(info: RunInfo, cell: Cell) -> str:
    stream, size = cell.streams[0], cell.message_bytes
    path = datagram_path(info, (stream.sender, stream.receiver), cell)
    if path.ceiling_mbps is None or size is None:
        return ""
    carried = shaped_mbps(info, stream, size, Packet("udp", info.ip_version), cell.condition)
    if carried is None or carried <= 1.01 * path.ceiling_mbps:
        return ""
    return f"{ceiling_text(carried)} of {size} bytes, where a wire carries {ceiling_text(path.ceiling_mbps)}"


STEADY = 0.98
"""From this share of the offered load on, the sender kept to it."""


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """The sentences of one test."""
    notes = [exclusion_text(excluded) for excluded in cell.exclusions]
    if not cell.counted:
        return notes
    said = [goodput_text(info, cell), load_text(cell)]
    said += [_loss(stream, len(cell.streams) > 1) for stream in cell.streams]
    said += [*_order(cell), *_drops(info, cell), bottleneck_text(cell), *notes]
    return [sentence for sentence in said if sentence]


def load_text(cell: CellSummary) -> str:
    """Where the senders did not achieve the offered load that was requested."""
    sent = [stream.datagrams.sent_mbps for stream in cell.streams if stream.datagrams is not None]
    known = [rate_mbps for rate_mbps in sent if rate_mbps is not None]
    rate = cell.cell.datagrams.rate
    if not isinstance(rate, int) or not known:
        return ""
    asked = rate * cell.cell.parallel / 1e6
    if min(known) >= STEADY * asked:
        return ""
    return (
        f"{rate_text(asked)} Mbit/s were requested on each pair; the slowest sender achieved {rate_text(min(known))}: "
        "what was received says nothing about the network's limit."
    )


def _loss(stream: StreamSummary, several: bool) -> str:
    counted = stream.datagrams
    if counted is None or counted.sent is None or counted.lost is None:
        return ""
    where = f" on {stream}" if several else ""
    if counted.lost == 0:
        return f"All {count_text(counted.sent)} datagrams arrived{where}."
    longest = f", at most {count_text(counted.burst_max)} in a row" if counted.burst_max else ""
    share = f"{100 * counted.lost / counted.sent:.2g} %{longest}."
    if counted.sent_burst:
        share += f" The sender's longest burst was {count_text(counted.sent_burst)}."
    return f"{count_text(counted.lost)} of {count_text(counted.sent)} datagrams were lost{where}, {share}"


def _order(cell: CellSummary) -> Iterator[str]:
    for name, what in (("reordered", "reordered"), ("duplicates", "duplicates")):
        known = [getattr(stream.datagrams, name) or 0 for stream in cell.streams if stream.datagrams is not None]
        if sum(known):
            yield f"{count_text(sum(known))} {what}."


def _drops(info: RunInfo, cell: CellSummary) -> Iterator[str]:
    """Which of the losses were not the network's."""
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    refused = sum(datagrams.sender_drops or 0 for datagrams in counted)
    overflow = sum(datagrams.receiver_drops or 0 for datagrams in counted)
    if refused:
        yield f"The senders' own queues refused {count_text(refused)} more; these were never sent and are not counted."
    if overflow:
        pieces = ", a piece of several datagrams as one" if info.plan.virtual == "namespaces" else ""
        yield (
            f"The receivers' full socket buffers dropped {count_text(overflow)} (as their kernels count them{pieces}): "
            "a loss at the host, not in the network. A larger window, which sets the buffer, may help."
        )
