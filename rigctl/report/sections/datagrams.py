"""Report part on datagrams: what was sent and received, and the highest rate within a given loss.

The highest rate without loss is the no drop rate (NDR); with some loss allowed, the partial drop rate (PDR). RFC 2544,
section 26.1, asks for zero loss and trials of 60 s, so the report names the loss and the duration of a trial.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_duration, format_rate, size_words
from rigctl.base.values import divide, group_by, least, most
from rigctl.figures import Figure
from rigctl.figures import datagrams as figures
from rigctl.figures.effective import BURST_EFFECTIVE
from rigctl.findings import Finding, Severity, Statement, Weight, goodput, tests
from rigctl.findings import loss as losses
from rigctl.findings.goodput import Rates, excess_findings, goodput_findings, impossible
from rigctl.findings.limits import bottleneck_findings, bottleneck_text
from rigctl.findings.repetitions import findings_on_exclusions
from rigctl.findings.text import (
    MOST_NAMED,
    UNKNOWN,
    ceiling_text,
    count_text,
    few_text,
    numbers_text,
    pct_text,
    percent_text,
    plural,
    rate_text,
    some,
    upper_first,
)
from rigctl.limits.ceilings import LINE_RATE, percent, reaches
from rigctl.limits.hosts import BUFFER_BOUNDS
from rigctl.limits.limit import BY_OTHER_TRAFFIC, BY_SHARED_LINK, LIMITS
from rigctl.limits.links import datagram_path
from rigctl.model.search import Search
from rigctl.model.trials import Trial
from rigctl.records import Cell, RunInfo, host_system
from rigctl.report.blocks import Column, Entry, Part, Section, Table
from rigctl.report.search_goals import goal_findings, goal_table
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import (
    ColumnOf,
    RowHead,
    count_texts,
    each,
    entry_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
    to_loss,
)
from rigctl.report.tables.requested import DATAGRAM_COLUMNS
from rigctl.results.summary import CellSummary
from rigctl.settings import BURST, RATE

SECTION = "datagrams"
_STEADY: Final = 0.98
"""A sender below this share of the requested load fell short of it."""
_ALL_PCT: Final = 100.0
"""An answer names no rate as the network's that is above this share of the line rate."""
_METHOD: Final = (
    columns.GOODPUT_METHOD,
    "A duplicate counts once. Loss, reordering and jitter cover all datagrams that a test sent.",
    "Each datagram carries a number and the time at which it was sent. Jitter is that of RFC 3550 at the end of the "
    "test; datagrams that the receiver's kernel delivers together count as received at the same time.",
)


def part(view: RunView) -> Part:
    """Return the report part on datagrams; `view` has only the UDP streams."""
    trials = search_table(view)
    results = columns.stream_table(view.cells, DATAGRAM_COLUMNS, _MEASURED, _OF_MANY)
    heads = (columns.LINE_RATE_HEAD if head == columns.EFFICIENCY_HEAD else head for head in results.columns)
    title = "The search for the highest rate, trial by trial"
    return Part(
        findings=tuple(datagram_findings(view)),
        results=replace(results, columns=tuple(heads)),
        sections=(Section(title, tuple(filter(None, (goal_table(view), trials))), full=True),) if trials else (),
        details=columns.details(view, lambda cell: explain(view.info, cell)),
        method=_METHOD,
    )


_MEASURED: Final = (
    columns.packets_column,
    columns.of_datagrams(
        "Longest burst sent", "", BURST_EFFECTIVE, count_texts, wanted=lambda cell: cell.cell[BURST] is not None
    ),
    columns.LOSS_COLUMN,
    columns.of_datagrams("Longest loss burst", "", figures.LOSS_BURST, count_texts, minor=2),
    columns.of_datagrams("Reordered", "", figures.REORDERED, count_texts, minor=2),
    columns.of_datagrams("Duplicates", "", figures.DUPLICATES, count_texts, minor=2),
    columns.of_datagrams("Jitter", "µs", figures.JITTER, to_digits(2, 3), minor=1),
    *columns.shown_columns(),
)
_OF_MANY: Final = "Packets are those of all pairs; loss, reordering and jitter are those of the worst pair."


