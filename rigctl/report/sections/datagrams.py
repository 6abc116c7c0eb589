"""Datagrams: what was sent, what arrived, and how. Columns of the rows, sentences, and the table of a search."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.bottleneck import LINE_RATE_EFFICIENCY
from rigctl.analysis.ceiling import datagram_path, ip_version, link_mtu
from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.model.ceilings import ETHERNET_CHECK, ETHERNET_GAP, ETHERNET_HEADER, Packet
from rigctl.model.search import Search, Trial, search
from rigctl.records import MAX_RATE, Cell, Repetition, RunInfo
from rigctl.report.table import ComparisonTable, TableColumn, TableRow
from rigctl.report.text import UNKNOWN, ceiling_text, count_text, listed, percent_text, plural, rate_text
from rigctl.units import format_rate

STEADY: Final = 0.98
"""From this share of the rate asked for on, the sender kept to it."""


def datagram_words(info: RunInfo, cell: CellSummary) -> list[str]:
    """What became of the datagrams of one cell."""
    said = [_rate_words(cell), *(_loss_words(stream, len(cell.streams) > 1) for stream in cell.streams)]
    return [sentence for sentence in [*said, *_order_words(cell), *_drop_words(info, cell)] if sentence]


def _rate_words(cell: CellSummary) -> str:
    """Whether the senders kept to what was asked."""
    sent = [stream.datagrams.sent_mbps for stream in cell.streams if stream.datagrams is not None]
    known = [rate for rate in sent if rate is not None]
    if not isinstance(cell.cell.datagrams.rate, int) or not known:
        return ""
    asked = cell.cell.datagrams.rate * cell.cell.parallel / 1e6
    if min(known) >= STEADY * asked:
        return ""
    return (
        f"{rate_text(asked)} Mbit/s were asked for on each pair; the slowest sender brought out "
        f"{rate_text(min(known))}: what arrived says nothing of the network's limit."
    )


def _loss_words(stream: StreamSummary, several: bool) -> str:
    counted = stream.datagrams
    if counted is None or counted.sent is None or counted.lost is None:
        return ""
    where = f" on {stream}" if several else ""
    if counted.lost == 0:
        return f"All {count_text(counted.sent)} datagrams arrived{where}."
    longest = f", at most {count_text(counted.burst_max)} in a row" if counted.burst_max else ""
    share = f"{100 * counted.lost / counted.sent:.2g} %"
    return f"{count_text(counted.lost)} of {count_text(counted.sent)} datagrams were lost{where}, {share}{longest}."


def _order_words(cell: CellSummary) -> Iterator[str]:
    for name in ("reordered", "duplicates"):
        total = sum(getattr(one.datagrams, name) or 0 for one in cell.streams if one.datagrams is not None)
        if total:
            yield f"{count_text(total)} {'came out of order' if name == 'reordered' else 'came twice'}."


def _drop_words(info: RunInfo, cell: CellSummary) -> Iterator[str]:
    """Which of the losses were not the network's."""
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    refused = sum(one.sender_drops or 0 for one in counted)
    overflow = sum(one.receiver_drops or 0 for one in counted)
    if refused:
        yield f"The senders' own queues refused {count_text(refused)} more, which were never sent and are not counted."
    if overflow:
        pieces = ", a piece of several datagrams as one" if info.plan.virtual == "namespaces" else ""
        yield (
            f"The receivers' full socket buffers dropped {count_text(overflow)} (as their kernels count them{pieces}): "
            "that is the host, not the network. A larger window, which sets the buffer, may help."
        )


def loss_words(cells: Sequence[CellSummary]) -> list[str]:
    """Over all tests of a run: what was lost, and where most of it."""
    lost = {cell.cell.number: _share(cell) for cell in cells if cell.cell.transport == "udp"}
    known = {number: share for number, share in lost.items() if share is not None}
    if not known:
        return []
    if not any(known.values()):
        return ["No datagram was lost in any test."]
    worst = max(known, key=lambda number: known[number])
    some = sum(share > 0 for share in known.values())
    share = f"{100 * known[worst]:.2g} %"
    said = [f"Datagrams were lost in {some} of {plural(len(known), 'test')}, most in test {worst}: {share}."]
    full = [cell.cell.number for cell in cells if any(_overflowed(stream) for stream in cell.streams)]
    if full:
        tests = f"test{'s' if len(full) > 1 else ''} {listed([str(number) for number in full])}"
        said.append(f"In {tests} socket buffers of receivers were full: such losses are the host's, not the network's.")
    return said


def _overflowed(stream: StreamSummary) -> bool:
    return stream.datagrams is not None and bool(stream.datagrams.receiver_drops)


def shaping_words(info: RunInfo) -> list[str]:
    """Where a virtual link carries more of such datagrams than a wire does: it is shaped for full frames."""
    if info.plan.virtual != "namespaces":
        return []
    cells = {cell.message_bytes: cell for cell in info.plan.cells if cell.datagrams.rate is not None}
    said = [words for cell in cells.values() if (words := _shaped(info, cell))]
    began = "The virtual links are shaped for full frames; they carry more of smaller datagrams"
    return [f"{began}: in Mbit/s {listed(said)}."] if said else []