def search_table(view: RunView) -> Table | None:
    """Return a table with a row per trial of the rate searches, or None if nothing was searched."""
    rows = [(number, trial) for number, search in view.searches.items() for trial in search.trials]
    if not rows:
        return None

    def bound(row: tuple[int, Trial]) -> Entry:
        return Entry(view.searches[row[0]].bounds.get(row[1].load or 0.0, UNKNOWN))

    def offered(row: tuple[int, Trial]) -> Entry:
        rate_mbps = divide(row[1].asked, 1e6)
        return Entry("unlimited" if rate_mbps is None else ceiling_text(rate_mbps), rate_mbps)

    def passed(row: tuple[int, Trial]) -> Entry:
        return Entry(UNKNOWN if row[1].passed is None else "yes" if row[1].passed else "no")

    table_columns: list[ColumnOf[tuple[int, Trial]]] = [
        each(Column("Test", "", "requested"), lambda row: row[0]),
        each(Column("Trial", "", "requested"), lambda row: row[1].number),
        entry_column(Column("Offered", "Mbit/s", "requested"), offered),
        number_column("Sent", "Mbit/s", lambda row: divide(row[1].sent, 1e6), to_decimals(1)),
        number_column("Received", "Mbit/s", lambda row: divide(row[1].arrived, 1e6), to_decimals(1)),
        number_column("Longest burst sent", "", lambda row: row[1].burst, count_texts),
        number_column("Loss", "%", lambda row: divide(row[1].loss, 0.01), to_decimals(3)),
        number_column("Lasted", "s", lambda row: row[1].lasted_s, to_decimals(2)),
        entry_column(Column("Passed", "", "derived", words=True), passed),
        entry_column(Column("Load", "", "derived", words=True), bound),
    ]
    legend = ("Rates are payload rates of one flow.",)
    return table_of(rows, table_columns, lambda row: RowHead(row[0], counted=row[1].sent is not None), legend, "Trials")


def datagram_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings on datagrams, the answer first."""
    if not view.meshes:
        yield from _answer(view)
    yield from search_findings(view)
    yield from goal_findings(view)
    yield from _losses(view.info, view.cells)
    if short := [cell.cell.number for cell in view.cells if cell.counted and load_shortfall(cell) is not None]:
        yield losses.LOAD_NOT_SENT.say(tests(short), tests=numbers_text(short))
    if not view.classed:  # the part on traffic classes yields these findings
        yield from bottleneck_findings(view.cells)
    yield from excess_findings(view.info, view.cells)
    yield from findings_on_exclusions(view.cells)


@dataclass(frozen=True, slots=True)
class Fastest:
    """The fastest test of a size within the allowed loss, and whose rate that is."""

    cell: CellSummary
    above: bool  # goodput exceeds the line rate for this size, as it may on a virtual link
    sent: bool  # the senders sent no more: the network may carry more

    @property
    def of_network(self) -> bool:
        return not (self.above or self.sent)


def _answer(view: RunView) -> Iterator[Finding]:
    """Yield the answer: the highest rate of each size within the allowed loss; the lowest loss if all exceed it."""
    known = _with_loss(view)
    if not known:
        yield from goodput_findings(view.info, view.cells)
        return
    rates = Rates(view.cells)
    passed = [cell for cell in known if _has_passed(view, cell)]
    if not passed:
        yield _least_lossy(view, known, rates)
        return
    best = fastest_by_size(view)
    loss = f"at most {100 * view.plan.max_loss:g} % loss" if any(_loss_share(one.cell) for one in best) else "no loss"
    parts = _passed_texts(best, rates, loss, "virtual link" if view.plan.virtual else "")
    lossy = [cell for cell in known if cell not in passed]
    if lossy and len(best) < MOST_NAMED:
        worst = max(lossy, key=lambda cell: _loss_share(cell) or 0.0)
        parts.append(f"{_loss_text(worst, view.cells)} % lost in test {worst.cell.number}")
    first = next((one for one in best if one.of_network), best[0]).cell
    numbers = {"goodput_mbps": min(rates.of(first)), "packets_per_s": _packets(first, rates)}
    statements = [
        Statement(loss, [one.cell for one in best], lambda cell: _has_passed(view, cell)),
        *(_stated(best, name) for name in ("above", "sent", "of_network")),
    ]
    yield Finding(
        "datagrams",
        upper_first("; ".join(parts)),
        Weight.ANSWER,
        subject=tests(one.cell.cell.number for one in best),
        numbers=numbers,
        brief=_brief(best, rates, loss),
        statements=tuple(statements),
    )


def _with_loss(view: RunView) -> list[CellSummary]:
    """Return the tests whose goodput and loss are known, and possible on their links."""
    known = [cell for cell in view.cells if cell.cell.message_bytes and _loss_share(cell) is not None]
    return [cell for cell in known if cell.goodput_mbps is not None and not impossible(view.info, cell)]


def fastest_by_size(view: RunView) -> list[Fastest]:
    """Return the fastest test of each size of datagrams within the allowed loss, the largest size first."""
    rates = Rates(view.cells)
    passed = sorted((cell for cell in _with_loss(view) if _has_passed(view, cell)), key=_size, reverse=True)
    return [_fastest(view, max(own, key=lambda cell: min(rates.of(cell)))) for own in group_by(passed, _size).values()]


def _has_passed(view: RunView, cell: CellSummary) -> bool:
    return (_loss_share(cell) or 0.0) <= view.plan.max_loss


def _stated(best: Sequence[Fastest], name: str) -> Statement:
    rows = [one for one in best if getattr(one, name)]
    return Statement("", rows, lambda one: bool(getattr(one, name)), best)


def _fastest(view: RunView, cell: CellSummary) -> Fastest:
    above = cell.efficiency is not None and percent(cell.efficiency) > _ALL_PCT
    return Fastest(cell, above, not above and _is_all_sent(view, cell))


def _is_all_sent(view: RunView, cell: CellSummary) -> bool:
    """Tell whether the senders of a test without too much loss could not send more."""
    if LIMITS[cell.limit].of_product or cell.limit in (BY_SHARED_LINK.word, BY_OTHER_TRAFFIC.word):
        return False
    rate, searched = cell.cell[RATE], view.searches.get(cell.cell.number)
    if searched is None:
        return not isinstance(rate, int) or load_shortfall(cell) is not None
    best = searched.best
    return best is None or best.asked is None or (best.sent or 0.0) < _STEADY * best.asked


def _passed_texts(best: Sequence[Fastest], rates: Rates, loss: str, why_above: str) -> list[str]:
    """Return the parts of the answer: the rates of the network, those of the senders, those above the line rate."""
    each = " per pair" if len(best[0].cell.streams) > 1 and not rates.summed else ""
    parts = []
    if own := [one.cell for one in best if one.of_network]:
        share = "" if own[0].efficiency is None else f"{percent_text(own[0].efficiency)} % of line rate with "
        rate = f"{rates.least(own[0])} Mbit/s{each}"
        packets = f"{columns.packets_text(_packets(own[0], rates))} packets/s"
        if share:
            more = [f"{percent_text(cell.efficiency)} % with {_size(cell)}" for cell in own[1:]]
            parts.append(f"{loss} at {_few([f'{share}{_size_text(own[0])} ({rate}, {packets})', *more])}")
        else:
            more = [f"{rates.least(cell)} with {_size(cell)}" for cell in own[1:]]
            parts.append(f"{loss} up to {_few([f'{rate} with {_size_text(own[0])} ({packets})', *more])}")
    if own := [one.cell for one in best if one.sent]:
        frames = [columns.packets_text(_packets(cell, rates)) for cell in own]
        more = [f"{count} with {_size(cell)}" for count, cell in zip(frames[1:], own[1:], strict=True)]
        first = f"≥ {frames[0]} frames/s{each} with {_size_text(own[0])}"
        parts.append(f"{'' if parts else f'{loss} at '}{_few([first, *more])} (senders)")
    if own := [one.cell for one in best if one.above]:
        sizes = _size_text(own[0]) if len(own) == 1 else f"{some([str(_size(cell)) for cell in own])} bytes"
        beyond = f"above line rate{why_above and f' ({why_above})'}"
        parts.append(f"{sizes}: {beyond}" if parts else f"{loss} with {sizes}, {beyond}")
    return parts


def _few(texts: Sequence[str]) -> str:
    """Return texts separated by commas; of more than `MOST_NAMED`, the first, the last and how many are between."""
    if len(texts) > MOST_NAMED:
        texts = [texts[0], f"{len(texts) - 2} sizes between", texts[-1]]
    return ", ".join(texts)


def _brief(best: Sequence[Fastest], rates: Rates, loss: str) -> str:
    first = next((one for one in best if one.of_network), next((one for one in best if one.sent), best[0]))
    if first.above:
        return f"{loss}, above line rate ({_size(first.cell)} B)"
    sent, loss = " sent" if first.sent else "", "without loss" if loss == "no loss" else f"with {loss}"
    return f"{rates.least(first.cell)} Mbit/s{sent} {loss} ({_size(first.cell)} B)"


def _least_lossy(view: RunView, known: Sequence[CellSummary], rates: Rates) -> Finding:
    """Return the answer if all tests lost more than is allowed: the test with the lowest loss."""
    least = min(known, key=lambda cell: _loss_share(cell) or 0.0)
    each = " per pair" if len(least.streams) > 1 and not rates.summed else ""
    rate = f"{rates.least(least)} Mbit/s{each}"
    packets = columns.packets_text(_packets(least, rates))
    loss = f"{_loss_text(least, view.cells)} % loss at"
    return Finding(
        "datagrams",
        f"{loss} {rate} with {_size_text(least)} ({packets} packets/s), the least of {plural(len(known), 'test')}",
        Weight.ANSWER,
        subject=tests([least.cell.number]),
        numbers={"goodput_mbps": min(rates.of(least)), "packets_per_s": _packets(least, rates)},
        brief=f"{loss} {rate}",
        statements=(Statement(loss, known, lambda cell: (_loss_share(cell) or 0.0) >= (_loss_share(least) or 0.0)),),
    )


def _size(cell: CellSummary) -> int:
    return cell.cell.message_bytes or 0


def _size_text(cell: CellSummary) -> str:
    return plural(_size(cell), "byte")


def _packets(cell: CellSummary, rates: Rates) -> float:
    """Return packets per second: of the slowest pair, or of all pairs if `rates` has only totals."""
    return columns.packets_per_s(min(rates.of(cell)), cell) or 0.0


def _loss_text(cell: CellSummary, cells: Sequence[CellSummary]) -> str:
    """Return the worst pair's loss in percent as the table prints it."""
    each = [[stream[figures.LOSS] for stream in own.streams] for own in cells]
    shown = map(most, each) if columns.many(cells) else chain.from_iterable(each)
    return to_loss(list(shown))(most(each[cells.index(cell)]))