def _shaped(info: RunInfo, cell: Cell) -> str:
    pair, size = cell.pairs[0], cell.message_bytes
    path = datagram_path(info, (pair.source, pair.destination), cell)
    mtu = info.plan.condition_mtu(cell.condition) or link_mtu(info, pair.source)
    if path.ceiling_mbps is None or path.rate_bps is None or size is None or mtu is None:
        return ""
    frame = ETHERNET_HEADER + Packet("udp", ip_version(info)).header_bytes + size
    around = ETHERNET_HEADER + ETHERNET_CHECK + ETHERNET_GAP
    carried_mbps = path.rate_bps / 1e6 * (mtu + ETHERNET_HEADER) / (mtu + around) * size / frame
    if carried_mbps <= 1.01 * path.ceiling_mbps:
        return ""
    return f"{ceiling_text(carried_mbps)} of {size} bytes, where a wire carries {ceiling_text(path.ceiling_mbps)}"


def _is_all(info: RunInfo, cell: Cell, best: Trial) -> bool:
    """Whether a rate is what the narrowest link of its pairs carries."""
    paths = [datagram_path(info, stream.ends, cell) for stream in cell.streams]
    ceilings = [path.ceiling_mbps for path in paths if path.ceiling_mbps is not None]
    own = (best.sent_bps or 0.0) * cell.parallel / 1e6
    return bool(ceilings) and own >= LINE_RATE_EFFICIENCY * min(ceilings)


def _share(cell: CellSummary) -> float | None:
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    sent, lost = (sum(getattr(one, name) or 0.0 for one in counted) for name in ("sent", "lost"))
    return lost / sent if sent and all(one.lost is not None for one in counted) else None


def searches(info: RunInfo, repetitions: Sequence[Repetition]) -> dict[int, Search]:
    """Of each cell whose highest rate was looked for, what its trials say."""
    found = {}
    for cell in info.plan.cells:
        if cell.datagrams.rate == MAX_RATE:
            last = {one.repetition: one for one in repetitions if one.cell == cell.number}
            found[cell.number] = search(info.plan, cell, last.values())
    return found


def search_words(info: RunInfo, repetitions: Sequence[Repetition]) -> list[str]:
    """The answer of each search: the rate, in bits and in datagrams, and what comes above it."""
    cells = {cell.number: cell for cell in info.plan.cells}
    found = searches(info, repetitions)
    return [_search_sentence(info, cells[number], one) for number, one in found.items() if one.trials]


def _search_sentence(info: RunInfo, cell: Cell, found: Search) -> str:
    bound = f"{100 * info.plan.max_loss:g} %"
    which = f"Test {cell.number} (datagrams of {cell.message_bytes} bytes)"
    trials = plural(len(found.trials), "trial")
    best = found.best
    if best is None or best.sent_bps is None:
        least = min((one.asked_bps for one in found.trials if one.asked_bps), default=None)
        tried = f" down to {format_rate(least)} per flow" if least else ""
        return f"{which}: no rate{tried} kept the loss within {bound}, in {trials}."
    packets = best.sent_bps * len(cell.pairs) * cell.parallel / 8 / (cell.message_bytes or 1)
    total = best.sent_bps * len(cell.pairs) * cell.parallel
    above = [one for one in found.trials if not one.passed(info.plan.max_loss) and one.sent_bps is not None]
    said = (
        f"{which}: {format_rate(total)} of payload, {packets:,.0f} datagrams/s, is the highest rate with a loss of at "
        f"most {bound}, found in {trials}"
    )
    if not above:
        whole = "what the link carries" if _is_all(info, cell, best) else "all the senders bring out"
        return f"{said}: that is {whole}{'' if _is_all(info, cell, best) else ', so the network may carry more'}."
    nearest = min(above, key=lambda one: one.sent_bps or 0.0)
    lost = percent_text(nearest.loss)
    return f"{said}; at {format_rate((nearest.sent_bps or 0) * len(cell.pairs) * cell.parallel)} {lost} % were lost."


def search_table(info: RunInfo, repetitions: Sequence[Repetition]) -> ComparisonTable | None:
    """Every trial of every search; `None` where nothing was searched."""
    found = searches(info, repetitions)
    rows = []
    for number, one in found.items():
        for trial in one.trials:
            cells = (str(number), str(trial.number), *_trial_cells(trial, info.plan.max_loss))
            rows.append(TableRow(number, cells, (), trial.sent_bps is not None, False))
    if not rows:
        return None
    columns = (
        TableColumn("Test", "", "asked"),
        TableColumn("Trial", "", "asked"),
        TableColumn("Asked", "Mbit/s", "asked"),
        TableColumn("Sent", "Mbit/s", "measured"),
        TableColumn("Arrived", "Mbit/s", "measured"),
        TableColumn("Loss", "%", "measured"),
        TableColumn("Carried", "", "derived", True),
    )
    return ComparisonTable(columns, tuple(rows), (), ("Rates are those of one flow, payload.",))


def _trial_cells(trial: Trial, most_loss: float) -> tuple[str, ...]:
    asked = "unlimited" if trial.asked_bps is None else ceiling_text(trial.asked_bps / 1e6)
    rates = (UNKNOWN if rate is None else ceiling_text(rate / 1e6) for rate in (trial.sent_bps, trial.arrived_bps))
    loss = UNKNOWN if trial.loss is None else f"{100 * trial.loss:.3g}"
    return (asked, *rates, loss, UNKNOWN if trial.loss is None else "yes" if trial.passed(most_loss) else "no")