def search_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding on each rate search: the highest rate within the allowed loss, and what limits the rate."""
    cells = {cell.number: cell for cell in view.plan.cells}
    searches = view.searches.items()
    yield from (_search_finding(view, cells[number], search) for number, search in searches if search.trials)


def _search_finding(view: RunView, cell: Cell, search: Search) -> Finding:
    subject, loss = tests([cell.number]), 100 * view.plan.max_loss
    lasting = f"trials of {format_duration(cell.duration_s)}"
    blank = [trial for trial in search.trials if trial.sent is None]
    words = {
        "which": f"Test {cell.number} (datagrams of {plural(cell.message_bytes or 0, 'byte')})",
        "name": f"PDR (loss {loss:g} %, {lasting})" if loss else f"NDR ({lasting})",
        "trials": plural(len(search.trials), "trial"),
        "unmeasured": goodput.UNMEASURED.format(trials=plural(len(blank), "trial")) if blank else "",
    }
    best = search.best
    if len(blank) == len(search.trials):
        return goodput.SEARCH_UNMEASURED.say(subject, **words)
    if best is None or best.sent is None:
        least = min((trial.asked for trial in search.trials if trial.asked), default=None)
        tried = f" down to {format_rate(least)} per flow" if least else ""
        return goodput.SEARCH_NONE.say(subject, tried=tried, **words)
    total_bps = best.sent * len(cell.streams) * cell.parallel
    packets = total_bps / 8 / (cell.message_bytes or 1)
    words |= {
        "rate": format_rate(total_bps),
        "pairs": f" over {len(cell.pairs)} pairs together" if len(cell.pairs) > 1 else "",
        "bursts": "" if best.burst is None else f" in bursts of at most {plural(best.burst, 'datagram')}",
        "beyond": _beyond(view, cell, search, best),
        "less": str((best.burst or 0) // 2),
    }
    numbers = {"goodput_bps": total_bps, "datagrams_per_s": packets, "trials": len(search.trials)}
    shorter = (best.burst or 0) > 1 and not _is_all(view.info, cell, best)
    sentence = goodput.SEARCH.at(Severity.WARNING if blank else Severity.NOTE).advising(shorter)
    return sentence.say(subject, numbers, **words)


def _beyond(view: RunView, cell: Cell, search: Search, best: Trial) -> str:
    """Return a phrase on why no higher rate was found: the loss at a higher rate, or what links or senders achieve."""
    flows = len(cell.streams) * cell.parallel
    if best.asked is not None and (best.sent or 0.0) < _STEADY * best.asked:
        asked = format_rate(best.asked * flows)
        return f"; {asked} were requested in that trial and the senders fell short: the network may carry more"
    if (nearest := search.above) is not None:
        rate = format_rate((nearest.sent or 0.0) * flows)
        return f"; at {rate} the loss is {few_text(nearest.loss) if nearest.loss else '0 %'}"
    if _is_all(view.info, cell, best):
        return ", which is the most that the links carry"
    return ", which is all that the senders achieve: the network may carry more"


def _is_all(info: RunInfo, cell: Cell, best: Trial) -> bool:
    paths = [datagram_path(info, stream.ends, cell.parallel, cell) for stream in cell.streams]
    ceilings = [path.ceiling_mbps for path in paths if path.ceiling_mbps is not None]
    own = (best.sent or 0.0) * cell.parallel / 1e6
    return bool(ceilings) and reaches(own / min(ceilings), LINE_RATE)


def _losses(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    known = {cell.cell.number: share for cell in cells if (share := _loss_share(cell)) is not None}
    if not any(known.values()):
        return
    worst = max(known, key=lambda number: known[number])
    some = [number for number, share in known.items() if share > 0]
    loss_pct, words = 100 * known[worst], {"lossy": len(some), "known": len(known), "worst": worst}
    sentence = losses.DATAGRAMS_LOST if len(known) > 1 else losses.DATAGRAMS_LOST_IN_TEST
    yield sentence.say(tests(some), {"loss_pct": loss_pct}, loss=f"{pct_text(loss_pct)} %", **words)
    if full := [cell.cell.number for cell in cells if _drops_of(cell, figures.RECEIVER_DROPS)]:
        yield losses.BUFFERS_FULL.say(tests(full), tests=numbers_text(full))
    yield from _uncounted(info, [cell for cell in cells if known.get(cell.cell.number)])


def _uncounted(info: RunInfo, lossy: Sequence[CellSummary]) -> Iterator[Finding]:
    """Yield a finding for each receiver whose system does not count what its full receive buffers drop."""
    lost = [(cell, stream) for cell in lossy for stream in cell.streams if stream[figures.LOST]]
    for node, own in group_by(lost, lambda one: one[1].stream.receiver).items():
        system = host_system(info.facts.get(node, {})) or "Linux"
        if system == "Linux" or any(stream[figures.RECEIVER_DROPS] is not None for _, stream in own):
            continue
        granted = least(stream.evidence.rcvbuf_bytes for _, stream in own)
        bound = BUFFER_BOUNDS[system]["receive"].requested if system in BUFFER_BOUNDS else None
        bounded = f"; {bound} bounds it" if bound is not None else ""
        buffer = f" The buffer has {size_words(round(granted))}{bounded}." if granted is not None else ""
        numbers = sorted({cell.cell.number for cell, _ in own})
        words = {"nodes": node, "system": system, "tests": numbers_text(numbers), "buffer": buffer}
        yield losses.DROPS_UNCOUNTED.say(tests(numbers), {"rcvbuf_bytes": granted}, **words)


def _loss_share(cell: CellSummary) -> float | None:
    sent, lost = (sum(stream[figure] or 0.0 for stream in cell.streams) for figure in (figures.SENT, figures.LOST))
    return lost / sent if sent and all(stream[figures.LOST] is not None for stream in cell.streams) else None


def _drops_of(cell: CellSummary, figure: Figure[int]) -> float:
    return sum(stream[figure] or 0 for stream in cell.streams)


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """Return sentences on one test: load that was not sent, drops at the hosts, and the cause of its limit."""
    if not cell.counted:
        return []
    sentences = []
    if short := load_shortfall(cell):
        sentences.append(
            f"{rate_text(short[0])} Mbit/s were requested on each pair; the slowest sender achieved "
            f"{rate_text(short[1])}: what was received says nothing about the network's limit."
        )
    if refused := _drops_of(cell, figures.SENDER_DROPS):
        sentences.append(
            f"The senders' own queues refused {count_text(refused)} more datagrams, which are not counted as sent."
        )
    if overflow := _drops_of(cell, figures.RECEIVER_DROPS):
        batches = ", which count a batch of datagrams as one" if info.plan.virtual == "namespaces" else ""
        sentences.append(
            f"The receivers' full socket buffers dropped {count_text(overflow)} (counted by their kernels{batches}): a "
            "loss at the hosts, not in the network. A larger window, which sets the buffer size, may help."
        )
    return list(filter(None, [*sentences, bottleneck_text(cell)]))


def load_shortfall(cell: CellSummary) -> tuple[float, float] | None:
    """Return the requested load and the slowest sender's rate in Mbit/s; None if no sender is known to fall short."""
    known = [rate_mbps for stream in cell.streams if (rate_mbps := stream[figures.SENT_MBPS]) is not None]
    rate = cell.cell[RATE]
    if not isinstance(rate, int) or not known:
        return None
    asked_mbps = rate * cell.cell.parallel / 1e6
    return (asked_mbps, min(known)) if min(known) < _STEADY * asked_mbps else None
